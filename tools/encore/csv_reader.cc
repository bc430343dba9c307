// SPDX-License-Identifier: Apache-2.0
//
// Splits lines into fields.

#include "tools/encore/csv_reader.h"

#include <algorithm>

#include "tools/encore/failure.h"
#include "tools/encore/stop_signal.h"
#include "tools/encore/text.h"

namespace encore::tool {

CsvReader::CsvReader(LineReader* lines, char delimiter) : lines_(lines), delimiter_(delimiter) {
  if (ReadRecord()) header_ = fields_;
}

size_t CsvReader::ColumnOf(const std::string& name) const {
  return static_cast<size_t>(std::find(header_.begin(), header_.end(), name) - header_.begin());
}

void CsvReader::ReadQuoted(std::string_view* line, size_t* at, std::string* field) {
  ++*at;
  for (;;) {
    const size_t quote = line->find('"', *at);
    if (quote == std::string_view::npos) {
      *field += line->substr(*at);
      *field += lines_->line_end();
      *at = 0;
      if (lines_->Next(line)) continue;
      if (StopRequested()) return;
      throw Failure(lines_->Where(line_) + ": a quote is opened and never closed");
    }
    *field += line->substr(*at, quote - *at);
    *at = quote + 1;
    if (*at == line->size() || (*line)[*at] == delimiter_) return;
    if ((*line)[*at] != '"') {
      throw Failure(lines_->Where() + ": found text behind a closing quote, wanted the end of " +
                    "the field; quotes inside of a quoted field are written twice");
    }
    *field += '"';
    ++*at;
  }
}

bool CsvReader::ReadRecord() {
  std::string_view line;
  do {
    if (!lines_->Next(&line)) return false;
  } while (line.empty());
  line_ = lines_->number();
  fields_.clear();
  for (size_t at = 0;; ++at) {  // past the delimiter
    std::string& field = fields_.emplace_back();
    if (at < line.size() && line[at] == '"') {
      ReadQuoted(&line, &at, &field);
      if (StopRequested()) return false;
    } else {
      const size_t end = std::min(line.find(delimiter_, at), line.size());
      field = line.substr(at, end - at);
      at = end;
    }
    if (at >= line.size()) return true;
  }
}

const std::vector<std::string>* CsvReader::Next() {
  if (!ReadRecord()) return nullptr;
  if (fields_.size() != header_.size()) {
    throw Failure(lines_->Where(line_) + ": found " + Counted(fields_.size(), "column") +
                  ", wanted " + std::to_string(header_.size()) + " as in the header");
  }
  return &fields_;
}

}  // namespace encore::tool
