// SPDX-License-Identifier: Apache-2.0
//
// The texts of a file or of standard input, some thousand at a time. Not here: lines
// (text_input.h), what is done with them (embed.cc, rerank.cc).

#ifndef ENCORE_TOOLS_ENCORE_TEXT_CHUNKS_H_
#define ENCORE_TOOLS_ENCORE_TEXT_CHUNKS_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "encore/status.h"
#include "tools/encore/text_input.h"

namespace encore::tool {

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

#endif  // ENCORE_TOOLS_ENCORE_TEXT_CHUNKS_H_
