// SPDX-License-Identifier: Apache-2.0
//
// From hidden states to finished vectors. What works a row at a time is done in one pass over the
// rows: pooling and everything up to the first dense layer, what is between two, what follows the
// last. Loops of pooling go along the columns, which the compiler makes vectors of; every column
// has its own chain, so the order of its additions is that of the rows.

#include "engine/text/after_encoder.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "engine/base/int_math.h"
#include "engine/base/status_macros.h"

namespace encore::inline v0_1 {

std::string_view PoolingModeName(PoolingMode mode) {
  constexpr std::string_view kNames[] = {"cls",          "max",      "mean", "mean_sqrt_len_tokens",
                                         "weightedmean", "lasttoken"};
  const auto i = static_cast<size_t>(mode);
  return i < std::size(kNames) ? kNames[i] : "unknown";
}

namespace internal {
namespace {

void Sum(const float* hidden, size_t rows, size_t width, double* sums) {
  for (size_t c = 0; c < width; ++c) sums[c] = hidden[c];
  for (size_t r = 1; r < rows; ++r) {
    const float* row = hidden + r * width;
    for (size_t c = 0; c < width; ++c) sums[c] += row[c];
  }
}

// Row t counts first + t times; the products are exact in double.
void WeightedSum(const float* hidden, size_t rows, size_t first, size_t width, double* sums) {
  for (size_t c = 0; c < width; ++c) sums[c] = static_cast<double>(first) * hidden[c];
  for (size_t r = 1; r < rows; ++r) {
    const float* row = hidden + r * width;
    const double weight = static_cast<double>(first + r);
    for (size_t c = 0; c < width; ++c) sums[c] += weight * row[c];
  }
}

void Divide(const double* sums, size_t width, double divisor, float* out) {
  for (size_t c = 0; c < width; ++c) out[c] = static_cast<float>(sums[c] / divisor);
}

void Max(const float* hidden, size_t rows, size_t width, float* out) {
  std::copy_n(hidden, width, out);
  for (size_t r = 1; r < rows; ++r) {
    const float* row = hidden + r * width;
    for (size_t c = 0; c < width; ++c) out[c] = row[c] > out[c] ? row[c] : out[c];
  }
}

// The weights of rows 1 .. n together.
double Triangle(size_t n) { return static_cast<double>(n) * static_cast<double>(n + 1) / 2; }

void PoolOne(PoolingMode mode, const float* hidden, size_t rows, size_t skip, size_t width,
             double* sums, float* out) {
  const float* const first = hidden + skip * width;
  const size_t count = rows - skip;
  switch (mode) {
    case PoolingMode::kCls:
      std::copy_n(first, width, out);
      return;
    case PoolingMode::kLastToken:
      std::copy_n(hidden + (rows - 1) * width, width, out);
      return;
    case PoolingMode::kMax:
      Max(first, count, width, out);
      return;
    case PoolingMode::kMean:
      Sum(first, count, width, sums);
      Divide(sums, width, static_cast<double>(count), out);
      return;
    case PoolingMode::kMeanSqrtLength:
      Sum(first, count, width, sums);
      Divide(sums, width, std::sqrt(static_cast<double>(count)), out);
      return;
    case PoolingMode::kWeightedMean:
      WeightedSum(first, count, skip + 1, width, sums);
      Divide(sums, width, Triangle(rows) - Triangle(skip), out);
      return;
  }
}

// Of a text whose rows are all left out.
void PoolNone(PoolingMode mode, const float* hidden, size_t width, float* out) {
  if (mode == PoolingMode::kCls) {
    std::copy_n(hidden, width, out);
  } else {
    std::fill_n(out, width,
                mode == PoolingMode::kMax ? -std::numeric_limits<float>::infinity() : 0.0f);
  }
}

// Values below which waking a thread takes longer than the work: 0.5 ns each against 50 us.
constexpr size_t kFewValues = size_t{1} << 16;
// Tasks of a loop over rows, for each thread: enough that unequal lengths even out.
constexpr size_t kTasksPerThread = 8;

// Calls row(i, task) for every i in [0, count); tasks are below Tasks(). `values` is the amount of
// work.
struct RowLoop {
  const Executor& executor;
  size_t count;
  size_t tasks;

  RowLoop(const Executor& any, size_t rows, size_t values)
      : executor(any),
        count(rows),
        tasks(values <= kFewValues
                  ? 1
                  : std::min(rows, kTasksPerThread * static_cast<size_t>(any.threads()))) {}

  template <typename F>
  Status Run(const F& row) const {
    const Executor inline_executor;
    return RunParallel(tasks == 1 ? inline_executor : executor, tasks, [&](size_t task) {
      const size_t end = count * (task + 1) / tasks;
      for (size_t i = count * task / tasks; i < end; ++i) row(i, task);
    });
  }
};

// Of the quantizer beside pplx-embed, st_quantize.FlexibleQuantizer: tanh(x) in whole 127ths, half
// to even.
void QuantizeTanh(float* row, size_t width) {
  const ActivationRow* const tanh = FindTorchActivation("torch.nn.Tanh");
  tanh->apply(row, width);
  for (size_t i = 0; i < width; ++i) row[i] = std::nearbyint(127 * row[i]);
}

}  // namespace

OutputRows RowsOf(std::span<const PoolingMode> modes) {
  const auto only = [&](PoolingMode wanted) {
    return std::all_of(modes.begin(), modes.end(),
                       [&](PoolingMode mode) { return mode == wanted; });
  };
  if (only(PoolingMode::kCls)) return OutputRows::kFirst;
  if (only(PoolingMode::kLastToken)) return OutputRows::kLast;
  return OutputRows::kAll;
}

void PoolRows(std::span<const PoolingMode> modes, const float* hidden, size_t rows, size_t width,
              double* sums, float* out, size_t skip) {
  for (size_t i = 0; i < modes.size(); ++i) {
    if (skip < rows) {
      PoolOne(modes[i], hidden, rows, skip, width, sums, out + i * width);
    } else {
      PoolNone(modes[i], hidden, width, out + i * width);
    }
  }
}

void NormalizeRow(float* row, size_t width) {
  constexpr size_t kLanes = 8;
  double lanes[kLanes] = {};
  size_t c = 0;
  for (; c + kLanes <= width; c += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const double value = row[c + lane];
      lanes[lane] += value * value;
    }
  }
  for (size_t lane = 0; c < width; ++c, ++lane) {
    const double value = row[c];
    lanes[lane] += value * value;
  }
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  constexpr double kEpsilon = 1e-12;
  const double norm = std::max(std::sqrt(sum), kEpsilon);
  for (size_t i = 0; i < width; ++i) row[i] = static_cast<float>(row[i] / norm);
}

void NormRow(const LoadedNorm& norm, float* row, size_t width) {
  const auto* const weight = static_cast<const float*>(norm.weight.data());
  const auto* const bias = static_cast<const float*>(norm.bias.data());
  const auto size = static_cast<double>(width);
  double sum = 0;
  for (size_t i = 0; i < width; ++i) sum += row[i];
  const double mean = sum / size;
  double squares = 0;
  for (size_t i = 0; i < width; ++i) squares += (row[i] - mean) * (row[i] - mean);
  const double deviation = std::sqrt(squares / size + norm.epsilon);
  for (size_t i = 0; i < width; ++i) {
    row[i] = static_cast<float>((row[i] - mean) / deviation * weight[i] + bias[i]);
  }
}

size_t AfterEncoder::RowSteps(size_t from, size_t end) const {
  size_t count = 0;
  while (from + count < end && !steps_[from + count].linear) ++count;
  return count;
}

void AfterEncoder::ApplyRowSteps(size_t from, size_t count, float* row, size_t width) const {
  for (size_t i = from; i < from + count; ++i) {
    const Step& step = steps_[i];
    if (step.norm) {
      NormRow(*step.norm, row, width);
    } else {
      step.apply(row, width);
    }
  }
}

Result<AfterEncoder> AfterEncoder::Read(PoolingSettings pooling,
                                        std::span<const ModuleEntry> modules, size_t d_model,
                                        std::optional<bool> normalize, const FolderReading& reading,
                                        VectorsOf what) {
  AfterEncoder after;
  after.d_model_ = d_model;
  after.pooling_ = std::move(pooling);
  if (!CheckedMul(after.pooling_.modes.size(), d_model, &after.width_)) {
    return InvalidArgument("pooling: the width of its vectors exceeds what can be addressed");
  }
  for (const ModuleEntry& entry : modules) {
    if (entry.kind == ModuleKind::kDense) {
      ENCORE_ASSIGN_OR_RETURN(Dense dense, ReadDense(entry.path, after.width_, what, reading));
      after.width_ = dense.linear.out_features();
      after.steps_.push_back({std::move(dense.linear), dense.activation->apply, dense.use_residual,
                              std::move(dense.residual)});
      after.trailing_normalizations_ = 0;
    } else if (entry.kind == ModuleKind::kNormalize) {
      ENCORE_ASSIGN_OR_RETURN(const bool counts, ReadNormalize(entry.path, what, reading));
      if (!counts) continue;
      after.AddNormalization();
      reading.Note("normalize", "to length 1", "modules.json");
    } else if (entry.kind == ModuleKind::kLayerNorm) {
      Step step;
      ENCORE_ASSIGN_OR_RETURN(step.norm, ReadLayerNorm(entry.path, after.width_, reading));
      after.steps_.push_back(std::move(step));
      after.trailing_normalizations_ = 0;
    } else if (entry.kind == ModuleKind::kDropout) {
      ENCORE_RETURN_IF_ERROR(CheckDropout(entry.path, reading));
    } else if (entry.kind == ModuleKind::kQuantize) {
      after.steps_.push_back({std::nullopt, QuantizeTanh});
      after.trailing_normalizations_ = 0;
      reading.Note("quantize", "127 tanh(x) to whole numbers of -127 .. 127", "modules.json");
    }
  }
  if (normalize) {
    reading.Note("normalize", *normalize ? "to length 1" : "no", "option normalize");
  }
  return after;
}

AfterEncoder AfterEncoder::OfTokens(std::optional<PackedLinear> projection, size_t d_model) {
  AfterEncoder after;
  after.d_model_ = d_model;
  after.pooling_ = PoolingSettings{{PoolingMode::kCls}};
  after.width_ = projection ? projection->out_features() : d_model;
  if (projection) {
    after.steps_.push_back(
        {std::move(projection), FindTorchActivation("torch.nn.Identity")->apply});
  }
  return after;
}

size_t AfterEncoder::packed_bytes() const {
  size_t bytes = 0;
  for (const Step& step : steps_) {
    bytes += PackedBytes(step.linear) + PackedBytes(step.residual);
  }
  return bytes;
}

void AfterEncoder::AddSizes(size_t rows, int threads, FloatSizes* sizes) const {
  const auto fit = [](size_t bytes, size_t* size) { *size = std::max(*size, bytes); };
  const size_t tasks = std::min(rows, kTasksPerThread * static_cast<size_t>(threads));
  fit(tasks * d_model_ * sizeof(double), &sizes->sums);
  fit(rows * pooling_.modes.size() * d_model_ * sizeof(float), &sizes->pooled);
  size_t* from = &sizes->pooled;
  size_t* to = &sizes->projected;
  for (const Step& step : steps_) {
    if (!step.linear) continue;
    const size_t bytes = rows * step.linear->out_features() * sizeof(float);
    fit(bytes, to);
    if (step.residual) fit(bytes, &sizes->residual);
    std::swap(from, to);
  }
}

// One call of Run.
struct AfterEncoder::Call {
  const HiddenBatch& batch;
  MutableView vectors;
  size_t dimensions;
  size_t end;           // of the steps that count
  bool normalize_last;  // behind them
  CallScratch* scratch;
  const Executor& executor;

  size_t sequences() const { return batch.outputs.size(); }
  // Sequence i's row is finished.
  void Write(const float* row, size_t i) const {
    float* const out = &vectors(batch.outputs[i], 0);
    std::copy_n(row, dimensions, out);
    if (normalize_last) NormalizeRow(out, dimensions);
  }
};

// Into scratch->pooled.
Status AfterEncoder::Pool(const Call& call, size_t row_steps) const {
  const HiddenBatch& batch = call.batch;
  const size_t width = pooling_.modes.size() * d_model_;
  size_t values = 0;
  if (!CheckedMul(call.sequences(), width, &values)) {
    return Status(ErrorCode::kOutOfMemory, "the pooled vectors exceed what can be addressed");
  }
  ENCORE_ASSIGN_OR_RETURN(float* const pooled, call.scratch->pooled.Get<float>(values));
  const bool all = pooled_rows(batch.skip) == OutputRows::kAll;
  const size_t rows_read = all ? batch.starts[call.sequences()] : call.sequences();
  const RowLoop loop(call.executor, call.sequences(), rows_read * width);
  ENCORE_ASSIGN_OR_RETURN(double* const sums,
                          call.scratch->sums.Get<double>(loop.tasks * d_model_));
  return loop.Run([&](size_t i, size_t task) {
    const size_t first = all ? batch.starts[i] : i;
    const size_t count = all ? batch.starts[i + 1] - first : 1;
    float* const row = pooled + i * width;
    PoolRows(pooling_.modes, batch.hidden + first * d_model_, count, d_model_,
             sums + task * d_model_, row, batch.skip);
    ApplyRowSteps(0, row_steps, row, width);
    if (row_steps == call.end) call.Write(row, i);
  });
}

// Step m and the row_steps behind it, from rows of `width`.
Status AfterEncoder::ApplyDense(const Call& call, size_t m, size_t row_steps, size_t width,
                                FloatBuffer* from, FloatBuffer* to) const {
  const Step& dense = steps_[m];
  const size_t to_width = dense.linear->out_features();
  size_t values = 0;
  if (!CheckedMul(call.sequences(), to_width, &values)) {
    return Status(ErrorCode::kOutOfMemory, "dense: its vectors exceed what can be addressed");
  }
  ENCORE_ASSIGN_OR_RETURN(float* const x, from->Get<float>(call.sequences() * width));
  ENCORE_ASSIGN_OR_RETURN(float* const y, to->Get<float>(values));
  const ConstView rows(x, Shape(call.sequences(), width));
  const Shape shape(call.sequences(), to_width);
  ENCORE_RETURN_IF_ERROR(dense.linear->Apply(rows, MutableView(y, shape), call.executor));
  const float* added = dense.use_residual ? x : nullptr;
  if (dense.residual) {
    ENCORE_ASSIGN_OR_RETURN(float* const residual, call.scratch->residual.Get<float>(values));
    ENCORE_RETURN_IF_ERROR(
        dense.residual->Apply(rows, MutableView(residual, shape), call.executor));
    added = residual;
  }
  const bool last = m + 1 + row_steps == call.end;
  return RowLoop(call.executor, call.sequences(), values).Run([&](size_t i, size_t) {
    float* const row = y + i * to_width;
    dense.apply(row, to_width);
    for (size_t c = 0; added != nullptr && c < to_width; ++c) row[c] += added[i * to_width + c];
    ApplyRowSteps(m + 1, row_steps, row, to_width);
    if (last) call.Write(row, i);
  });
}

Status AfterEncoder::Run(const HiddenBatch& batch, const EncodeSettings& options,
                         MutableView vectors, CallScratch* scratch,
                         const Executor& executor) const {
  if (batch.outputs.empty()) return {};
  // Normalizations at the end are left out where the call says so; another one is not needed where
  // they have made the length 1 already.
  const bool wanted = options.normalize.value_or(false);
  const Call call{
      .batch = batch,
      .vectors = vectors,
      .dimensions = options.dimensions,
      .end = steps_.size() - (options.normalize == false ? trailing_normalizations_ : 0),
      .normalize_last = wanted && (!normalizes() || options.dimensions < width_),
      .scratch = scratch,
      .executor = executor};
  size_t row_steps = RowSteps(0, call.end);
  ENCORE_RETURN_IF_ERROR(Pool(call, row_steps));
  FloatBuffer* from = &scratch->pooled;
  FloatBuffer* to = &scratch->projected;
  size_t width = pooling_.modes.size() * d_model_;
  for (size_t m = row_steps; m < call.end; m += 1 + row_steps) {
    row_steps = RowSteps(m + 1, call.end);
    ENCORE_RETURN_IF_ERROR(ApplyDense(call, m, row_steps, width, from, to));
    width = steps_[m].linear->out_features();
    std::swap(from, to);
  }
  return {};
}

}  // namespace internal
}  // namespace encore
