// SPDX-License-Identifier: Apache-2.0
//
// Reads Dense modules.

#include "engine/text/dense.h"

#include "encore/safetensors.h"
#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"

namespace encore::inline v0_1::internal {
namespace {

struct DenseConfig {
  size_t in_features = 0;
  size_t out_features = 0;
  bool bias = true;
  const TorchActivation* activation = nullptr;
};

const TorchActivation* ReadActivation(JsonMembers& members) {
  constexpr std::string_view kKey = "activation_function";
  const TorchActivation* activation =
      FindTorchActivation(members.String(kKey, "torch.nn.modules.activation.Tanh"));
  if (activation == nullptr) members.Refuse(kKey, "one of " + TorchActivationNames());
  return activation;
}

Result<DenseConfig> ReadConfig(const std::string& file, size_t width,
                               const FolderReading& reading) {
  ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> json, reading.folder.ReadJson(file));
  if (!json.has_value()) {
    return Status(ErrorCode::kNotFound, "modules.json names a Dense module, but there is no " +
                                            reading.folder.PathOf(file));
  }
  JsonMembers members(*json, file);
  DenseConfig config;
  config.in_features = members.RequiredSize("in_features");
  config.out_features = members.RequiredSize("out_features");
  config.bias = members.Bool("bias", true);
  config.activation = ReadActivation(members);
  if (config.in_features != width) {
    members.Refuse("in_features", std::to_string(width) + ", the width of what comes before");
  }
  if (config.out_features == 0) members.Refuse("out_features", "at least 1");
  if (members.Bool("use_residual", false)) members.Refuse("use_residual", "false");
  for (const std::string_view key : {"module_input_name", "module_output_name"}) {
    if (members.String(key, "sentence_embedding") != "sentence_embedding") {
      members.Refuse(key, "'sentence_embedding'");
    }
  }
  ENCORE_RETURN_IF_ERROR(FinishAsUnused(members, reading));
  return config;
}

// The tensor in f32, if it has this shape.
Result<Tensor> ReadTensor(const SafetensorsFile& file, std::string_view name, const Shape& shape) {
  ENCORE_ASSIGN_OR_RETURN(Tensor tensor, file.ReadAsF32(name));
  if (!(tensor.shape() == shape)) {
    return InvalidArgument(file.name() + ": " + std::string(name) + " is " +
                           tensor.shape().ToString() + "; wanted " + shape.ToString());
  }
  return tensor;
}

Result<SafetensorsFile> OpenWeights(const std::string& path, const FolderReading& reading) {
  const std::string file = Within(path, "model.safetensors");
  ENCORE_ASSIGN_OR_RETURN(const bool is_there, reading.folder.Has(file));
  if (!is_there) {
    const std::string pickle = Within(path, "pytorch_model.bin");
    ENCORE_ASSIGN_OR_RETURN(const bool is_pickle, reading.folder.Has(pickle));
    if (is_pickle) {
      return Status(ErrorCode::kUnsupported,
                    Quoted(reading.folder.PathOf(pickle)) +
                        " is a pickle; wanted model.safetensors beside it. To make it: python -c "
                        "\"import torch, safetensors.torch as s; "
                        "s.save_file(torch.load('pytorch_model.bin'), 'model.safetensors')\"");
    }
  }
  return SafetensorsFile::Open(reading.folder.PathOf(file));
}

}  // namespace

Result<Dense> ReadDense(const std::string& path, size_t width, const FolderReading& reading) {
  const std::string config_file = Within(path, "config.json");
  ENCORE_ASSIGN_OR_RETURN(const DenseConfig config, ReadConfig(config_file, width, reading));
  ENCORE_ASSIGN_OR_RETURN(const SafetensorsFile file, OpenWeights(path, reading));
  for (const SafetensorsEntry& entry : file.tensors()) {
    if (entry.name == "linear.weight" || (config.bias && entry.name == "linear.bias")) continue;
    return InvalidArgument(file.name() + ": unknown tensor " + Quoted(entry.name) +
                           "; wanted linear.weight" + (config.bias ? " and linear.bias" : ""));
  }
  ENCORE_ASSIGN_OR_RETURN(
      const Tensor weight,
      ReadTensor(file, "linear.weight", {config.out_features, config.in_features}));
  Tensor bias;
  if (config.bias) {
    ENCORE_ASSIGN_OR_RETURN(Tensor read, ReadTensor(file, "linear.bias", {config.out_features}));
    bias = std::move(read);
  }
  ENCORE_ASSIGN_OR_RETURN(PackedLinear linear,
                          PackedLinear::Create(weight.View<float>(), bias.View<float>()));
  reading.Tell("dense",
               std::to_string(config.in_features) + " to " + std::to_string(config.out_features) +
                   (config.bias ? ", " : ", no bias, ") + std::string(config.activation->text),
               config_file);
  return Dense{std::move(linear), config.activation};
}

}  // namespace encore::internal
