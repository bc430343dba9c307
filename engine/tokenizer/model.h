// SPDX-License-Identifier: Apache-2.0
//
// What a tokenizer's model does: words to tokens. Not here: the models (word_piece.h).

#ifndef ENCORE_ENGINE_TOKENIZER_MODEL_H_
#define ENCORE_ENGINE_TOKENIZER_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/tokenizer/text_buffer.h"

namespace encore::internal {

// Tokens of one text, without the template's.
struct TokenList {
  std::vector<int32_t> ids;
  std::vector<ByteRange> origins;  // empty unless asked for

  void Clear() {
    ids.clear();
    origins.clear();
  }
};

// Immutable.
class Model {
 public:
  virtual ~Model() = default;
  // Appends the tokens of words of `text`, none of which is empty, and where they came from if the
  // text tells. Throws std::bad_alloc.
  virtual void Tokenize(TextView text, const std::vector<Span>& words, TokenList* out) const = 0;

  virtual std::optional<int32_t> TokenToId(std::string_view token) const = 0;
  // Empty if there is none.
  virtual std::string_view IdToToken(int32_t id) const = 0;
  virtual size_t token_count() const = 0;
  // Every id is below this.
  virtual size_t id_limit() const = 0;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_MODEL_H_
