// SPDX-License-Identifier: Apache-2.0
//
// The right-hand matrix of a product, packed into panels of the elements of the kernel that will
// use it: a view (memory of the caller's) and an owner. The layout is drawn in
// engine/kernels/gemm_pack-inl.h.

#ifndef ENCORE_ENGINE_OPS_PACKED_MATRIX_H_
#define ENCORE_ENGINE_OPS_PACKED_MATRIX_H_

#include <algorithm>
#include <cstddef>
#include <span>

#include "encore/status.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/int_math.h"
#include "engine/kernels/gemm_kernel.h"
#include "engine/ops/gemm_blocking.h"
#include "engine/ops/weight_source.h"

namespace encore::inline v0_1::internal {

// B [k, n] in panels of nv vectors. Remembers the kernel that packed it, whatever target is active
// later. Where gated, two such matrices: each panel is a pair, the gate's and behind it in memory
// the other one's, both as wide.
struct PackedView {
  const GemmKernel* kernel = nullptr;
  size_t k = 0;
  size_t n = 0;
  size_t nv = 0;
  size_t panel_rows =
      0;  // rows of a panel in memory, >= k: a view may use the first k of them only
  // ceil(n / nr) panels of [groups of panel_rows, nr, kr] elements; the last may have fewer
  // vectors.
  const void* data = nullptr;
  const float* bias = nullptr;    // [halves, panels * nr], zeros past n; or null for zeros
  ColumnQuant column_quant = {};  // of an integer kernel: [halves, panels * nr], zeros past n
  bool gated = false;
  const float* row_factor = nullptr;  // [k]: what rows of A are multiplied by, or null for 1

  size_t halves() const { return gated ? 2 : 1; }  // panels of a pair
  size_t nr() const { return nv * kernel->lanes; }
  size_t panels() const { return DivCeil(n, nr()); }
  size_t panel_cols(size_t p) const { return std::min(nr(), n - p * nr()); }
  // The vectors of a panel for `cols` columns (> 0): all, or so many as hold them. Without a
  // division, which would show beside heads of short sequences.
  size_t VectorsOf(size_t cols) const {
    size_t vectors = nv;
    while (vectors > 1 && cols <= (vectors - 1) * kernel->lanes) --vectors;
    return vectors;
  }
  size_t panel_nv(size_t p) const { return VectorsOf(panel_cols(p)); }
  // Columns from one group of panel p to the next.
  size_t panel_ld(size_t p) const { return panel_nv(p) * kernel->lanes; }
  size_t groups() const { return kernel->GroupsOf(k); }
  // Bytes of a packed column, and of a panel of so many.
  size_t column_bytes() const { return kernel->GroupsOf(panel_rows) * kernel->group_bytes(); }
  size_t panel_bytes(size_t columns) const { return columns * column_bytes(); }
  // Where panel p, or that pair, begins in data, and its bytes.
  size_t panel_offset(size_t p) const { return p * halves() * panel_bytes(nr()); }
  size_t pair_bytes(size_t p) const { return halves() * panel_bytes(panel_ld(p)); }
  // Panel p; of a pair, the first (half 0) or the second (1).
  const std::byte* panel(size_t p, size_t half = 0) const {
    const std::byte* pair = static_cast<const std::byte*>(data) + panel_offset(p);
    return half == 0 ? pair : pair + panel_bytes(panel_ld(p));
  }
  // Where panel p begins in bias and column_quant.
  size_t padded_column(size_t p, size_t half) const {
    return (half == 0 ? p : panels() + p) * nr();
  }
  // Bytes of packed data: n rounded up to whole vectors, times the groups.
  size_t packed_bytes() const { return halves() * panel_bytes(RoundUp(n, kernel->lanes)); }
};

// Packs element (k, n) = b[k * stride_k + n * stride_n] into data, which has room for
// view.packed_bytes(). view.panel_rows is view.k.
void PackInto(const PackedView& view, const float* b, ptrdiff_t stride_k, ptrdiff_t stride_n,
              void* data);

// The packed data and the bias of a weight matrix. Movable.
class PackedMatrix {
 public:
  // For a kernel, by default f32 of the active target. Shapes and types have been validated by the
  // caller. kOutOfMemory; kInvalidArgument as Pack.
  static Result<PackedMatrix> Create(const WeightSource& source,
                                     const GemmKernel& kernel = GetGemmKernelF32());

  // The same in two steps, for several matrices in one piece of memory, so that what follows the
  // end of one in memory is what a pass reads next. The first lays out and reads the bias; Pack
  // then fills panels [begin, end) at `data`, which has room for data_bytes(), is aligned to 64
  // bytes and outlives this. Several threads may pack different panels. Weights are read where they
  // are; what is no aligned f32 is converted a small piece at a time.
  // smoothed: input_scale() has room for a scale of each input channel, to be filled before Pack;
  // columns are multiplied by it, and rows of A divided.
  static Result<PackedMatrix> Prepare(const WeightSource& source,
                                      const GemmKernel& kernel = GetGemmKernelF32(),
                                      bool smoothed = false);
  float* input_scale() { return input_scale_.data(); }  // [k]
  void InputScaleIsSet();
  // What Pack finds of the columns of a kernel of integers: their scales, then their sums, each as
  // view().column_quant has them. Empty of other kernels.
  std::span<float> columns() { return {columns_.data(), columns_.size()}; }
  size_t data_bytes() const { return RoundUp(view_.packed_bytes(), 64); }
  void SetData(const std::byte* data) { view_.data = data; }
  // False if the kernel is one of integers and a weight is NaN or infinite.
  [[nodiscard]] bool Pack(const WeightSource& source, size_t begin, size_t end, std::byte* data);
  // The same of panel p, or of that pair, which begins at `panel`: view().pair_bytes(p) bytes.
  [[nodiscard]] bool PackPanel(const WeightSource& source, size_t p, std::byte* panel);

  const PackedView& view() const { return view_; }
  const GemmBlocking& blocking() const { return blocking_; }

 private:
  PackedView view_;
  GemmBlocking blocking_{};
  AlignedBuffer<std::byte> data_;
  AlignedBuffer<float> bias_;
  AlignedBuffer<float> columns_;  // scales, then sums
  AlignedBuffer<float> input_scale_;
  AlignedBuffer<float> row_factor_;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_OPS_PACKED_MATRIX_H_
