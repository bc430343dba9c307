// SPDX-License-Identifier: Apache-2.0
//
// Reads the golden files of tests/data/families.

#include "tests/contract/family_case.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include "engine/nn/layer_tensors.h"
#include "nlohmann/json.hpp"
#include "tools/encore/numpy_random.h"

namespace encore {
namespace {

using Json = nlohmann::json;

template <class Enum>
using Names = std::span<const std::pair<std::string_view, Enum>>;

constexpr std::pair<std::string_view, NormType> kNormTypes[] = {
    {"kNone", NormType::kNone},
    {"kLayerNorm", NormType::kLayerNorm},
    {"kRmsNorm", NormType::kRmsNorm},
};
constexpr std::pair<std::string_view, NormPlacement> kPlacements[] = {
    {"kPost", NormPlacement::kPost},
    {"kPre", NormPlacement::kPre},
    {"kBoth", NormPlacement::kBoth},
};
constexpr std::pair<std::string_view, Gate> kGates[] = {
    {"kNone", Gate::kNone},
    {"kFirstHalf", Gate::kFirstHalf},
    {"kSecondHalf", Gate::kSecondHalf},
};

// One JSON object, whose fields are taken one after another; Done() finds those that were not.
class Fields {
 public:
  explicit Fields(const Json& json) : json_(json) {
    if (!json.is_object()) throw std::runtime_error("no JSON object: " + json.dump());
  }

  // Calls read(value) if the field is there.
  template <class Read>
  Fields& With(const std::string& name, Read read) {
    const auto found = json_.find(name);
    if (found == json_.end()) return *this;
    ++taken_;
    read(*found);
    return *this;
  }
  template <class T>
  Fields& Get(const std::string& name, T& field) {
    return With(name, [&](const Json& value) { field = value.get<T>(); });
  }
  template <class Enum>
  Fields& Get(const std::string& name, Names<Enum> names, Enum& field) {
    return With(name, [&](const Json& value) {
      const auto text = value.get<std::string>();
      for (const auto& [spelling, enumerator] : names) {
        if (text == spelling) return void(field = enumerator);
      }
      throw std::runtime_error(name + " is " + text);
    });
  }
  void Done() const {
    if (taken_ != json_.size()) throw std::runtime_error("unknown fields in " + json_.dump());
  }

 private:
  const Json& json_;
  size_t taken_ = 0;
};

RotaryConfig RotaryFromJson(const Json& json) {
  RotaryConfig rotary;
  Fields(json)
      .Get("size", rotary.size)
      .Get("interleaved", rotary.interleaved)
      .Get("theta", rotary.theta)
      .Get("inverse_frequencies", rotary.inverse_frequencies)
      .Get("magnitude", rotary.magnitude)
      .Done();
  return rotary;
}

AlibiConfig AlibiFromJson(const Json& json) {
  AlibiConfig alibi;
  Fields(json).Get("slopes", alibi.slopes).Done();
  return alibi;
}

BucketConfig BucketsFromJson(const Json& json) {
  BucketConfig buckets;
  Fields(json)
      .Get("num_buckets", buckets.num_buckets)
      .Get("max_distance", buckets.max_distance)
      .Done();
  return buckets;
}

// The field of a tensor's name, or null. The weights have all their layers.
WeightView* FieldOf(const std::string& name, EncoderWeights& weights) {
  if (name == "norm.weight") return &weights.norm.weight;
  if (name == "norm.bias") return &weights.norm.bias;
  for (size_t n = 0; n < weights.layers.size(); ++n) {
    const std::string prefix = "layers." + std::to_string(n) + ".";
    for (const internal::LayerTensor& tensor : internal::kLayerTensors) {
      if (name == prefix + tensor.name()) return &tensor.In(weights.layers[n]);
    }
  }
  return nullptr;
}

std::vector<float> Floats(const SafetensorsFile& file, const std::string& name) {
  const Result<Tensor> tensor = file.ReadAsF32(name);
  if (!tensor.ok()) throw std::runtime_error(tensor.status().message());
  const auto* data = static_cast<const float*>(tensor->data());
  return {data, data + tensor->size_bytes() / sizeof(float)};
}

// Uniform, of variance 1: f32(sqrt(3) (2 r - 1)), in the order of memory.
std::vector<float> DrawInput(size_t count, uint32_t seed) {
  tool::NumpyRandom random(seed);
  std::vector<float> x(count);
  for (float& v : x) v = static_cast<float>(std::sqrt(3.0) * (2 * random.Next() - 1));
  return x;
}

}  // namespace

NormConfig NormFromJson(const Json& json) {
  NormConfig norm;
  Fields(json)
      .Get("type", Names<NormType>(kNormTypes), norm.type)
      .Get("epsilon", norm.epsilon)
      .Get("weight_offset", norm.weight_offset)
      .Done();
  return norm;
}

LayerConfig LayerFromJson(const Json& json) {
  LayerConfig layer;
  Fields(json)
      .Get("num_heads", layer.num_heads)
      .Get("num_kv_heads", layer.num_kv_heads)
      .Get("head_size", layer.head_size)
      .Get("attention_scale", layer.attention_scale)
      .With("qk_norm", [&](const Json& value) { layer.qk_norm = NormFromJson(value); })
      .Get("causal", layer.causal)
      .With("window", [&](const Json& value) { layer.window = value.get<size_t>(); })
      .With("rotary", [&](const Json& value) { layer.rotary = RotaryFromJson(value); })
      .With("alibi", [&](const Json& value) { layer.alibi = AlibiFromJson(value); })
      .With("buckets", [&](const Json& value) { layer.buckets = BucketsFromJson(value); })
      .Get("d_ff", layer.d_ff)
      .With("activation",
            [&](const Json& value) {
              const Result<Activation> found = ActivationFromName(value.get<std::string>());
              if (!found.ok()) throw std::runtime_error(found.status().message());
              layer.activation = *found;
            })
      .Get("gate", Names<Gate>(kGates), layer.gate)
      .Get("norm_placement", Names<NormPlacement>(kPlacements), layer.norm_placement)
      .With("norm", [&](const Json& value) { layer.norm = NormFromJson(value); })
      .Get("attention_norm", layer.attention_norm)
      .Done();
  return layer;
}

std::vector<std::string> FamilyNames(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::filesystem::path& path = entry.path();
    if (path.extension() == ".safetensors") names.push_back(path.stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

FamilyCase FamilyCase::Open(const std::string& folder, const std::string& name) {
  Result<SafetensorsFile> file = SafetensorsFile::Open(folder + "/" + name + ".safetensors");
  if (!file.ok()) throw std::runtime_error(file.status().message());
  FamilyCase family{.file = *std::move(file)};

  const Json json = Json::parse(family.file.metadata().at("config"));
  family.config.d_model = json.at("d_model").get<size_t>();
  for (const Json& layer : json.at("layers")) family.config.layers.push_back(LayerFromJson(layer));
  const Json& final_norm = json.at("final_norm");
  if (!final_norm.is_null()) family.config.final_norm = NormFromJson(final_norm);

  family.weights.layers.resize(family.config.layers.size());
  for (const SafetensorsEntry& entry : family.file.tensors()) {
    if (entry.name.starts_with("expected.")) continue;
    WeightView* field = FieldOf(entry.name, family.weights);
    if (field == nullptr) throw std::runtime_error("no field is for " + entry.name);
    *field = WeightView(entry.dtype, entry.bytes.data(), entry.shape);
  }

  family.starts = {0};
  for (const Json& length : json.at("lengths")) {
    family.starts.push_back(family.starts.back() + length.get<size_t>());
  }
  family.x =
      DrawInput(family.starts.back() * family.config.d_model, json.at("seed").get<uint32_t>());
  family.rows = json.at("rows").get<std::vector<size_t>>();
  family.hidden0 = Floats(family.file, "expected.hidden.0");
  family.y = Floats(family.file, "expected.y");
  return family;
}

}  // namespace encore
