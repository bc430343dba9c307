// SPDX-License-Identifier: Apache-2.0
//
// A text model from its folder.

#include "engine/models/text_model.h"

#include <algorithm>
#include <utility>

#include "engine/base/layer_tensors.h"
#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/base/stored_precision.h"
#include "engine/models/config_keys.h"
#include "engine/models/model_tensors.h"

namespace encore::inline v0_1::internal {
namespace {

void TellUnused(const ModelPlan& plan, const ModelTensors& tensors,
                std::vector<Decision>* decisions) {
  const std::vector<std::string> unused = tensors.Unused(*plan.family);
  if (unused.empty()) return;
  constexpr size_t kShown = 4;
  std::string names;
  for (size_t i = 0; i < std::min(kShown, unused.size()); ++i) {
    names += (names.empty() ? "" : ", ") + Quoted(unused[i]);
  }
  if (unused.size() > kShown) names += " and " + std::to_string(unused.size() - kShown) + " more";
  decisions->push_back(
      {"ignored", (unused.size() == 1 ? "tensor " : "tensors ") + names, tensors.files().name()});
}

Status CheckNoForeignTensor(const ModelPlan& plan, const WeightFiles& files) {
  for (const SafetensorsFile& file : files.files()) {
    for (const SafetensorsEntry& entry : file.tensors()) {
      for (const std::string_view part : Words(plan.family->foreign_tensors)) {
        if (entry.name.find(part) == std::string::npos) continue;
        return Status(ErrorCode::kUnsupported,
                      file.name() + ": tensor " + Quoted(entry.name) +
                          ": belongs to a variant of " + plan.model_type +
                          " that encore does not compute; wanted no name with " + Quoted(part));
      }
    }
  }
  return {};
}

// What the caller wants, or what the weights were made for.
Result<EncoderOptions> ChoosePrecision(const OpenOptions& options, const WeightFiles& files,
                                       const EncoderWeights& weights,
                                       std::vector<Decision>* decisions) {
  Precision stored = Precision::kF32;
  for (const SafetensorsFile& file : files.files()) {
    const Result<Precision> found = StoredPrecision(file.metadata());
    if (!found.ok()) {
      return Status(found.status().code(), file.name() + ": " + found.status().message());
    }
    if (*found != Precision::kF32) stored = *found;
  }
  EncoderOptions chosen{.precision = options.precision.value_or(stored),
                        .executor = options.executor,
                        .keep = options.keep,
                        .amx_bf16 = options.amx_bf16};
  const std::string source = options.precision           ? "option precision"
                             : stored == Precision::kF32 ? "default"
                                                         : files.name();
  if (chosen.precision == Precision::kF32) {
    decisions->push_back({"precision", "f32", source});
    return chosen;
  }
  if (chosen.precision == Precision::kInt8 && stored == Precision::kInt8) {
    const std::vector<MatrixOfLayer> floats = FloatMatrices(weights);
    chosen.keep.insert(chosen.keep.end(), floats.begin(), floats.end());
  }
  std::string value = std::string(PrecisionName(chosen.precision)) + " in the layers";
  if (!chosen.keep.empty()) {
    value += " (" + std::to_string(chosen.keep.size()) + " kept in bf16)";
  }
  decisions->push_back({"precision", value + ", f32 in all else", source});
  return chosen;
}

}  // namespace

Result<TextModel> TextModel::Open(const Folder& folder, const OpenOptions& options,
                                  std::vector<Decision>* decisions) {
  ENCORE_ASSIGN_OR_RETURN(const ModelPlan plan,
                          ReadModelConfig(folder, options.ignore_unknown_keys, decisions));
  ENCORE_ASSIGN_OR_RETURN(const WeightFiles files, WeightFiles::Open(folder, options.weights));
  ENCORE_ASSIGN_OR_RETURN(ModelTensors tensors, ModelTensors::Create(files, plan));
  ENCORE_RETURN_IF_ERROR(CheckNoForeignTensor(plan, files));
  ENCORE_ASSIGN_OR_RETURN(Embeddings embeddings,
                          Embeddings::Create(plan.embeddings, plan.encoder.d_model, &tensors));
  ENCORE_ASSIGN_OR_RETURN(const EncoderWeights weights, ViewLayers(plan, &tensors));
  decisions->push_back({"weights", tensors.Types(), files.name()});
  if (embeddings.has_int8()) {
    decisions->push_back({"embeddings", "int8, a scale a row", files.name()});
  }
  ENCORE_ASSIGN_OR_RETURN(EncoderOptions chosen,
                          ChoosePrecision(options, files, weights, decisions));
  // Pages of what was packed are given back after each layer, and the rest at the end.
  chosen.layer_packed = [&files] { files.ReleasePages(); };
  ENCORE_ASSIGN_OR_RETURN(Encoder encoder, Encoder::Create(plan.encoder, weights, chosen));
  if (options.amx_bf16) {
    decisions->push_back({"AMX for bf16",
                          encoder.amx_bf16()                    ? "used"
                          : chosen.precision == Precision::kF32 ? "not used, as all is f32"
                                                                : "not to be had here",
                          "option amx_bf16"});
  }
  ENCORE_ASSIGN_OR_RETURN(Classifier head, Classifier::Create(plan, &tensors, decisions));
  std::optional<PackedLinear> projection;
  if (const auto& [name, width] = plan.projection; !name.empty()) {
    ENCORE_ASSIGN_OR_RETURN(projection,
                            tensors.ReadLinear(std::string(name), width, plan.encoder.d_model,
                                               /*has_bias=*/false));
    decisions->push_back(
        {"projection",
         std::string(name) + ", of each token to " + std::to_string(width) + " elements",
         files.name()});
  }
  TellUnused(plan, tensors, decisions);
  files.ReleasePages();
  ENCORE_RETURN_IF_ERROR(files.CheckUnchanged());
  return TextModel(plan.model_type, files, std::move(embeddings), std::move(encoder),
                   std::move(projection), std::move(head));
}

Status TextModel::Embed(const TokenBatch& batch, MutableView x, const Executor& executor) const {
  const Shape wanted(batch.ids.size(), d_model());
  if (!(x.shape() == wanted) || (x.dim(1) > 1 && x.stride(1) != 1)) {
    return InvalidArgument("x has shape " + x.shape().ToString() + "; wanted " + wanted.ToString() +
                           " with contiguous rows");
  }
  ENCORE_RETURN_IF_ERROR(files_.CheckUnchanged());
  return embeddings_.Apply(batch, x, executor);
}

Status TextModel::Forward(const TokenBatch& batch, OutputRows rows, MutableView x,
                          MutableView hidden, const Workspace& workspace, const Executor& executor,
                          const Taps& taps) const {
  MutableView states = hidden;
  Tensor memory;
  if (projection_ && rows == OutputRows::kAll) {
    states = x;
  } else if (projection_) {
    ENCORE_ASSIGN_OR_RETURN(memory, Tensor::Create(DType::kF32, Shape(hidden.dim(0), d_model())));
    states = memory.View<float>();
  }
  ENCORE_RETURN_IF_ERROR(encoder_.ForwardRows({.seq_starts = batch.seq_starts}, rows, x, states,
                                              workspace, executor, taps));
  return projection_ ? projection_->Apply(states, hidden, executor) : Status();
}

}  // namespace encore::internal
