// SPDX-License-Identifier: Apache-2.0
//
// A model of pictures from its folder.

#include "engine/models/image_model.h"

#include <utility>

#include "engine/base/status_macros.h"
#include "engine/models/pack_layers.h"
#include "engine/models/table_memory.h"

namespace encore::inline v0_1::internal {
namespace {

// A tensor of one number, or nothing where the file has none.
Result<std::optional<float>> ReadNumber(std::string_view name, ModelTensors* tensors) {
  const SafetensorsEntry* const entry = tensors->Find(name);
  if (entry == nullptr) return std::optional<float>();
  const bool scalar = entry->shape.rank() == 0;
  ENCORE_ASSIGN_OR_RETURN(const Tensor value, tensors->Read(name, scalar ? Shape() : Shape(1)));
  return std::optional(*static_cast<const float*>(value.data()));
}

}  // namespace

Status ImageModel::ReadPooling(const ModelSpec& spec, ModelTensors* tensors,
                               std::vector<Decision>* decisions) {
  const PatchSpec& p = spec.patches;
  const size_t d_model = spec.encoder.d_model;
  const auto note = [&](const std::string& text) {
    decisions->push_back({"pooling", text, tensors->files().name()});
  };
  width_ = d_model;
  if (!p.attention_head.empty()) {
    ENCORE_ASSIGN_OR_RETURN(probe_, ProbePooling::Read(spec, tensors));
    note("attention of a probe to all patches");
    return {};
  }
  std::string text = "the first row";
  if (!p.norm.empty()) {
    ENCORE_ASSIGN_OR_RETURN(norm_, tensors->ReadNorm(tensors->Base(p.norm), d_model,
                                                     spec.embeddings.norm_epsilon, true));
    text += ", " + std::string(p.norm);
  }
  const auto has = [&](const std::string& module) {
    return tensors->Find(module + ".weight") != nullptr;
  };
  const std::string dense = tensors->Base(p.dense);
  const std::string projection(p.projection);
  if (!p.dense.empty() && has(dense)) {
    ENCORE_ASSIGN_OR_RETURN(linear_, tensors->ReadLinear(dense, p.dense_width, d_model, true));
    activation_ = p.activation;
    text += ", " + std::string(activation_->text) + "(" + std::string(p.dense) + ")";
  } else if (const bool may_lack = p.may_lack_projection || !head_.labels().empty();
             !projection.empty() && (has(projection) || !may_lack)) {
    ENCORE_ASSIGN_OR_RETURN(linear_,
                            tensors->ReadLinear(projection, p.projection_width, d_model, false));
    text += ", " + projection;
  }
  if (linear_) width_ = linear_->out_features();
  note(text);
  return {};
}

Result<ImageModel> ImageModel::Open(const Folder& folder, const OpenOptions& options,
                                    const PictureSize& size, std::vector<Decision>* decisions) {
  ENCORE_ASSIGN_OR_RETURN(ModelSpec spec, ReadModelConfig(folder, options.ignore_unknown_keys,
                                                          decisions, Side::kPictures));
  ENCORE_ASSIGN_OR_RETURN(const WeightFiles files, WeightFiles::Open(folder, options.weights));
  ENCORE_ASSIGN_OR_RETURN(ModelTensors tensors, ModelTensors::Create(files, spec));
  ENCORE_ASSIGN_OR_RETURN(PatchEmbeddings embeddings,
                          PatchEmbeddings::Create(spec, size, &tensors));
  const PatchGrid& grid = embeddings.grid();
  for (LayerConfig& layer : spec.encoder.layers) {
    if (!layer.rotary) continue;
    layer.rotary->grid = RotaryGrid{embeddings.rows_before(), grid.rows, grid.columns};
  }
  const size_t side = spec.patches.side();
  const bool has_table = !spec.embeddings.position.empty();
  if (has_table && (grid.rows != side || grid.columns != side)) {
    decisions->push_back({"positions",
                          "interpolated to " + std::to_string(grid.rows) + " x " +
                              std::to_string(grid.columns) + " patches, bicubic" +
                              (spec.patches.antialias ? " with antialias" : ""),
                          "the processor's size"});
  }
  ENCORE_ASSIGN_OR_RETURN(const EncoderWeights weights, ViewLayers(spec, &tensors));
  decisions->push_back({"weights", tensors.Types(), files.name()});
  ENCORE_ASSIGN_OR_RETURN(Encoder encoder, PackLayers({folder, options, files, spec, std::nullopt},
                                                      weights, decisions));
  ImageModel model(std::move(embeddings), std::move(encoder));
  ENCORE_ASSIGN_OR_RETURN(model.head_, Classifier::Create(spec, &tensors, decisions));
  model.problem_type_ = spec.problem_type;
  ENCORE_RETURN_IF_ERROR(model.ReadPooling(spec, &tensors, decisions));
  ENCORE_ASSIGN_OR_RETURN(const std::optional<float> scale, ReadNumber("logit_scale", &tensors));
  ENCORE_ASSIGN_OR_RETURN(const std::optional<float> bias, ReadNumber("logit_bias", &tensors));
  if (scale) model.text_scale_ = TextScale{*scale, bias};
  NoteUnused(spec, tensors, /*read_later=*/{}, decisions);
  ENCORE_RETURN_IF_ERROR(files.CheckUnchanged());
  return model;
}

size_t ImageModel::packed_bytes() const {
  return embeddings_.packed_bytes() + (encoder_.mapped_bytes() == 0 ? encoder_.packed_bytes() : 0) +
         PackedBytes(linear_) + (probe_ ? probe_->packed_bytes() : 0) + head_.packed_bytes();
}

Status ImageModel::States(std::span<const size_t> starts, MutableView x,
                          const ImageBuffers& buffers, const Executor& executor) const {
  return encoder_.Forward({.seq_starts = starts}, x, x, buffers.workspace, executor);
}

Status ImageModel::Vectors(std::span<const size_t> starts, MutableView x, MutableView vectors,
                           const ImageBuffers& buffers, const Executor& executor) const {
  const size_t pictures = starts.size() - 1;
  if (probe_) {
    ENCORE_RETURN_IF_ERROR(States(starts, x, buffers, executor));
    return probe_->Apply(x, vectors, buffers.states, buffers.more, executor);
  }
  MutableView rows = vectors;
  if (linear_) {
    ENCORE_ASSIGN_OR_RETURN(float* const states, buffers.states->Get<float>(pictures * d_model()));
    rows = MutableView(states, Shape(pictures, d_model()));
  }
  ENCORE_RETURN_IF_ERROR(encoder_.ForwardRows({.seq_starts = starts}, OutputRows::kFirst, x, rows,
                                              buffers.workspace, executor));
  if (norm_) ENCORE_RETURN_IF_ERROR(norm_->Apply(rows));
  if (!linear_) return {};
  ENCORE_RETURN_IF_ERROR(linear_->Apply(rows, vectors, executor));
  if (activation_ != nullptr) activation_->apply(vectors.data(), pictures * width_);
  return {};
}

}  // namespace encore::internal
