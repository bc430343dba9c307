// SPDX-License-Identifier: Apache-2.0
//
// Packing panel by panel, and the memory that PackedMatrix owns.

#include "engine/ops/packed_matrix.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>

#include "engine/base/guarded.h"
#include "engine/kernels/int4_groups.h"
#include "engine/platform/fp_env.h"

namespace encore::inline v0_1::internal {
namespace {

Status NoMemoryFor(const WeightSource& source) {
  std::string shapes;
  for (size_t p = 0; p < source.num_parts; ++p) {
    shapes += (p == 0 ? "" : " and ") + source.parts[p].weight.shape().ToString();
  }
  return internal::NoMemoryFor("packed weights of shape " + shapes);
}

// As PackRows, for int4, whose scales are in the panel.
bool PackInt4Rows(const WeightSource& source, size_t row, size_t rows, size_t k, size_t nr,
                  std::byte* panel, float* scales, float* sums) {
  const FpEnvScope modes;
  std::fill_n(scales, rows, 1.0f);
  // Of int8 weights with scales of their inputs, those by which rows of A are divided as well.
  WeightSource smoothed = source;
  smoothed.input_scale = {};
  const auto pack_group = GetInt4Kernels().pack;
  alignas(64) float piece[GemmKernel::kMaxNr * kInt4Group];
  for (size_t k0 = 0; k0 < k; k0 += kInt4Group) {
    const size_t count = std::min(kInt4Group, k - k0);
    if (count < kInt4Group) std::fill(std::begin(piece), std::end(piece), 0.0f);
    ReadRows(smoothed, row, rows, k0, count, piece, kInt4Group);
    if (!pack_group(piece, rows, nr, panel, sums)) return false;
    panel += nr * kInt4GroupBytes;
  }
  return true;
}

// Rows [row, row + rows) of the source, k elements each, become the columns of one panel. For a
// kernel of integers their scales and sums are written too; false if a number is not finite then.
bool PackRows(const GemmKernel& kernel, const WeightSource& source, size_t row, size_t rows,
              size_t k, size_t nr, std::byte* panel, float* scales, float* sums) {
  if (kernel.is_int4()) return PackInt4Rows(source, row, rows, k, nr, panel, scales, sums);
  PlainRows plain;
  if (!kernel.integer && FindPlainRows(source, row, rows, &plain)) {
    kernel.pack(plain.data, plain.stride_k, plain.stride_row, k, rows, nr, panel);
    return true;
  }
  const FpEnvScope modes;
  if (kernel.integer) {
    ReadInt8Scales(source, row, rows, scales);
    if (!std::all_of(scales, scales + rows, [](float s) { return std::isfinite(s); })) return false;
  }
  // A piece of 64 k, a multiple of every kr, fills 16 KiB at the most, half of a small L1.
  constexpr size_t kPiece = 64;
  alignas(64) float piece[GemmKernel::kMaxNr * kPiece];
  for (size_t k0 = 0; k0 < k; k0 += kPiece) {
    const size_t count = std::min(kPiece, k - k0);
    if (kernel.integer) {
      ReadInt8Rows(source, scales, row, rows, k0, count, piece, kPiece, sums);
    } else {
      ReadRows(source, row, rows, k0, count, piece, kPiece);
    }
    kernel.pack(piece, 1, kPiece, count, rows, nr, panel + k0 * nr * kernel.b_bytes);
  }
  return true;
}

Status NotFinite(const WeightSource& source) {
  return InvalidArgument("weights of " + source.parts[0].weight.shape().ToString() +
                         " have a number that is not finite; wanted finite ones for integers");
}

}  // namespace

void PackInto(const PackedView& view, const float* b, ptrdiff_t stride_k, ptrdiff_t stride_n,
              void* data) {
  if (view.k == 0) return;  // and n may be beyond counting
  const size_t nr = view.nr();
  for (size_t p = 0; p < view.panels(); ++p) {
    view.kernel->pack(b + static_cast<ptrdiff_t>(p * nr) * stride_n, stride_k, stride_n, view.k,
                      view.panel_cols(p), view.panel_ld(p),
                      static_cast<std::byte*>(data) + p * view.panel_bytes(nr));
  }
}

Result<PackedMatrix> PackedMatrix::Prepare(const WeightSource& source, const GemmKernel& kernel,
                                           bool smoothed) {
  PackedMatrix matrix;
  PackedView& view = matrix.view_;
  view.kernel = &kernel;
  view.k = source.k();
  view.panel_rows = view.k;
  view.gated = source.gated;
  size_t rows = 0;
  if (!source.CountRows(&rows)) return NoMemoryFor(source);
  view.n = rows / view.halves();
  view.nv = ChoosePanelVectors(kernel, view.n);
  // Groups of bytes that become 16 bits have as many bytes in L1, and in A, as other groups.
  matrix.blocking_ = ChooseGemmBlocking(MachineCaches(), view.groups(), view.nr(),
                                        std::max(kernel.group_bytes(), sizeof(Accumulator)));
  size_t padded_n = 0;
  size_t bytes = 0;
  if (!CheckedRoundUp(view.k, kernel.kr, &bytes) ||
      !CheckedMul(bytes / kernel.kr, kernel.group_bytes(), &bytes) ||
      !CheckedRoundUp(view.n, view.nr(), &padded_n) ||
      !CheckedMul(padded_n, view.halves(), &padded_n) || !CheckedMul(bytes, padded_n, &bytes) ||
      !CheckedRoundUp(bytes, 64, &bytes) ||
      (source.has_bias() && !matrix.bias_.Allocate(padded_n))) {
    return NoMemoryFor(source);
  }
  if (kernel.integer) {
    size_t columns = 0;
    if (!CheckedMul(padded_n, 2, &columns) || !matrix.columns_.Allocate(columns)) {
      return NoMemoryFor(source);
    }
    std::fill_n(matrix.columns_.data(), columns, 0.0f);
    view.column_quant = {matrix.columns_.data(), matrix.columns_.data() + padded_n};
  }
  if (smoothed && (!matrix.input_scale_.Allocate(view.k) || !matrix.row_factor_.Allocate(view.k))) {
    return NoMemoryFor(source);
  }
  if (source.has_bias()) {
    const FpEnvScope modes;
    view.bias = matrix.bias_.data();
    std::fill_n(matrix.bias_.data(), padded_n, 0.0f);
    for (size_t half = 0; half < view.halves(); ++half) {
      ReadBias(source, half * view.n, view.n,
               matrix.bias_.data() + half * view.panels() * view.nr());
    }
  }
  return matrix;
}

void PackedMatrix::InputScaleIsSet() {
  for (size_t i = 0; i < view_.k; ++i) row_factor_.data()[i] = 1.0f / input_scale_.data()[i];
  view_.row_factor = row_factor_.data();
}

bool PackedMatrix::Pack(const WeightSource& source, size_t begin, size_t end, std::byte* data) {
  if (view_.k == 0) return true;  // and n may be beyond counting
  for (size_t p = begin; p < end; ++p) {
    if (!PackPanel(source, p, data + view_.panel_offset(p))) return false;
  }
  return true;
}

bool PackedMatrix::PackPanel(const WeightSource& source, size_t p, std::byte* panel) {
  const GemmKernel& kernel = *view_.kernel;
  const size_t cols = view_.panel_cols(p);
  for (size_t half = 0; half < view_.halves(); ++half) {
    const size_t row = half * view_.n + p * view_.nr();
    const size_t column = view_.padded_column(p, half);
    float* const scales = kernel.integer ? columns_.data() + column : nullptr;
    float* const sums = kernel.integer ? columns_.data() + columns_.size() / 2 + column : nullptr;
    if (kernel.integer) std::fill_n(sums, cols, 0.0f);
    if (!PackRows(kernel, source, row, cols, view_.k, view_.panel_ld(p), panel, scales, sums)) {
      return false;
    }
    panel += view_.panel_bytes(view_.panel_ld(p));
  }
  return true;
}

Result<PackedMatrix> PackedMatrix::Create(const WeightSource& source, const GemmKernel& kernel) {
  Result<PackedMatrix> matrix = Prepare(source, kernel);
  if (!matrix.ok()) return matrix;
  if (!matrix->data_.Allocate(std::max<size_t>(matrix->data_bytes(), 1)))
    return NoMemoryFor(source);
  if (!matrix->Pack(source, 0, matrix->view_.panels(), matrix->data_.data())) {
    return NotFinite(source);
  }
  matrix->SetData(matrix->data_.data());
  return matrix;
}

}  // namespace encore::internal
