// SPDX-License-Identifier: Apache-2.0
//
// Element types, shapes and the owner of a tensor's memory.

#include "encore/tensor.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "engine/base/aligned_buffer.h"
#include "engine/base/guarded.h"
#include "engine/base/int_math.h"
#include "engine/base/status_macros.h"

namespace encore::inline v0_1 {
namespace {

// No memory has an extent with this bit; a negative number that became one has.
bool IsNegative(size_t extent) { return static_cast<ptrdiff_t>(extent) < 0; }

struct DTypeRow {
  std::string_view name;
  size_t size;
};
// In the order of DType.
constexpr DTypeRow kDTypes[] = {{"BOOL", 1}, {"U8", 1},   {"I8", 1},  {"I32", 4}, {"I64", 8},
                                {"F16", 2},  {"BF16", 2}, {"F32", 4}, {"F64", 8}};

DTypeRow RowOf(DType type) {
  const auto place = static_cast<size_t>(type);
  return place < std::size(kDTypes) ? kDTypes[place] : DTypeRow{"UNKNOWN", 0};
}

}  // namespace

size_t DTypeSize(DType type) { return RowOf(type).size; }
std::string_view DTypeName(DType type) { return RowOf(type).name; }

Result<Shape> Shape::Create(const size_t* extents, size_t rank) {
  return internal::Guarded("a tensor", [&]() -> Result<Shape> {
    if (rank > kMaxRank) {
      return InvalidArgument("a shape has " + std::to_string(rank) + " extents; at most " +
                             std::to_string(kMaxRank) + " are possible");
    }
    Shape shape;
    shape.rank_ = rank;
    std::copy_n(extents, rank, shape.extents_.begin());
    return shape;
  });
}

Result<size_t> Shape::NumElements() const {
  return internal::Guarded("a tensor", [&]() -> Result<size_t> {
    const auto end = extents_.begin() + rank_;
    if (const auto found = std::find_if(extents_.begin(), end, IsNegative); found != end) {
      return InvalidArgument("the shape " + ToString() + " has the extent " +
                             std::to_string(static_cast<ptrdiff_t>(*found)));
    }
    if (std::find(extents_.begin(), end, size_t{0}) != end) return size_t{0};
    size_t count = 1;
    for (auto extent = extents_.begin(); extent != end; ++extent) {
      if (!internal::CheckedMul(count, *extent, &count)) {
        return InvalidArgument("the shape " + ToString() +
                               " has more elements than memory can be addressed");
      }
    }
    return count;
  });
}

std::string Shape::ToString() const {
  std::string text = "[";
  for (size_t i = 0; i < rank_; ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(extents_[i]);
  }
  return text + "]";
}

Status Shape::RequireElements(size_t count) const {
  return internal::Guarded("a tensor", [&]() -> Status {
    ENCORE_ASSIGN_OR_RETURN(const size_t wanted, NumElements());
    if (wanted == count) return Status();
    return InvalidArgument("found " + std::to_string(count) + " elements, wanted " +
                           std::to_string(wanted) + " for the shape " + ToString());
  });
}

Result<Tensor> Tensor::Create(DType type, const Shape& shape) {
  return internal::Guarded("a tensor", [&]() -> Result<Tensor> {
    if (DTypeSize(type) == 0) {
      return InvalidArgument("DType " + std::to_string(static_cast<int>(type)) +
                             " is not one of the element types");
    }
    ENCORE_ASSIGN_OR_RETURN(const size_t count, shape.NumElements());
    size_t bytes = 0;
    if (!internal::CheckedMul(count, DTypeSize(type), &bytes)) {
      return InvalidArgument("a tensor of shape " + shape.ToString() + " and type " +
                             std::string(DTypeName(type)) +
                             " has more bytes than memory can be addressed");
    }
    Tensor tensor;
    tensor.memory_.reset(internal::AllocateAligned(bytes));
    if (!tensor.memory_) {
      return Status(ErrorCode::kOutOfMemory, "a tensor of shape " + shape.ToString() +
                                                 " and type " + std::string(DTypeName(type)) +
                                                 " needs " + std::to_string(bytes) +
                                                 " bytes, which cannot be had");
    }
    std::memset(tensor.memory_.get(), 0, bytes);
    tensor.dtype_ = type;
    tensor.shape_ = shape;
    tensor.size_bytes_ = bytes;
    return tensor;
  });
}

void Tensor::Free::operator()(void* memory) const { internal::FreeAligned(memory); }

}  // namespace encore
