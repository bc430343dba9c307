// SPDX-License-Identifier: Apache-2.0
//
// Records of fields: CSV as RFC 4180 has it, and the same with tabs.

#ifndef ENCORE_TOOLS_ENCORE_CSV_READER_H_
#define ENCORE_TOOLS_ENCORE_CSV_READER_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tools/encore/line_reader.h"

namespace encore::tool {

// A field in quotes may hold the delimiter, line breaks, and quotes written twice. A quote that is
// not a field's first character is a character like others. Empty lines between records are passed
// over, as pandas and Python's csv do. The first record is the header; every other must have as
// many fields.
class CsvReader {
 public:
  // `lines` must stay where it is. Throws Failure unless there is a header.
  CsvReader(LineReader* lines, char delimiter);

  const std::vector<std::string>& header() const { return header_; }

  // Where the column of this name is, or header().size().
  size_t ColumnOf(const std::string& name) const;

  // The next record, valid until the next call, or null at the end. Throws Failure.
  const std::vector<std::string>* Next();

  size_t line() const { return line_; }  // the first of the last record, counted from 1

 private:
  bool ReadRecord();
  // The field that begins at line[*at]; *at moves to the delimiter behind it or to the line's end.
  void ReadQuoted(std::string_view* line, size_t* at, std::string* field);

  LineReader* lines_;
  char delimiter_;
  std::vector<std::string> header_;
  std::vector<std::string> fields_;
  size_t line_ = 0;
};

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_CSV_READER_H_
