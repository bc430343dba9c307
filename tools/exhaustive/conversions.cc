// SPDX-License-Identifier: Apache-2.0
//
// The conversions, their definitions, and the walk over floats.

#include "tools/exhaustive/conversions.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <mutex>
#include <thread>

#include "encore/cpu.h"
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

void Bf16ByDouble(const GemmKernel* /*kernel*/, const float* x, uint32_t* out, size_t n) {
  for (size_t i = 0; i < n; ++i) out[i] = NarrowByDouble<7, -126>(x[i]) << 16;
}
void F16ByDouble(const GemmKernel* /*kernel*/, const float* x, uint32_t* out, size_t n) {
  for (size_t i = 0; i < n; ++i) out[i] = NarrowByDouble<10, -14>(x[i]);
}
void PlainBf16(const GemmKernel* /*kernel*/, const float* x, uint32_t* out, size_t n) {
  for (size_t i = 0; i < n; ++i) out[i] = static_cast<uint32_t>(internal::F32ToBf16(x[i])) << 16;
}
void PlainF16(const GemmKernel* /*kernel*/, const float* x, uint32_t* out, size_t n) {
  for (size_t i = 0; i < n; ++i) out[i] = internal::F32ToF16(x[i]);
}

// A target whose rows of A are bf16 numbers has an instruction that rounds, and to which subnormal
// floats are zeros of their sign. Others round by integer steps.
void Bf16OfRowsWanted(const GemmKernel* kernel, const float* x, uint32_t* out, size_t n) {
  PlainBf16(kernel, x, out, n);
  if (kernel->a_bytes == sizeof(float)) return;
  for (size_t i = 0; i < n; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(x[i]);
    if ((bits & 0x7F800000u) == 0) out[i] = bits & 0x80000000u;
  }
}
void Bf16OfRows(const GemmKernel* kernel, const float* x, uint32_t* out, size_t n) {
  if (kernel->a_bytes == sizeof(float)) {
    kernel->make_rows({.in = x, .ld_in = n, .rows = 1, .k = n, .out = out, .ld_out = n});
    return;
  }
  std::array<uint16_t, kConversionChunk> halves;
  kernel->make_rows({.in = x, .ld_in = n, .rows = 1, .k = n, .out = halves.data(), .ld_out = n});
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

// Threads that share a walk. Should one of them not start, the others take no more chunks.
struct WalkingThreads {
  ~WalkingThreads() {
    next.store(end, std::memory_order_relaxed);
    for (std::thread& thread : threads) thread.join();
  }
  std::atomic<uint64_t>& next;
  uint64_t end;
  std::vector<std::thread> threads{};
};

// One chunk: wrong ones are added to *count.
void TryChunk(const Conversion& conversion, uint64_t first, uint64_t step, Count* count) {
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
    if (got[i] == want[i]) continue;
    ++count->times;
    count->first_bits = std::min(count->first_bits, std::bit_cast<uint32_t>(x[i]));
  }
}

}  // namespace

std::vector<Conversion> AllConversions() {
  std::vector<Conversion> all = {
      {.what = "  f32 to bf16", .target = "plain", .convert = PlainBf16, .wanted = Bf16ByDouble},
      {.what = "  f32 to f16", .target = "plain", .convert = PlainF16, .wanted = F16ByDouble}};
  for (const std::string& name : SupportedTargets()) {
    if (!SetTarget(name).ok() || ActiveTarget() != name) continue;
    const GemmKernel* kernel = &internal::GetGemmKernelBf16();
    all.push_back({"  bf16 rows", name, kernel, Bf16OfRows, Bf16OfRowsWanted});
    all.push_back({"  bf16 weights", name, kernel, Bf16OfWeights, PlainBf16});
    all.push_back({"  bf16 values", name, kernel, Bf16OfValues, PlainBf16});
  }
  (void)SetTarget("");
  return all;
}

Count WrongOf(const Conversion& conversion, uint64_t step) {
  const uint64_t chunks = std::max<uint64_t>(1, kAllFloats / step / kConversionChunk);
  constexpr uint64_t kChunksAtOnce = 64;
  std::atomic<uint64_t> next{0};
  Count total;
  std::mutex mutex;
  const auto work = [&] {
    Count count;
    for (;;) {
      const uint64_t begin = next.fetch_add(kChunksAtOnce, std::memory_order_relaxed);
      if (begin >= chunks) break;
      for (uint64_t c = begin; c < std::min(chunks, begin + kChunksAtOnce); ++c) {
        TryChunk(conversion, c * kConversionChunk, step, &count);
      }
    }
    const std::lock_guard lock(mutex);
    total.times += count.times;
    total.first_bits = std::min(total.first_bits, count.first_bits);
  };
  {
    WalkingThreads walking{next, chunks};
    for (int i = 1; i < UsableCores(); ++i) walking.threads.emplace_back(work);
    work();
  }
  return total;
}

std::vector<Row> TryConversions(const std::vector<Conversion>& conversions, uint64_t step,
                                const std::function<void(double)>& progress) {
  std::vector<Row> rows;
  for (const Conversion& conversion : conversions) {
    const Count wrong = WrongOf(conversion, step);
    Row row{.function = kConversionsName,
            .family = Family::kConversion,
            .kind = RowKind::kBits,
            .what = conversion.what,
            .target = conversion.target,
            .step = step};
    row.observed = static_cast<double>(wrong.times);
    row.promise = 0;
    if (wrong.times != 0) {
      row.at_float = true;
      row.x = std::bit_cast<float>(wrong.first_bits);
    }
    rows.push_back(row);
    if (progress) {
      progress(static_cast<double>(rows.size()) / static_cast<double>(conversions.size()));
    }
  }
  return rows;
}

}  // namespace encore::tool
