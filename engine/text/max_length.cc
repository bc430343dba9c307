// SPDX-License-Identifier: Apache-2.0
//
// The maximum length.

#include "engine/text/max_length.h"

#include <algorithm>
#include <string>

namespace encore::inline v0_1::internal {

Result<size_t> ResolveMaxLength(const LengthSources& sources, const FolderReading& reading) {
  const std::string what = "maximum length";
  const size_t most = sources.model_maximum;
  const size_t least = std::max<size_t>(sources.special_tokens, 1);
  const std::string why_least = least > 1 ? "the tokenizer's special tokens" : "";
  if (sources.option) {
    if (*sources.option < least || *sources.option > most) {
      return InvalidArgument("max_length is " + std::to_string(*sources.option) + "; wanted " +
                             std::to_string(least) + " to " + std::to_string(most) + ", " +
                             (least > 1 ? why_least + " and " : "") + "the model's positions");
    }
    reading.Tell(what, std::to_string(*sources.option), "option max_length");
    return *sources.option;
  }
  size_t cap = sources.model_usual;
  size_t length = cap;
  std::string source = "config.json";
  if (sources.settings.max_seq_length) {
    cap = most;
    length = *sources.settings.max_seq_length;
    source = sources.settings.file;
  } else if (sources.tokenizer_maximum) {
    length = *sources.tokenizer_maximum;
    source = "tokenizer_config.json";
  }
  if (length < least) {
    return InvalidArgument(source + ": the maximum length is " + std::to_string(length) +
                           "; wanted at least " + std::to_string(least) +
                           (least > 1 ? ", " + why_least : ""));
  }
  const bool is_capped = length > cap;
  const bool by_model = is_capped || source == "config.json";
  const std::string others = by_model && sources.positions_skip_padding
                                 ? "; sentence-transformers takes more where texts have padding"
                                 : "";
  if (!is_capped) {
    reading.Tell(what, std::to_string(length) + others, source);
    return length;
  }
  reading.Tell(what, std::to_string(cap) + ", as the model has no more positions" + others,
               "config.json");
  reading.Tell("ignored", "maximum length " + std::to_string(length), source);
  return cap;
}

}  // namespace encore::internal
