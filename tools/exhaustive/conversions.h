// SPDX-License-Identifier: Apache-2.0
//
// Every float to bf16 and f16: plain C++ (engine/base/bf16.h) against double precision, and what
// each SIMD target rounds to bf16, rows of A and packed weights, against plain C++. Not here: the
// other way, 2^16 numbers that bf16_test.cc tries; functions (search.h).

#ifndef ENCORE_TOOLS_EXHAUSTIVE_CONVERSIONS_H_
#define ENCORE_TOOLS_EXHAUSTIVE_CONVERSIONS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/kernels/gemm_kernel.h"
#include "tools/exhaustive/rows.h"
#include "tools/exhaustive/search.h"

namespace encore::tool {

inline constexpr const char* kConversionsName = "conversions";

// One way to convert, and what must come out. Results are 32 bits each: a bf16 number's in the
// upper half, as a float has it; an f16 number's in the lower.
struct Conversion {
  using Convert = void (*)(const internal::GemmKernel* kernel, const float* x, uint32_t* out,
                           size_t n);
  std::string what;
  std::string target;
  const internal::GemmKernel* kernel = nullptr;  // of plain C++ none
  Convert convert = nullptr;
  Convert wanted = nullptr;
};

// Floats that are tried at a time; `n` of Convert, even.
inline constexpr size_t kConversionChunk = 4096;

// Of plain C++ and of every target that this machine can run, best first, which is active then.
std::vector<Conversion> AllConversions();

// Tries every step-th float (an odd step) on all usable cores: how many come out wrong.
Count WrongOf(const Conversion& conversion, uint64_t step);

// A line for each of these.
std::vector<Row> TryConversions(const std::vector<Conversion>& conversions, uint64_t step,
                                const std::function<void(double)>& progress = {});

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_EXHAUSTIVE_CONVERSIONS_H_
