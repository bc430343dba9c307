// SPDX-License-Identifier: Apache-2.0
//
// Fills in defaults, chooses kernels, prepares layer after layer, and packs.

#include "engine/nn/prepared_encoder.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "engine/base/double_math.h"
#include "engine/base/int_math.h"
#include "engine/base/status_macros.h"
#include "engine/nn/encoder_check.h"
#include "engine/nn/layer_sizes.h"
#include "engine/nn/scratch_plan.h"
#include "engine/nn/smoothing.h"
#include "engine/platform/amx.h"
#include "engine/platform/fp_env.h"

namespace encore::inline v0_1::internal {
namespace {

const GemmKernel& KernelOfBf16(const EncoderOptions& options) {
  return options.amx_bf16 && UseAmxBf16() ? GetGemmKernelBf16Amx() : GetGemmKernelBf16();
}

// The norm that makes a layer's output, or null if it is unknown.
const PackedNorm* NormOfOutput(const PackedLayer& layer) {
  if (layer.convolution) return &layer.convolution->norm;
  return layer.layer_input ? nullptr : &layer.norm2;
}

LayerKernels KernelsOfLayer(const EncoderOptions& options, size_t layer) {
  LayerKernels kernels;
  for (size_t m = 0; m < kernels.size(); ++m) {
    const bool kept =
        std::any_of(options.keep.begin(), options.keep.end(), [&](const MatrixOfLayer& k) {
          return k.layer == layer && static_cast<size_t>(k.matrix) == m;
        });
    kernels[m] = kept || options.precision == Precision::kBF16 ? &KernelOfBf16(options)
                                                               : &KernelOf(options.precision);
  }
  return kernels;
}

// Bytes of the longest packed row of a left-hand side.
size_t LongestLhsRow(const std::vector<MatrixToPack>& matrices) {
  size_t bytes = 0;
  for (const MatrixToPack& m : matrices) {
    const PackedView& view = m.packed->view();
    const GemmKernel& kernel = *view.kernel;
    if (kernel.pack_lhs == nullptr) continue;
    bytes = std::max(bytes, view.groups() * kernel.kr * kernel.a_bytes);
  }
  return bytes;
}

std::vector<double> InverseFrequencies(const RotaryConfig& rotary) {
  const double log_theta = PortableLog(rotary.theta);
  std::vector<double> frequencies(rotary.size / 2);
  // With a grid, a half of the pairs for each direction.
  const size_t pairs = rotary.grid ? rotary.size / 4 : rotary.size / 2;
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const double share = static_cast<double>(i % pairs) / static_cast<double>(pairs);
    frequencies[i] = PortableExp(-share * log_theta);
  }
  return frequencies;
}

// 2^(-8 (h + 1) / n), n a power of two, rounded to f32.
double PowerOfTwoSlope(size_t h, size_t n) {
  const double exponent = -8 * static_cast<double>(h + 1) / static_cast<double>(n);
  return static_cast<float>(PortableExp(exponent * PortableLog(2)));
}

std::vector<double> PaperSlopes(size_t heads) {
  size_t power = 1;
  while (2 * power <= heads) power *= 2;
  std::vector<double> slopes;
  for (size_t h = 0; h < power; ++h) slopes.push_back(PowerOfTwoSlope(h, power));
  for (size_t h = power; h < heads; ++h) {
    slopes.push_back(PowerOfTwoSlope(2 * (h - power), 2 * power));
  }
  return slopes;
}

// The checked configuration with the defaults of layer.h, computed alike on every machine.
EncoderConfig WithDefaults(const EncoderConfig& config) {
  EncoderConfig filled = config;
  for (LayerConfig& layer : filled.layers) {
    const LayerSizes sizes(config.d_model, layer);
    layer.num_kv_heads = sizes.kv_heads;
    layer.head_size = sizes.head_size;
    if (layer.attention_scale == 0) {
      layer.attention_scale = 1.0 / std::sqrt(static_cast<double>(sizes.head_size));
    }
    if (layer.rotary) {
      if (layer.rotary->size == 0) layer.rotary->size = sizes.head_size;
      if (layer.rotary->inverse_frequencies.empty()) {
        layer.rotary->inverse_frequencies = InverseFrequencies(*layer.rotary);
      }
    }
    if (layer.alibi && layer.alibi->slopes.empty()) layer.alibi->slopes = PaperSlopes(sizes.heads);
  }
  return filled;
}

}  // namespace

const GemmKernel& KernelOf(Precision precision) {
  switch (precision) {
    case Precision::kBF16:
      return GetGemmKernelBf16();
    case Precision::kInt8:
      return UseAmx() ? GetGemmKernelInt8Amx() : GetGemmKernelInt8();
    case Precision::kInt4:
      return GetGemmKernelInt4();
    case Precision::kF32:
      break;
  }
  return GetGemmKernelF32();
}

const GemmKernel& KernelOfAttention(const EncoderOptions& options) {
  return options.precision == Precision::kF32 ? GetGemmKernelF32() : KernelOfBf16(options);
}

void FindInputScale(Team& team, const MatrixToPack& m) {
  float* const scales = m.packed->input_scale();
  const size_t k = m.packed->view().k;
  const WeightView& given = m.source.input_scale;
  if (!given.empty()) {
    ReadVector(given, scales);
    m.packed->InputScaleIsSet();
    return;
  }
  const EvenSplit split{k, std::min(k, static_cast<size_t>(team.threads()))};
  team.ForEach(split.parts, [&](size_t i, int /*thread*/) {
    SumSquares(m.source, m.row_begin, m.row_end, split.begin(i), split.begin(i + 1), scales);
  });
  ScalesFromNorm(m.norm, k, scales);
  m.packed->InputScaleIsSet();
}

Result<PreparedEncoder> PreparedEncoder::Create(const EncoderConfig& config,
                                                const EncoderWeights& weights,
                                                const EncoderOptions& options) {
  ENCORE_RETURN_IF_ERROR(CheckConfig(config));
  ENCORE_RETURN_IF_ERROR(CheckOptions(config, options));
  ENCORE_RETURN_IF_ERROR(CheckWeights(config, weights));
  const FpEnvScope modes;
  PreparedEncoder all(WithDefaults(config), options.precision != Precision::kF32);
  all.layers.reserve(config.num_layers());
  for (size_t i = 0; i < config.num_layers(); ++i) {
    const LayerConfig& layer = all.config.layers[i];
    PackedLayer& packed = all.layers.emplace_back(config.d_model, layer);
    ENCORE_RETURN_IF_ERROR(PrepareLayer(layer, weights.layers[i], KernelsOfLayer(options, i),
                                        i != 0 ? NormOfOutput(all.layers[i - 1]) : nullptr, &packed,
                                        &all.matrices));
    all.matrices.back().ends_layer = true;
    all.tables.Add(layer, weights.layers[i], &packed);
    if (!layer.relative) continue;
    ENCORE_RETURN_IF_ERROR(PrepareRelative(
        *layer.relative, weights.layers[i], all.tables.relative(packed.relative.table),
        KernelOfAttention(options), &packed, &all.relative.emplace_back()));
  }
  ENCORE_RETURN_IF_ERROR(PackNorm(config.final_norm, weights.norm, &all.final_norm));
  all.sizes.floats_per_position = all.tables.floats_per_position();
  all.sizes.floats_beside = all.tables.floats_beside();
  all.sizes.lhs_row_bytes = LongestLhsRow(all.matrices);
  return all;
}

Result<size_t> PreparedEncoder::PanelBytes() const {
  size_t bytes = 0;
  bool fits = true;
  for (const MatrixToPack& m : matrices) {
    fits = fits && CheckedAdd(bytes, m.packed->data_bytes(), &bytes);
  }
  for (const RelativeToPack& r : relative) fits = fits && CheckedAdd(bytes, r.bytes(), &bytes);
  if (fits) return bytes;
  return Status(ErrorCode::kOutOfMemory, "the packed weights exceed what can be addressed");
}

Status PreparedEncoder::Pack(const EncoderOptions& options, AlignedBuffer<std::byte>* panels) {
  const FpEnvScope modes;
  ENCORE_ASSIGN_OR_RETURN(const size_t bytes, PanelBytes());
  if (!panels->Allocate(bytes)) {
    return Status(ErrorCode::kOutOfMemory,
                  "no memory for packed weights of " + std::to_string(bytes) + " bytes");
  }
  std::vector<std::byte*> places;
  std::byte* next = panels->data();
  for (const MatrixToPack& m : matrices) {
    places.push_back(next);
    m.packed->SetData(next);
    const size_t used = m.packed->view().packed_bytes();
    std::memset(next + used, 0, m.packed->data_bytes() - used);
    next += m.packed->data_bytes();
  }
  const size_t none = matrices.size();
  std::atomic<size_t> bad{none};  // the first that cannot be packed
  ENCORE_RETURN_IF_ERROR(PackMatrices(
      options, options.executor, matrices,
      [&](Team& team, size_t i) {
        if (matrices[i].smoothed) FindInputScale(team, matrices[i]);
        return PanelRange{0, matrices[i].packed->view().panels()};
      },
      [&](size_t i, const WeightSource& source, size_t p, int /*thread*/) {
        if (matrices[i].packed->Pack(source, p, p + 1, places[i])) return;
        // Matrices are packed in order, so the first failure is that of the first matrix.
        size_t unknown = none;
        bad.compare_exchange_strong(unknown, i);
      }));
  if (bad == none) {
    for (const RelativeToPack& r : relative) {
      ENCORE_RETURN_IF_ERROR(
          PackRelative(r, tables.relative(r.layer->relative.table), options.executor, next));
      next += r.bytes();
    }
    return {};
  }
  const auto layer = std::count_if(matrices.begin(), matrices.begin() + static_cast<ptrdiff_t>(bad),
                                   [](const MatrixToPack& m) { return m.ends_layer; });
  return InvalidArgument("layers." + std::to_string(layer) + ": the weights of " +
                         std::string(matrices[bad].name) +
                         " have a number that is not finite; wanted finite ones for " +
                         std::string(PrecisionName(options.precision)));
}

Result<size_t> PreparedEncoder::WorkspaceBytes(const BatchLimits& limits, int threads) const {
  ENCORE_ASSIGN_OR_RETURN(const ScratchPlan plan,
                          ScratchPlan::Create(sizes, limits.tokens, limits.sequences, limits.tokens,
                                              static_cast<size_t>(threads)));
  return plan.bytes;
}

}  // namespace encore::internal
