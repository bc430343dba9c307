// SPDX-License-Identifier: Apache-2.0
//
// What a TextEncoder holds.

#ifndef ENCORE_ENGINE_TEXT_TEXT_ENCODER_IMPL_H_
#define ENCORE_ENGINE_TEXT_TEXT_ENCODER_IMPL_H_

#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "encore/text_encoder.h"
#include "engine/models/text_model.h"
#include "engine/text/after_encoder.h"
#include "engine/text/scratch.h"

namespace encore::inline v0_1 {

struct TextEncoder::Impl {
  internal::TextModel model;
  Result<Tokenizer> tokenizer;  // or why there is none
  // Nothing where modules.json lists no pooling: a cross-encoder, for instance.
  std::optional<internal::AfterEncoder> after;
  Result<const internal::TorchActivation*>
      activation;  // or what the folder asks for that encore has not
  internal::SentenceConfig config;
  size_t max_length = 0;
  bool use_type_ids = false;
  std::optional<bool> normalize = {};  // OpenOptions'
  std::vector<Decision> decisions;
  mutable internal::ScratchPool scratch = {};

  // Columns of Encode's vectors, unless a call wants fewer.
  size_t dimensions() const {
    const size_t width = after ? after->width() : model.d_model();
    return std::min(config.truncate_dim.value_or(width), width);
  }
};

namespace internal {

// Errors for what the folder has not.
Status WantTokenizer(const TextEncoder::Impl& impl);

// The text before each text: the call's, by name or as it is, else the folder's default. The
// result is valid as long as options and impl.
Result<std::string_view> ResolvePrompt(const TextEncoder::Impl& impl,
                                       const std::optional<std::string>& prompt_name,
                                       const std::optional<std::string>& prompt);

// max_length as a call has it: 0 is the encoder's own. kInvalidArgument above that of the model.
Result<size_t> ResolveMaxLength(const TextEncoder::Impl& impl, size_t wanted);

}  // namespace internal
}  // namespace encore

#endif  // ENCORE_ENGINE_TEXT_TEXT_ENCODER_IMPL_H_
