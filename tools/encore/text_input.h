// SPDX-License-Identifier: Apache-2.0
//
// Texts and pairs of texts from a file or the standard input, as plain lines, JSON lines, CSV or
// TSV, in bounded memory.

#ifndef ENCORE_TOOLS_ENCORE_TEXT_INPUT_H_
#define ENCORE_TOOLS_ENCORE_TEXT_INPUT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "encore/status.h"
#include "tools/encore/csv_reader.h"
#include "tools/encore/json_line.h"
#include "tools/encore/line_reader.h"

namespace encore::tool {

enum class TextFormat : uint8_t {
  kLines,      // a text a line
  kJsonLines,  // a line is a JSON string, or an object whose member `field` is the text
  kCsv,        // RFC 4180 with a header; the column `field` is the text
  kTsv,        // the same with tabs
};

struct TextSource {
  std::string path;                       // or "-" for the standard input
  std::optional<TextFormat> format = {};  // else by the name's ending: .jsonl, .ndjson, .csv, .tsv
  std::string field = "";                 // empty: "text"
  bool replace_invalid = false;           // of JSON and of ids; texts are whoever reads them's
  // Of TextChunks: text `shard`, shard + shards and so on, counted from 0.
  size_t shard = 0;
  size_t shards = 1;

  // Throws Failure where the ending is .json and the format is not given.
  TextFormat FormatOrGuess() const;
};

// Reads one text after another. Memory is that of a buffer and the longest line or record.
class TextReader {
 public:
  // Throws Failure.
  explicit TextReader(const TextSource& source);

  // The next text; false at the end, or after a stop signal. Throws Failure for what does not have
  // the format, and where the format was guessed to be plain lines and the first one is a JSON
  // object or array.
  bool Next(TextInput* input);

  size_t line() const;  // of the text that was read last, counted from 1
  std::string Where(size_t line) const { return lines_.Where(line); }  // "FILE: line 12"
  std::string Where() const { return Where(line()); }
  size_t bytes() const { return lines_.bytes(); }

 private:
  bool NextRecord(TextInput* input);
  void FindColumns();

  TextFormat format_;
  bool guessed_;
  JsonLineRules rules_;
  LineReader lines_;
  std::optional<CsvReader> records_;  // from the first text on
  size_t text_column_ = 0;
  size_t id_column_ = 0;  // that of the header's end: none
};

// The texts of --texts, a file with one a line, at most so many. Throws Failure where there is
// none.
std::vector<std::string> SampleTexts(const std::string& path, size_t most = SIZE_MAX);

// The texts of a file or of standard input, some at a time.
class TextChunks {
 public:
  // So many at most, whatever Next() is asked for.
  static constexpr size_t kMostTexts = 8192;

  // As TextReader. Throws Failure.
  explicit TextChunks(const TextSource& source);

  // The next texts, at most `most` and in bounded memory; false at the end, or after a stop signal.
  // Throws Failure for lines that are wrong, and for pairs.
  bool Next(size_t most = kMostTexts);
  const std::vector<std::string>& texts() const { return texts_; }
  const std::vector<std::string>& ids() const { return ids_; }  // as TextInput::id

  // "FILE: line 12", where texts()[index] begins.
  std::string Where(size_t index) const { return reader_.Where(lines_[index]); }

  // Throws Failure with the library's sentence about these texts: "texts[4]: ..." becomes
  // "FILE: line 12: ...".
  void Check(const Status& status) const;

  size_t bytes() const { return reader_.bytes(); }                  // read so far
  std::optional<size_t> size_bytes() const { return size_bytes_; }  // of a file

 private:
  TextReader reader_;
  size_t shard_;
  size_t shards_;
  size_t read_ = 0;  // texts, those of other shards too
  std::optional<size_t> size_bytes_;
  std::vector<std::string> texts_;
  std::vector<std::string> ids_;
  std::vector<size_t> lines_;  // of each text
};

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_TEXT_INPUT_H_
