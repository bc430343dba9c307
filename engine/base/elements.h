// SPDX-License-Identifier: Apache-2.0
//
// The stored types whose elements become floats: weights, embeddings and heads.

#ifndef ENCORE_ENGINE_BASE_ELEMENTS_H_
#define ENCORE_ENGINE_BASE_ELEMENTS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "encore/tensor.h"
#include "engine/base/bf16.h"
#include "engine/base/check.h"

namespace encore::inline v0_1::internal {

// Elements that have no C++ type, as their bits.
struct Bf16 {
  uint16_t bits;
  constexpr explicit operator float() const { return Bf16ToF32(bits); }
};
struct F16 {
  uint16_t bits;
  constexpr explicit operator float() const { return F16ToF32(bits); }
};

constexpr bool IsFloat(DType type) {
  return type == DType::kF32 || type == DType::kF64 || type == DType::kF16 || type == DType::kBF16;
}
inline constexpr std::string_view kFloatTypes = "F32, F64, F16 or BF16";
inline constexpr std::string_view kFloatTypesOrInt8 = "F32, F64, F16, BF16 or I8";

// visit(T()), where T is the type of an element: a float's, or int8_t.
template <class Visit>
void VisitElements(DType type, Visit visit) {
  switch (type) {
    case DType::kF64:
      return visit(double());
    case DType::kF16:
      return visit(F16());
    case DType::kBF16:
      return visit(Bf16());
    case DType::kI8:
      return visit(int8_t());
    default:
      ENCORE_CHECK(type == DType::kF32);
      return visit(float());
  }
}

// Element i of type T as a float (f64 to nearest), at any alignment.
template <typename T>
float ElementAt(const std::byte* elements, ptrdiff_t i) {
  T element;
  std::memcpy(&element, elements + i * static_cast<ptrdiff_t>(sizeof(T)), sizeof(T));
  return static_cast<float>(element);
}

// out[i] = element i * stride as a float, under the caller's rounding mode.
inline void ElementsToFloats(DType type, const void* from, ptrdiff_t stride, size_t count,
                             float* out) {
  const auto* const elements = static_cast<const std::byte*>(from);
  const auto n = static_cast<ptrdiff_t>(count);
  VisitElements(type, [=]<typename T>(T) {
    if (stride == 1) {  // a loop of its own, which the compiler vectorizes
      for (ptrdiff_t i = 0; i < n; ++i) out[i] = ElementAt<T>(elements, i);
    } else {
      for (ptrdiff_t i = 0; i < n; ++i) out[i] = ElementAt<T>(elements, i * stride);
    }
  });
}

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_BASE_ELEMENTS_H_
