// SPDX-License-Identifier: Apache-2.0
//
// The tables of a tokenizer.json in a file of a cache's folder (OpenOptions::cache), so that a
// later opening neither reads the vocabulary nor builds them: most of the time of opening.
//
// The file, in the machine's byte order:
//   description  text of 64 bytes: the format and encore's version, filled up with line ends
//   identity     u64: a checksum of the files that the tokenizer is made of
//   checksum     u64: of all that follows
//   rest         tokenizer.json without its vocabulary and merges, as TableWriter has texts
//   tables       Model::Put

#ifndef ENCORE_ENGINE_TOKENIZER_PACKED_TOKENIZER_H_
#define ENCORE_ENGINE_TOKENIZER_PACKED_TOKENIZER_H_

#include <optional>
#include <string>
#include <string_view>

#include "encore/status.h"
#include "engine/io/folder.h"
#include "engine/platform/mapped_file.h"
#include "engine/tokenizer/model.h"

namespace encore::inline v0_1::internal {

// tokenizer.json with {} or [] for "vocab" and "merges" of its "model". `json` must be valid JSON.
// Keys that are written with escapes are not found: their values stay. Throws std::bad_alloc.
std::string WithoutVocabulary(std::string_view json);

// Where a tokenizer's tables are kept.
struct TokenizerCache {
  std::string folder = {};  // empty: none
  bool rebuild = false;     // what is there is not used, but written again
};

// One tokenizer's file. Finding it finds what is there; nothing that is wrong with that is an
// error. Throws std::bad_alloc.
class PackedTokenizer {
 public:
  // Of a model's folder whose tokenizer.json has this text. kIo and others for files beside it that
  // cannot be read.
  static Result<PackedTokenizer> Find(const std::string& cache, const Folder& folder,
                                      std::string_view tokenizer_json);

  // What the file has; nothing if there is none for these files, undamaged. Valid as long as this.
  struct Content {
    std::string rest;
    TableReader tables;
  };
  std::optional<Content> Read() const;
  // Writes it, for the next opening: "built and written", or why it is not.
  std::string Write(std::string_view tokenizer_json, const Model& model) const;

 private:
  std::string path_;
  uint64_t identity_ = 0;
  std::string refused_;              // why what is there may not be replaced
  std::optional<MappedFile> found_;  // of any content
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_PACKED_TOKENIZER_H_
