// SPDX-License-Identifier: Apache-2.0
//
// TorchWeights: sorts a file's tensors into layers, derives sizes from their shapes, and checks
// them.

#include "encore/torch_weights.h"

#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "engine/base/guarded.h"
#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/base/stored_precision.h"
#include "engine/nn/layer_tensors.h"
#include "engine/nn/torch_metadata.h"

namespace encore::inline v0_1 {

namespace {

using internal::kFinalNormBias;
using internal::kFinalNormWeight;
using internal::kLayerTensors;
using internal::LayerMember;
using internal::LayerTensor;
using internal::Quoted;
using internal::TorchFacts;

// Where a tensor belongs.
struct TorchPlace {
  std::optional<size_t> layer = {};  // none: without "layers.N."
  size_t tensor = 0;                 // in kLayerTensors
};

constexpr std::string_view kLayers = "layers.";

// "layers.3.linear1.bias" or "linear1.bias"; none if it is no name of a layer's tensor, or the
// number is not a plain decimal that fits size_t.
std::optional<TorchPlace> ParseTorchName(std::string_view name) {
  TorchPlace place;
  if (name.starts_with(kLayers)) {
    name.remove_prefix(kLayers.size());
    size_t layer = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), layer);
    const size_t digits = static_cast<size_t>(end - name.data());
    // "01" would be a second name for layer 1.
    if (error != std::errc() || (digits > 1 && name.front() == '0')) return std::nullopt;
    name.remove_prefix(digits);
    if (!name.starts_with('.')) return std::nullopt;
    name.remove_prefix(1);
    place.layer = layer;
  }
  for (; place.tensor < kLayerTensors.size(); ++place.tensor) {
    const LayerTensor& tensor = kLayerTensors[place.tensor];
    if (!tensor.part->in_torch) continue;
    if (name == tensor.name() || (!tensor.part->alias.empty() && name == tensor.alias()))
      return place;
  }
  return std::nullopt;
}

// The name of a tensor as a person would look for it.
std::string TorchName(const TorchPlace& place) {
  std::string name;
  if (place.layer) name = std::string(kLayers) + std::to_string(*place.layer) + ".";
  return name += kLayerTensors[place.tensor].name();
}

// Indices in the table of the two tensors whose shapes give d_model and d_ff.
constexpr size_t PositionOfWeight(const LayerMember& member) {
  size_t i = 0;
  while (!(kLayerTensors[i].part->member == member)) ++i;  // the first of a part is its weight
  return i;
}
constexpr size_t kInProjWeight = PositionOfWeight(&EncoderLayerWeights::in_proj);
constexpr size_t kLinear1Weight = PositionOfWeight(&EncoderLayerWeights::linear1);

// The file's tensors by place; null where one is missing.
using Layer = std::array<const SafetensorsEntry*, kLayerTensors.size()>;
struct Places {
  std::map<size_t, Layer>
      layers;  // by number, so that no number is too large; 0 for a layer without "layers.N."
  bool numbered = false;  // names have "layers.N."
  const SafetensorsEntry* norm_weight = nullptr;
  const SafetensorsEntry* norm_bias = nullptr;

  std::string Name(size_t layer, size_t tensor) const {
    return TorchName({numbered ? std::optional<size_t>(layer) : std::nullopt, tensor});
  }
};

Status Missing(const std::string& name, const std::string& wanted) {
  return InvalidArgument("tensor " + Quoted(name) + ": found none, wanted " + wanted);
}

Status PlaceTensor(const SafetensorsEntry& entry, Places* places) {
  const std::optional<TorchPlace> place = ParseTorchName(entry.name);
  const std::string name = "tensor " + Quoted(entry.name) + ": ";
  if (!place) {
    return InvalidArgument(
        name +
        "found a tensor without a place in an encoder, wanted only names such as "
        "'self_attn.in_proj_weight' or 'linear1.bias', after 'layers.0.' and so on in a stack, "
        "and 'norm.weight' and 'norm.bias'");
  }
  if (!places->layers.empty() && places->numbered != place->layer.has_value()) {
    return InvalidArgument(name +
                           "found names with and without 'layers.N.', wanted one or the other");
  }
  places->numbered = place->layer.has_value();
  const SafetensorsEntry*& slot = places->layers[place->layer.value_or(0)][place->tensor];
  if (slot != nullptr) {
    return InvalidArgument(name + "found also " + Quoted(slot->name) +
                           ", which means the same, wanted one of them");
  }
  slot = &entry;
  return Status();
}

Result<Places> PlaceTensors(const SafetensorsFile& file) {
  Places places;
  for (const SafetensorsEntry& entry : file.tensors()) {
    if (entry.name == kFinalNormWeight) {
      places.norm_weight = &entry;
    } else if (entry.name == kFinalNormBias) {
      places.norm_bias = &entry;
    } else {
      ENCORE_RETURN_IF_ERROR(PlaceTensor(entry, &places));
    }
  }
  if (places.layers.empty()) return Missing(places.Name(0, kInProjWeight), "a layer's tensors");
  size_t expected = 0;
  for (const auto& [number, layer] : places.layers) {
    if (number != expected) {
      return InvalidArgument("layer " + std::to_string(number) + ": found it without a layer " +
                             std::to_string(expected) + ", wanted numbers from 0 on without a gap");
    }
    ++expected;
  }
  return places;
}

// d_model from in_proj_weight [3 d_model, d_model] and d_ff from linear1.weight [d_ff, d_model] of
// layer 0.
Result<TorchFacts> DeriveFacts(const Places& places) {
  TorchFacts facts;
  const Layer& first = places.layers.at(0);
  const SafetensorsEntry* in_proj = first[kInProjWeight];
  if (in_proj == nullptr) return Missing(places.Name(0, kInProjWeight), "[3 d_model, d_model]");
  const Shape& shape = in_proj->shape;
  if (shape.rank() != 2 || shape[1] == 0 || shape[0] % 3 != 0 || shape[0] / 3 != shape[1]) {
    return InvalidArgument("tensor " + Quoted(in_proj->name) + ": found shape " + shape.ToString() +
                           ", wanted [3 d_model, d_model]");
  }
  facts.d_model = shape[1];
  const SafetensorsEntry* linear1 = first[kLinear1Weight];
  const std::string wanted = "[d_ff, " + std::to_string(facts.d_model) + "]";
  if (linear1 == nullptr) return Missing(places.Name(0, kLinear1Weight), wanted);
  if (linear1->shape.rank() != 2 || linear1->shape[0] == 0) {
    return InvalidArgument("tensor " + Quoted(linear1->name) + ": found shape " +
                           linear1->shape.ToString() + ", wanted " + wanted);
  }
  facts.d_ff = linear1->shape[0];
  facts.num_layers = places.layers.size();
  facts.final_norm = places.norm_weight != nullptr || places.norm_bias != nullptr;
  for (const auto& [number, layer] : places.layers) {
    for (size_t t = 0; t < kLayerTensors.size(); ++t) {
      facts.has_biases = facts.has_biases || (kLayerTensors[t].is_bias() && layer[t] != nullptr);
    }
  }
  return facts;
}

// may_be_int8: beside the types of floats.
Status CheckTensor(const SafetensorsEntry& entry, const Shape& wanted, bool may_be_int8 = false) {
  const std::string name = "tensor " + Quoted(entry.name) + ": ";
  if (!(entry.shape == wanted)) {
    return InvalidArgument(name + "found shape " + entry.shape.ToString() + ", wanted " +
                           wanted.ToString());
  }
  if (!internal::IsWeightType(entry.dtype, may_be_int8)) {
    return InvalidArgument(
        name + "found dtype " + std::string(DTypeName(entry.dtype)) + ", wanted " +
        std::string(may_be_int8 ? internal::kFloatTypesOrInt8 : internal::kFloatTypes));
  }
  return Status();
}

Status CheckTensors(const Places& places, const TorchFacts& facts) {
  LayerConfig sizes;  // all that shapes depend on
  sizes.num_heads = 1;
  sizes.d_ff = facts.d_ff;
  for (const auto& [number, layer] : places.layers) {
    for (size_t t = 0; t < kLayerTensors.size(); ++t) {
      const LayerTensor& tensor = kLayerTensors[t];
      if (!tensor.part->in_torch) continue;
      const Shape wanted = internal::ShapeOf(tensor, facts.d_model, sizes);
      if (layer[t] != nullptr) {
        ENCORE_RETURN_IF_ERROR(CheckTensor(*layer[t], wanted, tensor.is_matrix()));
      } else if (tensor.is_scale()) {
        continue;  // Encoder::Create knows whether it is needed
      } else if (!tensor.is_bias()) {
        return Missing(places.Name(number, t), wanted.ToString());
      } else if (facts.has_biases) {
        return Missing(places.Name(number, t),
                       wanted.ToString() + ", as layers have all of their biases or none");
      }
    }
  }
  if (!facts.final_norm) return Status();
  const Shape wanted(facts.d_model);
  if (places.norm_weight == nullptr)
    return Missing(std::string(kFinalNormWeight), wanted.ToString());
  ENCORE_RETURN_IF_ERROR(CheckTensor(*places.norm_weight, wanted));
  return places.norm_bias != nullptr ? CheckTensor(*places.norm_bias, wanted) : Status();
}

WeightView ViewOf(const SafetensorsEntry* entry) {
  return entry != nullptr ? entry->View() : WeightView();
}

EncoderWeights ViewsOf(const Places& places) {
  EncoderWeights weights;
  for (const auto& [number, layer] : places.layers) {
    EncoderLayerWeights& views = weights.layers.emplace_back();
    for (size_t t = 0; t < kLayerTensors.size(); ++t) {
      kLayerTensors[t].In(views) = ViewOf(layer[t]);
    }
  }
  weights.norm = {ViewOf(places.norm_weight), ViewOf(places.norm_bias)};
  return weights;
}

}  // namespace

struct TorchWeights::Impl {
  SafetensorsFile file;  // keeps alive what is viewed
  EncoderConfig config = {};
  EncoderWeights weights = {};
  Precision precision = Precision::kF32;
  std::vector<MatrixOfLayer> keep = {};

  Status Read(const TorchOverrides& overrides) {
    ENCORE_ASSIGN_OR_RETURN(const Places places, PlaceTensors(file));
    ENCORE_ASSIGN_OR_RETURN(const TorchFacts facts, DeriveFacts(places));
    ENCORE_RETURN_IF_ERROR(CheckTensors(places, facts));
    ENCORE_ASSIGN_OR_RETURN(config, internal::MakeTorchConfig(file.metadata(), overrides, facts));
    ENCORE_ASSIGN_OR_RETURN(precision, internal::StoredPrecision(file.metadata()));
    weights = ViewsOf(places);
    if (precision == Precision::kInt8) keep = internal::FloatMatrices(weights);
    return {};
  }
};

Result<TorchWeights> TorchWeights::Open(const std::string& path, const TorchOverrides& overrides) {
  return internal::Guarded("the weights", [&]() -> Result<TorchWeights> {
    ENCORE_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(path));
    return FromFile(file, overrides);
  });
}

Result<TorchWeights> TorchWeights::FromFile(const SafetensorsFile& file,
                                            const TorchOverrides& overrides) {
  return internal::Guarded("the weights", [&]() -> Result<TorchWeights> {
    auto impl = std::make_shared<Impl>(Impl{file});
    if (const Status status = impl->Read(overrides); !status.ok()) {
      return Status(status.code(), file.name() + ": " + status.message());
    }
    return TorchWeights(std::move(impl));
  });
}

const EncoderConfig& TorchWeights::config() const& { return impl_->config; }
const EncoderWeights& TorchWeights::weights() const& { return impl_->weights; }
Precision TorchWeights::precision() const { return impl_->precision; }
const std::vector<MatrixOfLayer>& TorchWeights::keep() const& { return impl_->keep; }

}  // namespace encore
