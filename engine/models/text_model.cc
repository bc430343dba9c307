// SPDX-License-Identifier: Apache-2.0
//
// A text model from its folder.

#include "engine/models/text_model.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/base/layer_tensors.h"
#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/base/stored_precision.h"
#include "engine/models/classifier.h"
#include "engine/models/config_keys.h"
#include "engine/models/embeddings.h"
#include "engine/models/model_config.h"
#include "engine/models/model_tensors.h"
#include "engine/models/weight_files.h"

namespace encore::inline v0_1::internal {

struct TextModel::Impl {
  std::string family;
  WeightFiles files;  // keeps alive what the embeddings view
  Embeddings embeddings;
  Encoder encoder;
  std::optional<Classifier> head;
  std::vector<std::string> no_labels;
};

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

Status CheckNoForeignTensor(const ModelPlan& plan, const WeightFiles& files,
                            const std::string& model_type) {
  for (const SafetensorsFile& file : files.files()) {
    for (const SafetensorsEntry& entry : file.tensors()) {
      for (const std::string_view part : Words(plan.family->foreign_tensors)) {
        if (entry.name.find(part) == std::string::npos) continue;
        return Status(ErrorCode::kUnsupported,
                      file.name() + ": tensor " + Quoted(entry.name) +
                          ": belongs to a variant of " + model_type +
                          " that encore does not compute; wanted no name with " + Quoted(part));
      }
    }
  }
  return {};
}

struct ChosenPrecision {
  Precision precision = Precision::kF32;
  std::vector<MatrixOfLayer> keep;
};

// What the caller wants, or what the weights were made for.
Result<ChosenPrecision> ChoosePrecision(const ModelOptions& options, const WeightFiles& files,
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
  ChosenPrecision chosen{options.precision.value_or(stored), options.keep};
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

Result<TextModel> TextModel::Open(const Folder& folder, const ModelOptions& options,
                                  std::vector<Decision>* decisions) {
  ENCORE_ASSIGN_OR_RETURN(ModelConfig config,
                          ReadModelConfig(folder, options.ignore_unknown_keys, decisions));
  const ModelPlan& plan = config.plan;
  ENCORE_ASSIGN_OR_RETURN(const WeightFiles files, WeightFiles::Open(folder, options.weights));
  ENCORE_ASSIGN_OR_RETURN(ModelTensors tensors, ModelTensors::Create(files, plan));
  ENCORE_RETURN_IF_ERROR(CheckNoForeignTensor(plan, files, config.model_type));
  ENCORE_ASSIGN_OR_RETURN(Embeddings embeddings,
                          Embeddings::Create(plan.embeddings, plan.encoder.d_model, &tensors));
  ENCORE_ASSIGN_OR_RETURN(const EncoderWeights weights, ViewLayers(plan, &tensors));
  decisions->push_back({"weights", tensors.Types(), files.name()});
  if (embeddings.has_int8()) {
    decisions->push_back({"embeddings", "int8, a scale a row", files.name()});
  }
  ENCORE_ASSIGN_OR_RETURN(const ChosenPrecision chosen,
                          ChoosePrecision(options, files, weights, decisions));
  // Pages of what was packed are given back after each layer, and the rest at the end.
  ENCORE_ASSIGN_OR_RETURN(Encoder encoder,
                          Encoder::Create(plan.encoder, weights,
                                          {.precision = chosen.precision,
                                           .executor = options.executor,
                                           .layer_packed = [&files] { files.ReleasePages(); },
                                           .keep = chosen.keep,
                                           .amx_bf16 = options.amx_bf16}));
  if (options.amx_bf16) {
    decisions->push_back({"AMX for bf16",
                          encoder.amx_bf16()                    ? "used"
                          : chosen.precision == Precision::kF32 ? "not used, as all is f32"
                                                                : "not to be had here",
                          "option amx_bf16"});
  }
  ENCORE_ASSIGN_OR_RETURN(std::optional<Classifier> head,
                          Classifier::Create(config, &tensors, decisions));
  TellUnused(plan, tensors, decisions);
  files.ReleasePages();
  ENCORE_RETURN_IF_ERROR(files.CheckUnchanged());
  return TextModel(std::make_shared<const Impl>(Impl{std::move(config.model_type),
                                                     files,
                                                     std::move(embeddings),
                                                     std::move(encoder),
                                                     std::move(head),
                                                     {}}));
}

std::string_view TextModel::family() const { return impl_->family; }
size_t TextModel::d_model() const { return impl_->encoder.config().d_model; }
size_t TextModel::vocab_size() const { return impl_->embeddings.plan().vocab_size; }
size_t TextModel::type_vocab_size() const { return impl_->embeddings.plan().type_vocab_size; }
size_t TextModel::max_tokens() const { return impl_->embeddings.plan().max_tokens(); }
size_t TextModel::usual_tokens() const { return impl_->embeddings.plan().usual_tokens(); }
bool TextModel::positions_skip_padding() const {
  return impl_->embeddings.plan().position_rule == PositionRule::kAroundPadding;
}
const Encoder& TextModel::encoder() const { return impl_->encoder; }

Status TextModel::CheckTokens(const TokenBatch& batch) const {
  return impl_->embeddings.Check(batch);
}

Status TextModel::Embed(const TokenBatch& batch, MutableView x, const Executor& executor) const {
  const Shape wanted(batch.ids.size(), d_model());
  if (!(x.shape() == wanted) || (x.dim(1) > 1 && x.stride(1) != 1)) {
    return InvalidArgument("x has shape " + x.shape().ToString() + "; wanted " + wanted.ToString() +
                           " with contiguous rows");
  }
  ENCORE_RETURN_IF_ERROR(impl_->files.CheckUnchanged());
  return impl_->embeddings.Apply(batch, x, executor);
}

Status TextModel::Forward(const TokenBatch& batch, OutputRows rows, MutableView x,
                          MutableView hidden, const Workspace& workspace, const Executor& executor,
                          const Taps& taps) const {
  return impl_->encoder.ForwardRows({.seq_starts = batch.seq_starts}, rows, x, hidden, workspace,
                                    executor, taps);
}

OutputRows TextModel::head_rows() const {
  return impl_->head ? impl_->head->rows() : OutputRows::kFirst;
}
bool TextModel::has_head() const { return impl_->head.has_value(); }
const std::vector<std::string>& TextModel::labels() const {
  return impl_->head ? impl_->head->labels() : impl_->no_labels;
}

Status TextModel::Logits(ConstView pooled, MutableView logits, const Executor& executor) const {
  if (!impl_->head) {
    return Status(ErrorCode::kUnsupported, "the folder's model has no head of a classifier");
  }
  return impl_->head->Apply(pooled, logits, executor);
}

}  // namespace encore::internal
