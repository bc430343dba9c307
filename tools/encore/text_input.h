// SPDX-License-Identifier: Apache-2.0
//
// Texts from a file or from standard input, one a line, some at a time. Not here: what is done with
// them (embed.cc, rerank.cc).

#ifndef ENCORE_TOOLS_ENCORE_TEXT_INPUT_H_
#define ENCORE_TOOLS_ENCORE_TEXT_INPUT_H_

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <istream>
#include <optional>
#include <string>
#include <vector>

namespace encore::tool {

enum class TextFormat : uint8_t {
  kPlain,      // the line is the text, without its newline (LF or CR LF); an empty one is a text
  kJsonLines,  // a JSON string, or an object whose member "text" is one; other members are ignored
};

class TextInput {
 public:
  // "-" is standard input. Throws Failure if it cannot be opened.
  TextInput(const std::string& path, TextFormat format);

  // The next texts: at most `most`, and at most about `bytes` of them. Empty at the end. Throws
  // Failure, naming the line.
  std::vector<std::string> Next(size_t most, size_t bytes);

  size_t lines() const { return lines_; }  // read so far
  size_t bytes() const { return bytes_; }  // read so far
  std::optional<size_t> size_bytes() const { return size_bytes_; }  // of a file
  // "--input FILE: line 7".
  std::string Place(size_t line) const;

 private:
  std::string ParseJson(const std::string& line) const;

  std::string path_;
  TextFormat format_;
  std::ifstream file_;
  std::istream* stream_;
  std::optional<size_t> size_bytes_;
  size_t lines_ = 0;
  size_t bytes_ = 0;
};

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_TEXT_INPUT_H_
