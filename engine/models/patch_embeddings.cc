// SPDX-License-Identifier: Apache-2.0
//
// From pixels to the encoder's input.

#include "engine/models/patch_embeddings.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "engine/base/first_failure.h"
#include "engine/base/int_math.h"
#include "engine/base/status_macros.h"
#include "engine/models/table_memory.h"
#include "engine/platform/fp_env.h"

namespace encore::inline v0_1::internal {
namespace {

// Of a block's patches: its pixels and their products stay in a core's caches, and the matrix is
// read once for many rows.
constexpr size_t kBlockBytes = size_t{1} << 20;
size_t BlockRows(size_t patch_floats) {
  return std::clamp<size_t>(kBlockBytes / (patch_floats * sizeof(float)), 16, 512);
}
constexpr size_t kPatchesPerTask = 8;
// Of a picture. Published models have some thousand at most.
constexpr size_t kMostPatches = size_t{1} << 16;

// Rows of the file: a tensor [rows, width], with more extents of 1 before these or, for one row,
// without the first.
Result<Tensor> ReadRows(std::string_view name, size_t rows, size_t width, ModelTensors* tensors) {
  const std::string full = tensors->Base(name);
  const SafetensorsEntry* const entry = tensors->Find(full);
  const size_t rank = entry != nullptr ? entry->shape.rank() : 2;
  const Shape wanted = rank == 3                ? Shape(1, rows, width)
                       : rank == 1 && rows == 1 ? Shape(width)
                                                : Shape(rows, width);
  return tensors->Read(full, wanted);
}

const float* FloatsOf(const Tensor& tensor) { return static_cast<const float*>(tensor.data()); }

}  // namespace

Result<PatchEmbeddings> PatchEmbeddings::Create(const ModelSpec& spec, const PictureSize& size,
                                                ModelTensors* tensors) {
  const PatchSpec& p = spec.patches;
  const EmbeddingSpec& e = spec.embeddings;
  const size_t width = e.width;
  PatchEmbeddings made;
  made.size_ = size;
  made.patch_size_ = p.patch_size;
  made.grid_ = {size.height / p.patch_size, size.width / p.patch_size};
  const size_t patches = made.grid_.rows * made.grid_.columns;
  if (patches == 0 || patches > kMostPatches) {
    return InvalidArgument("the processor makes pictures of " + std::to_string(size.height) +
                           " x " + std::to_string(size.width) + " pixels; wanted 1 .. " +
                           std::to_string(kMostPatches) + " patches of " +
                           std::to_string(p.patch_size) + " x " + std::to_string(p.patch_size));
  }
  const std::string word = tensors->Base(e.word);
  ENCORE_ASSIGN_OR_RETURN(
      const Tensor weight,
      tensors->Read(word + ".weight", Shape(width, 3, p.patch_size, p.patch_size)));
  Tensor bias;
  if (p.bias) {
    ENCORE_ASSIGN_OR_RETURN(bias, tensors->Read(word + ".bias", {width}));
  }
  ENCORE_ASSIGN_OR_RETURN(
      made.linear_, PackedLinear::Create(
                        ConstView(FloatsOf(weight), Shape(width, 3 * p.patch_size * p.patch_size)),
                        std::as_const(bias).View<float>()));

  const size_t with_position = p.rows_with_position();
  const FpEnvScope default_modes;
  ENCORE_ASSIGN_OR_RETURN(made.positions_, Tensor::Create(DType::kF32, {patches, width}));
  const bool has_table = !e.position.empty();
  Tensor table;
  if (has_table) {
    ENCORE_ASSIGN_OR_RETURN(table, ReadRows(e.position, e.max_positions, width, tensors));
    const float* const of_patches = FloatsOf(table) + with_position * width;
    auto* const positions = static_cast<float*>(made.positions_.data());
    if (made.grid_.rows == p.side() && made.grid_.columns == p.side()) {
      std::copy_n(of_patches, patches * width, positions);
    } else {
      InterpolatePositions(of_patches, {p.side(), p.side()}, width, p.antialias, made.grid_,
                           positions);
    }
  }
  ENCORE_ASSIGN_OR_RETURN(made.before_,
                          Tensor::Create(DType::kF32, {with_position + p.num_registers, width}));
  auto* out = static_cast<float*>(made.before_.data());
  size_t place = 0;
  for (const std::string_view name : {p.class_token, p.second_token}) {
    if (name.empty()) continue;
    ENCORE_ASSIGN_OR_RETURN(const Tensor row, ReadRows(name, 1, width, tensors));
    std::copy_n(FloatsOf(row), width, out);
    for (size_t c = 0; has_table && c < width; ++c) out[c] += FloatsOf(table)[place * width + c];
    ++place;
    out += width;
  }
  // A file that has some where config.json says none is refused.
  if (!p.registers.empty() &&
      (p.num_registers > 0 || tensors->Find(tensors->Base(p.registers)) != nullptr)) {
    ENCORE_ASSIGN_OR_RETURN(const Tensor rows,
                            ReadRows(p.registers, p.num_registers, width, tensors));
    std::copy_n(FloatsOf(rows), p.num_registers * width, out);
  }
  if (!e.norm.empty()) {
    ENCORE_ASSIGN_OR_RETURN(
        made.norm_, tensors->ReadNorm(tensors->Base(e.norm), width, e.norm_epsilon, e.norm_bias));
  }
  return made;
}

size_t PatchEmbeddings::packed_bytes() const {
  return PackedBytes(linear_) + before_.size_bytes() + positions_.size_bytes();
}

// In the convolution's order: a channel after the other, row by row.
void PatchEmbeddings::ReadPatch(const uint8_t* picture, size_t patch, const ByteValues& values,
                                float* out) const {
  const size_t p = patch_size_;
  const size_t top = patch / grid_.columns * p;
  const size_t left = patch % grid_.columns * p;
  for (size_t y = 0; y < p; ++y) {
    const size_t first = ((top + y) * size_.width + left) * 3;
    for (size_t channel = 0; channel < 3; ++channel) {
      const std::array<float, 256>& value = values[channel];
      float* const row = out + (channel * p + y) * p;
      for (size_t x = 0; x < p; ++x) {
        const size_t i = first + 3 * x + channel;
        if (size_.floats) {
          std::memcpy(row + x, picture + i * sizeof(float), sizeof(float));
        } else {
          row[x] = value[picture[i]];
        }
      }
    }
  }
}

Status PatchEmbeddings::Apply(std::span<const uint8_t> pixels, const ByteValues& values,
                              MutableView x, FloatBuffer* scratch, const Executor& executor) const {
  const size_t width = x.dim(1);
  const size_t inputs = linear_->in_features();
  const size_t patches = grid_.rows * grid_.columns;
  const size_t pictures = pixels.size() / size_.bytes();
  const size_t block = std::min(BlockRows(inputs), pictures * patches);
  ENCORE_ASSIGN_OR_RETURN(float* const memory, scratch->Get<float>(block * (inputs + width)));
  float* const products = memory + block * inputs;
  const auto row_of = [&](size_t picture, size_t row) {
    return x.data() + static_cast<ptrdiff_t>(picture * rows() + row) * x.stride(0);
  };
  for (size_t begin = 0; begin < pictures * patches; begin += block) {
    const size_t count = std::min(block, pictures * patches - begin);
    const auto range = [count](size_t task) {
      return std::pair(task * kPatchesPerTask, std::min(count, (task + 1) * kPatchesPerTask));
    };
    ENCORE_RETURN_IF_ERROR(RunParallel(executor, DivCeil(count, kPatchesPerTask), [&](size_t task) {
      const std::pair<size_t, size_t> part = range(task);
      for (size_t i = part.first; i < part.second; ++i) {
        const size_t picture = (begin + i) / patches;
        ReadPatch(pixels.data() + picture * size_.bytes(), (begin + i) % patches, values,
                  memory + i * inputs);
      }
    }));
    ENCORE_RETURN_IF_ERROR(linear_->Apply(ConstView(memory, Shape(count, inputs)),
                                          MutableView(products, Shape(count, width)), executor));
    ENCORE_RETURN_IF_ERROR(RunParallel(executor, DivCeil(count, kPatchesPerTask), [&](size_t task) {
      const std::pair<size_t, size_t> part = range(task);
      for (size_t i = part.first; i < part.second; ++i) {
        const size_t patch = (begin + i) % patches;
        const float* const product = products + i * width;
        const float* const position = FloatsOf(positions_) + patch * width;
        float* const out = row_of((begin + i) / patches, rows_before() + patch);
        for (size_t c = 0; c < width; ++c) out[c] = product[c] + position[c];
      }
    }));
  }
  for (size_t picture = 0; picture < pictures && rows_before() > 0; ++picture) {
    for (size_t row = 0; row < rows_before(); ++row) {
      std::copy_n(FloatsOf(before_) + row * width, width, row_of(picture, row));
    }
  }
  if (!norm_) return {};
  FirstFailure failure;
  ENCORE_RETURN_IF_ERROR(RunParallel(executor, pictures, [&](size_t picture) {
    failure.Keep(norm_->Apply(RowRange(x, picture * rows(), (picture + 1) * rows())));
  }));
  return failure.status();
}

}  // namespace encore::internal
