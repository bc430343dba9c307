// SPDX-License-Identifier: Apache-2.0
//
// From pixels to the encoder's input: a row for each patch, by a linear layer of its pixels, behind
// the rows of the class and others; positions; and a norm where the family has one.

#ifndef ENCORE_ENGINE_MODELS_PATCH_EMBEDDINGS_H_
#define ENCORE_ENGINE_MODELS_PATCH_EMBEDDINGS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "encore/executor.h"
#include "encore/ops.h"
#include "encore/status.h"
#include "encore/tensor.h"
#include "engine/base/float_buffer.h"
#include "engine/models/family.h"
#include "engine/models/model_tensors.h"
#include "engine/models/patch_positions.h"

namespace encore::inline v0_1::internal {

// Pictures of one size as a processor makes them: red, green and blue bytes, and what each byte is;
// or floats, which need no table.
struct PictureSize {
  size_t height = 0, width = 0;
  bool floats = false;
  size_t bytes() const { return height * width * 3 * (floats ? sizeof(float) : 1); }
};
using ByteValues = std::array<std::array<float, 256>, 3>;

// Immutable, all of it in own memory.
class PatchEmbeddings {
 public:
  // For pictures of this size: where it is not PatchSpec's, positions are interpolated.
  // kInvalidArgument where no patch fits in it, kOutOfMemory; the errors of ModelTensors.
  static Result<PatchEmbeddings> Create(const ModelSpec& spec, const PictureSize& size,
                                        ModelTensors* tensors);

  const PictureSize& size() const { return size_; }
  const PatchGrid& grid() const { return grid_; }
  size_t rows_before() const { return before_.shape()[0]; }  // the first patch's row
  size_t rows() const { return rows_before() + grid_.rows * grid_.columns; }
  size_t packed_bytes() const;

  // x [pictures rows(), d_model], contiguous, from pixels [pictures, height, width, 3], of which
  // bytes are looked up in `values`. Pictures'
  // patches are taken in blocks of some rows, for which scratch is.
  Status Apply(std::span<const uint8_t> pixels, const ByteValues& values, MutableView x,
               FloatBuffer* scratch, const Executor& executor) const;

 private:
  PatchEmbeddings() = default;
  void ReadPatch(const uint8_t* picture, size_t patch, const ByteValues& values, float* out) const;

  PictureSize size_;
  PatchGrid grid_;
  size_t patch_size_ = 0;
  std::optional<PackedLinear> linear_;  // of [3, patch_size, patch_size]
  Tensor before_;                       // [rows_before, d_model], with their positions
  Tensor positions_;                    // [patches, d_model]; zeros without a table
  std::optional<LoadedNorm> norm_;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_MODELS_PATCH_EMBEDDINGS_H_
