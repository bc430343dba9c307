// SPDX-License-Identifier: Apache-2.0
//
// The element types that an encoder can multiply in.

#ifndef ENCORE_PRECISION_H_
#define ENCORE_PRECISION_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "encore/export.h"
#include "encore/status.h"

namespace encore::inline v0_1 {

// What the matrix products of an encoder multiply. Inputs, outputs, residuals, norms, activations
// and the sums of softmax are f32 in each.
//   kF32   f32, one chain of FMAs an output.
//   kBF16  weights, and the rows that they are multiplied with, rounded to bf16 (to nearest, ties
//          to even; NaN stays NaN); attention's queries, keys, weights and values likewise. Sums in
//          f32, over pairs of elements, the odd one's product first. Half the memory. By AMX
//          (EncoderOptions::amx_bf16), for 32 elements at a time: a chain of FMAs from 0 over the
//          even ones, one over the odd ones, and the sum of both is added; subnormals are 0.
//   kInt8  weights as signed 8-bit integers with a scale for each output channel; rows as unsigned
//          8-bit integers with a scale and a zero point for each token, found in the pass. Integer
//          sums, exact. Attention as in kBF16. A quarter of the memory where the target multiplies
//          bytes (AVX3_ZEN4, AVX3_DL), half elsewhere.
//   kInt4  rows and attention as in kInt8, weights as signed 4-bit integers, -8 .. 7, with a bf16
//          scale for each 32 of them along the inputs of an output channel. Scales are found when
//          an encoder is made, from the weights alone. The sum of a group's products is an exact
//          integer; groups are joined in their order, each by one FMA. 4.5 bits a weight, on every
//          target.
enum class Precision : uint8_t { kF32, kBF16, kInt8, kInt4 };

// "f32", "bf16", "int8", "int4".
ENCORE_API std::string_view PrecisionName(Precision precision);
// kInvalidArgument names the four.
ENCORE_API Result<Precision> PrecisionFromName(std::string_view name);

// Whether products are of integers: kInt8 and kInt4.
constexpr bool IsInteger(Precision precision) {
  return precision == Precision::kInt8 || precision == Precision::kInt4;
}

// The matrices of a layer.
enum class LayerMatrix : uint8_t { kQkv, kOutProj, kLinear1, kLinear2 };

// One matrix of an encoder.
struct MatrixOfLayer {
  size_t layer = 0;
  LayerMatrix matrix = LayerMatrix::kQkv;
};

}  // namespace encore

#endif  // ENCORE_PRECISION_H_
