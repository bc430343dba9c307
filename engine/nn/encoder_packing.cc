// SPDX-License-Identifier: Apache-2.0
//
// Packing of an encoder's matrices into one piece of memory.

#include "engine/nn/encoder_packing.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "engine/base/int_math.h"
#include "engine/base/status_macros.h"
#include "engine/nn/smoothing.h"
#include "engine/platform/amx.h"

namespace encore::inline v0_1::internal {
const GemmKernel& KernelOf(Precision precision) {
  switch (precision) {
    case Precision::kBF16:
      return GetGemmKernelBf16();
    case Precision::kInt8:
      return UseAmx() ? GetGemmKernelInt8Amx() : GetGemmKernelInt8();
    case Precision::kF32:
      break;
  }
  return GetGemmKernelF32();
}

namespace {

const GemmKernel& KernelOfBf16(const EncoderOptions& options) {
  return options.amx_bf16 && UseAmxBf16() ? GetGemmKernelBf16Amx() : GetGemmKernelBf16();
}

}  // namespace

const GemmKernel& KernelOfAttention(const EncoderOptions& options) {
  return options.precision == Precision::kF32 ? GetGemmKernelF32() : KernelOfBf16(options);
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

// The most bytes that a row made for one of these takes.
size_t LongestInputRow(const std::vector<MatrixToPack>& matrices) {
  size_t bytes = 0;
  for (const MatrixToPack& m : matrices) {
    const PackedView& view = m.packed->view();
    const GemmKernel& kernel = *view.kernel;
    if (kernel.make_rows == nullptr) continue;
    bytes = std::max(bytes, view.groups() * kernel.kr * kernel.a_bytes);
  }
  return bytes;
}

void FindInputScale(Team& team, const MatrixToPack& m) {
  float* const scales = m.packed->input_scale();
  const size_t k = m.packed->view().k;
  if (!m.given_scale.empty()) {
    team.ForEach(1, [&](size_t /*i*/, int /*thread*/) {
      ReadVector(m.given_scale, scales);
      m.packed->InputScaleIsSet();
    });
    return;
  }
  const EvenSplit split{k, std::min(k, static_cast<size_t>(team.threads()))};
  team.ForEach(split.parts, [&](size_t i, int /*thread*/) {
    SumSquares(m.source, m.row_begin, m.row_end, split.begin(i), split.begin(i + 1), scales);
  });
  team.ForEach(1, [&](size_t /*i*/, int /*thread*/) {
    ScalesFromNorm(m.norm, k, scales);
    m.packed->InputScaleIsSet();
  });
}

Result<size_t> PanelBytes(const std::vector<MatrixToPack>& matrices) {
  size_t bytes = 0;
  for (const MatrixToPack& m : matrices) {
    if (!CheckedAdd(bytes, m.packed->data_bytes(), &bytes)) {
      return Status(ErrorCode::kOutOfMemory, "the packed weights exceed what can be addressed");
    }
  }
  return bytes;
}

Status PackMatrices(const std::vector<MatrixToPack>& matrices, const Executor& executor,
                    const std::function<void()>& layer_packed, AlignedBuffer<std::byte>* memory) {
  ENCORE_ASSIGN_OR_RETURN(const size_t bytes, PanelBytes(matrices));
  if (!memory->Allocate(bytes)) {
    return Status(ErrorCode::kOutOfMemory,
                  "no memory for packed weights of " + std::to_string(bytes) + " bytes");
  }
  std::vector<std::byte*> places;
  std::byte* next = memory->data();
  for (const MatrixToPack& m : matrices) {
    places.push_back(next);
    m.packed->SetData(next);
    next += m.packed->data_bytes();
  }
  const size_t none = matrices.size();
  std::atomic<size_t> bad{none};  // the first that cannot be packed
  RunTeam(executor, [&](Team& team) {
    for (size_t i = 0; i < matrices.size(); ++i) {
      const MatrixToPack& m = matrices[i];
      WeightSource source = m.source;
      if (m.smoothed) {
        FindInputScale(team, m);
        source.input_scale = m.packed->input_scale();
      }
      team.ForEach(m.packed->view().panels(), [&](size_t p, int /*thread*/) {
        if (m.packed->Pack(source, p, p + 1, places[i])) return;
        // One matrix is packed after another, so the first to say so is the first of all.
        size_t unknown = none;
        bad.compare_exchange_strong(unknown, i);
      });
      if (m.ends_layer && layer_packed) {
        team.ForEach(1, [&](size_t /*i*/, int /*thread*/) { layer_packed(); });
      }
    }
  });
  if (bad == none) return {};
  const auto layer = std::count_if(matrices.begin(), matrices.begin() + static_cast<ptrdiff_t>(bad),
                                   [](const MatrixToPack& m) { return m.ends_layer; });
  return InvalidArgument("layers." + std::to_string(layer) + ": the weights of " +
                         std::string(matrices[bad].name) +
                         " have a number that is not finite; wanted finite ones for int8");
}

}  // namespace encore::internal
