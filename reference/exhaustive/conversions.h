// SPDX-License-Identifier: Apache-2.0
//
// Every float to bf16 and f16, and every number of theirs to float: plain C++ (engine/base/bf16.h)
// against double precision, and what each SIMD target rounds to bf16, rows of A and packed weights,
// against plain C++.

#ifndef ENCORE_REFERENCE_EXHAUSTIVE_CONVERSIONS_H_
#define ENCORE_REFERENCE_EXHAUSTIVE_CONVERSIONS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "reference/exhaustive/subject.h"
#include "reference/exhaustive/walk.h"

namespace encore::tool {

inline constexpr const char* kPlainTarget = "plain C++";

// One way to convert, and what must come out. Results are 32 bits each: a bf16 number's in the
// upper half, as a float has it; an f16 number's in the lower. Numbers of 16 bits come in the upper
// half of x.
struct Conversion {
  using Convert = void (*)(const internal::GemmKernel* kernel, const float* x, uint32_t* out,
                           size_t n);
  std::string what;
  std::string target;
  const internal::GemmKernel* kernel = nullptr;  // of plain C++ none
  Convert convert = nullptr;
  Convert wanted = nullptr;
  bool of_16_bits = false;

  // Where every step-th float is wanted: all numbers of 16 bits, once each.
  uint64_t Step(uint64_t step) const { return of_16_bits ? 65537 : step; }
  // How many those are.
  uint64_t Floats(uint64_t step) const { return (kAllFloats - 1) / Step(step) + 1; }
};

// Floats that are tried at a time; `n` of Convert, even.
inline constexpr size_t kConversionChunk = 4096;

// Of plain C++ and of every target that this machine can run, best first, which is active then.
std::vector<Conversion> AllConversions();

// Tries every Step(step)-th float (an odd step) on all usable cores: how many come out wrong.
Count WrongOf(const Conversion& conversion, uint64_t step, const OnProgress& progress = {});

}  // namespace encore::tool

#endif  // ENCORE_REFERENCE_EXHAUSTIVE_CONVERSIONS_H_
