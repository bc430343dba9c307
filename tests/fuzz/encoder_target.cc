// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as an encoder, its options, a batch and the machine (all drawn from them): what is
// wrong is refused with a sentence and nothing is written; else each sequence has the bits that it
// has alone, with and without taps and in ForwardRows, and results lie near those in double
// precision.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "encore/encoder.h"
#include "reference/encoder.h"
#include "tests/fuzz/drawn_batch.h"
#include "tests/fuzz/drawn_encoder.h"
#include "tests/fuzz/drawn_machine.h"
#include "tests/fuzz/target.h"

namespace encore::fuzz {
namespace {

struct Free {
  void operator()(void* memory) const {
    ::operator delete (memory, std::align_val_t{Workspace::kAlignment});
  }
};
using Memory = std::unique_ptr<void, Free>;

// Of exactly this size, full of NaN: a sanitizer sees one byte too many.
Memory Scratch(size_t bytes) {
  void* const memory = ::operator new (bytes, std::align_val_t{Workspace::kAlignment});
  std::memset(memory, 0xFF, bytes);
  return Memory(memory);
}

size_t BytesOf(const Encoder& encoder, const Batch& batch, const Executor& executor) {
  const Result<size_t> bytes = encoder.WorkspaceBytes(batch, executor);
  ENCORE_FUZZ_CHECK(bytes.ok(), bytes.status().message());
  return *bytes;
}

// Inline, with dense views and no taps.
std::vector<float> Plain(const Encoder& encoder, const Batch& batch, const float* x) {
  const Shape shape(batch.seq_starts.back(), encoder.config().d_model);
  const size_t bytes = BytesOf(encoder, batch, {});
  const Memory memory = Scratch(bytes);
  std::vector<float> y(shape[0] * shape[1]);
  const Status status = encoder.Forward(batch, ConstView(x, shape), MutableView(y.data(), shape),
                                        *Workspace::Wrap(memory.get(), bytes));
  ENCORE_FUZZ_CHECK(status.ok(), status.message());
  return y;
}

// Outputs of the taps that a batch asks for, some of them empty.
class DrawnTaps {
 public:
  DrawnTaps(Draw& draw, const EncoderConfig& config, const DrawnBatch& batch) {
    if (!draw.Chance(6)) return;
    for (const LayerConfig& layer : config.layers) {
      for (size_t b = 0; b < batch.sequences(); ++b) {
        attention_.push_back(
            Tap(draw, Shape(layer.num_heads, batch.length(b), batch.length(b)), Layout::kOutput));
      }
      hidden_.push_back(Tap(draw, Shape(batch.tokens(), config.d_model), Layout::kOutputRows));
    }
  }
  Taps taps() const { return {.attention = attention_, .hidden = hidden_}; }
  void CheckRest() const {
    for (const DrawnOutput& output : outputs_) output.CheckRest();
  }
  void CheckUntouched() const {
    for (const DrawnOutput& output : outputs_) output.CheckUntouched();
  }

 private:
  MutableView Tap(Draw& draw, const Shape& shape, Layout layout) {
    if (draw.Chance(2)) return {};
    outputs_.emplace_back(draw, shape, layout);
    return outputs_.back().view();
  }
  std::deque<DrawnOutput> outputs_;
  std::vector<MutableView> attention_;
  std::vector<MutableView> hidden_;
};

std::span<const float> RowsOf(const std::vector<float>& y, const DrawnBatch& batch, size_t b,
                              size_t d_model) {
  return std::span(y).subspan(batch.begin(b) * d_model, batch.length(b) * d_model);
}

void CheckOutputRows(Draw& draw, const Encoder& encoder, const DrawnBatch& batch,
                     const std::vector<float>& y) {
  for (size_t b = 0; b < batch.sequences(); ++b) {
    if (batch.length(b) == 0) return;
  }
  const size_t d = encoder.config().d_model;
  const OutputRows which = draw.Chance(2) ? OutputRows::kFirst : OutputRows::kLast;
  const size_t bytes = BytesOf(encoder, batch.batch(), {});
  const Memory memory = Scratch(bytes);
  std::vector<float> x = batch.x_values();
  std::vector<float> rows(batch.sequences() * d);
  const Status status = encoder.ForwardRows(batch.batch(), which, {x.data(), {batch.tokens(), d}},
                                            {rows.data(), {batch.sequences(), d}},
                                            *Workspace::Wrap(memory.get(), bytes));
  ENCORE_FUZZ_CHECK(status.ok(), status.message());
  for (size_t b = 0; b < batch.sequences(); ++b) {
    const size_t row = which == OutputRows::kFirst ? 0 : batch.length(b) - 1;
    CheckSame(std::span(rows).subspan(b * d, d), RowsOf(y, batch, b, d).subspan(row * d, d),
              "a row of ForwardRows");
  }
}

// Errors that the reference expects of independent roundings, times 4: what is looked for is wrong,
// not inexact. Sums that cancel have no such bound; they are left out.
void CheckNear(const DrawnEncoder& model, const Batch& alone, const float* x,
               std::span<const float> y) {
  const Shape shape(alone.seq_starts.back(), model.config().d_model);
  const auto want = reference::Encode<reference::Rounded>(
      model.config(), model.weights(), ConstView(x, shape), alone.mask, alone.positions);
  for (size_t i = 0; i < y.size(); ++i) {
    const reference::Rounded& exact = want.y.data[i];
    const double tolerance = 4 * exact.Bound() + 1e-30;
    if (!(tolerance <= 1e-3 * (1 + std::fabs(exact.value)))) continue;
    const double error = std::fabs(static_cast<double>(y[i]) - exact.value);
    ENCORE_FUZZ_CHECK(error <= tolerance, "[" + std::to_string(i) + "] is " + std::to_string(y[i]) +
                                              "; the exact value is " +
                                              std::to_string(exact.value));
  }
}

void CheckResult(Draw& draw, const DrawnTarget& target, const DrawnEncoder& model,
                 const Encoder& encoder, const DrawnBatch& batch) {
  batch.CheckRest();
  const std::vector<float> y = Dense(batch.y());
  if (batch.tokens() == 0) return;
  const size_t d = model.config().d_model;
  // One sequence by itself.
  size_t b = draw.Between(0, batch.sequences() - 1);
  while (batch.length(b) == 0) b = (b + 1) % batch.sequences();
  std::vector<size_t> starts;
  const Batch alone = batch.Alone(b, &starts);
  const float* const x = batch.x_values().data() + batch.begin(b) * d;
  const std::span<const float> rows = RowsOf(y, batch, b, d);
  CheckSame(rows, Plain(encoder, alone, x), "a sequence alone");
  if (draw.Chance(6)) CheckOutputRows(draw, encoder, batch, y);
  if (encoder.precision() != Precision::kF32) return;
  if (model.has_reference() && batch.has_reference() && batch.length(b) <= 12 && draw.Chance(4)) {
    CheckNear(model, alone, x, rows);
  }
  if (!target.has_fma() || !draw.Chance(8)) return;
  target.UseTwin(draw);
  const Result<Encoder> twin = Encoder::Create(model.config(), model.weights(), model.options());
  ENCORE_FUZZ_CHECK(twin.ok(), twin.status().message());
  CheckSame(rows, Plain(*twin, alone, x), "another target");
}

}  // namespace

void RunEncoder(std::string_view input) {
  Draw draw(input);
  const DrawnTarget target(draw);
  const DrawnEncoder model(draw);
  EncoderOptions options = model.options();
  options.executor = DrawExecutor(draw);
  const Result<Encoder> encoder = Encoder::Create(model.config(), model.weights(), options);
  if (!model.fault().empty()) {
    ENCORE_FUZZ_CHECK(!encoder.ok(), std::string(model.fault()) + " was taken");
    return CheckError(encoder.status());
  }
  if (!encoder.ok()) {
    ENCORE_FUZZ_CHECK(model.numbers_may_be_refused(), encoder.status().message());
    return CheckError(encoder.status());
  }

  DrawnBatch batch(draw, model.config(), draw.Chance(64));
  const DrawnTaps taps(draw, model.config(), batch);
  const Executor executor = DrawExecutor(draw);
  const Result<size_t> wanted = encoder->WorkspaceBytes(batch.batch(), executor);
  size_t bytes = 0;
  if (wanted.ok() && batch.fault().empty()) {
    bytes = *wanted;
  } else if (!wanted.ok()) {
    CheckError(wanted.status());
    ENCORE_FUZZ_CHECK(!batch.fault().empty());
  } else {  // of a batch that may be impossibly large
    bytes = std::min<size_t>(*wanted, 1 << 20);
  }
  const bool too_small = bytes > 0 && draw.Chance(32);
  if (too_small) bytes -= 1;
  const Memory memory = Scratch(bytes);
  const Status status =
      encoder->Forward(batch.batch(), batch.x(), batch.y(), *Workspace::Wrap(memory.get(), bytes),
                       executor, taps.taps());
  if (batch.fault().empty() && !too_small) {
    ENCORE_FUZZ_CHECK(status.ok(), status.message());
    taps.CheckRest();
    return CheckResult(draw, target, model, *encoder, batch);
  }
  ENCORE_FUZZ_CHECK(!status.ok(), std::string(batch.fault()) + " was taken");
  CheckError(status);
  batch.CheckUntouched();
  taps.CheckUntouched();
}

}  // namespace encore::fuzz
