// SPDX-License-Identifier: Apache-2.0
//
// The micro-kernels of the matrix product of one element type and SIMD target, as plain function
// pointers, and what the loops above need to know of the type.
//
// Elements are grouped by `kr` along k: 1 for f32, 2 for bf16, 4 for int8 (2 where it is widened
// to 16 bits). Rows of A and packed panels of B are whole groups, filled up with zeros. All counts
// along k below are of groups.
//
// int8: a row x of A becomes q = round(x / scale) + zero_point, 0 .. 255, with a scale and a zero
// point of its own; a column w of B becomes round(w / col_scale), -127 .. 127 (a file may hold
// -128). Then
//   x w = scale * col_scale * (sum of q_x q_w - zero_point * sum of q_w)
// where the sums are exact 32-bit integers for any k up to kMaxInt8K.
//
// int4: rows of A are the same bytes. Along k a column of w falls into groups of 32, each with a
// scale: w becomes round(w / group_scale), -8 .. 7. A group's products have an exact sum; sums of
// groups are joined in their order, sum = fma(products of the group, group_scale, sum), from 0.
// Then the same formula follows, with sum of q_w = the sum of group_scale * q_w, and col_scale 1.
// kr is a group of 32; in a panel of nr columns it is
//   uint8_t nibbles[4][nr][4]   byte (s, n, i): q + 8 of element 8 s + i in the lower half, of
//                               element 8 s + 4 + i in the upper
//   uint16_t scale[nr]          bf16

#ifndef ENCORE_ENGINE_KERNELS_GEMM_KERNEL_H_
#define ENCORE_ENGINE_KERNELS_GEMM_KERNEL_H_

#include <cstddef>

#include "engine/kernels/elementwise.h"
#include "engine/kernels/rows.h"

namespace encore::inline v0_1::internal {

// What sums are kept in, by tiles and from one slice of K to the next; of int8 the bits of an
// int32_t.
using Accumulator = float;

// The longest K whose int8 sums fit 32 bits: 65793 * 255 * 128 < 2^31.
inline constexpr size_t kMaxInt8K = 65793;

inline constexpr size_t kInt4Group = 32;
inline constexpr size_t kInt4GroupBytes = kInt4Group / 2 + 2;  // of one column

// What turns an integer kernel's sums into floats: columns of B, padded to whole vectors.
struct ColumnQuant {
  const float* scale;  // [columns]
  const float* sum;    // [columns]: of the column's integers; int4: of these times their scales
};

// The widest tile, in vectors of accumulators.
inline constexpr size_t kMaxTileVectors = 12;

// Some rows by NV vectors of columns,
//   c = activation(relu(scale * (init_scale * init + a b) + residual))
// where scale is a row's own, and each factor, the residual, relu and the activation are optional.
// Each element of a b is one chain of fused multiply-adds over groups 0 .. kc-1 (in the order that
// the element type has within a group) that starts at init; the rest follows in the order written.
// b may be a slice of a packed panel (gemm_pack-inl.h), so a product over a long K may be cut: the
// c of one call is the init of the next, and the bits are those of one call.
struct TileOperands {
  InputRows a;    // [rows], contiguous rows of kc groups
  const void* b;  // [kc, ldb, kr], readable to the full width NV * lanes; fastest if aligned to a
                  // vector
  size_t ldb;     // columns
  size_t panels;  // side by side, panel_stride bytes apart; 1, or GemmKernel::wide_panels
  size_t panel_stride;
  size_t kc;                // may be 0
  const Accumulator* init;  // [rows, ld_init], readable to the full width NV * lanes
  size_t ld_init;           // 0: one row (a bias) for all
  const float* init_scale;  // [rows], or null for 1
  // Memory of b's size that is read next: prefetched into L2 meanwhile. Any address will do. null
  // where b is in L1 and so is what follows.
  const char* prefetch;
  size_t prefetch_step;  // of kernels/ itself (gemm_slice.h)
};
// Of an integer kernel's last slice: c = bias + a.quant.scale * columns.scale * (sums -
// a.quant.zero_point * columns.sum), then as above without `scale`. For other slices columns.scale
// is null, and c receives the bits of integers, or int4's sums as floats.
struct TileQuant {
  ColumnQuant columns;  // these for the full width
  const float* bias;
};
struct TileEpilogue {
  const float* scale;         // [rows], or null for 1
  ConstRows residual;         // [rows], cols wide, or null
  bool relu;                  // max(x, 0); -0 and NaN stay as they are
  float* c[kMaxTileVectors];  // where each vector of columns begins: [rows, ldc]; may be init or
  size_t ldc;                 // residual themselves
  size_t cols;                // columns that c has, 1 .. NV * lanes
  // Or null, as most are; where vectors of c are side by side.
  ActivationKernel::Tile activation;
  ActivationKernel::Gated gated;  // c = f(gate) c, gate [rows, ld_gate]
  const float* gate;
  size_t ld_gate;
};
struct GemmTile {
  TileOperands in;
  TileQuant quant;
  TileEpilogue out;
};

// As `init` of what starts from nothing.
alignas(64) inline constexpr Accumulator kZeroRow[kMaxTileVectors * 16] = {};

// A slice without factors, residual, activation and quantisation, which starts from nothing and
// prefetches nothing; without a, b, kc and the place of c. Field by field: with few rows, clearing
// all of it would take a percent of the time.
inline GemmTile PlainTile() {
  GemmTile tile;
  tile.in.panels = 1;
  tile.in.init = kZeroRow;
  tile.in.ld_init = 0;
  tile.in.init_scale = nullptr;
  tile.in.prefetch = nullptr;
  tile.quant.columns.scale = nullptr;
  tile.out.scale = nullptr;
  tile.out.residual = {nullptr, 0};
  tile.out.relu = false;
  tile.out.activation = nullptr;
  tile.out.gated = nullptr;
  tile.out.gate = nullptr;
  return tile;
}

// For GemmKernel::pack_lhs.
struct LhsToPack {
  ConstRows in;
  size_t rows;
  size_t k;
  PackedLhs out;                  // with quant where the kernel is one of integers
  const float* factor = nullptr;  // [k], or null for 1
};

// The micro-kernels for one element type and SIMD target. Immutable, lives forever.
struct GemmKernel {
  static constexpr size_t kMaxNv = 4;  // of a panel
  static constexpr size_t kMaxMr = 16;
  static constexpr size_t kMaxNr = kMaxNv * 16;  // columns of the widest panel
  static constexpr size_t kMaxWideMr = 2;
  // Rows [0, rows) of a slice, rows >= 1, of panels NV vectors wide: by microtiles, or by a kernel
  // of all rows at once. Slices are cut at multiples of 16 groups. Of integers, init_scale and
  // scale are null. The pointers in `slice` are those of row 0; after the call they may be others.
  using RunFn = void (*)(GemmTile& slice, size_t rows);
  // Packs columns [0, cols) of a K x N matrix into a panel [groups, nr, kr]; see gemm_pack-inl.h.
  // Element (k, n) of the source is b[k * stride_k + n * stride_n]; columns past cols and what
  // fills up the last group become 0.
  using PackFn = void (*)(const float* b, ptrdiff_t stride_k, ptrdiff_t stride_n, size_t k,
                          size_t cols, size_t nr, void* panel);
  // Packs some columns of a panel from contiguous rows: element (r, c) of `in` becomes element c of
  // the panel's column r, out[(c / kr * ld_out + r) * kr + c % kr]. What fills up the last group
  // becomes 0; no other column is touched.
  using TransposeFn = void (*)(const float* in, size_t ld_in, size_t rows, size_t cols, void* out,
                               size_t ld_out);
  // Makes rows of A out of rows of k floats; the last group is filled up with zeros. `out` may be
  // `in`, where rows of both have the same bytes from one to the next, and room for whole groups.
  // int8 and int4 write out.quant, and multiply x by factor, if given, before anything else.
  using PackLhsFn = void (*)(const LhsToPack& rows);

  const char* target;         // Highway's name of the SIMD target, or "AMX"
  bool integer = false;       // int8 and int4; int8's sums are int32_t, and its `pack` reads floats
                              // that are integers
  int a_offset = 0;           // of integer: rows of A hold so much less, and so do the sums of
                              // slices before the last, but int4's
  size_t a_bytes;             // of an element of A
  size_t b_bytes;             // and of B; of int4 0, whose groups are kInt4GroupBytes
  size_t kr;                  // elements of a group
  size_t lanes;               // accumulators a vector
  size_t best_nv;             // panel width (vectors) to prefer
  size_t max_mr[kMaxNv + 1];  // [nv]: rows of the tallest microtile; 0: no panels of that width
  RunFn run[kMaxNv + 1];      // [nv]
  // [nv][rows]: neighbouring panels that one call computes for so few rows, since one panel has too
  // few chains to hide the latency of a multiply-add; 0: one panel.
  size_t wide_panels[kMaxNv + 1][kMaxWideMr + 1];
  bool only_block_kernel = false;  // no microtiles: their bits would be others
  PackFn pack;  // these two not of int4, whose panels kernels/int4_groups.h packs
  TransposeFn transpose;
  PackLhsFn pack_lhs;  // null: rows of floats are rows of A as they are

  // Groups that cover k elements.
  size_t GroupsOf(size_t k) const { return kr == 1 ? k : (k + kr - 1) / kr; }
  // Bytes of one column of a group of B.
  size_t group_bytes() const { return is_int4() ? kInt4GroupBytes : kr * b_bytes; }
  bool is_int4() const { return b_bytes == 0; }
  // The index of element i of a row of A: bf16 as floats has the odd one of a pair
  // first.
  size_t PlaceInA(size_t i) const { return kr == 2 && a_bytes == sizeof(float) ? i ^ 1 : i; }
  size_t max_nv() const {
    size_t nv = kMaxNv;
    while (max_mr[nv] == 0) --nv;
    return nv;
  }
};

// Those of the active SIMD target.
const GemmKernel& GetGemmKernelF32();
// Each group is two FMAs, the odd element's first and then the even one's. Where the machine has
// that as one instruction (VDPBF16PS), subnormal numbers count as zeros.
const GemmKernel& GetGemmKernelBf16();
// By AMX, to be run only where the process may use its bf16 (engine/platform/amx.h): sums in
// another order (gemm_amx-inl.h). On targets of processors that never have it, the
// kernel above. Packed panels of either are those of the other.
const GemmKernel& GetGemmKernelBf16Amx();
const GemmKernel& GetGemmKernelInt8();
const GemmKernel& GetGemmKernelInt4();
// The same with AMX for many rows, to be run only where the process may use it
// (engine/platform/amx.h); on targets of processors that never have it, the same altogether. Packed
// panels of either are those of the other.
const GemmKernel& GetGemmKernelInt8Amx();

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_KERNELS_GEMM_KERNEL_H_
