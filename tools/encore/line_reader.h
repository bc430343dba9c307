// SPDX-License-Identifier: Apache-2.0
//
// The lines of a file or of standard input, in bounded memory.

#ifndef ENCORE_TOOLS_ENCORE_LINE_READER_H_
#define ENCORE_TOOLS_ENCORE_LINE_READER_H_

#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace encore::tool {

// A line ends with \n or \r\n; the last may lack it. A byte order mark of UTF-8 before the first
// line is not part of it. Memory is that of a buffer and the longest line.
class LineReader {
 public:
  // A file's name, or "-" for standard input. Throws Failure, for a folder too.
  explicit LineReader(const std::string& file);

  // The next line without its end, valid until the next call; false at the end, and where a stop
  // signal came while it waited for a line. Throws Failure for errors of the system, and for
  // compressed files, UTF-16 and the like, which it names.
  bool Next(std::string_view* line);

  // Of the line that was read last.
  std::string_view line_end() const { return line_end_; }  // "\n", "\r\n", or "" at the file's end
  size_t number() const { return lines_; }                 // counted from 1
  std::string Where() const { return Where(lines_); }
  // "FILE: line 12".
  std::string Where(size_t line) const { return name_ + ": line " + std::to_string(line); }

  size_t bytes() const { return bytes_; }  // of the lines so far, ends of lines included

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const;
  };

  // More bytes into the buffer; false where a stop signal came.
  bool Fill();
  void CheckStart();

  std::string name_;
  std::unique_ptr<std::FILE, CloseFile> file_;
  std::vector<char> buffer_;
  size_t begin_ = 0;  // of what was not handed out
  size_t end_ = 0;
  bool at_end_ = false;
  bool started_ = false;
  size_t lines_ = 0;
  size_t bytes_ = 0;
  std::string_view line_end_;
};

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_LINE_READER_H_
