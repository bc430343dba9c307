// SPDX-License-Identifier: Apache-2.0
//
// Rows of A from stored documents, and StoreVectors of encore/max_sim.h.

#include "engine/ops/document_rows.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>

#include "encore/max_sim.h"
#include "engine/base/elements.h"
#include "engine/base/guarded.h"
#include "engine/base/int_math.h"
#include "engine/ops/view_check.h"
#include "engine/ops/weight_source.h"
#include "engine/platform/thread_team.h"

namespace encore::inline v0_1 {
namespace internal {
namespace {

// Rows of A are unsigned, or with GemmKernel::a_offset less by that: 128 is zero.
constexpr float kInt8Zero = 128;

void Bf16ToFloats(const GemmKernel& kernel, const std::byte* from, size_t count, float* out) {
  for (size_t i = 0; i < count; ++i) {
    out[kernel.PlaceInA(i)] = ElementAt<Bf16>(from, static_cast<ptrdiff_t>(i));
  }
}

template <typename Element>
void Int8ToUnsigned(const std::byte* from, size_t count, std::byte* to) {
  auto* const out = reinterpret_cast<Element*>(to);
  for (size_t i = 0; i < count; ++i) {
    out[i] = static_cast<Element>(std::to_integer<uint8_t>(from[i]) ^ 0x80u);
  }
}

// One row of `width` elements as one of A, without what fills up its last group.
void MakeRow(const GemmKernel& kernel, DType type, const std::byte* from, size_t width,
             std::byte* out) {
  if (type == DType::kI8 && kernel.a_offset != 0) {
    std::memcpy(out, from, width);
    return;
  }
  if (type == DType::kI8) {
    return kernel.a_bytes == 1 ? Int8ToUnsigned<uint8_t>(from, width, out)
                               : Int8ToUnsigned<uint16_t>(from, width, out);
  }
  if (kernel.a_bytes == sizeof(float)) {
    return Bf16ToFloats(kernel, from, width, reinterpret_cast<float*>(out));
  }
  std::memcpy(out, from, width * sizeof(uint16_t));
}

// Rows that a task of StoreVectors makes.
constexpr size_t kRowsAtOnce = 64;

void StoreBf16(ConstView vectors, size_t begin, size_t end, uint16_t* out) {
  const size_t width = vectors.dim(1);
  for (size_t r = begin; r < end; ++r) {
    for (size_t c = 0; c < width; ++c) out[r * width + c] = F32ToBf16(vectors(r, c));
  }
}

void StoreInt8(const WeightSource& source, size_t begin, size_t end, int8_t* out, float* scales) {
  constexpr size_t kPiece = 256;
  float piece[kPiece];
  const size_t width = source.k();
  for (size_t r = begin; r < end; ++r) {
    ReadInt8Scales(source, r, 1, &scales[r]);
    if (!std::isfinite(scales[r])) continue;
    for (size_t k = 0; k < width; k += kPiece) {
      const size_t count = std::min(kPiece, width - k);
      float sum = 0;
      ReadInt8Rows(source, &scales[r], r, 1, k, count, piece, kPiece, &sum);
      for (size_t i = 0; i < count; ++i) out[r * width + k + i] = static_cast<int8_t>(piece[i]);
    }
  }
}

Result<StoredVectors> Store(ConstView vectors, DType type, const Executor& executor) {
  ENCORE_RETURN_IF_ERROR(CheckRank("vectors", vectors, 2));
  if (type != DType::kBF16 && type != DType::kI8) {
    return InvalidArgument("type is " + std::string(DTypeName(type)) + "; wanted BF16 or I8");
  }
  const size_t rows = vectors.dim(0);
  StoredVectors stored;
  ENCORE_ASSIGN_OR_RETURN(stored.vectors, Tensor::Create(type, vectors.shape()));
  if (type == DType::kI8) {
    ENCORE_ASSIGN_OR_RETURN(stored.scales, Tensor::Create(DType::kF32, {rows}));
  }
  void* const out = stored.vectors.data();
  auto* const scales = static_cast<float*>(stored.scales.data());
  const WeightSource source = WeightSource::One(vectors);
  ENCORE_RETURN_IF_ERROR(RunTeam(executor, [&](Team& team) {
    team.ForEach(DivCeil(rows, kRowsAtOnce), [&](size_t task, int) {
      const size_t begin = task * kRowsAtOnce;
      const size_t end = std::min(rows, begin + kRowsAtOnce);
      if (type == DType::kI8) {
        StoreInt8(source, begin, end, static_cast<int8_t*>(out), scales);
      } else {
        StoreBf16(vectors, begin, end, static_cast<uint16_t*>(out));
      }
    });
  }));
  for (size_t r = 0; type == DType::kI8 && r < rows; ++r) {
    if (std::isfinite(scales[r])) continue;
    return InvalidArgument("row " + std::to_string(r) +
                           " of vectors has NaN or an infinity; wanted finite numbers for I8");
  }
  return stored;
}

}  // namespace

const GemmKernel& DocumentRows::kernel() const {
  if (type == DType::kBF16) return GetGemmKernelBf16();
  return type == DType::kI8 ? GetGemmKernelInt8() : GetGemmKernelF32();
}

InputRows DocumentRows::Make(const GemmKernel& kernel, size_t row, size_t count,
                             const PackedLhs& room) const {
  const std::byte* const from = data + row * stride;
  if (type == DType::kF32) return {from, stride, nullptr};
  // Pairs of bf16 in place, if no number is missing and words are aligned.
  if (kernel.a_bytes == sizeof(uint16_t) && type == DType::kBF16 && width % 2 == 0 &&
      std::bit_cast<uintptr_t>(from) % sizeof(uint32_t) == 0) {
    return {from, stride, nullptr};
  }
  const size_t last_group = width / kernel.kr * kernel.kr * kernel.a_bytes;  // if it is not full
  for (size_t r = 0; r < count; ++r) {
    std::byte* const out = room.From(r).data;
    std::memset(out + last_group, 0, made_bytes(kernel) - last_group);
    MakeRow(kernel, type, from + r * stride, width, out);
    if (type == DType::kI8) room.quant[r] = {scales[row + r], kInt8Zero};
  }
  return InputRows::Of(room);
}

}  // namespace internal

Result<StoredVectors> StoreVectors(ConstView vectors, DType type, const Executor& executor) {
  return internal::Guarded("stored vectors",
                           [&] { return internal::Store(vectors, type, executor); });
}

}  // namespace encore
