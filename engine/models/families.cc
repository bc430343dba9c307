// SPDX-License-Identifier: Apache-2.0
//
// From a family's row and a config.json to a spec.

#include <algorithm>

#include "engine/base/status_macros.h"
#include "engine/models/config_keys.h"
#include "engine/models/family.h"

namespace encore::inline v0_1::internal {
namespace {

// Calls f(family) until it returns true.
template <typename F>
const Family* FindIf(const F& f, Side side = Side::kTexts) {
  if (side == Side::kPictures) {
    for (const Family& family : VisionFamilies()) {
      if (f(family)) return &family;
    }
    return nullptr;
  }
  for (const std::span<const Family> all :
       {PostNormFamilies(), NomicFamilies(), JinaV3Families(), DebertaFamilies(), PreNormFamilies(),
        LlamaFamilies(), EmbeddingGemma2Families(), EsmAndClipFamilies()}) {
    for (const Family& family : all) {
      if (f(family)) return &family;
    }
  }
  return nullptr;
}

bool HasMarker(const Family& family, const JsonValue& config) {
  if (family.marker_key.empty()) return false;
  const JsonValue* value = config.Find(family.marker_key);
  if (value == nullptr || value->is_null()) return false;
  return family.marker_value.empty() ||
         (value->is_string() && value->text() == family.marker_value);
}

bool Reads(const Family& family, std::string_view key) {
  const FamilyKeys& k = family.keys;
  for (const std::string_view name : {k.d_model, k.layers, k.heads, k.d_ff, k.kv_heads.name,
                                      k.head_size.name, k.embedding_width.name, k.types.name,
                                      k.max_positions.name, k.epsilon.name, k.activation.name}) {
    if (name == key) return true;
  }
  for (const std::span<const LayerModule> modules : family.modules) {
    for (const LayerModule& module : modules) {
      if (module.bias_key == key) return true;
    }
  }
  return family.own_keys.Has(key);
}

size_t ReadHeadSize(JsonMembers* config, const FamilyKeys& keys, size_t d_model, size_t heads) {
  size_t size = keys.head_size.absent;
  const bool given = !keys.head_size.name.empty() && config->Has(keys.head_size.name);
  if (size == 0 && !given && d_model % heads != 0) {
    config->Refuse(keys.heads,
                   "a divisor of " + std::string(keys.d_model) + " " + std::to_string(d_model));
  }
  if (size == 0) size = std::max<size_t>(1, d_model / heads);
  return ReadExtent(config, {keys.head_size.name, size});
}

// num_key_value_heads: a divisor of the heads. Null means the heads, whatever counts where the key
// is absent.
size_t ReadKvHeads(JsonMembers* config, const ConfigKey<size_t>& key, size_t heads) {
  const bool null = config->Find(key.name) != nullptr && !config->Has(key.name);
  const size_t absent = key.absent == 0 || null ? heads : key.absent;
  const size_t kv_heads = ReadExtent(config, {key.name, absent});
  if (heads % kv_heads != 0) {
    config->Refuse(key.name, "a divisor of the " + std::to_string(heads) + " heads");
  }
  return config->ok() ? kv_heads : 1;
}

// Positions count from it, and a sequence has a token, whose position is pad_token_id + 1.
void ReadPadding(JsonMembers* config, const FamilyKeys& keys, EmbeddingSpec* e) {
  if (e->pad_token_id != 0) {  // whatever the key says
    if (e->max_positions < e->pad_token_id + 2) {
      config->Refuse(keys.max_positions.name, "at least " + std::to_string(e->pad_token_id + 2));
    }
    return;
  }
  const JsonValue* pad = config->Find("pad_token_id");
  e->pad_token_id = config->Size("pad_token_id", 1);
  if ((pad != nullptr && pad->is_null()) || e->pad_token_id >= e->vocab_size ||
      e->max_positions < 2 || e->pad_token_id > e->max_positions - 2) {
    config->Refuse("pad_token_id", "a number below vocab_size " + std::to_string(e->vocab_size) +
                                       " and below max_position_embeddings " +
                                       std::to_string(e->max_positions) +
                                       " - 1, as positions count from it");
  }
}

void ReadEmbeddings(JsonMembers* config, const FamilyKeys& keys, double epsilon, size_t d_model,
                    EmbeddingSpec* e) {
  const ConfigKey<size_t>& width = keys.embedding_width;
  e->width = ReadExtent(config, {width.name, width.absent == 0 ? d_model : width.absent});
  e->vocab_size = ReadRequired(config, "vocab_size", keys.absent.vocab_size);
  if (!e->type.empty()) e->type_vocab_size = ReadExtent(config, keys.types, keys.min_types);
  e->max_positions = ReadExtent(config, keys.max_positions);
  e->norm_epsilon = epsilon;
  if (e->position_rule == PositionRule::kFromPadding) ReadPadding(config, keys, e);
}

// A number, or two that are equal: the sides of a square.
size_t ReadSide(JsonMembers* config, std::string_view key, size_t absent) {
  const JsonValue* value = config->Find(key);
  if (value == nullptr || !value->is_array()) return ReadExtent(config, {key, absent});
  const std::vector<JsonValue>& sides = value->items();
  const bool square = sides.size() == 2 && sides[0].is_number() && sides[1].is_number() &&
                      sides[0].number() == sides[1].number();
  constexpr double kMost = 1 << 20;
  if (!square || !(sides[0].number() >= 1 && sides[0].number() <= kMost)) {
    config->Refuse(key, "a number, or the same number twice");
    return absent;
  }
  return static_cast<size_t>(sides[0].number());
}

// Sizes of pictures, of patches and of the rows for them.
void ReadPatches(JsonMembers* config, double epsilon, size_t d_model, ModelSpec* spec) {
  PatchSpec& p = spec->patches;
  p.image_size = ReadSide(config, "image_size", p.image_size);
  p.patch_size = ReadSide(config, "patch_size", p.patch_size);
  constexpr size_t kMostPatches = 2048;  // of a side: their square and its multiples fit 32 bits
  if (p.patch_size > 1024) config->Refuse("patch_size", "at most 1024");
  if (config->ok() && (p.side() == 0 || p.side() > kMostPatches)) {
    config->Refuse("image_size", "1 .. " + std::to_string(kMostPatches) + " times patch_size " +
                                     std::to_string(p.patch_size));
  }
  if (!config->ok()) return;
  spec->embeddings.width = d_model;
  spec->embeddings.norm_epsilon = epsilon;
  spec->embeddings.max_positions = p.side() * p.side() + p.rows_with_position();
}

}  // namespace

const Family* FindFamily(std::string_view model_type, const JsonValue& config, Side side) {
  const auto marked = [&](const Family& family) {
    return family.model_types.Has(model_type) && HasMarker(family, config);
  };
  const auto plain = [&](const Family& family) {
    return family.model_types.Has(model_type) && family.marker_key.empty();
  };
  const Family* found = FindIf(marked, side);
  return found != nullptr ? found : FindIf(plain, side);
}

std::string AllModelTypes(Side side) {
  std::string all;
  const auto add = [&](const Family& family) {
    if (!family.marker_key.empty()) return false;  // another row names the type
    for (const std::string_view type : family.model_types) {
      all += (all.empty() ? "" : ", ") + std::string(type);
    }
    return false;
  };
  FindIf(add, side);
  return all;
}

bool IsFamilyKey(std::string_view key, Side side) {
  if (key.empty()) return false;
  // Those of every family, and of rotary positions.
  if (WordList("vocab_size rope_theta partial_rotary_factor").Has(key)) return true;
  return FindIf([&](const Family& family) { return Reads(family, key); }, side) != nullptr;
}

Status ReadFamily(const Family& family, JsonMembers* config, ModelSpec* spec) {
  const FamilyKeys& keys = family.keys;
  for (const std::string_view key : family.ignored_keys) config->Ignore(key);
  for (const SupportedValue& supported : family.supported) {
    // Another type makes no sense; another value of its type is one that encore does not compute.
    if (std::holds_alternative<double>(supported.value)) {
      config->OptionalSize(supported.key);
    } else if (std::holds_alternative<bool>(supported.value)) {
      config->OptionalBool(supported.key);
    } else if (std::holds_alternative<std::string_view>(supported.value)) {
      config->OptionalString(supported.key);
    }
    ENCORE_RETURN_IF_ERROR(config->status());
    if (const JsonValue* value = config->Find(supported.key)) {
      ENCORE_RETURN_IF_ERROR(CheckSupported(config->where(), supported, *value));
    }
  }
  spec->family = &family;
  spec->head = family.head;
  spec->token_head = family.token_head;
  spec->language = family.language;
  spec->embeddings = family.embeddings;
  spec->patches = family.patches;

  const size_t d_model = ReadRequired(config, keys.d_model, keys.absent.d_model);
  LayerConfig layer;
  layer.num_heads = ReadRequired(config, keys.heads, keys.absent.heads);
  layer.head_size = ReadHeadSize(config, keys, d_model, layer.num_heads);
  if (!keys.kv_heads.name.empty()) {
    layer.num_kv_heads = ReadKvHeads(config, keys.kv_heads, layer.num_heads);
  }
  layer.d_ff = keys.d_ff.empty() ? 1 : ReadRequired(config, keys.d_ff, keys.absent.d_ff);
  layer.gate = family.gate;
  layer.norm_placement = family.norm_placement;
  layer.norm = {family.norm, ReadEpsilon(config, keys.epsilon)};
  if (family.patches.patch_size != 0) {
    ReadPatches(config, layer.norm.epsilon, d_model, spec);
  } else {
    ReadEmbeddings(config, keys, layer.norm.epsilon, d_model, &spec->embeddings);
  }
  if (!keys.activation.name.empty()) {
    ENCORE_RETURN_IF_ERROR(ReadActivation(config, keys.activation, &layer.activation));
  }
  if (family.rope_theta != 0) {
    ENCORE_RETURN_IF_ERROR(ReadRope(config,
                                    {.head_size = layer.head_size,
                                     .max_positions = spec->embeddings.max_positions,
                                     .theta = family.rope_theta},
                                    &layer.rotary.emplace()));
  }
  const NormConfig none = {.type = NormType::kNone};
  if (spec->language.layer_activation) {
    spec->language.activation = &ActivationRowOf(layer.activation);
  }
  if (spec->language.norm_epsilon == 0) spec->language.norm_epsilon = layer.norm.epsilon;
  spec->encoder =
      EncoderConfig::Uniform(d_model, ReadLayers(config, keys.layers, keys.absent.layers), layer,
                             family.final_norm.empty() ? none : layer.norm);
  for (const std::span<const LayerModule> modules : family.modules) {
    for (LayerModule module : modules) {
      if (!module.bias_key.empty()) module.bias = config->Bool(module.bias_key, module.bias);
      spec->layer_modules.push_back(module);
    }
  }
  ENCORE_RETURN_IF_ERROR(config->status());
  if (family.configure != nullptr) ENCORE_RETURN_IF_ERROR(family.configure(config, spec));
  return config->status();
}

}  // namespace encore::internal
