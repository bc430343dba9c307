// SPDX-License-Identifier: Apache-2.0
//
// Tensors by the names of a family.

#include "engine/models/model_tensors.h"

#include <algorithm>
#include <utility>

#include "engine/base/int_math.h"
#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/models/config_keys.h"
#include "engine/nn/layer_tensors.h"

namespace encore::inline v0_1::internal {
namespace {

// The name that files converted from TensorFlow have for a LayerNorm's tensors, or "".
std::string OldName(std::string_view name) {
  constexpr std::string_view kWeight = "LayerNorm.weight";
  constexpr std::string_view kBias = "LayerNorm.bias";
  for (const auto& [now, then] : {std::pair(kWeight, "gamma"), std::pair(kBias, "beta")}) {
    if (!name.ends_with(now)) continue;
    return std::string(name.substr(0, name.rfind('.') + 1)) + then;
  }
  return {};
}

// The name of "X.weight" in a file with a bank of adapters.
std::string NameInBank(std::string_view name) {
  constexpr std::string_view kWeight = ".weight";
  if (!name.ends_with(kWeight)) return std::string(name);
  name.remove_suffix(kWeight.size());
  return std::string(name) + ".parametrizations.weight.original";
}

using W = EncoderLayerWeights;

// "encoder.layer.{N}.output.dense" of layer 3: "encoder.layer.3.output.dense".
std::string NameInLayer(std::string_view pattern, size_t layer) {
  constexpr std::string_view kNumber = "{N}";
  std::string name(pattern);
  const size_t at = name.find(kNumber);
  if (at != std::string::npos) name.replace(at, kNumber.size(), std::to_string(layer));
  return name;
}

// The weight of `module`, a name in the base model, and the scales that a matrix has beside it.
Status ViewLinear(const std::string& module, const LayerPart& part, const Shape& shape,
                  ModelTensors* tensors, W* layer) {
  LinearWeights& linear = layer->*part.member.linear;
  const std::string name = tensors->Base(module);
  const std::string weight_name = name + ".weight";
  ENCORE_ASSIGN_OR_RETURN(linear.weight, tensors->ViewMerged(module, shape));
  if (linear.weight.dtype() == DType::kI8) {
    ENCORE_ASSIGN_OR_RETURN(linear.scale, tensors->View(weight_name + "_scale", {shape[0]}));
  }
  const std::string input_name = name + ".input_scale";
  if (part.input_scale_of == nullptr || tensors->Find(input_name) == nullptr) return {};
  ENCORE_ASSIGN_OR_RETURN((layer->*part.input_scale_of).input_scale,
                          tensors->View(input_name, {shape[1]}));
  return {};
}

// Of a tensor that has all layers' matrices, the one of a layer.
Status ViewStacked(const std::string& name, const LayerModule& module, const ModelSpec& spec,
                   size_t index, ModelTensors* tensors, W* layer) {
  const LayerTensor tensor{&PartOf(module.member), TensorRole::kWeight};
  const Shape own = ShapeOf(tensor, spec.encoder.d_model, spec.encoder.layers[index]);
  size_t rows = 0;
  if (!CheckedMul(own[0], spec.encoder.num_layers(), &rows)) {
    return InvalidArgument(name + ".weight: more rows than can be addressed");
  }
  ENCORE_ASSIGN_OR_RETURN(const WeightView all, tensors->View(name + ".weight", {rows, own[1]}));
  const size_t before = index * own[0] * own[1] * DTypeSize(all.dtype());
  tensor.In(*layer) = WeightView(all.dtype(), static_cast<const char*>(all.data()) + before, own);
  return {};
}

// `in_base` is the module's name in the base model.
Status ViewModule(const std::string& in_base, const LayerModule& module, size_t d_model,
                  const LayerConfig& config, ModelTensors* tensors, W* layer) {
  const std::string name = tensors->Base(in_base);
  const LayerPart& part = PartOf(module.member);
  const LayerTensor weight{&part, TensorRole::kWeight};
  const Shape shape = ShapeOf(weight, d_model, config);
  if (module.member == &W::convolution) {
    ENCORE_ASSIGN_OR_RETURN(
        weight.In(*layer),
        tensors->ViewConvolution(name, d_model, module.groups, config.convolution->kernel));
  } else if (part.member.linear != nullptr) {
    ENCORE_RETURN_IF_ERROR(ViewLinear(in_base, part, shape, tensors, layer));
  } else {
    ENCORE_ASSIGN_OR_RETURN(weight.In(*layer),
                            tensors->View(name + std::string(module.weight), shape));
  }
  if (!module.bias) return {};
  const LayerTensor bias{&part, TensorRole::kBias};
  ENCORE_ASSIGN_OR_RETURN(bias.In(*layer), tensors->View(name + ".bias", {shape[0]}));
  return {};
}

}  // namespace

Result<ModelTensors> ModelTensors::Create(const WeightFiles& files, const ModelSpec& spec) {
  const std::string word = std::string(spec.embeddings.word) + ".weight";
  const std::string_view alias = spec.embeddings.word_alias;
  ModelTensors tensors(files);
  tensors.has_bank_ = spec.tasks.in_file;
  const auto has = [&](const std::string& name) {
    return files.Find(name).tensor != nullptr ||
           (tensors.has_bank_ && files.Find(NameInBank(name)).tensor != nullptr);
  };
  std::vector<std::string_view> prefixes = {""};
  for (const std::string_view prefix : spec.family->prefixes) prefixes.push_back(prefix);
  prefixes.emplace_back("model.");
  std::string found;
  for (const std::string_view prefix : prefixes) {
    std::string name = std::string(prefix) + word;
    const std::string other =
        alias.empty() ? name : std::string(prefix) + std::string(alias) + ".weight";
    const bool has_name = has(name);
    if (!has_name && !has(other)) continue;
    const std::string& there = has_name ? name : other;
    if (!found.empty()) {
      return InvalidArgument(files.name() + ": tensor " + Quoted(there) + ": found also " +
                             Quoted(found) + "; wanted one of them");
    }
    found = there;
    tensors.prefix_ = prefix;
    tensors.word_ = std::move(name);
    tensors.word_alias_ = other;
  }
  if (!found.empty()) return tensors;
  std::string with;
  for (const std::string_view prefix : prefixes) {
    if (!prefix.empty()) with += (with.empty() ? "" : " or ") + Quoted(prefix);
  }
  return InvalidArgument(files.name() + ": tensor " + Quoted(word) +
                         ": found none; wanted it as such, or after " + with);
}

WeightFiles::Found ModelTensors::Lookup(std::string_view name) const {
  const WeightFiles::Found found = files_.Find(name);
  if (found.tensor != nullptr) return found;
  if (has_bank_) return files_.Find(NameInBank(name));
  // The table of words and, of one in int8, its scales.
  const std::string other_name = name.starts_with(word_)
                                     ? word_alias_ + std::string(name.substr(word_.size()))
                                     : OldName(name);
  return other_name.empty() ? found : files_.Find(other_name);
}

Status ModelTensors::NotTied(std::string_view name) const {
  return InvalidArgument(files_.name() + ": tensor " + Quoted(name) +
                         ": found none; wanted it, as tie_word_embeddings is not true");
}

Result<WeightFiles::Found> ModelTensors::Require(std::string_view name, const Shape& wanted,
                                                 bool may_be_int8) {
  const WeightFiles::Found found = Lookup(name);
  if (found.tensor == nullptr) {
    return InvalidArgument(files_.name() + ": tensor " + Quoted(name) + ": found none; wanted " +
                           wanted.ToString());
  }
  const std::string where = found.file->name() + ": tensor " + Quoted(found.tensor->name) + ": ";
  if (!(found.tensor->shape == wanted)) {
    return InvalidArgument(where + "found shape " + found.tensor->shape.ToString() + "; wanted " +
                           wanted.ToString() + ", as config.json has it");
  }
  const DType type = found.tensor->dtype;
  if (!IsWeightType(type, may_be_int8)) {
    return InvalidArgument(where + "found dtype " + std::string(DTypeName(type)) + "; wanted " +
                           std::string(may_be_int8 ? kFloatTypesOrInt8 : kFloatTypes));
  }
  used_.insert(found.tensor->name);
  types_.insert(found.tensor->dtype);
  return found;
}

Result<WeightView> ModelTensors::View(std::string_view name, const Shape& wanted) {
  ENCORE_ASSIGN_OR_RETURN(const WeightFiles::Found found, Require(name, wanted));
  return found.tensor->View();
}

Result<WeightView> ModelTensors::ViewMatrix(std::string_view name, const Shape& wanted) {
  ENCORE_ASSIGN_OR_RETURN(const WeightFiles::Found found,
                          Require(name, wanted, /*may_be_int8=*/true));
  return found.tensor->View();
}

Result<WeightView> ModelTensors::ViewMerged(std::string_view module, const Shape& wanted) {
  const std::string name = Base(module);
  const std::string weight = name + ".weight";
  if (adapter_ == nullptr) return ViewMatrix(weight, wanted);
  ENCORE_ASSIGN_OR_RETURN(Tensor merged, Read(weight, wanted));
  ENCORE_RETURN_IF_ERROR(adapter_->Merge(module, name, &merged));
  return WeightView(merged_.emplace_back(std::move(merged)).View<float>());
}

Result<WeightView> ModelTensors::ViewConvolution(std::string_view module, size_t width,
                                                 size_t groups, size_t kernel) {
  const std::string weight = std::string(module) + ".weight";
  const Shape stored(width, width / groups, kernel);
  const size_t row = width * kernel, block = row / groups;
  if (groups == 1) {
    ENCORE_ASSIGN_OR_RETURN(const WeightView view, View(weight, stored));
    return WeightView(view.dtype(), view.data(), Shape(width, row));
  }
  ENCORE_ASSIGN_OR_RETURN(const Tensor blocks, Read(weight, stored));
  ENCORE_ASSIGN_OR_RETURN(Tensor all, Tensor::Create(DType::kF32, Shape(width, row)));
  const float* from = blocks.View<float>().data();
  float* to = all.View<float>().data();
  std::fill_n(to, width * row, 0.0f);
  for (size_t r = 0; r < width; ++r) {
    const size_t group = r / (width / groups);
    std::copy_n(from + r * block, block, to + r * row + group * block);
  }
  return WeightView(merged_.emplace_back(std::move(all)).View<float>());
}

Result<Tensor> ModelTensors::Read(std::string_view name, const Shape& wanted) {
  ENCORE_ASSIGN_OR_RETURN(const WeightFiles::Found found, Require(name, wanted));
  return found.file->ReadAsF32(found.tensor->name);
}

Result<LoadedNorm> ModelTensors::ReadNorm(const std::string& name, size_t width, double epsilon,
                                          bool has_bias) {
  LoadedNorm norm{.epsilon = epsilon};
  ENCORE_ASSIGN_OR_RETURN(norm.weight, Read(name + ".weight", {width}));
  if (has_bias) {
    ENCORE_ASSIGN_OR_RETURN(norm.bias, Read(name + ".bias", {width}));
  }
  return norm;
}

Result<PackedLinear> ModelTensors::ReadLinear(const std::string& name, size_t outputs,
                                              size_t inputs, bool has_bias) {
  ENCORE_ASSIGN_OR_RETURN(const Tensor weight, Read(name + ".weight", {outputs, inputs}));
  Tensor bias;
  if (has_bias) {
    ENCORE_ASSIGN_OR_RETURN(bias, Read(name + ".bias", {outputs}));
  }
  return PackedLinear::Create(weight.View<float>(), std::as_const(bias).View<float>());
}

std::vector<std::string> ModelTensors::Unused(const Family& family) const {
  std::vector<std::string> names;
  for (const SafetensorsFile& file : files_.files()) {
    for (const SafetensorsEntry& entry : file.tensors()) {
      if (used_.contains(entry.name)) continue;
      if (has_bank_ && entry.name.find(".parametrizations.weight.0.lora_") != std::string::npos) {
        continue;
      }
      const std::string_view name = entry.name;
      const std::string_view in_base =
          name.starts_with(prefix_) ? name.substr(prefix_.size()) : name;
      bool known = false;
      for (const std::string_view start : family.harmless_tensors) {
        known = known || name.starts_with(start) || in_base.starts_with(start);
      }
      if (!known) names.push_back(entry.name);
    }
  }
  return names;
}

std::string ModelTensors::Types() const {
  std::string types;
  for (const DType type : types_) {
    types += (types.empty() ? "" : " and ") + std::string(DTypeName(type));
  }
  return types;
}

Status ReadFrequencies(ModelTensors* tensors, ModelSpec* spec) {
  std::vector<LayerConfig>& layers = spec->encoder.layers;
  std::vector<double> found;
  for (const std::string_view pattern : spec->family->frequencies) {
    for (size_t i = 0; i < layers.size(); ++i) {
      const std::string name = tensors->Base(NameInLayer(pattern, i));
      if (tensors->Find(name) == nullptr) continue;
      ENCORE_ASSIGN_OR_RETURN(const Tensor values,
                              tensors->Read(name, {layers.front().head_size / 2}));
      const ConstView view = values.View<float>();
      if (found.empty()) found.assign(view.data(), view.data() + view.dim(0));
    }
  }
  if (found.empty()) return {};
  for (LayerConfig& layer : layers) layer.rotary->inverse_frequencies = found;
  return {};
}

Result<EncoderWeights> ViewLayers(const ModelSpec& spec, ModelTensors* tensors) {
  EncoderWeights weights;
  const size_t d_model = spec.encoder.d_model;
  for (size_t i = 0; i < spec.encoder.layers.size(); ++i) {
    W& layer = weights.layers.emplace_back();
    for (const LayerModule& module : spec.layer_modules) {
      const LayerConfig& config = spec.encoder.layers[i];
      if (!PartOf(module.member).presence.in(config)) continue;
      const std::string name = NameInLayer(module.name, i);
      ENCORE_RETURN_IF_ERROR(
          module.stacked ? ViewStacked(tensors->Base(name), module, spec, i, tensors, &layer)
                         : ViewModule(name, module, d_model, config, tensors, &layer));
    }
  }
  if (spec.family->final_norm.empty()) return weights;
  const std::string name = tensors->Base(spec.family->final_norm);
  ENCORE_ASSIGN_OR_RETURN(weights.norm.weight, tensors->View(name + ".weight", {d_model}));
  if (spec.final_norm_bias) {
    ENCORE_ASSIGN_OR_RETURN(weights.norm.bias, tensors->View(name + ".bias", {d_model}));
  }
  return weights;
}

}  // namespace encore::internal
