// SPDX-License-Identifier: Apache-2.0
//
// Packing panel by panel, and the memory that PackedMatrix owns.

#include "engine/ops/packed_matrix.h"

#include <algorithm>
#include <utility>

namespace encore::internal {

void PackInto(const PackedView& view, const float* b, ptrdiff_t stride_k, ptrdiff_t stride_n,
              float* data) {
  if (view.k == 0) return;  // and n may be beyond counting
  const size_t nr = view.nr();
  for (size_t p = 0; p < view.panels(); ++p) {
    view.kernel->pack(b + static_cast<ptrdiff_t>(p * nr) * stride_n, stride_k, stride_n, view.k,
                      view.panel_cols(p), view.panel_nv(p) * view.kernel->lanes,
                      data + p * view.k * nr);
  }
}

Result<PackedMatrix> PackedMatrix::Create(TensorView<const float> b, TensorView<const float> bias) {
  PackedMatrix matrix;
  PackedView& view = matrix.view_;
  view.kernel = &GetGemmKernelF32();
  view.k = b.dim(0);
  view.panel_rows = view.k;
  view.n = b.dim(1);
  view.nv = ChoosePanelVectors(*view.kernel, view.n);
  matrix.blocking_ = ChooseGemmBlocking(MachineCaches(), view.k, view.nr());
  size_t padded_n = 0;
  size_t floats = 0;
  if (!CheckedRoundUp(view.n, view.nr(), &padded_n) || !CheckedMul(padded_n, view.k, &floats) ||
      !matrix.data_.Allocate(std::max<size_t>(floats, 1)) ||
      (!bias.empty() && !matrix.bias_.Allocate(padded_n))) {
    return Status(ErrorCode::kOutOfMemory,
                  "packed weights of " + b.shape().ToString() + " do not fit into memory");
  }
  PackInto(view, b.data(), b.stride(0), b.stride(1), matrix.data_.data());
  view.data = matrix.data_.data();
  if (!bias.empty()) {
    for (size_t n = 0; n < view.n; ++n) matrix.bias_.data()[n] = bias(n);
    for (size_t n = view.n; n < padded_n; ++n) matrix.bias_.data()[n] = 0.0f;
    view.bias = matrix.bias_.data();
  }
  return matrix;
}

}  // namespace encore::internal
