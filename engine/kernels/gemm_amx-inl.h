// SPDX-License-Identifier: Apache-2.0
//
// Products of int8 and bf16 by AMX: 16 rows at a time, 16 columns and 16 groups of k (64 elements
// of int8, 32 of bf16) an instruction, on the packed panels of the other kernels: a tile of B
// is 16 groups of 16 columns, read in place. Included once for each SIMD target.
//
// int8: the same integers as those of any other kernel.
// bf16: the instruction sums the products of 16 even elements in one chain of FMAs from zero, those
// of the odd ones in another, adds the two, and adds that to the sum so far, each step rounded to
// f32; subnormal numbers count as zeros throughout. Any number of rows and groups goes that way.
//
// The tiles of a block, by number: 0 .. 5 the sums, row by row; 6 one of A; 7 one of B.

#if defined(ENCORE_ENGINE_KERNELS_GEMM_AMX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ENCORE_ENGINE_KERNELS_GEMM_AMX_INL_H_
#undef ENCORE_ENGINE_KERNELS_GEMM_AMX_INL_H_
#else
#define ENCORE_ENGINE_KERNELS_GEMM_AMX_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "engine/kernels/gemm_kernel.h"
#include "engine/kernels/gemm_slice.h"
#include "engine/kernels/gemm_tile-inl.h"
#include "hwy/highway.h"

// 1 where processors that run this target's kernels may have AMX.
#ifndef ENCORE_AMX_TARGET
#define ENCORE_AMX_TARGET HWY_AVX3_DL
#endif
#undef ENCORE_TARGET_HAS_AMX
#if HWY_ARCH_X86_64 && (HWY_TARGET == ENCORE_AMX_TARGET || HWY_TARGET == HWY_AVX3_SPR) && \
    !HWY_COMPILER_MSVC
#define ENCORE_TARGET_HAS_AMX 1
#else
#define ENCORE_TARGET_HAS_AMX 0
#endif

// The instructions, or what a test has in their place.
#ifndef ENCORE_AMX_TILES
#define ENCORE_AMX_TILES "engine/kernels/amx_tiles-inl.h"
#endif
#include ENCORE_AMX_TILES

#if ENCORE_TARGET_HAS_AMX

HWY_BEFORE_NAMESPACE();
namespace encore::inline v0_1::internal::HWY_NAMESPACE {
namespace amx {
namespace {  // a test's are others

inline constexpr size_t kRows = 16;    // of a tile of A or of sums
inline constexpr size_t kGroups = 16;  // of k, in a tile of A or B
inline constexpr size_t kLine = 64;    // bytes of a tile's row
inline constexpr int kTileOfA = 6;
inline constexpr int kTileOfB = 7;

// As the processor reads it: all eight tiles are 16 rows of 64 bytes.
struct alignas(64) Configuration {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {kLine, kLine, kLine, kLine, kLine, kLine, kLine, kLine};
  uint8_t rows[16] = {kRows, kRows, kRows, kRows, kRows, kRows, kRows, kRows};
};
static_assert(sizeof(Configuration) == 64);
inline constexpr Configuration kConfiguration;

// Makes the calling thread's tiles usable for as long as it lives; they are given back then, which
// spares the system saving them.
class Tiles {
 public:
  Tiles(size_t rows, size_t groups) { Configure(rows, groups); }
  // For blocks of so many rows, if they are fewer than 16, and so many groups of k; clears all
  // tiles.
  static void Configure(size_t rows, size_t groups) {
    if (rows >= kRows && groups == kGroups) {
      LoadConfiguration(kConfiguration);
      return;
    }
    Configuration low;
    std::fill_n(low.rows, kTileOfB, static_cast<uint8_t>(std::min(rows, kRows)));
    low.rows[kTileOfB] = static_cast<uint8_t>(groups);
    low.row_bytes[kTileOfA] = static_cast<uint16_t>(groups * (kLine / kGroups));
    LoadConfiguration(low);
  }
  ~Tiles() { Release(); }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;
};

// A block of rows and columns, in tiles.
struct Block {
  const uint8_t* a;
  size_t lda;  // bytes; so are the others
  const uint8_t* b;
  size_t ldb;
  size_t steps;  // of 16 groups
  const Accumulator* init;
  size_t ld_init;  // 0: one row for all
  Accumulator* sums;
  size_t ld_sums;
  const char* prefetch;
  size_t lines;  // to ask for at each step
};

// The columns of row kRow of tiles, forth in the even row and back in the odd one, which begins
// with the tile of B that is still there.
template <int kRow, int kCols, bool kInteger, int kDone = 0>
HWY_INLINE void Row(const uint8_t* b, size_t ldb) {
  if constexpr (kDone < kCols) {
    constexpr int kCol = kRow % 2 == 0 ? kDone : kCols - 1 - kDone;
    if constexpr (kRow == 0 || kDone != 0) Load<kTileOfB>(b + kCol * kLine, ldb);
    MulAdd<kRow * kCols + kCol, kInteger>();
    Row<kRow, kCols, kInteger, kDone + 1>(b, ldb);
  }
}

template <int kRowTiles, int kCols, int kTile = 0>
HWY_INLINE void Start(const Block& block) {
  if constexpr (kTile < kRowTiles * kCols) {
    const size_t row = kTile / kCols * kRows * block.ld_init;
    Load<kTile>(reinterpret_cast<const char*>(block.init) + row + kTile % kCols * kLine,
                block.ld_init);
    Start<kRowTiles, kCols, kTile + 1>(block);
  }
}

template <int kRowTiles, int kCols, int kTile = 0>
HWY_INLINE void Finish(const Block& block) {
  if constexpr (kTile < kRowTiles * kCols) {
    const size_t row = kTile / kCols * kRows * block.ld_sums;
    Store<kTile>(reinterpret_cast<char*>(block.sums) + row + kTile % kCols * kLine, block.ld_sums);
    Finish<kRowTiles, kCols, kTile + 1>(block);
  }
}

template <int kRowTiles, int kCols, bool kInteger>
HWY_NOINLINE void Run(const Block& block) {
  static_assert(kRowTiles * kCols <= 6);
  Start<kRowTiles, kCols>(block);
  // Not read again after each tile, which the compiler takes for a change of memory.
  const uint8_t* a = block.a;
  const uint8_t* b = block.b;
  const size_t lda = block.lda;
  const size_t ldb = block.ldb;
  const size_t lines = block.lines;
  const char* prefetch = block.prefetch;
  for (size_t step = block.steps; step != 0; --step) {
    Load<6>(a, lda);
    Row<0, kCols, kInteger>(b, ldb);
    for (size_t line = lines; line != 0; --line, prefetch += kLine) {
      PrefetchL2(prefetch);
    }
    if constexpr (kRowTiles == 2) {
      Load<6>(a + kRows * lda, lda);
      Row<1, kCols, kInteger>(b, ldb);
    }
    a += kLine;
    b += kGroups * ldb;
  }
  Finish<kRowTiles, kCols>(block);
}

// Two rows of tiles or one, and any number of columns of them.
template <int kCols, bool kInteger>
HWY_INLINE void RunColumns(const Block& block, size_t row_tiles) {
  if constexpr (kCols > 3) {
    RunColumns<2, kInteger>(block, row_tiles);
    Block rest = block;
    rest.b += 2 * kLine;
    rest.init += 2 * kLine / sizeof(Accumulator);
    rest.sums += 2 * kLine / sizeof(Accumulator);
    rest.lines = 0;
    RunColumns<kCols - 2, kInteger>(rest, row_tiles);
  } else if (row_tiles == 2) {
    Run<2, kCols, kInteger>(block);
  } else {
    Run<1, kCols, kInteger>(block);
  }
}

// MR rows of sums in memory become rows of c.
template <class Type, size_t MR, size_t NV>
HWY_NOINLINE void EndRows(const GemmTile& t, const Accumulator* HWY_RESTRICT sums) {
  const GemmTagF32 d;
  constexpr size_t kLanes = hn::MaxLanes(GemmTagF32());
  hn::Vec<GemmTagF32> acc[MR][NV];
  ENCORE_UNROLL
  for (size_t i = 0; i < MR; ++i) {
    ENCORE_UNROLL
    for (size_t j = 0; j < NV; ++j) acc[i][j] = hn::Load(d, sums + (i * NV + j) * kLanes);
  }
  EndTile<Type>(t, acc);
}

// Rows of what sums start from, times a factor each, in place of the sums.
template <size_t NV>
HWY_NOINLINE void ScaleInit(const GemmTile& t, size_t begin, size_t rows,
                            Accumulator* HWY_RESTRICT sums) {
  const GemmTagF32 d;
  constexpr size_t kLanes = hn::MaxLanes(GemmTagF32());
  for (size_t i = 0; i < rows; ++i) {
    const auto scale = hn::Set(d, t.in.init_scale[begin + i]);
    const Accumulator* init = t.in.init + (begin + i) * t.in.ld_init;
    for (size_t j = 0; j < NV; ++j, init += kLanes) {
      hn::Store(hn::Mul(hn::LoadU(d, init), scale), d, sums + (i * NV + j) * kLanes);
    }
  }
}

// The last groups of k, fewer than a tile has.
template <class Type, int kCols>
HWY_NOINLINE void RunTail(Block block, size_t groups, size_t rows, size_t row_tiles) {
  Tiles::Configure(rows, groups);
  block.a += block.steps * kLine;
  block.b += block.steps * kGroups * block.ldb;
  block.steps = 1;
  block.init = block.sums;
  block.ld_init = block.ld_sums;
  block.lines = 0;
  RunColumns<kCols, Type::kInteger>(block, row_tiles);
  Tiles::Configure(rows, kGroups);
}

// A last block of fewer than 16 rows begins at rows that are done, whose sums are made again and
// not used; if there are no more rows, they are a block of tiles that are as low.
template <class Type, size_t NV>
HWY_NOINLINE void RunRows(const GemmTile& tile, size_t rows) {
  constexpr size_t kLd = NV * hn::MaxLanes(GemmTagF32()) * sizeof(Accumulator);
  constexpr int kCols = kLd / kLine;
  static_assert(kLd % kLine == 0);
  alignas(64) Accumulator sums[2 * kRows * (kLd / sizeof(Accumulator))];
  GemmTile ends = tile;  // whose rows are stored next
  const size_t blocks =
      rows < 2 * kRows ? (rows + kRows - 1) / kRows : (rows + 2 * kRows - 1) / (2 * kRows);
  Block block;
  block.lda = tile.in.a.stride;
  block.ldb = tile.in.ldb * sizeof(typename Type::Word);
  block.steps = tile.in.kc / kGroups;
  block.ld_init = tile.in.ld_init * sizeof(Accumulator);
  block.sums = sums;
  block.ld_sums = kLd;
  block.prefetch = tile.in.prefetch;
  block.lines = tile.in.prefetch_step * kGroups / kLine / blocks;
  const Tiles tiles(rows, kGroups);
  for (size_t done = 0; done < rows;) {
    const size_t left = rows - done;
    const bool two = left >= 2 * kRows || (left > kRows && rows >= 2 * kRows);
    const size_t height = two ? 2 * kRows : std::min(kRows, rows);
    const size_t begin = left < height ? rows - height : done;
    block.a = reinterpret_cast<const uint8_t*>(tile.in.a.data) + begin * block.lda;
    block.b = static_cast<const uint8_t*>(tile.in.b);
    block.init = tile.in.init + begin * tile.in.ld_init;
    if (!Type::kInteger && tile.in.init_scale != nullptr) {
      ScaleInit<NV>(tile, begin, height, sums);
      block.init = sums;
      block.ld_init = kLd;
    }
    RunColumns<kCols, Type::kInteger>(block, two ? 2 : 1);
    if (!Type::kInteger && tile.in.kc % kGroups != 0) {
      RunTail<Type, kCols>(block, tile.in.kc % kGroups, rows, two ? 2 : 1);
    }
    block.prefetch += block.steps * block.lines * kLine;
    const Accumulator* from = sums + (done - begin) * (kLd / sizeof(Accumulator));
    size_t count = begin + height - done;
    done += count;
    for (; count >= 4; count -= 4, from += 4 * kLd / sizeof(Accumulator)) {
      EndRows<Type, 4, NV>(ends, from);
      SkipRows(ends, NV, 4);
    }
    for (; count != 0; --count, from += kLd / sizeof(Accumulator)) {
      EndRows<Type, 1, NV>(ends, from);
      SkipRows(ends, NV, 1);
    }
  }
}

// Tiles are as fast for fewer rows and for shorter slices, and disturb memory less (Xeon, Sapphire
// Rapids: base_1x16 454 us by tiles and 475 by AMX, with weights from memory 706 and 768).
template <class Type>
struct Blocks {
  template <size_t NV>
  static constexpr BlockFn kRun = &RunRows<Type, NV>;
  static constexpr size_t kMinRows = 32;
  static constexpr size_t kMinGroups = 64;
};

// GemmKernel::run for any number of rows.
template <class Type, size_t NV>
void Run(GemmTile& slice, size_t rows) {
  RunBlock(&RunRows<Type, NV>, sizeof(typename Type::Word), slice, rows);
}

}  // namespace
}  // namespace amx
}  // namespace encore::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ENCORE_TARGET_HAS_AMX

#endif  // per-target include guard
