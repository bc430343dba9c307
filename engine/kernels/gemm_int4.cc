// SPDX-License-Identifier: Apache-2.0
//
// The int4 kernels of every SIMD target, for any number of rows at once: unsigned bytes of rows by
// signed nibbles of columns. The products of a group are added as integers, exactly; groups are
// joined by one chain of FMAs. Nibbles become bytes a few groups at a time, in L1, for all rows.
//
// The 32 products of a group fit 16 bits: each of the two sums that VPMADDUBSW and an addition make
// is of 16 products of at most 255 * 8 in magnitude, and 16 * 255 * 8 = 32640.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

#include "engine/base/even_split.h"
#include "engine/base/strict_math.h"
// AVX3_ZEN4's products of integers are AVX3_DL's.
#define ENCORE_SAME_ON_AVX3 HWY_AVX3_ZEN4
#include "engine/kernels/fewer_avx3.h"
#include "engine/kernels/gemm_kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/gemm_int4.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h:
#include "engine/kernels/byte_rows-inl.h"
#include "engine/kernels/dispatch.h"
#include "engine/kernels/gemm_tile-inl.h"
#include "engine/kernels/unroll.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace encore::inline v0_1::internal::HWY_NAMESPACE {
namespace {

using TagU8 = hn::Repartition<uint8_t, GemmTagF32>;
using TagI8 = hn::Repartition<int8_t, GemmTagF32>;
using TagI16 = hn::Repartition<int16_t, GemmTagF32>;
using TagU16 = hn::Repartition<uint16_t, GemmTagF32>;
using TagI32 = hn::RebindToSigned<GemmTagF32>;
using TagU32 = hn::RebindToUnsigned<GemmTagF32>;
using VecF32 = hn::Vec<GemmTagF32>;

constexpr size_t kLanes = hn::MaxLanes(GemmTagF32());
constexpr size_t kWord = 4;                    // bytes along k that one step multiplies
constexpr size_t kWords = kInt4Group / kWord;  // of a group

// What EndTile asks for.
struct TypeInt4 {
  static constexpr bool kInteger = true;
  static constexpr bool kFloatSums = true;
};

// The sum of a group: some of its products more, and all of it as floats.
#if ENCORE_TARGET_HAS_SDOT
using TagSum = TagI32;
HWY_INLINE float Spread(const uint32_t& word) { return hwy::BitCastScalar<float>(word); }
HWY_INLINE hn::Vec<TagSum> AddProducts(float a, hn::Vec<TagI8> b, hn::Vec<TagSum> sum) {
  return AddDotProducts(a, b, sum);
}
HWY_INLINE VecF32 FloatOf(hn::Vec<TagSum> sum) { return hn::ConvertTo(GemmTagF32(), sum); }
#else
HWY_INLINE hn::Vec<TagU8> Spread(const uint32_t& word) {
  return hn::BitCast(TagU8(), hn::Set(TagU32(), word));
}
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL
using TagSum = TagI32;
HWY_INLINE hn::Vec<TagSum> AddProducts(hn::Vec<TagU8> a, hn::Vec<TagI8> b, hn::Vec<TagSum> sum) {
  return hn::SumOfMulQuadAccumulate(TagI32(), a, b, sum);
}
HWY_INLINE VecF32 FloatOf(hn::Vec<TagSum> sum) { return hn::ConvertTo(GemmTagF32(), sum); }
#else
using TagSum = TagI16;
HWY_INLINE hn::Vec<TagSum> AddProducts(hn::Vec<TagU8> a, hn::Vec<TagI8> b, hn::Vec<TagSum> sum) {
  return hn::Add(sum, hn::SatWidenMulPairwiseAdd(TagI16(), a, b));
}
HWY_INLINE VecF32 FloatOf(hn::Vec<TagSum> sum) {
  const hn::Vec<TagI16> one = hn::Set(TagI16(), int16_t{1});
  return hn::ConvertTo(GemmTagF32(), hn::WidenMulPairwiseAdd(TagI32(), sum, one));
}
#endif
#endif

// MR * NV sums of a group, NV vectors of B, one of A and, without VNNI, a product. With 32
// registers the float sums stay in registers too, 12 + 12 + 3 + 1 and a scale; with 16 they are in
// `acc`.
#if ENCORE_32_REGISTERS
constexpr size_t kMaxMr[] = {0, 12, 6, 4};
constexpr bool kKeepsSums = true;
#elif HWY_ARCH_X86 && HWY_TARGET >= HWY_SSE4
// 16 registers, and a product overwrites an operand.
constexpr size_t kMaxMr[] = {0, 3, 3};
constexpr bool kKeepsSums = false;
#else  // 16 registers
constexpr size_t kMaxMr[] = {0, 6, 6};
constexpr bool kKeepsSums = false;
#endif
constexpr size_t kMaxNv = std::size(kMaxMr) - 1;
// Groups of a panel that are bytes at a time: 12 KiB of the widest.
constexpr size_t kChunk = 8;

// Some groups of a panel for MR rows: acc += a b.
struct Chunk {
  const uint8_t* a;      // [MR, groups * kInt4Group]
  size_t lda;            // bytes
  const int8_t* b;       // [groups, kWords, nr, kWord]
  const float* scale;    // [groups, nr]
  const int32_t* start;  // [groups, nr]: with kByteOffset, its products with a column's group
  size_t groups;
  float* acc;            // [MR, nr]
  const char* prefetch;  // for each group `lines` lines from here, prefetch_step bytes on
  size_t prefetch_step;
  size_t lines;
};

template <size_t MR, size_t NV>
HWY_NOINLINE void RunChunk(const Chunk& chunk) {
  const GemmTagF32 d;
  constexpr size_t kNr = NV * kLanes;
  RowPointers<MR, uint32_t> a(reinterpret_cast<const uint32_t*>(chunk.a),
                              chunk.lda / sizeof(uint32_t));
  const int8_t* HWY_RESTRICT b = chunk.b;
  const float* HWY_RESTRICT scale = chunk.scale;
  [[maybe_unused]] const int32_t* HWY_RESTRICT start = chunk.start;
  const char* prefetch = chunk.prefetch;
  float* HWY_RESTRICT acc = chunk.acc;
  VecF32 kept[MR][NV];
  if constexpr (kKeepsSums) {
    ENCORE_UNROLL
    for (size_t i = 0; i < MR; ++i) {
      ENCORE_UNROLL
      for (size_t j = 0; j < NV; ++j) {
        kept[i][j] = hn::Load(d, acc + i * kNr + j * kLanes);
      }
    }
  }
  ENCORE_NO_UNROLL
  for (size_t g = chunk.groups; g != 0; --g) {
    for (size_t line = 0; line < chunk.lines; ++line) PrefetchL2(prefetch + 64 * line);
    prefetch += chunk.prefetch_step;
    hn::Vec<TagSum> sums[MR][NV];
    ENCORE_UNROLL
    for (size_t i = 0; i < MR; ++i) {
      ENCORE_UNROLL
      for (size_t j = 0; j < NV; ++j) {
        if constexpr (kByteOffset != 0) {
          sums[i][j] = hn::BitCast(TagSum(), hn::Load(TagI32(), start + j * kLanes));
        } else {
          sums[i][j] = hn::Zero(TagSum());
        }
        ENCORE_PIN(sums[i][j]);
      }
    }
    ENCORE_NO_UNROLL
    for (size_t k = 0; k < kWords; ++k) {
      hn::Vec<TagI8> bk[NV];
      ENCORE_UNROLL
      for (size_t j = 0; j < NV; ++j) bk[j] = hn::Load(TagI8(), b + j * kLanes * kWord);
      b += kNr * kWord;
      ENCORE_UNROLL
      for (size_t i = 0; i < MR; ++i) {
        const auto ai = Spread(a(i));
        ENCORE_UNROLL
        for (size_t j = 0; j < NV; ++j) {
          sums[i][j] = AddProducts(ai, bk[j], sums[i][j]);
          ENCORE_PIN(sums[i][j]);
        }
      }
      a.Next();
    }
    ENCORE_UNROLL
    for (size_t j = 0; j < NV; ++j) {
      const VecF32 s = hn::Load(d, scale + j * kLanes);
      ENCORE_UNROLL
      for (size_t i = 0; i < MR; ++i) {
        float* const at = acc + i * kNr + j * kLanes;
        if constexpr (kKeepsSums) {
          kept[i][j] = hn::MulAdd(FloatOf(sums[i][j]), s, kept[i][j]);
          ENCORE_PIN(kept[i][j]);
        } else {
          hn::Store(hn::MulAdd(FloatOf(sums[i][j]), s, hn::Load(d, at)), d, at);
        }
      }
    }
    scale += kNr;
    if constexpr (kByteOffset != 0) start += kNr;
  }
  if constexpr (kKeepsSums) {
    ENCORE_UNROLL
    for (size_t i = 0; i < MR; ++i) {
      ENCORE_UNROLL
      for (size_t j = 0; j < NV; ++j) hn::Store(kept[i][j], d, acc + i * kNr + j * kLanes);
    }
  }
}

using ChunkFn = void (*)(const Chunk& chunk);
template <size_t NV, size_t... kRow>
constexpr std::array<ChunkFn, kMaxMr[NV] + 1> ChunkFns(std::index_sequence<kRow...>) {
  return {nullptr, &RunChunk<kRow + 1, NV>...};
}
// [MR]
template <size_t NV>
constexpr std::array<ChunkFn, kMaxMr[NV] + 1> kChunkFns =
    ChunkFns<NV>(std::make_index_sequence<kMaxMr[NV]>());

// A group's nibbles as bytes, -8 .. 7, its scales as floats, and Chunk::start.
template <size_t NV>
HWY_INLINE void UnpackGroup(const uint8_t* HWY_RESTRICT packed, int8_t* HWY_RESTRICT bytes,
                            float* HWY_RESTRICT scale,
                            [[maybe_unused]] int32_t* HWY_RESTRICT start) {
  constexpr size_t kNr = NV * kLanes;
  constexpr size_t kVector = kLanes * kWord;
  const auto low = hn::Set(TagU8(), uint8_t{15});
  const auto offset = hn::Set(TagI8(), int8_t{8});
  for (size_t pair = 0; pair < kWords / 2; ++pair) {
    ENCORE_UNROLL
    for (size_t j = 0; j < NV; ++j) {
      const auto two = hn::LoadU(TagU8(), packed + j * kVector);
      const auto upper = hn::BitCast(TagU8(), hn::ShiftRight<4>(hn::BitCast(TagU16(), two)));
      hn::Store(hn::Sub(hn::BitCast(TagI8(), hn::And(two, low)), offset), TagI8(),
                bytes + j * kVector);
      hn::Store(hn::Sub(hn::BitCast(TagI8(), hn::And(upper, low)), offset), TagI8(),
                bytes + kNr * kWord + j * kVector);
    }
    packed += kNr * kWord;
    bytes += 2 * kNr * kWord;
  }
#if ENCORE_TARGET_HAS_SDOT
  bytes -= kNr * kInt4Group;
  ENCORE_UNROLL
  for (size_t j = 0; j < NV; ++j) {
    const float ones = Spread(0x01010101u);
    hn::Vec<TagI32> sum = hn::Zero(TagI32());
    for (size_t k = 0; k < kWords; ++k) {
      sum = AddDotProducts(ones, hn::Load(TagI8(), bytes + (k * kNr + j * kLanes) * kWord), sum);
    }
    hn::Store(hn::ShiftLeft<7>(sum), TagI32(), start + j * kLanes);
  }
#endif
  const hn::Rebind<uint16_t, TagU32> du16;
  ENCORE_UNROLL
  for (size_t j = 0; j < NV; ++j) {
    const auto bits = hn::LoadU(du16, reinterpret_cast<const uint16_t*>(packed) + j * kLanes);
    hn::Store(hn::BitCast(GemmTagF32(), hn::ShiftLeft<16>(hn::PromoteTo(TagU32(), bits))),
              GemmTagF32(), scale + j * kLanes);
  }
}

// At most kMaxRows, whose sums are 12 KiB of stack at most.
constexpr size_t kMaxRows = 64;
template <size_t NV>
void RunSomeRows(const GemmTile& tile, size_t rows) {
  const GemmTagF32 d;
  constexpr size_t kNr = NV * kLanes;
  alignas(64) float acc[kMaxRows * kNr];
  alignas(64) int8_t bytes[kChunk * kInt4Group * kNr];
  alignas(64) float scales[kChunk * kNr];
  alignas(64) int32_t starts[kByteOffset != 0 ? kChunk * kNr : 1];
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < kNr; j += kLanes) {
      hn::Store(hn::LoadU(d, tile.in.init + i * tile.in.ld_init + j), d, acc + i * kNr + j);
      // To be in L1 in the end.
      PrefetchWrite(tile.out.c[j / kLanes] + i * tile.out.ldc);
    }
  }
  const EvenSplit split(rows, (rows + kMaxMr[NV] - 1) / kMaxMr[NV]);
  const size_t share = (tile.in.prefetch_step + split.parts - 1) / split.parts;
  const uint8_t* packed = static_cast<const uint8_t*>(tile.in.b);
  for (size_t g0 = 0; g0 < tile.in.kc; g0 += kChunk) {
    const size_t groups = std::min(kChunk, tile.in.kc - g0);
    for (size_t g = 0; g < groups; ++g) {
      UnpackGroup<NV>(packed, bytes + g * kInt4Group * kNr, scales + g * kNr,
                      kByteOffset != 0 ? starts + g * kNr : nullptr);
      packed += kNr * kInt4GroupBytes;
    }
    Chunk chunk;
    chunk.a = reinterpret_cast<const uint8_t*>(tile.in.a.data) + g0 * kInt4Group;
    chunk.lda = tile.in.a.stride;
    chunk.b = bytes;
    chunk.scale = scales;
    chunk.start = starts;
    chunk.groups = groups;
    chunk.acc = acc;
    chunk.prefetch = tile.in.prefetch + g0 * tile.in.prefetch_step;
    chunk.prefetch_step = tile.in.prefetch_step;
    chunk.lines = (share + 63) / 64;
    for (size_t p = 0; p < split.parts; ++p) {
      const size_t mr = split.begin(p + 1) - split.begin(p);
      kChunkFns<NV>[mr](chunk);
      chunk.a += mr * chunk.lda;
      chunk.acc += mr * kNr;
      chunk.prefetch += share;
    }
  }
  GemmTile row = tile;
  for (size_t i = 0; i < rows; ++i) {
    VecF32 sums[1][NV];
    ENCORE_UNROLL
    for (size_t j = 0; j < NV; ++j) sums[0][j] = hn::Load(d, acc + i * kNr + j * kLanes);
    EndTile<TypeInt4>(row, sums);
    // Of SkipRows what EndTile reads: the rest costs 1 % of a small product.
    if (row.in.a.quant != nullptr) ++row.in.a.quant;
    if (row.out.residual.data != nullptr) row.out.residual = row.out.residual.From(1);
    for (size_t j = 0; j < NV; ++j) row.out.c[j] += row.out.ldc;
  }
}

template <size_t NV>
HWY_NOINLINE void RunRows(const GemmTile& tile, size_t rows) {
  GemmTile some = tile;
  for (size_t begin = 0; begin < rows; begin += kMaxRows) {
    const size_t count = std::min(kMaxRows, rows - begin);
    RunSomeRows<NV>(some, count);
    SkipRows(some, NV, count);
  }
}

template <size_t NV>
void Run(GemmTile& slice, size_t rows) {
  RunBlock(&RunRows<NV>, kInt4GroupBytes, slice, rows);
}

constexpr GemmKernel MakeKernel() {
  GemmKernel kernel{};
  kernel.target = &HWY_STR(HWY_NAMESPACE)[2];  // of "N_AVX2"
  kernel.integer = true;
  kernel.a_offset = kByteOffset;
  kernel.a_bytes = 1;
  kernel.b_bytes = 0;
  kernel.kr = kInt4Group;
  kernel.lanes = kLanes;
  kernel.best_nv = kMaxNv;
  kernel.run[1] = &Run<1>;
  kernel.run[2] = &Run<2>;
#if ENCORE_32_REGISTERS
  kernel.run[3] = &Run<3>;
#endif
  for (size_t nv = 1; nv <= kMaxNv; ++nv) kernel.max_mr[nv] = kMaxMr[nv];
  kernel.only_block_kernel = true;
  kernel.pack_lhs = &PackLhsBytes<uint8_t, kInt4Group>;
  return kernel;
}

constexpr GemmKernel kKernel = MakeKernel();

const GemmKernel* TargetGemmKernelInt4() { return &kKernel; }

}  // namespace
}  // namespace encore::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace encore::inline v0_1::internal {

HWY_EXPORT(TargetGemmKernelInt4);

const GemmKernel& GetGemmKernelInt4() { return *ENCORE_DISPATCH(TargetGemmKernelInt4)(); }

}  // namespace encore::internal
#endif  // HWY_ONCE
