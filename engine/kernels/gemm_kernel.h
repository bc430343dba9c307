// SPDX-License-Identifier: Apache-2.0
//
// The micro-kernels of the matrix product of one element type and SIMD target, as plain function
// pointers, and what the loops above need to know of the type.
//
// Elements lie in groups of `kr` along k: 1 for f32, 2 for bf16, 4 for int8 (2 where it is widened
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

// One microtile: MR rows by NV vectors of columns,
//   c = relu(scale * (init_scale * init + a b) + residual)
// where scale is a row's own, and each factor, the residual and relu are optional. Each element of
// a b is one chain of fused multiply-adds over groups 0 .. kc-1 (in the order that the element type
// has within a group) that starts at init; the rest comes in the order written. b may be a slice of
// a packed panel (gemm_pack-inl.h), so a product over a long K may be cut: the c of one call is the
// init of the next, and the bits are those of one call.
struct TileOperands {
  InputRows a;    // [MR], contiguous rows of kc groups
  const void* b;  // [kc, ldb, kr], readable to the full width NV * lanes; fastest if aligned to a
                  // vector
  size_t ldb;     // columns
  size_t panel_stride;      // of a wide tile: bytes from a panel of b to the next
  size_t kc;                // may be 0
  const Accumulator* init;  // [MR, ld_init], readable to the full width NV * lanes
  size_t ld_init;           // 0: one row (a bias) for all
  const float* init_scale;  // [MR], or null for 1
  // A tile that prefetches asks at each k for the line at `prefetch`, or for as many from there as
  // fill NV vectors, and goes prefetch_step bytes on. Into L2, and only a hint: any address will
  // do. A wide tile asks for all lines of all of its panels, panel_stride apart.
  const char* prefetch;
  size_t prefetch_step;
};
// Of an integer kernel's last slice: c = bias + a.quant.scale * columns.scale * (sums -
// a.quant.zero_point * columns.sum), and then on as above, but that `scale` has no place. For other
// slices columns.scale is null, and c receives the bits of integers, or int4's sums as floats.
struct TileQuant {
  ColumnQuant columns;  // these for the full width
  const float* bias;
};
struct TileEpilogue {
  const float* scale;         // [MR], or null for 1
  ConstRows residual;         // [MR], cols wide, or null
  bool relu;                  // max(x, 0); -0 and NaN stay as they are
  float* c[kMaxTileVectors];  // where each vector of columns begins: [MR, ldc]; may be init or
  size_t ldc;                 // residual themselves
  size_t cols;                // columns that c has, 1 .. NV * lanes
};
struct GemmTile {
  TileOperands in;
  TileQuant quant;
  TileEpilogue out;
};

// Lines that a tile asks for at each k. Some tiles that need to ask for none ask for the one at
// `prefetch` all the same: it should be a line that is in L1, and the step 0.
enum TilePrefetch { kNoLine, kOneLine, kAllLines, kNumTilePrefetches };

// Rows for GemmKernel::make_rows.
struct RowsToMake {
  ConstRows in;
  size_t rows;
  size_t k;
  MadeRows out;                   // with quant where the kernel is one of integers
  const float* factor = nullptr;  // [k], or null for 1
};

// The micro-kernels for one element type and SIMD target. Immutable, lives forever.
struct GemmKernel {
  static constexpr size_t kMaxNv = 4;  // of a panel
  static constexpr size_t kMaxMr = 16;
  static constexpr size_t kMaxNr = kMaxNv * 16;  // columns of the widest panel
  using TileFn = void (*)(const GemmTile& tile);
  // A tile of few rows over several neighbouring panels: one panel has too few chains to hide the
  // latency of a multiply-add.
  static constexpr size_t kMaxWideMr = 2;
  struct WideTile {
    size_t panels;  // 0: none
    TileFn run;
  };
  // A slice of a panel for any number of rows in one call: as one tile, but that prefetch_step is
  // the bytes of a group of the panel, all of which it asks for, and that a, ld_init and the
  // factors are those of `rows` rows. Cuts between slices are at multiples of 16. Of integers,
  // init_scale and scale are null, and int8's kc is a multiple of 16. c may be init.
  using RowsFn = void (*)(const GemmTile& tile, size_t rows);
  // Whether to take rows[] where there are tiles, too.
  bool TakesAtOnce(size_t count, size_t kc) const {
    return only_rows || (count >= at_once_rows && kc >= at_once_groups && kc % 16 == 0);
  }
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
  using MakeRowsFn = void (*)(const RowsToMake& rows);

  const char* target;         // Highway's name of the SIMD target, or "AMX"
  bool integer = false;       // int8 and int4; int8's sums are int32_t, and its `pack` takes floats
                              // that are integers
  size_t a_bytes;             // of an element of A
  size_t b_bytes;             // and of B; of int4 0, whose groups are kInt4GroupBytes
  size_t kr;                  // elements of a group
  size_t lanes;               // accumulators a vector
  size_t best_nv;             // panel width (vectors) to prefer
  size_t max_mr[kMaxNv + 1];  // [nv]: the largest MR there is a tile for; 0: no tile of that width
  TileFn tile[kNumTilePrefetches][kMaxNv + 1][kMaxMr + 1];  // [][nv][mr]
  WideTile wide[kMaxNv + 1][kMaxWideMr + 1];                // [nv][mr]
  RowsFn rows[kMaxNv + 1] = {};                             // [nv]; null: only tiles
  bool only_rows = false;                                   // no tiles: their bits would be others
  PackFn pack;                                              // these two not of int4, whose
  TransposeFn transpose;                                    // panels kernels/int4_groups.h packs
  MakeRowsFn make_rows;  // null: rows of floats are rows of A as they are
  // For TakesAtOnce. As here, AMX's tiles are as fast for fewer rows and for shorter slices, and
  // disturb memory less (Xeon, Sapphire Rapids: base_1x16 454 us by tiles and 475 at once, with
  // weights from memory 706 and 768).
  size_t at_once_rows = 32;
  size_t at_once_groups = 64;

  // Groups that cover k elements.
  size_t GroupsOf(size_t k) const { return kr == 1 ? k : (k + kr - 1) / kr; }
  // Bytes of one column of a group of B.
  size_t group_bytes() const { return is_int4() ? kInt4GroupBytes : kr * b_bytes; }
  bool is_int4() const { return b_bytes == 0; }
  // Where element i of a row of A lies, in elements: bf16 as floats has the odd one of a pair
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
// another order (gemm_amx-inl.h), rows[] alone. On targets of processors that never have it, the
// kernel above. Packed panels of either are those of the other.
const GemmKernel& GetGemmKernelBf16Amx();
const GemmKernel& GetGemmKernelInt8();
// rows[] alone.
const GemmKernel& GetGemmKernelInt4();
// The same with AMX for many rows, to be run only where the process may use it
// (engine/platform/amx.h); on targets of processors that never have it, the same altogether. Packed
// panels of either are those of the other.
const GemmKernel& GetGemmKernelInt8Amx();

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_KERNELS_GEMM_KERNEL_H_
