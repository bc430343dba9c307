// SPDX-License-Identifier: Apache-2.0
//
// From token ids to the encoder's input.

#include "engine/models/embeddings.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/elements.h"
#include "engine/base/first_failure.h"
#include "engine/base/input_check.h"
#include "engine/base/int_math.h"
#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/base/touch_pages.h"
#include "engine/platform/fp_env.h"

namespace encore::inline v0_1::internal {
namespace {

// A task's rows: enough that sharing them costs little, few enough for the caches of one core.
constexpr size_t kRowsPerTask = 32;
// Below so many floats threads are not worth waking (a wake takes microseconds; 2^14 sums take as
// many).
constexpr size_t kInlineFloats = size_t{1} << 14;

// out[i] = value(i), or out[i] += value(i).
template <typename Value>
void Put(size_t width, bool add, float* out, Value value) {
  if (add) {
    for (size_t i = 0; i < width; ++i) out[i] += value(i);
  } else {
    for (size_t i = 0; i < width; ++i) out[i] = value(i);
  }
}

// Row `row` of the table, in f32 (f64 to nearest), to out [width] or added to it.
void PutRow(const EmbeddingTable& table, size_t row, bool add, float* out) {
  const DType type = table.rows.dtype();
  const size_t width = table.rows.dim(1);
  const auto* const in =
      static_cast<const std::byte*>(table.rows.data()) + row * width * DTypeSize(type);
  VisitElements(type, [&]<typename T>(T) {
    const auto value = [in](size_t i) { return ElementAt<T>(in, static_cast<ptrdiff_t>(i)); };
    if (!table.more.empty()) {
      return Put(width, add, out, [&](size_t i) { return table.more.Add(value(i), row, i); });
    }
    if (!table.is_int8()) return Put(width, add, out, value);
    const float scale = static_cast<const float*>(table.scales.data())[row];
    Put(width, add, out, [&](size_t i) { return scale * value(i); });
  });
}

// The row of the position table for each token; empty where there is no table.
void FindPositions(const EmbeddingSpec& spec, const TokenBatch& batch, BatchScratch* scratch) {
  std::vector<uint32_t>& positions = scratch->positions;
  positions.clear();
  if (spec.position_rule == PositionRule::kNone) return;
  positions.resize(batch.ids.size());
  const auto pad = static_cast<uint32_t>(spec.pad_token_id);
  for (size_t b = 0; b + 1 < batch.seq_starts.size(); ++b) {
    uint32_t next = spec.position_rule == PositionRule::kFromPadding ? pad + 1 : 0;
    for (size_t t = batch.seq_starts[b]; t < batch.seq_starts[b + 1]; ++t) {
      const bool padding = spec.position_rule == PositionRule::kFromPadding &&
                           static_cast<uint32_t>(batch.ids[t]) == pad;
      positions[t] = padding ? pad : next++;
    }
  }
}

// The row of the table of words.
size_t WordRow(const EmbeddingSpec& spec, int32_t id) {
  const auto row = static_cast<size_t>(id);
  const bool placeholder = std::any_of(spec.placeholders.begin(), spec.placeholders.end(),
                                       [row](std::optional<size_t> other) { return other == row; });
  return placeholder ? spec.pad_token_id : row;
}

// What each token's row is multiplied by; empty where all are multiplied by 1.
void FindFactors(const EmbeddingSpec& spec, const TokenBatch& batch, BatchScratch* scratch) {
  std::vector<float>& factors = scratch->factors;
  factors.clear();
  if (!spec.dropped_token) return;
  const FpEnvScope default_modes;
  constexpr double kKept = 0.88;  // of the tokens in training
  factors.resize(batch.ids.size());
  for (size_t b = 0; b + 1 < batch.seq_starts.size(); ++b) {
    const std::span<const int32_t> ids =
        batch.ids.subspan(batch.seq_starts[b], batch.seq_starts[b + 1] - batch.seq_starts[b]);
    const auto is_dropped = [&](int32_t id) {
      return static_cast<size_t>(id) == *spec.dropped_token;
    };
    const auto dropped = std::count_if(ids.begin(), ids.end(), is_dropped);
    const double share = static_cast<double>(dropped) / static_cast<double>(ids.size());
    const auto factor = static_cast<float>(kKept / (1 - share));
    for (size_t t = 0; t < ids.size(); ++t) {
      factors[batch.seq_starts[b] + t] = is_dropped(ids[t]) ? 0 : factor;
    }
  }
}

std::string Place(size_t sequence, size_t token) {
  return "sequence " + std::to_string(sequence) + ", token " + std::to_string(token);
}

Status CheckSizes(const TokenBatch& batch) {
  ENCORE_RETURN_IF_ERROR(CheckStarts("seq_starts", batch.seq_starts, 1));
  ENCORE_RETURN_IF_ERROR(
      CheckEnd("seq_starts", batch.seq_starts, batch.ids.size(), "the number of ids"));
  if (!batch.type_ids.empty() && batch.type_ids.size() != batch.ids.size()) {
    return InvalidArgument("type_ids has " + std::to_string(batch.type_ids.size()) +
                           " entries; wanted none or one for each of " +
                           std::to_string(batch.ids.size()) + " ids");
  }
  return {};
}

}  // namespace

Status ViewTable(const std::string& name, const Shape& shape, ModelTensors* tensors,
                 EmbeddingTable* table) {
  const std::string scale_name = name + "_scale";
  // Integers without scales are no weights.
  const bool may_be_int8 = tensors->Find(scale_name) != nullptr;
  ENCORE_ASSIGN_OR_RETURN(
      table->rows, may_be_int8 ? tensors->ViewMatrix(name, shape) : tensors->View(name, shape));
  if (table->rows.dtype() != DType::kI8) return {};
  ENCORE_ASSIGN_OR_RETURN(table->scales, tensors->Read(scale_name, {shape[0]}));
  const std::span<const float> scales(static_cast<const float*>(table->scales.data()), shape[0]);
  return CheckScales(tensors->files().name() + ": tensor " + Quoted(scale_name), scales);
}

void ReadTableRow(const EmbeddingTable& table, size_t row, float* out) {
  PutRow(table, row, /*add=*/false, out);
}

std::vector<std::string> EmbeddingTables(const EmbeddingSpec& spec) {
  std::vector<std::string> names = {std::string(spec.word) + ".weight"};
  const auto add = [&](std::string_view name) { names.push_back(std::string(name) + ".weight"); };
  if (spec.position_rule != PositionRule::kNone) add(spec.position);
  if (spec.type_vocab_size != 0) add(spec.type);
  if (!spec.task.empty()) add(spec.task);
  return names;
}

Status Embeddings::CopyTables() {
  for (EmbeddingTable* table : {&words_, &types_, &positions_, &tasks_}) {
    ENCORE_RETURN_IF_ERROR(CopyTable(&table->rows, &table->own));
  }
  return {};
}

size_t Embeddings::table_bytes() const {
  size_t bytes = 0;
  for (const EmbeddingTable* table : {&words_, &types_, &positions_, &tasks_}) {
    bytes += table->own.size_bytes() + table->scales.size_bytes() + table->more.a.size_bytes() +
             table->more.b.size_bytes();
  }
  return bytes;
}

void Embeddings::Touch() const {
  for (const EmbeddingTable* table : {&words_, &types_, &positions_, &tasks_}) {
    ReadPages(BytesOf(table->rows));
  }
}

bool Embeddings::has_int8() const {
  return words_.is_int8() || types_.is_int8() || positions_.is_int8() || tasks_.is_int8();
}

Result<Embeddings> Embeddings::Create(const EmbeddingSpec& spec, size_t d_model,
                                      ModelTensors* tensors) {
  Embeddings e;
  e.spec_ = spec;
  const auto view = [&](std::string_view name, size_t rows, EmbeddingTable* out) -> Status {
    const std::string full = tensors->Base(name);
    ENCORE_RETURN_IF_ERROR(ViewTable(full + ".weight", Shape(rows, spec.width), tensors, out));
    if (tensors->adapter() == nullptr) return Status();
    if (out->is_int8()) {
      return Status(ErrorCode::kUnsupported, tensors->files().name() + ": tensor " +
                                                 Quoted(full + ".weight") +
                                                 " is I8; wanted floats, which a task's adapter "
                                                 "is added to");
    }
    ENCORE_ASSIGN_OR_RETURN(out->more, tensors->adapter()->RowsOf(name, full, rows, spec.width));
    return Status();
  };
  ENCORE_RETURN_IF_ERROR(view(spec.word, spec.vocab_size, &e.words_));
  if (spec.position_rule != PositionRule::kNone) {
    ENCORE_RETURN_IF_ERROR(view(spec.position, spec.max_positions, &e.positions_));
  }
  if (spec.type_vocab_size != 0) {
    ENCORE_RETURN_IF_ERROR(view(spec.type, spec.type_vocab_size, &e.types_));
  }
  if (!spec.task.empty()) {
    ENCORE_RETURN_IF_ERROR(view(spec.task, spec.task_vocab_size, &e.tasks_));
  }
  if (!spec.norm.empty()) {
    const size_t width = spec.projection_first ? d_model : spec.width;
    ENCORE_ASSIGN_OR_RETURN(e.norm_, tensors->ReadNorm(tensors->Base(spec.norm), width,
                                                       spec.norm_epsilon, spec.norm_bias));
  }
  if (!spec.projection.empty()) {
    ENCORE_ASSIGN_OR_RETURN(e.projection_,
                            tensors->ReadLinear(tensors->Base(spec.projection), d_model, spec.width,
                                                spec.projection_bias));
  }
  return e;
}

Embeddings Embeddings::WithoutTables(size_t vocab_size) {
  Embeddings e;
  e.spec_ = {.vocab_size = vocab_size,
             .max_positions = std::numeric_limits<size_t>::max(),
             .any_length = true,
             .position_rule = PositionRule::kNone};
  return e;
}

Status Embeddings::Check(const TokenBatch& batch) const {
  ENCORE_RETURN_IF_ERROR(CheckSizes(batch));
  for (size_t b = 0; b + 1 < batch.seq_starts.size(); ++b) {
    const size_t begin = batch.seq_starts[b];
    const size_t tokens = batch.seq_starts[b + 1] - begin;
    if (tokens > spec_.max_tokens()) {
      return InvalidArgument("sequence " + std::to_string(b) + " has " + std::to_string(tokens) +
                             " tokens; wanted at most " + std::to_string(spec_.max_tokens()));
    }
    size_t dropped = 0;
    for (size_t t = 0; t < tokens; ++t) {
      const int32_t id = batch.ids[begin + t];
      if (id < 0 || static_cast<size_t>(id) >= spec_.vocab_size) {
        return InvalidArgument(Place(b, t) + ": id " + std::to_string(id) + "; wanted 0 .. " +
                               std::to_string(spec_.vocab_size - 1));
      }
      if (static_cast<size_t>(id) == spec_.dropped_token) ++dropped;
      if (spec_.type_vocab_size == 0 || batch.type_ids.empty()) continue;
      if (batch.type_ids[begin + t] >= spec_.type_vocab_size) {
        return InvalidArgument(Place(b, t) + ": type id " +
                               std::to_string(batch.type_ids[begin + t]) + "; wanted 0 .. " +
                               std::to_string(spec_.type_vocab_size - 1));
      }
    }
    if (dropped == tokens) {
      return InvalidArgument("sequence " + std::to_string(b) + " has no token but the mask, " +
                             std::to_string(*spec_.dropped_token) +
                             "; wanted another one, as its rows are divided by the others' share");
    }
  }
  return {};
}

Status Embeddings::Apply(const TokenBatch& batch, MutableView x, BatchScratch* scratch,
                         const Executor& executor) const {
  const size_t tokens = batch.ids.size();
  const size_t width = spec_.width;
  FindPositions(spec_, batch, scratch);
  FindFactors(spec_, batch, scratch);
  const std::vector<uint32_t>& positions = scratch->positions;
  const std::vector<float>& factors = scratch->factors;
  // The sums are in x, or in `narrow` before a projection.
  MutableView sums = x;
  if (projection_) {
    ENCORE_ASSIGN_OR_RETURN(float* const narrow, scratch->narrow.Get<float>(tokens * width));
    sums = MutableView(narrow, Shape(tokens, width));
  }
  const auto rows_of = [](const MutableView& view, size_t begin, size_t end) {
    return MutableView(view.data() + static_cast<ptrdiff_t>(begin) * view.stride(0),
                       Shape(end - begin, view.dim(1)), view.strides());
  };
  FirstFailure failure;
  const auto task = [&](size_t i) {
    const size_t begin = i * kRowsPerTask;
    const size_t end = std::min(tokens, begin + kRowsPerTask);
    for (size_t t = begin; t < end; ++t) {
      float* out = sums.data() + static_cast<ptrdiff_t>(t) * sums.stride(0);
      PutRow(words_, WordRow(spec_, batch.ids[t]), false, out);
      if (spec_.scale != 1) {
        for (size_t c = 0; c < width; ++c) out[c] *= spec_.scale;
      }
      if (!factors.empty()) {
        for (size_t c = 0; c < width; ++c) out[c] *= factors[t];
      }
      if (!types_.rows.empty()) {
        PutRow(types_, batch.type_ids.empty() ? 0 : batch.type_ids[t], true, out);
      }
      if (!positions.empty()) PutRow(positions_, positions[t], true, out);
      if (!tasks_.rows.empty()) PutRow(tasks_, 0, true, out);
    }
    const MutableView rows = rows_of(sums, begin, end);
    const bool norm_last = spec_.projection_first;
    Status status;
    if (!spec_.norm.empty() && !norm_last) status = norm_.Apply(rows);
    if (status.ok() && projection_) status = projection_->Apply(rows, rows_of(x, begin, end));
    if (status.ok() && !spec_.norm.empty() && norm_last)
      status = norm_.Apply(rows_of(x, begin, end));
    failure.Keep(std::move(status));
  };
  const bool few = tokens * width <= kInlineFloats;
  ENCORE_RETURN_IF_ERROR(
      RunParallel(few ? Executor() : executor, DivCeil(tokens, kRowsPerTask), task));
  return failure.status();
}

}  // namespace encore::internal
