// SPDX-License-Identifier: Apache-2.0
//
// Texts out of lines, JSON and records, and some thousand of them together.

#include "tools/encore/text_input.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>

#include "engine/platform/path.h"
#include "nlohmann/json.hpp"
#include "tools/encore/failure.h"
#include "tools/encore/stop_signal.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

// Held at once.
constexpr size_t kBytes = size_t{16} << 20;

// ".jsonl", in lower case.
std::string EndingOf(const std::string& path) {
  std::string ending = internal::PathText(internal::ToPath(path).extension());
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return ending;
}

}  // namespace

TextFormat TextSource::FormatOrGuess() const {
  if (format) return *format;
  const std::string ending = EndingOf(path);
  if (ending == ".jsonl" || ending == ".ndjson") return TextFormat::kJsonLines;
  if (ending == ".csv") return TextFormat::kCsv;
  if (ending == ".tsv") return TextFormat::kTsv;
  if (ending == ".json") {
    throw Failure("--input " + path + ": found the name of a JSON document, wanted one text a " +
                  "line; --format jsonl reads a JSON value a line, --format text plain lines");
  }
  return TextFormat::kLines;
}

TextReader::TextReader(const TextSource& source)
    : format_(source.FormatOrGuess()),
      guessed_(!source.format),
      rules_{.field = source.field.empty() ? "text" : source.field,
             .replace_invalid = source.replace_invalid},
      lines_(source.path) {
  if (format_ == TextFormat::kLines && !source.field.empty()) {
    throw Failure("--field is for the formats jsonl, csv and tsv, found plain text");
  }
}

size_t TextReader::line() const { return records_ ? records_->line() : lines_.number(); }

void TextReader::FindColumns() {
  records_.emplace(&lines_, format_ == TextFormat::kCsv ? ',' : '\t');
  text_column_ = records_->ColumnOf(rules_.field);
  id_column_ = records_->ColumnOf("id");
  if (text_column_ < records_->header().size() || StopRequested()) return;
  std::vector<std::string> names;
  for (const std::string& name : records_->header()) {
    names.push_back("'" + Shortened(Printable(name), 40) + "'");
  }
  throw Failure(Where() + ": found " + (names.empty() ? "no header" : "the columns ") +
                Joined(names) + ", wanted '" + Printable(rules_.field) +
                "' among them; --field NAME names the column of the texts");
}

bool TextReader::NextRecord(TextInput* input) {
  if (!records_) FindColumns();
  const std::vector<std::string>* const record = records_->Next();
  if (record == nullptr) return false;
  input->text = (*record)[text_column_];
  if (id_column_ < record->size()) {
    const std::string& id = (*record)[id_column_];
    const std::string invalid = FoundInvalidUtf8(id);
    if (!invalid.empty() && !rules_.replace_invalid) {
      throw Failure(Where() + ": found " + invalid +
                    ", in the id; --replace-invalid takes it for " + "U+FFFD");
    }
    input->id = AsJson(id);
  }
  return true;
}

bool TextReader::Next(TextInput* input) {
  input->pair.reset();
  input->id.clear();
  if (format_ == TextFormat::kCsv || format_ == TextFormat::kTsv) return NextRecord(input);
  std::string_view line;
  if (!lines_.Next(&line)) return false;
  if (format_ == TextFormat::kJsonLines) {
    const std::string wrong = ReadJsonLine(line, rules_, input);
    if (wrong.empty()) return true;
    throw Failure(Where() + ": " + wrong);
  }
  // Such a line is hardly a text; its braces and keys would be embedded with it.
  if (guessed_ && lines_.number() == 1 && (line.starts_with('{') || line.starts_with('[')) &&
      nlohmann::json::accept(line)) {
    throw Failure(Where() + ": found JSON, wanted plain text; --format jsonl reads the texts of " +
                  "JSON lines, --format text takes lines as they are");
  }
  input->text.assign(line);
  return true;
}

std::vector<std::string> SampleTexts(const std::string& path, size_t most) {
  std::vector<std::string> texts;
  TextReader reader({.path = path});
  TextInput input;
  while (texts.size() < most && reader.Next(&input)) texts.push_back(std::move(input.text));
  if (texts.empty()) throw Failure("--texts " + Printable(path) + ": no text, wanted at least one");
  return texts;
}

TextChunks::TextChunks(const TextSource& source)
    : reader_(source), shard_(source.shard), shards_(source.shards) {
  std::error_code error;
  if (source.path == "-") return;
  const std::filesystem::path path = internal::ToPath(source.path);
  if (!std::filesystem::is_regular_file(path, error)) return;
  const auto size = std::filesystem::file_size(path, error);
  if (!error) size_bytes_ = static_cast<size_t>(size);
}

bool TextChunks::Next(size_t most) {
  texts_.clear();
  ids_.clear();
  lines_.clear();
  size_t bytes = 0;
  TextInput input;
  most = std::min(most, kMostTexts);
  while (texts_.size() < most && bytes < kBytes && reader_.Next(&input)) {
    if (input.pair) throw Failure(reader_.Where() + ": found a pair, wanted a single text");
    if (read_++ % shards_ != shard_) continue;
    bytes += input.text.size() + input.id.size();
    texts_.push_back(std::move(input.text));
    ids_.push_back(std::move(input.id));
    lines_.push_back(reader_.line());
  }
  return !texts_.empty();
}

void TextChunks::Check(const Status& status) const {
  if (status.ok()) return;
  const std::string& message = status.message();
  const size_t open = message.find('[');
  const size_t close = message.find("]: ");
  const std::string name = message.substr(0, std::min(open, message.size()));
  size_t index = 0;
  if ((name == "texts" || name == "documents") && close != std::string::npos &&
      std::from_chars(message.data() + open + 1, message.data() + close, index).ec == std::errc() &&
      index < texts_.size()) {
    throw Failure(Where(index) + message.substr(close + 1));
  }
  throw Failure(message);
}

}  // namespace encore::tool
