// SPDX-License-Identifier: Apache-2.0
//
// The conversions, their definitions, and the walk over floats.

#include "reference/exhaustive/conversions.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "engine/base/bf16.h"

namespace encore::tool {
namespace {

using internal::GemmKernel;

// To nearest, ties to even, of a format with so many bits behind the first and this smallest
// exponent of a normal number, by double precision, which holds all products here exactly. NaN is
// quiet and keeps what fits of its payload.
template <int kMantissaBits, int kSmallestExponent>
uint32_t NarrowByDouble(float x) {
  constexpr uint32_t kInfinity = static_cast<uint32_t>(2 - 2 * kSmallestExponent + 1)
                                 << kMantissaBits;
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t sign = bits >> 31 << 15;
  if (x != x) {
    const uint32_t quiet = uint32_t{1} << (kMantissaBits - 1);
    return sign | kInfinity | quiet | (bits & 0x7FFFFFu) >> (23 - kMantissaBits);
  }
  const double magnitude =
      std::bit_cast<double>(std::bit_cast<uint64_t>(static_cast<double>(x)) & 0x7FFFFFFFFFFFFFFFu);
  const int exponent = std::max(static_cast<int>(std::bit_cast<uint64_t>(magnitude) >> 52) - 1023,
                                kSmallestExponent);
  // In units of the last place: below 2^(bits + 1), and adding 1.5 * 2^52 rounds it.
  const uint64_t unit = static_cast<uint64_t>(1023 + kMantissaBits - exponent) << 52;
  const double units = magnitude * std::bit_cast<double>(unit);
  constexpr double kMagic = 0x1.8p52;
  if (magnitude > 0x1p128) return sign | kInfinity;
  const double rounded = (units + kMagic) - kMagic;
  const uint32_t above = static_cast<uint32_t>(exponent - kSmallestExponent) << kMantissaBits;
  return sign | std::min(above + static_cast<uint32_t>(rounded), kInfinity);
}

// What 16 bits of such a format stand for, as a float's bits. NaN keeps its payload.
template <int kMantissaBits, int kSmallestExponent>
uint32_t WidenByDouble(float x) {
  constexpr int kTop = 2 - 2 * kSmallestExponent + 1;  // the exponent of inf and NaN
  const uint32_t bits = std::bit_cast<uint32_t>(x) >> 16;
  const uint32_t sign = bits >> 15 << 31;
  const uint32_t mantissa = bits & ((1u << kMantissaBits) - 1);
  const int exponent = static_cast<int>(bits >> kMantissaBits) & kTop;
  if (exponent == kTop) return sign | 0x7F800000u | mantissa << (23 - kMantissaBits);
  const uint32_t significand = mantissa | (exponent == 0 ? 0u : 1u << kMantissaBits);
  const int unit = kSmallestExponent - kMantissaBits + std::max(exponent - 1, 0);
  return sign | std::bit_cast<uint32_t>(static_cast<float>(std::ldexp(significand, unit)));
}

// One float, by definition and by encore.
uint32_t Bf16ByDouble(float x) { return NarrowByDouble<7, -126>(x) << 16; }
uint32_t F16ByDouble(float x) { return NarrowByDouble<10, -14>(x); }
uint32_t PlainBf16(float x) { return static_cast<uint32_t>(internal::F32ToBf16(x)) << 16; }
uint32_t PlainF16(float x) { return internal::F32ToF16(x); }
template <float (*kWiden)(uint16_t)>
uint32_t PlainWide(float x) {
  return std::bit_cast<uint32_t>(kWiden(static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16)));
}

template <uint32_t (*kConvert)(float)>
void Each(const GemmKernel* /*kernel*/, const float* x, uint32_t* out, size_t n) {
  for (size_t i = 0; i < n; ++i) out[i] = kConvert(x[i]);
}

// A target whose rows of A are bf16 numbers has an instruction that rounds, and to which subnormal
// floats are zeros of their sign. Others round by integer steps.
void Bf16OfRowsWanted(const GemmKernel* kernel, const float* x, uint32_t* out, size_t n) {
  Each<PlainBf16>(kernel, x, out, n);
  if (kernel->a_bytes == sizeof(float)) return;
  for (size_t i = 0; i < n; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(x[i]);
    if ((bits & 0x7F800000u) == 0) out[i] = bits & 0x80000000u;
  }
}
void Bf16OfRows(const GemmKernel* kernel, const float* x, uint32_t* out, size_t n) {
  const auto make = [&](void* to) {
    const internal::PackedLhs rows{static_cast<std::byte*>(to), n * kernel->a_bytes, nullptr};
    kernel->pack_lhs({.in = {x, n}, .rows = 1, .k = n, .out = rows});
  };
  if (kernel->a_bytes == sizeof(float)) {
    std::array<uint32_t, kConversionChunk> floats;
    make(floats.data());
    for (size_t i = 0; i < n; ++i) out[i] = floats[kernel->PlaceInA(i)];
    return;
  }
  std::array<uint16_t, kConversionChunk> halves;
  make(halves.data());
  for (size_t i = 0; i < n; ++i) out[i] = static_cast<uint32_t>(halves[i]) << 16;
}

// Weights along k, as files have them: words of neighbours in one column.
void Bf16OfWeights(const GemmKernel* kernel, const float* x, uint32_t* out, size_t n) {
  std::array<uint32_t, kConversionChunk / 2> words;
  kernel->transpose(x, n, 1, n, words.data(), 1);
  for (size_t i = 0; i < n; ++i) out[i] = words[i / 2] >> (i % 2 * 16) << 16;
}
// Rows of values: words of the numbers one row apart.
void Bf16OfValues(const GemmKernel* kernel, const float* x, uint32_t* out, size_t n) {
  const size_t half = n / 2;
  std::array<uint32_t, kConversionChunk / 2> words;
  kernel->pack(x, static_cast<ptrdiff_t>(half), 1, 2, half, half, words.data());
  for (size_t i = 0; i < n; ++i) out[i] = words[i % half] >> (i < half ? 0 : 16) << 16;
}

// One chunk: wrong ones are added to `count`.
void TryChunk(const Conversion& conversion, uint64_t first, uint64_t step, Count& count) {
  alignas(64) std::array<float, kConversionChunk> x;
  alignas(64) std::array<uint32_t, kConversionChunk> got;
  alignas(64) std::array<uint32_t, kConversionChunk> want;
  for (size_t i = 0; i < kConversionChunk; ++i) {
    x[i] = std::bit_cast<float>(static_cast<uint32_t>((first + i) * step));
  }
  got.fill(~0u);
  conversion.convert(conversion.kernel, x.data(), got.data(), kConversionChunk);
  conversion.wanted(conversion.kernel, x.data(), want.data(), kConversionChunk);
  if (got == want) return;
  for (size_t i = 0; i < kConversionChunk; ++i) {
    if (got[i] != want[i]) count.Add({1, std::bit_cast<uint32_t>(x[i])});
  }
}

}  // namespace

std::vector<Conversion> AllConversions() {
  const auto plain = [](const char* what, Conversion::Convert convert, Conversion::Convert wanted,
                        bool of_16_bits) {
    return Conversion{what, kPlainTarget, nullptr, convert, wanted, of_16_bits};
  };
  std::vector<Conversion> all = {
      plain("f32 to bf16", Each<PlainBf16>, Each<Bf16ByDouble>, false),
      plain("f32 to f16", Each<PlainF16>, Each<F16ByDouble>, false),
      plain("bf16 to f32", Each<PlainWide<internal::Bf16ToF32>>, Each<WidenByDouble<7, -126>>,
            true),
      plain("f16 to f32", Each<PlainWide<internal::F16ToF32>>, Each<WidenByDouble<10, -14>>, true)};
  for (const TargetKernels& target : AllTargetKernels()) {
    const auto* kernel = target.gemm_bf16;
    all.push_back({"bf16 rows", target.name, kernel, Bf16OfRows, Bf16OfRowsWanted});
    all.push_back({"bf16 weights", target.name, kernel, Bf16OfWeights, Each<PlainBf16>});
    all.push_back({"bf16 values", target.name, kernel, Bf16OfValues, Each<PlainBf16>});
  }
  return all;
}

Count WrongOf(const Conversion& conversion, uint64_t step, const OnProgress& progress) {
  const uint64_t floats = conversion.Floats(step);
  step = conversion.Step(step);
  const auto try_chunk = [&](Count& count, uint64_t chunk) {
    TryChunk(conversion, chunk * kConversionChunk, step, count);
  };
  const uint64_t chunks = (floats + kConversionChunk - 1) / kConversionChunk;
  Count total;
  for (const Count& count : WalkChunks(
           chunks, [] { return Count{}; }, try_chunk, progress)) {
    total.Add(count);
  }
  return total;
}

}  // namespace encore::tool
