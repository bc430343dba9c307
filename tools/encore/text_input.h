// SPDX-License-Identifier: Apache-2.0
//
// Texts and pairs of texts from a file or the standard input, one a line, in bounded memory. Not
// here: what is done with them (embed.cc, rerank.cc, tokenize.cc).

#ifndef ENCORE_TOOLS_ENCORE_TEXT_INPUT_H_
#define ENCORE_TOOLS_ENCORE_TEXT_INPUT_H_

#include <cstddef>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "encore/status.h"

namespace encore::tool {

struct TextInput {
  std::string text;
  std::optional<std::string> pair;  // the second text
};

// Reads lines. A line ends with \n or \r\n; the last may lack it. Memory is that of a buffer and
// the longest line.
class TextReader {
 public:
  // A file's name, or "-" for the standard input. `jsonl`: each line is JSON, a string or an object
  // with "text" and, if it is a pair, "pair". Throws Failure.
  TextReader(const std::string& file, bool jsonl);

  // The next line's text; false at the end. Throws Failure.
  bool Next(TextInput* input);
  // "FILE: line 12", the line that was read last.
  std::string Where() const;
  size_t bytes() const { return bytes_; }  // of the lines so far, ends of lines included

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const;
  };

  // The next line without its end, valid until the next call; false at the end of the file.
  bool NextLine(std::string_view* line);
  void ParseJson(std::string_view line, TextInput* input) const;

  std::string name_;
  bool jsonl_;
  std::unique_ptr<std::FILE, CloseFile> file_;
  std::vector<char> buffer_;
  size_t begin_ = 0;  // of what was not handed out
  size_t end_ = 0;
  bool at_end_ = false;
  size_t lines_ = 0;
  size_t bytes_ = 0;
};

// The texts of a file or of standard input, some thousand at a time.
class TextChunks {
 public:
  // As TextReader. Throws Failure, for a folder too.
  TextChunks(const std::string& path, bool jsonl);

  // The next texts, in bounded memory; false at the end. Throws Failure for lines that are wrong,
  // and for pairs.
  bool Next();
  const std::vector<std::string>& texts() const { return texts_; }

  // Throws Failure with the library's sentence about these texts: "texts[4]: ..." becomes
  // "FILE: line 12: ...".
  void Check(const Status& status) const;

  size_t bytes() const { return reader_.bytes(); }                  // read so far
  std::optional<size_t> size_bytes() const { return size_bytes_; }  // of a file

 private:
  std::string path_;
  TextReader reader_;
  std::optional<size_t> size_bytes_;
  std::vector<std::string> texts_;
  size_t lines_before_ = 0;  // those before texts_
};

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_TEXT_INPUT_H_
