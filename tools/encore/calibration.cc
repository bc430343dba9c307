// SPDX-License-Identifier: Apache-2.0
//
// Largest magnitudes of inputs and weights by channel, and products of sampled rows in f32 and in
// int8.

#include "tools/encore/calibration.h"

#include <algorithm>
#include <cmath>

#include "encore/workspace.h"
#include "engine/nn/layer_tensors.h"
#include "engine/nn/prepared_encoder.h"
#include "engine/nn/smoothing.h"
#include "engine/ops/gemm.h"
#include "engine/ops/packed_matrix.h"
#include "engine/platform/fp_env.h"
#include "engine/platform/thread_team.h"
#include "tools/encore/failure.h"

namespace encore::tool {
namespace {

using internal::GemmKernel;
using internal::MatrixToPack;
using internal::PackedLayer;
using internal::PackedMatrix;
using internal::PreparedEncoder;
using internal::WeightSource;

constexpr size_t kMatricesOfALayer = 4;  // of a layer
constexpr size_t kSampledRows = 64;      // kept of each matrix's input are fewer than twice as many

// Those of all rows that count (packed_layer.h), or of all.
std::vector<float> LargestWeights(const MatrixToPack& m) {
  const size_t k = m.source.k();
  std::vector<float> largest(k);
  std::vector<float> row(k);
  size_t rows = 0;
  if (!m.source.CountRows(&rows)) return largest;
  const bool all = m.row_end == 0;
  for (size_t r = all ? 0 : m.row_begin; r < (all ? rows : m.row_end); ++r) {
    internal::ReadRows(m.source, r, 1, 0, k, row.data(), k);
    for (size_t i = 0; i < k; ++i) largest[i] = std::max(largest[i], std::fabs(row[i]));
  }
  return largest;
}

// rows [count, k] times the matrix, as the kernel computes it: [count, n].
std::vector<float> Product(const WeightSource& weights, const GemmKernel& kernel,
                           const float* input_scale, const std::vector<float>& rows) {
  WeightSource source = weights;
  source.gated = false;  // both halves side by side
  for (internal::WeightPart& part : source.parts) part.bias = {};
  source.column_factor = input_scale;
  PackedMatrix matrix =
      Take(PackedMatrix::Prepare(source, kernel, /*smoothed=*/input_scale != nullptr));
  const size_t k = source.k();
  if (input_scale != nullptr) {
    std::copy_n(input_scale, k, matrix.input_scale());
    matrix.InputScaleIsSet();
  }
  internal::AlignedBuffer<std::byte> panels;
  if (!panels.Allocate(matrix.data_bytes())) throw Failure("no memory for a matrix");
  if (!matrix.Pack(source, 0, matrix.view().panels(), panels.data())) {
    throw Failure("a weight is not finite, wanted finite ones for int8");
  }
  matrix.SetData(panels.data());
  const internal::PackedView& view = matrix.view();
  const size_t count = rows.size() / k;
  std::vector<float> y(count * view.n);
  internal::GemmArgs args{};
  const internal::ConstRows x{rows.data(), k};
  args.a = internal::InputRows::Of(x);
  args.b = view;
  args.c = {y.data(), view.n};
  internal::AlignedBuffer<std::byte> made;
  std::vector<internal::RowQuant> quants(count);
  if (kernel.pack_lhs != nullptr) {
    const size_t stride = view.groups() * kernel.kr * kernel.a_bytes;
    if (!made.Allocate(count * stride)) throw Failure("no memory for rows");
    const internal::PackedLhs out{made.data(), stride, quants.data()};
    kernel.pack_lhs({.in = x, .rows = count, .k = k, .out = out, .factor = view.row_factor});
    args.a = internal::InputRows::Of(out);
  }
  GemmBlock(args, matrix.blocking(), 0, count, 0, view.panels());
  return y;
}

double RelativeError(const std::vector<float>& y, const std::vector<float>& exact) {
  double error = 0;
  double norm = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    const double difference = static_cast<double>(y[i]) - exact[i];
    error += difference * difference;
    norm += static_cast<double>(exact[i]) * exact[i];
  }
  return norm > 0 ? error / norm : 0;
}

Encoder MakeEncoder(const EncoderConfig& config, const EncoderWeights& weights,
                    const Executor& executor) {
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    for (const internal::LayerTensor& tensor : internal::kLayerTensors) {
      if (!tensor.is_scale() || tensor.In(weights.layers[i]).empty()) continue;
      throw Failure("the weights have layers." + std::to_string(i) + "." + tensor.name() +
                    ", wanted weights of floats that were not calibrated before");
    }
  }
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    const bool experts = !weights.layers[i].router.empty();
    if (!experts && weights.layers[i].input_gate.weight.empty()) continue;
    throw Failure("layer " + std::to_string(i) + " has " +
                  (experts ? "experts" : "the encoder's input in it") +
                  ", wanted layers without them");
  }
  return Take(Encoder::Create(config, weights, {.executor = executor}));
}

}  // namespace

Calibration::Calibration(const EncoderConfig& config, const EncoderWeights& weights,
                         const Executor& executor)
    : config_(config), weights_(weights), encoder_(MakeEncoder(config, weights, executor)) {
  for (const PackedLayer& layer : internal::EncoderAccess::Layers(encoder_)) {
    for (const PackedMatrix* matrix :
         {&layer.qkv, &layer.out_proj, &layer.linear1, &layer.linear2}) {
      matrices_.push_back(matrix);
      seen_.emplace_back().largest.resize(matrix->view().k);
    }
  }
}

void Calibration::Add(const Batch& batch, ConstView x) {
  const size_t tokens = batch.seq_starts.back();
  if (tokens == 0) return;
  Tensor y = NewTensor({tokens, config_.d_model});
  const Workspace workspace = Take(encoder_.MakeWorkspace(batch));
  Check(internal::EncoderAccess::Forward(encoder_, batch, x, y.View<float>(), workspace, this));
  tokens_ += tokens;
}

void Calibration::Observe(const PackedMatrix& matrix, const float* data, size_t ld, size_t rows) {
  const auto found = std::find(matrices_.begin(), matrices_.end(), &matrix);
  Seen& seen = seen_[static_cast<size_t>(found - matrices_.begin())];
  const size_t k = seen.largest.size();
  for (size_t r = 0; r < rows; ++r, data += ld) {
    for (size_t i = 0; i < k; ++i) {
      const float magnitude = std::fabs(data[i]);
      // NaN comes in and stays.
      if (!(magnitude <= seen.largest[i]) && !std::isnan(seen.largest[i])) {
        seen.largest[i] = magnitude;
      }
    }
    if (seen.count++ % seen.step != 0) continue;
    seen.rows.insert(seen.rows.end(), data, data + k);
    if (seen.rows.size() < 2 * kSampledRows * k) continue;
    for (size_t i = 1; i < kSampledRows; ++i) {  // every second one goes
      std::copy_n(seen.rows.begin() + static_cast<ptrdiff_t>(2 * i * k), k,
                  seen.rows.begin() + static_cast<ptrdiff_t>(i * k));
    }
    seen.rows.resize(kSampledRows * k);
    seen.step *= 2;
  }
}

std::vector<CalibratedMatrix> Calibration::Finish(const Executor& executor) const {
  if (tokens_ == 0) throw Failure("found no token to calibrate with, wanted at least one");
  const PreparedEncoder prepared = Take(PreparedEncoder::Create(config_, weights_, {}));
  std::vector<CalibratedMatrix> found(seen_.size());
  for (size_t i = 0; i < seen_.size(); ++i) {
    const MatrixToPack& m = prepared.matrices[i];
    found[i].matrix = {i / kMatricesOfALayer, static_cast<LayerMatrix>(i % kMatricesOfALayer)};
    const auto& largest = seen_[i].largest;
    if (!std::all_of(largest.begin(), largest.end(), [](float v) { return std::isfinite(v); })) {
      throw Failure("an input of layer " + std::to_string(i / kMatricesOfALayer) + "'s " +
                    std::string(m.name) + " was NaN or infinite, wanted samples without such");
    }
  }
  Check(internal::RunTeam(executor, [&](internal::Team& team) {
    team.ForEach(found.size(), [&](size_t i, int /*thread*/) {
      const internal::FpEnvScope modes;
      found[i].input_scale = LargestWeights(prepared.matrices[i]);
      internal::ScalesFromMagnitudes(seen_[i].largest.data(), found[i].input_scale.size(),
                                     found[i].input_scale.data());
    });
  }));
  for (size_t i = 0; i < found.size(); ++i) {
    const WeightSource& source = prepared.matrices[i].source;
    const internal::FpEnvScope modes;
    found[i].error = RelativeError(
        Product(source, internal::GetGemmKernelInt8(), found[i].input_scale.data(), seen_[i].rows),
        Product(source, internal::GetGemmKernelF32(), nullptr, seen_[i].rows));
  }
  return found;
}

}  // namespace encore::tool
