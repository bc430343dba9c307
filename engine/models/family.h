// SPDX-License-Identifier: Apache-2.0
//
// What a family of text models is: which config.json it answers to, and what a configuration of it
// means as a plan (sizes, switches, tensor names, positions, head).

#ifndef ENCORE_ENGINE_MODELS_FAMILY_H_
#define ENCORE_ENGINE_MODELS_FAMILY_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "encore/encoder.h"
#include "encore/status.h"
#include "engine/base/layer_tensors.h"
#include "engine/io/json_members.h"

namespace encore::inline v0_1::internal {

// A module of the file in an encoder layer: `name` + ".weight" and, unless it has none, `name` +
// ".bias" go to a member of the layer's weights. "{N}" in a name stands for the layer's number;
// layers share a tensor whose name has none. A layer without attention_norm has no module of norm1.
struct LayerModule {
  std::string_view name;
  LayerMember member;
  bool bias = true;
};

enum class PositionRule : uint8_t {
  kNone,           // no table: attention knows positions by itself
  kFromZero,       // a token's place in its sequence
  kAroundPadding,  // pad_token_id + 1 + how many tokens before it are not pad_token_id; a token
                   // that is pad_token_id itself has the position pad_token_id
};

// Of a model that has no limit of its own.
inline constexpr size_t kAnyLength = size_t{1} << 20;

// x = LayerNorm(scale word[id] + type[type id] + position[place] + task[0]), all `width` wide, then
// a linear layer to d_model where there is a projection. Names are of modules with a ".weight" (and
// ".bias"); an empty one means that the family has no such thing.
struct EmbeddingPlan {
  size_t width = 0;
  size_t vocab_size = 0;
  std::string_view word = {};
  std::string_view word_alias = {};  // the table's name where the file has none of `word`
  float scale = 1;
  size_t type_vocab_size = 0;  // 0: the family has no types
  std::string_view type = {};
  size_t max_positions = 0;  // rows of the table; with kNone the tokens that a text has at most
  // With kNone: longer sequences are computed too, where a caller or a file wants them.
  bool any_length = false;
  std::string_view position = {};
  PositionRule position_rule = PositionRule::kFromZero;
  size_t pad_token_id = 0;  // with kAroundPadding
  // A table whose first row is added to every token's sum, after its position.
  std::string_view task = {};
  size_t task_vocab_size = 0;
  double norm_epsilon = 0;
  std::string_view norm = {};
  bool norm_bias = true;
  std::string_view projection = {};

  // Tokens that a sequence may have.
  size_t max_tokens() const {
    return any_length ? std::max(max_positions, kAnyLength) : usual_tokens();
  }
  // Tokens that it has at most unless somebody wants more.
  size_t usual_tokens() const {
    return position_rule == PositionRule::kAroundPadding ? max_positions - pad_token_id - 1
                                                         : max_positions;
  }
};

// logits = out(norm(activation(dense(x)))), x being one vector of each sequence's hidden states.
struct HeadPlan {
  enum class Activation : uint8_t { kTanh, kGelu, kRelu };
  enum class Input : uint8_t { kFirstToken, kMean };
  Input input = Input::kFirstToken;
  std::string_view dense = {};
  bool dense_in_base = false;  // `dense` has the base model's prefix, as BERT's pooler
  bool dense_bias = true;
  Activation activation = Activation::kTanh;
  std::string_view norm = {};  // a LayerNorm; empty: none
  double norm_epsilon = 0;
  bool norm_bias = true;
  std::string_view out = {};   // empty: encore has no head of this family
  std::string_view note = {};  // for Describe(), behind what is computed
};

// Everything that config.json says, in encore's terms. Names are views of constants.
struct ModelPlan {
  EncoderConfig encoder = {};
  std::vector<LayerModule> layer_modules = {};
  // With encoder.final_norm.
  std::string_view final_norm = {};
  bool final_norm_bias = true;
  EmbeddingPlan embeddings = {};
  HeadPlan head = {};
  // What may stand before the base model's names, "" included.
  std::span<const std::string_view> prefixes = {};
  // Names that begin so (after a prefix or without) belong to training or to other tasks.
  std::span<const std::string_view> harmless_tensors = {};
  // Names that have one of these in them belong to a variant that computes something else.
  std::span<const std::string_view> foreign_tensors = {};
};

// The modules of these members have no bias.
void DropBiases(std::initializer_list<LayerMember> members, std::vector<LayerModule>* modules);

struct Family {
  // The values of config.json's model_type.
  std::span<const std::string_view> model_types;
  // Reads the family's keys into the plan. Keys that mean the same in all families, and keys that
  // mean nothing here, are left to config_keys.h.
  Status (*read)(JsonMembers* config, ModelPlan* plan);
  // Of families that share a model_type, the one with this position_embedding_type. Empty: all
  // other values.
  std::string_view position_embedding_type = {};
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_MODELS_FAMILY_H_
