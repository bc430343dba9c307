// SPDX-License-Identifier: Apache-2.0
//
// From an encoder's options to the kernels of its matrices, and from its matrices to packed ones.

#ifndef ENCORE_ENGINE_NN_ENCODER_PACKING_H_
#define ENCORE_ENGINE_NN_ENCODER_PACKING_H_

#include <cstddef>
#include <functional>
#include <vector>

#include "encore/encoder.h"
#include "engine/base/aligned_buffer.h"
#include "engine/kernels/gemm_kernel.h"
#include "engine/nn/packed_layer.h"
#include "engine/platform/thread_team.h"

namespace encore::inline v0_1::internal {

// Those of the active SIMD target.
const GemmKernel& KernelOf(Precision precision);
LayerKernels KernelsOfLayer(const EncoderOptions& options, size_t layer);
const GemmKernel& KernelOfAttention(const EncoderOptions& options);

// The most bytes that a row takes which is made for one of these matrices; 0 if none is.
size_t LongestInputRow(const std::vector<MatrixToPack>& matrices);

// Fills the input_scale() of a smoothed matrix with what was given, or with its own.
void FindInputScale(Team& team, const MatrixToPack& m);

// Of all matrices' panels. kOutOfMemory if they exceed what can be addressed.
Result<size_t> PanelBytes(const std::vector<MatrixToPack>& matrices);

// Packs all matrices one after another into one piece of memory, in the order in which a pass reads
// them. kOutOfMemory; kInvalidArgument names a matrix with numbers that int8 cannot have.
Status PackMatrices(const std::vector<MatrixToPack>& matrices, const Executor& executor,
                    const std::function<void()>& layer_packed, AlignedBuffer<std::byte>* memory);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_NN_ENCODER_PACKING_H_
