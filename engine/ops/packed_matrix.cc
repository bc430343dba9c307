// SPDX-License-Identifier: Apache-2.0
//
// Packing panel by panel, and the memory that PackedMatrix owns.

#include "engine/ops/packed_matrix.h"

#include <algorithm>
#include <utility>

namespace encore::internal {
namespace {

Status NoMemoryFor(const TensorView<const float>& b) {
  return Status(ErrorCode::kOutOfMemory,
                "packed weights of " + b.shape().ToString() + " do not fit into memory");
}

}  // namespace

void PackPanelInto(const PackedView& view, size_t p, const float* b, ptrdiff_t stride_k,
                   ptrdiff_t stride_n, float* data) {
  const size_t nr = view.nr();
  view.kernel->pack(b + static_cast<ptrdiff_t>(p * nr) * stride_n, stride_k, stride_n, view.k,
                    view.panel_cols(p), view.panel_nv(p) * view.kernel->lanes,
                    data + p * view.k * nr);
}

void PackInto(const PackedView& view, const float* b, ptrdiff_t stride_k, ptrdiff_t stride_n,
              float* data) {
  if (view.k == 0) return;  // and n may be beyond counting
  for (size_t p = 0; p < view.panels(); ++p) PackPanelInto(view, p, b, stride_k, stride_n, data);
}

Result<PackedMatrix> PackedMatrix::Prepare(TensorView<const float> b,
                                           TensorView<const float> bias) {
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
      !CheckedRoundUp(floats, 16, &floats) || (!bias.empty() && !matrix.bias_.Allocate(padded_n))) {
    return NoMemoryFor(b);
  }
  if (!bias.empty()) {
    for (size_t n = 0; n < view.n; ++n) matrix.bias_.data()[n] = bias(n);
    for (size_t n = view.n; n < padded_n; ++n) matrix.bias_.data()[n] = 0.0f;
    view.bias = matrix.bias_.data();
  }
  return matrix;
}

void PackedMatrix::Pack(TensorView<const float> b, size_t begin, size_t end, float* data) const {
  for (size_t p = begin; p < end; ++p) {
    PackPanelInto(view_, p, b.data(), b.stride(0), b.stride(1), data);
  }
}

Result<PackedMatrix> PackedMatrix::Create(TensorView<const float> b, TensorView<const float> bias) {
  Result<PackedMatrix> matrix = Prepare(b, bias);
  if (!matrix.ok()) return matrix;
  if (!matrix->data_.Allocate(std::max<size_t>(matrix->data_floats(), 1))) return NoMemoryFor(b);
  PackInto(matrix->view_, b.data(), b.stride(0), b.stride(1), matrix->data_.data());
  matrix->SetData(matrix->data_.data());
  return matrix;
}

}  // namespace encore::internal
