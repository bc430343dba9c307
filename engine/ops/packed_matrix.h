// SPDX-License-Identifier: Apache-2.0
//
// The right-hand matrix of a product, packed into panels for the kernel that will use it: a view
// (memory of the caller's) and an owner. The layout is drawn in engine/kernels/gemm_pack-inl.h. Not
// here: the product (gemm.h).

#ifndef ENCORE_ENGINE_OPS_PACKED_MATRIX_H_
#define ENCORE_ENGINE_OPS_PACKED_MATRIX_H_

#include <algorithm>
#include <cstddef>

#include "encore/status.h"
#include "encore/tensor.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/int_math.h"
#include "engine/kernels/gemm_kernel.h"
#include "engine/ops/gemm_blocking.h"

namespace encore::internal {

// B [k, n] in panels of nv vectors. Remembers the kernel that packed it, whatever target is active
// later.
struct PackedView {
  const GemmKernel* kernel = nullptr;
  size_t k = 0;
  size_t n = 0;
  size_t nv = 0;
  size_t panel_rows =
      0;  // rows of a panel in memory, >= k: a view may use the first k of them only
  const float* data =
      nullptr;  // ceil(n / nr) panels of [panel_rows, nr]; the last may have fewer vectors
  const float* bias = nullptr;  // [panels * nr], zeros past n; or null for zeros

  size_t nr() const { return nv * kernel->lanes; }
  size_t panels() const { return DivCeil(n, nr()); }
  size_t panel_cols(size_t p) const { return std::min(nr(), n - p * nr()); }
  size_t panel_nv(size_t p) const {
    const size_t cols = panel_cols(p);
    return cols == nr() ? nv : DivCeil(cols, kernel->lanes);
  }
  const float* panel(size_t p) const { return data + p * panel_rows * nr(); }
  // Floats from one row of panel p to the next.
  size_t panel_ld(size_t p) const { return panel_nv(p) * kernel->lanes; }
  // Floats of packed data: n rounded up to whole vectors, times the rows.
  size_t packed_floats() const { return panel_rows * RoundUp(n, kernel->lanes); }
};

// Packs panel p of element (k, n) = b[k * stride_k + n * stride_n] into data, which has room for
// view.packed_floats(). view.panel_rows is view.k.
void PackPanelInto(const PackedView& view, size_t p, const float* b, ptrdiff_t stride_k,
                   ptrdiff_t stride_n, float* data);
// All panels.
void PackInto(const PackedView& view, const float* b, ptrdiff_t stride_k, ptrdiff_t stride_n,
              float* data);

// The packed data and the bias of a weight matrix. Movable.
class PackedMatrix {
 public:
  // b [K, N] with any strides (a torch weight [N, K] transposed), bias [N] or empty, for the active
  // target. Sizes have been validated by the caller. kOutOfMemory.
  static Result<PackedMatrix> Create(TensorView<const float> b, TensorView<const float> bias);

  // The same in two steps, for several matrices in one piece of memory, so that what follows the
  // end of one in memory is what a pass reads next. The first lays out and takes the bias; Pack
  // then fills panels [begin, end) at `data`, which has room for data_floats() and outlives this,
  // and may be called by several threads for different panels.
  static Result<PackedMatrix> Prepare(TensorView<const float> b, TensorView<const float> bias);
  size_t data_floats() const { return RoundUp(view_.packed_floats(), 16); }
  void SetData(const float* data) { view_.data = data; }
  void Pack(TensorView<const float> b, size_t begin, size_t end, float* data) const;

  const PackedView& view() const { return view_; }
  const GemmBlocking& blocking() const { return blocking_; }

 private:
  PackedView view_;
  GemmBlocking blocking_{};
  AlignedBuffer<float> data_;
  AlignedBuffer<float> bias_;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_OPS_PACKED_MATRIX_H_
