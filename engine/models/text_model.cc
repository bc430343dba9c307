// SPDX-License-Identifier: Apache-2.0
//
// A text model from its folder.

#include "engine/models/text_model.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/models/model_tensors.h"
#include "engine/models/pack_layers.h"
#include "engine/nn/layer_tensors.h"
#include "engine/platform/file_error.h"
#include "engine/platform/mapped_file.h"

namespace encore::inline v0_1::internal {
namespace {

// Whether the folder has the head of a masked language model at all. Its layer before the decoder
// may be a classifier's too, as ModernBERT's is.
Status FindLanguageHead(const ModelSpec& model, const ModelTensors& tensors) {
  const LanguageHeadSpec& spec = model.language;
  if (spec.decoder.empty()) return {};  // LanguageHead says so
  const auto has = [&](WordList modules, const char* part) {
    for (const std::string_view module : modules) {
      if (tensors.Find(std::string(module) + part) != nullptr) return true;
    }
    return false;
  };
  std::string name = std::string(spec.dense) + ".weight";
  bool is_there = spec.dense.empty() || tensors.Find(name) != nullptr;
  if (is_there && spec.has_bias) {
    name = spec.bias.empty() ? std::string(spec.decoder.first()) + ".bias" : std::string(spec.bias);
    is_there = tensors.Find(name) != nullptr || has(spec.decoder, ".bias");
  }
  if (is_there && spec.dense.empty() && !model.tied) {
    name = std::string(spec.decoder.first()) + ".weight";
    is_there = has(spec.decoder, ".weight");
  }
  if (is_there) return {};
  return Status(ErrorCode::kUnsupported,
                tensors.files().name() + ": found no tensor " + Quoted(name) +
                    "; wanted the head of a masked language model, which sparse vectors and "
                    "filled masks are made of" +
                    (spec.dense.empty() && !model.tied
                         ? ", with a matrix of its own, as tie_word_embeddings is not true"
                         : ""));
}

}  // namespace

Result<TextModel> TextModel::Open(const Folder& folder, const OpenOptions& options,
                                  std::vector<Decision>* decisions, const ModelExtras& extras) {
  ENCORE_ASSIGN_OR_RETURN(ModelSpec spec,
                          ReadModelConfig(folder, options.ignore_unknown_keys, decisions));
  ENCORE_ASSIGN_OR_RETURN(const WeightFiles files, WeightFiles::Open(folder, options.weights));
  ENCORE_ASSIGN_OR_RETURN(ModelTensors tensors, ModelTensors::Create(files, spec));
  ENCORE_RETURN_IF_ERROR(CheckNoForeignTensor(spec, files));
  ENCORE_ASSIGN_OR_RETURN(std::optional<TaskAdapter> adapter,
                          TaskAdapter::Open(folder, files, spec, options.task, decisions));
  if (adapter) tensors.UseAdapter(&*adapter);
  ENCORE_RETURN_IF_ERROR(ReadFrequencies(&tensors, &spec));
  ENCORE_ASSIGN_OR_RETURN(Embeddings embeddings,
                          Embeddings::Create(spec.embeddings, spec.encoder.d_model, &tensors));
  ENCORE_ASSIGN_OR_RETURN(const EncoderWeights weights, ViewLayers(spec, &tensors));
  if (adapter) ENCORE_RETURN_IF_ERROR(adapter->CheckUsed());
  decisions->push_back({"weights", tensors.Types(), files.name()});
  if (embeddings.has_int8()) {
    decisions->push_back({"embeddings", "int8, a scale a row", files.name()});
  }
  ENCORE_ASSIGN_OR_RETURN(Encoder encoder,
                          PackLayers({folder, options, files, spec, adapter}, weights, decisions));
  TextModel model(spec.model_type, files, std::move(embeddings));
  model.encoder_ = std::move(encoder);
  if (extras.score) {
    Result<Classifier> head = Classifier::OfLogits(spec, *extras.score, &tensors, decisions);
    const ErrorCode code = head.status().code();
    const bool has_none = code == ErrorCode::kUnsupported || code == ErrorCode::kInvalidArgument;
    if (!head.ok() && !(extras.score_may_be_missing && has_none)) return head.status();
    if (head.ok()) model.head_ = *std::move(head);
  } else {
    ENCORE_ASSIGN_OR_RETURN(model.head_, Classifier::Create(spec, &tensors, decisions));
  }
  if (options.language_head) {
    ENCORE_RETURN_IF_ERROR(FindLanguageHead(spec, tensors));
    ENCORE_ASSIGN_OR_RETURN(model.language_, LanguageHead::Create(spec, &tensors, decisions));
  }
  model.problem_type_ = spec.problem_type;
  model.pooling_ = spec.pooling;
  model.pads_ = spec.pads;
  if (const auto& [name, width, bias] = spec.projection; !name.empty()) {
    if (model.labels_tokens() || model.language_) {
      return Status(ErrorCode::kUnsupported,
                    files.name() + ": tensor " + Quoted(std::string(name) + ".weight") +
                        ": found a projection and a head of tokens; wanted one of them");
    }
    // Beside the base model's tensors, or among them.
    const bool beside = tensors.Find(std::string(name) + ".weight") != nullptr;
    ENCORE_ASSIGN_OR_RETURN(model.projection_,
                            tensors.ReadLinear(beside ? std::string(name) : tensors.Base(name),
                                               width, spec.encoder.d_model, bias));
    decisions->push_back(
        {"projection",
         std::string(name) +
             (model.pools_text() ? ", of a text's vector to " : ", of each token to ") +
             std::to_string(width) + " elements",
         files.name()});
  }
  NoteUnused(spec, tensors, extras.read_later, decisions);
  files.ReleasePages();
  ENCORE_RETURN_IF_ERROR(files.CheckUnchanged());
  ENCORE_RETURN_IF_ERROR(model.KeepTables(options.weights));
  return model;
}

Result<TextModel> TextModel::OpenStatic(const Folder& folder, const OpenOptions& options,
                                        std::vector<Decision>* decisions) {
  ENCORE_ASSIGN_OR_RETURN(const WeightFiles files, WeightFiles::Open(folder, options.weights));
  ENCORE_ASSIGN_OR_RETURN(StaticTable table, StaticTable::Create(files, decisions));
  TextModel model("static", files, Embeddings::WithoutTables(table.vocab_size()));
  model.table_ = std::move(table);
  ENCORE_RETURN_IF_ERROR(model.KeepTables(options.weights));
  return model;
}

// Of a copy of the files only the tables are read again.
Status TextModel::KeepTables(FileMemory memory) {
  if (memory != FileMemory::kCopied) return {};
  ENCORE_RETURN_IF_ERROR(embeddings_.CopyTables());
  if (table_) ENCORE_RETURN_IF_ERROR(table_->CopyRows());
  files_ = WeightFiles();
  return {};
}

size_t TextModel::mapped_bytes() const {
  return files_.mapped_bytes() + (encoder_ ? encoder_->mapped_bytes() : 0);
}

size_t TextModel::packed_bytes() const {
  const bool own = encoder_ && encoder_->mapped_bytes() == 0;
  return (own ? encoder_->packed_bytes() : 0) + embeddings_.packed_bytes() +
         PackedBytes(projection_) + head_.packed_bytes() +
         (language_ ? language_->packed_bytes() : 0);
}

size_t TextModel::table_bytes() const {
  return embeddings_.table_bytes() + (table_ ? table_->table_bytes() : 0);
}

Result<TextModel::ScratchBytes> TextModel::ScratchOf(const BatchLimits& limits, int threads) const {
  ScratchBytes bytes;
  if (!encoder_) return bytes;
  ENCORE_ASSIGN_OR_RETURN(bytes.workspace, encoder_->WorkspaceBytes(limits, threads));
  if (embeddings_.packed_bytes() > 0) bytes.narrow = limits.tokens * spec().width * sizeof(float);
  if (spec().position_rule != PositionRule::kNone) bytes.positions = limits.tokens;
  if (spec().dropped_token) bytes.factors = limits.tokens;
  if (projection_) bytes.states = limits.sequences * d_model() * sizeof(float);
  return bytes;
}

Status TextModel::ReadFiles(const Executor& executor) const {
  ENCORE_RETURN_IF_ERROR(files_.NoteBytes(executor));
  embeddings_.Touch();
  if (table_) table_->Touch();
  return {};
}

size_t TextModel::TokensRead(std::span<const int32_t> ids) const {
  size_t row = 0;
  if (pooling_.token == TextPooling::kEosToken) {
    const auto end = std::find_if(ids.begin(), ids.end(), [&](int32_t id) {
      return static_cast<size_t>(id) == pooling_.eos_id;
    });
    row = end == ids.end() ? 0 : static_cast<size_t>(end - ids.begin());
  } else if (pooling_.token == TextPooling::kLargestId) {
    row = static_cast<size_t>(std::max_element(ids.begin(), ids.end()) - ids.begin());
  } else {
    return ids.size();
  }
  return std::min(row + 1, ids.size());
}

Status TextModel::Means(const TokenBatch& batch, float* means, const Executor& executor) const {
  ENCORE_RETURN_IF_ERROR(files_.CheckUnchanged(executor));
  // Some hundred texts a task; fewer are not worth waking a thread.
  constexpr size_t kTaskTokens = 4096;
  const size_t sequences = batch.seq_starts.size() - 1;
  const size_t tasks = std::clamp<size_t>(batch.ids.size() / kTaskTokens, 1, sequences + 1);
  const auto ids_of = [&](size_t b) {
    return batch.ids.subspan(batch.seq_starts[b], batch.seq_starts[b + 1] - batch.seq_starts[b]);
  };
  ENCORE_RETURN_IF_ERROR(RunParallel(tasks == 1 ? Executor() : executor, tasks, [&](size_t task) {
    const size_t end = sequences * (task + 1) / tasks;
    for (size_t b = sequences * task / tasks; b < end; ++b) {
      if (b + 1 < end) table_->Prefetch(ids_of(b + 1));
      table_->Mean(ids_of(b), means + b * d_model());
    }
  }));
  return {};
}

Batch TextModel::PackedBatch(const TokenBatch& batch) {
  if (batch.unseen.empty()) return {.seq_starts = batch.seq_starts};
  static constexpr bool kBlocked[] = {false, true, false, true};
  return {.seq_starts = batch.seq_starts,
          .mask = {.blocked = TensorView<const bool>(kBlocked, Shape(2, 2))},
          .positions = batch.unseen};
}

Status TextModel::Embed(const TokenBatch& batch, MutableView x, BatchScratch* scratch,
                        const Executor& executor) const {
  const Shape wanted(batch.ids.size(), d_model());
  if (!(x.shape() == wanted) || (x.dim(1) > 1 && x.stride(1) != 1)) {
    return InvalidArgument("x has shape " + x.shape().ToString() + "; wanted " + wanted.ToString() +
                           " with contiguous rows");
  }
  ENCORE_RETURN_IF_ERROR(files_.CheckUnchanged(executor));
  return embeddings_.Apply(batch, x, scratch, executor);
}

Status TextModel::Forward(const TokenBatch& batch, OutputRows rows, MutableView x,
                          MutableView hidden, const Workspace& workspace, BatchScratch* scratch,
                          const Executor& executor, const Taps& taps) const {
  MutableView states = hidden;
  if (projection_ && rows == OutputRows::kAll) {
    states = x;
  } else if (projection_) {
    const Shape shape(hidden.dim(0), d_model());
    ENCORE_ASSIGN_OR_RETURN(float* const some, scratch->states.Get<float>(shape[0] * shape[1]));
    states = MutableView(some, shape);
  }
  ENCORE_RETURN_IF_ERROR(
      encoder_->ForwardRows(PackedBatch(batch), rows, x, states, workspace, executor, taps));
  return projection_ ? projection_->Apply(states, hidden, executor) : Status();
}

}  // namespace encore::internal
