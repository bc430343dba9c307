// SPDX-License-Identifier: Apache-2.0
//
// Elements of A and B of any kernel's type as floats, and what the products of bf16 and int8 are
// to the bit, in plain C++.

#ifndef ENCORE_TESTS_SUPPORT_GEMM_ELEMENTS_H_
#define ENCORE_TESTS_SUPPORT_GEMM_ELEMENTS_H_

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "engine/base/bf16.h"
#include "engine/kernels/gemm_kernel.h"
#include "engine/nn/prepared_encoder.h"
#include "engine/platform/amx.h"
#include "reference/accuracy.h"
#include "tests/support/fma_chain.h"

namespace encore::inline v0_1::internal {

// The two kernels of the active target.
struct NamedKernel {
  const char* name;
  const GemmKernel& kernel;
};
inline std::vector<NamedKernel> GroupedKernels() {
  return {{"bf16", GetGemmKernelBf16()}, {"int8", KernelOf(Precision::kInt8)}};
}

// Those whose many rows, or all, may go by a block kernel.
inline std::vector<NamedKernel> BlockKernels() {
  std::vector<NamedKernel> kernels = {{"bf16", GetGemmKernelBf16()}};
  if (UseAmx()) kernels.push_back({"int8", GetGemmKernelInt8Amx()});
  if (UseAmxBf16()) kernels.push_back({"bf16 by AMX", GetGemmKernelBf16Amx()});
  return kernels;
}

// Each with a pack_lhs of its own.
inline std::vector<NamedKernel> KernelsThatPackLhs() {
  std::vector<NamedKernel> kernels = GroupedKernels();
  if (UseAmxBf16()) kernels.push_back({"bf16 by AMX", GetGemmKernelBf16Amx()});
  return kernels;
}

// Whether a bf16 kernel multiplies by the machine's own dot product, to which subnormal numbers are
// zeros.
inline bool FlushesSubnormals(const GemmKernel& kernel) {
  return !kernel.integer && kernel.a_bytes == 2;
}

inline bool HasFma(const GemmKernel& kernel) { return reference::TargetHasFma(kernel.target); }

// An element of so many bytes: an integer, a float, or a bf16 number.
inline float ElementAt(const void* at, size_t bytes, bool integer, bool is_signed) {
  if (bytes == 4) {
    float value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  if (bytes == 2) {
    uint16_t bits;
    std::memcpy(&bits, at, sizeof bits);
    return integer ? static_cast<float>(static_cast<int16_t>(bits)) : Bf16ToF32(bits);
  }
  uint8_t byte;
  std::memcpy(&byte, at, sizeof byte);
  return is_signed ? static_cast<float>(static_cast<int8_t>(byte)) : static_cast<float>(byte);
}
inline float ElementOfA(const GemmKernel& kernel, const void* a, size_t i) {
  const float stored =
      ElementAt(static_cast<const std::byte*>(a) + kernel.PlaceInA(i) * kernel.a_bytes,
                kernel.a_bytes, kernel.integer, kernel.a_offset != 0);
  // Not 0 to -0.
  return kernel.a_offset == 0 ? stored : stored + static_cast<float>(kernel.a_offset);
}
inline float ElementOfB(const GemmKernel& kernel, const void* b, size_t i) {
  return ElementAt(static_cast<const std::byte*>(b) + i * kernel.b_bytes, kernel.b_bytes,
                   kernel.integer, true);
}

// Of a number that the type has.
inline void PutElement(void* at, size_t bytes, bool integer, float value) {
  if (bytes == 4) {
    std::memcpy(at, &value, sizeof value);
  } else if (bytes == 2) {
    const uint16_t bits = integer ? static_cast<uint16_t>(static_cast<int16_t>(value))
                                  : static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
    std::memcpy(at, &bits, sizeof bits);
  } else {
    const auto byte = static_cast<uint8_t>(static_cast<int32_t>(value));
    std::memcpy(at, &byte, sizeof byte);
  }
}
inline void PutElementOfA(const GemmKernel& kernel, void* a, size_t i, float value) {
  PutElement(static_cast<std::byte*>(a) + kernel.PlaceInA(i) * kernel.a_bytes, kernel.a_bytes,
             kernel.integer, value - static_cast<float>(kernel.a_offset));
}
inline void PutElementOfB(const GemmKernel& kernel, void* b, size_t i, float value) {
  PutElement(static_cast<std::byte*>(b) + i * kernel.b_bytes, kernel.b_bytes, kernel.integer,
             value);
}

// The place of element k of column n in a panel of ld columns.
inline size_t PanelIndex(const GemmKernel& kernel, size_t k, size_t n, size_t ld) {
  return (k / kernel.kr * ld + n) * kernel.kr + k % kernel.kr;
}

// bf16: one group, the odd element's product first. Not inlined: where each step is rounded twice,
// GCC 12 makes vectors of a loop of them that count the even products twice.
[[gnu::noinline]] inline float MulAddPair(bool fma, float a_even, float a_odd, float b_even,
                                          float b_odd, float sum) {
  return MulAdd(fma, a_even, b_even, MulAdd(fma, a_odd, b_odd, sum));
}

// bf16 by AMX.
inline float AmxSum(const float* a, const float* b, size_t count, float sum) {
  for (size_t begin = 0; begin < count; begin += 32) {
    float even = 0.0f;
    float odd = 0.0f;
    for (size_t e = begin; e < std::min(begin + 32, count); e += 2) {
      even = std::fma(a[e], b[e], even);
      odd = std::fma(a[e + 1], b[e + 1], odd);
    }
    sum += even + odd;
  }
  return sum;
}

// int8: from an exact sum to a float, step by step as the kernel says it.
inline float Dequantized(bool fma, int64_t sum, const RowQuant& row, float col_scale, float col_sum,
                         float bias) {
  const float centred = MulAdd(fma, -row.zero_point, col_sum, static_cast<float>(sum));
  const float scaled = centred * row.scale;
  return MulAdd(fma, scaled, col_scale, bias);
}

}  // namespace encore::internal

#endif  // ENCORE_TESTS_SUPPORT_GEMM_ELEMENTS_H_
