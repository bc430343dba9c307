// SPDX-License-Identifier: Apache-2.0
//
// Padding that is part of a model: SigLIP was trained on texts of 64 tokens, and reads the last
// one.

#include <algorithm>
#include <string>

#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/text/text_encoder_impl.h"
#include "engine/tokenizer/tokenizer_class.h"
#include "engine/tokenizer/tokenizer_factory.h"

namespace encore::inline v0_1::internal {
namespace {

constexpr const char* kTokenizerConfig = "tokenizer_config.json";

// "right" or "left", and what says so.
struct PaddingSide {
  std::string side;
  std::string source;
};

// padding_side of tokenizer_config.json, else the direction of tokenizer.json's padding, else the
// class's own.
Result<PaddingSide> ReadPaddingSide(const Folder& folder, const std::optional<JsonValue>& config) {
  if (config) {
    JsonMembers members(*config, kTokenizerConfig);
    const std::optional<std::string> side = members.OptionalString("padding_side");
    ENCORE_RETURN_IF_ERROR(members.status());
    if (side) return PaddingSide{*side, std::string(kTokenizerConfig) + ": padding_side"};
  }
  ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> json, folder.ReadJson("tokenizer.json"));
  const JsonValue* padding = json && json->is_object() ? json->Find("padding") : nullptr;
  const JsonValue* direction =
      padding != nullptr && padding->is_object() ? padding->Find("direction") : nullptr;
  if (direction != nullptr && direction->is_string()) {
    return PaddingSide{direction->text() == "Left" ? "left" : "right",
                       "tokenizer.json: the direction of padding"};
  }
  ENCORE_ASSIGN_OR_RETURN(const TokenizerClass which, ChooseTokenizerClass(folder));
  return PaddingSide{which.pads_left ? "left" : "right", "the padding of " + which.name};
}

// Whether the model gets an attention_mask, which marks padding.
Result<bool> HasMask(const std::optional<JsonValue>& config) {
  if (!config) return true;
  JsonMembers members(*config, kTokenizerConfig);
  if (!members.Has("model_input_names")) return true;
  const std::vector<JsonValue>& names = members.RequiredArray("model_input_names").items();
  ENCORE_RETURN_IF_ERROR(members.status());
  return std::any_of(names.begin(), names.end(), [](const JsonValue& name) {
    return name.is_string() && name.text() == "attention_mask";
  });
}

}  // namespace

Result<std::optional<Expansion>> ReadPadding(const ModelFolder& found, const Tokenizer& tokenizer,
                                             const TextModel& model, const FolderReading& reading) {
  const size_t length = model.max_tokens();
  const std::string file = Within(found.path, kTokenizerConfig);
  ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> config,
                          found.folder.ReadJson(kTokenizerConfig));
  ENCORE_ASSIGN_OR_RETURN(const bool has_mask, HasMask(config));
  if (has_mask && !model.pools_text()) {
    reading.Note("padding", "none, as the tokenizer gives an attention_mask", file);
    return std::optional<Expansion>();
  }
  // What is padded to: the length of the call, else the tokenizer's limit.
  size_t wanted = found.settings.padding.value_or(0);
  std::string source = found.settings.file + ": processing_kwargs";
  if (wanted == 0 && found.settings.max_seq_length) {
    wanted = *found.settings.max_seq_length;
    source = found.settings.file + ": max_seq_length";
  } else if (wanted == 0) {
    wanted = tokenizer.model_max_length().value_or(length);
    source = file + ": model_max_length";
  }
  if (found.settings.padding ? wanted != length : wanted < length) {
    return Status(ErrorCode::kUnsupported, source + ": texts have " + std::to_string(wanted) +
                                               " tokens at most; wanted " + std::to_string(length) +
                                               ", the model's positions, as it was trained on "
                                               "texts padded to that");
  }
  ENCORE_ASSIGN_OR_RETURN(const PaddingSide side, ReadPaddingSide(found.folder, config));
  if (side.side != "right") {
    return Status(ErrorCode::kUnsupported, Within(found.path, side.source) + " is " +
                                               Quoted(side.side) +
                                               "; wanted 'right', as encore pads texts there");
  }
  const std::optional<int32_t> id = TokenizerFactory::SpecialTokenId(tokenizer, "pad_token");
  if (!id) {
    return InvalidArgument(file +
                           ": the tokenizer has no pad_token; wanted one, as texts are "
                           "padded to " +
                           std::to_string(length) + " tokens");
  }
  reading.Note("padding",
               "to " + std::to_string(length) + " tokens, at the right" +
                   (has_mask ? ", unseen by others" : "") +
                   (found.settings.padding ? ""
                                           : "; sentence-transformers pads to the longest text "
                                             "of a batch unless processing_kwargs say more"),
               found.settings.padding ? found.settings.file : "config.json");
  return std::optional(Expansion{.length = length, .id = *id, .attend = !has_mask});
}

}  // namespace encore::internal
