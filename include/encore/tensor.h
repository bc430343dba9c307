// SPDX-License-Identifier: Apache-2.0
//
// Tensors: DType and Shape, Tensor (owns aligned memory, type known at run time) and TensorView<T>
// (a typed window with strides that owns nothing).

#ifndef ENCORE_TENSOR_H_
#define ENCORE_TENSOR_H_

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "encore/export.h"
#include "encore/status.h"

namespace encore::inline v0_1 {

enum class DType : uint8_t { kBool, kU8, kI8, kI32, kI64, kF16, kBF16, kF32, kF64 };

// Bytes an element occupies.
ENCORE_API size_t DTypeSize(DType type);
// The name safetensors uses: "BOOL", "U8", "I8", "I32", "I64", "F16", "BF16", "F32", "F64".
ENCORE_API std::string_view DTypeName(DType type);

// The DType of a C++ element type. F16 and BF16 have no C++ type here: read them as raw bytes or
// convert them.
template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<bool> : std::integral_constant<DType, DType::kBool> {};
template <>
struct DTypeOf<uint8_t> : std::integral_constant<DType, DType::kU8> {};
template <>
struct DTypeOf<int8_t> : std::integral_constant<DType, DType::kI8> {};
template <>
struct DTypeOf<int32_t> : std::integral_constant<DType, DType::kI32> {};
template <>
struct DTypeOf<int64_t> : std::integral_constant<DType, DType::kI64> {};
template <>
struct DTypeOf<float> : std::integral_constant<DType, DType::kF32> {};
template <>
struct DTypeOf<double> : std::integral_constant<DType, DType::kF64> {};

// Integers, which excludes bool: `true` is no size.
template <typename T>
concept SizeLike = std::integral<T> && !std::same_as<std::remove_cv_t<T>, bool>;

// Up to kMaxRank extents, outermost first. A rank of zero is a scalar (one element).
class ENCORE_API Shape {
 public:
  static constexpr size_t kMaxRank = 6;

  Shape() = default;
  // Shape(2, 3) or Shape{2, 3}; more than kMaxRank extents do not compile, nor floats. A negative
  // extent is kept, and refused by NumElements(), and so by all that counts elements.
  template <SizeLike... Ints>
  requires(sizeof...(Ints) >= 1 && sizeof...(Ints) <= kMaxRank)
      Shape(Ints... extents)  // NOLINT(google-explicit-constructor): a view of {rows, cols} should
                              // read so
      : rank_(sizeof...(Ints)), extents_{static_cast<size_t>(extents)...} {}
  // From a run-time list; kInvalidArgument if rank exceeds kMaxRank.
  static Result<Shape> Create(const size_t* extents, size_t rank);

  size_t rank() const { return rank_; }
  size_t operator[](size_t i) const { return extents_[i]; }  // i < rank()
  // The product of all extents; kInvalidArgument if it overflows size_t, or an extent is negative
  // or beyond PTRDIFF_MAX.
  Result<size_t> NumElements() const;
  // kInvalidArgument unless `count` is NumElements().
  Status RequireElements(size_t count) const;
  // "[2, 3]".
  std::string ToString() const;
  friend bool operator==(const Shape& a, const Shape& b) {
    return a.rank_ == b.rank_ && a.extents_ == b.extents_;
  }

 private:
  size_t rank_ = 0;
  std::array<size_t, kMaxRank> extents_{};
};

// A typed window on memory that somebody else owns: element (i, j, ...) is data()[i * stride(0) + j
// * stride(1) + ...]. Strides count elements and may be anything in an input. A default-made view
// is empty: data() is null and it stands for "not given". Copying a view copies the window. The
// caller keeps the memory alive and large enough.
template <typename T>
class TensorView {
 public:
  using Strides = std::array<ptrdiff_t, Shape::kMaxRank>;

  TensorView() = default;
  // Dense, row-major: the last extent is contiguous.
  TensorView(T* data, const Shape& shape) : data_(data), shape_(shape) {
    size_t stride = 1;  // unsigned: a hostile shape may wrap, and is refused where it is used
    for (size_t i = shape.rank(); i-- > 0;) {
      strides_[i] = static_cast<ptrdiff_t>(stride);
      stride *= shape[i];
    }
  }
  TensorView(T* data, const Shape& shape, const Strides& strides)
      : data_(data), shape_(shape), strides_(strides) {}
  // Dense, row-major, of all of the span's elements: kInvalidArgument if the shape has more or
  // fewer. A view of a temporary vector does not compile.
  static Result<TensorView> Create(std::span<T> data, const Shape& shape) {
    Status status = shape.RequireElements(data.size());
    if (!status.ok()) return status;
    return TensorView(data.data(), shape);
  }
  static Result<TensorView> Create(std::vector<std::remove_const_t<T>>&& data,
                                   const Shape& shape) = delete;
  static Result<TensorView> Create(const std::vector<std::remove_const_t<T>>&& data,
                                   const Shape& shape) = delete;
  // A view of T is a view of const T.
  operator TensorView<const T>() const  // NOLINT(google-explicit-constructor)
      requires(!std::is_const_v<T>) {
    return TensorView<const T>(data_, shape_, strides_);
  }

  bool empty() const { return data_ == nullptr; }
  T* data() const { return data_; }
  const Shape& shape() const { return shape_; }
  size_t rank() const { return shape_.rank(); }
  size_t dim(size_t i) const { return shape_[i]; }
  ptrdiff_t stride(size_t i) const { return strides_[i]; }
  const Strides& strides() const { return strides_; }

  // Element access; as many indices as the rank, each below its extent (not checked).
  template <SizeLike... Ints>
  T& operator()(Ints... index) const {
    const std::array<size_t, sizeof...(Ints)> indices{static_cast<size_t>(index)...};
    ptrdiff_t offset = 0;
    for (size_t i = 0; i < sizeof...(Ints); ++i)
      offset += static_cast<ptrdiff_t>(indices[i]) * strides_[i];
    return data_[offset];
  }

  // The window without its first axis, at index i of it. rank() >= 1, i < dim(0).
  TensorView operator[](size_t i) const {
    std::array<size_t, Shape::kMaxRank> extents{};
    Strides strides{};
    for (size_t a = 1; a < rank(); ++a) {
      extents[a - 1] = dim(a);
      strides[a - 1] = stride(a);
    }
    Result<Shape> inner = Shape::Create(extents.data(), rank() - 1);
    if (data_ == nullptr) return TensorView(data_, *inner, strides);  // without elements
    return TensorView(data_ + static_cast<ptrdiff_t>(i) * strides_[0], *inner, strides);
  }

  // Rank-2 views only: rows and columns exchanged, nothing copied.
  TensorView Transposed() const {
    return TensorView(data_, Shape(dim(1), dim(0)), Strides{stride(1), stride(0)});
  }

 private:
  T* data_ = nullptr;
  Shape shape_;
  Strides strides_{};
};

using ConstView = TensorView<const float>;
using MutableView = TensorView<float>;

// A window on weights: floats of a type known at run time (F32, BF16, F16 or F64), in any strides
// (in elements). A default-made view is empty: "not given". The caller keeps the memory alive and
// large enough; it need not be aligned.
class WeightView {
 public:
  using Strides = TensorView<const float>::Strides;

  WeightView() = default;
  WeightView(const ConstView& view)  // NOLINT(google-explicit-constructor): f32 is the usual type
      : WeightView(DType::kF32, view.data(), view.shape(), view.strides()) {}
  WeightView(const MutableView& view)  // NOLINT(google-explicit-constructor)
      : WeightView(ConstView(view)) {}
  // Dense, row-major.
  WeightView(DType type, const void* data, const Shape& shape)
      : WeightView(type, data, shape, ConstView(nullptr, shape).strides()) {}
  WeightView(DType type, const void* data, const Shape& shape, const Strides& strides)
      : dtype_(type), data_(data), shape_(shape), strides_(strides) {}

  bool empty() const { return data_ == nullptr; }
  DType dtype() const { return dtype_; }
  const void* data() const { return data_; }
  const Shape& shape() const { return shape_; }
  size_t rank() const { return shape_.rank(); }
  size_t dim(size_t i) const { return shape_[i]; }
  ptrdiff_t stride(size_t i) const { return strides_[i]; }
  const Strides& strides() const { return strides_; }

 private:
  DType dtype_ = DType::kF32;
  const void* data_ = nullptr;
  Shape shape_;
  Strides strides_{};
};

// Owns zero-initialised, 64-byte aligned, dense row-major memory of one DType. Movable, not
// copyable.
class ENCORE_API Tensor {
 public:
  Tensor() = default;  // no memory and no elements: shape [0]
  // The moved-from tensor is as one made by default.
  Tensor(Tensor&& other) noexcept { *this = std::move(other); }
  Tensor& operator=(Tensor&& other) noexcept {
    dtype_ = std::exchange(other.dtype_, DType::kF32);
    shape_ = std::exchange(other.shape_, Shape(0));
    size_bytes_ = std::exchange(other.size_bytes_, 0);
    memory_ = std::move(other.memory_);
    return *this;
  }
  // kInvalidArgument if `type` is no DType or the size overflows, kOutOfMemory if it cannot be had.
  static Result<Tensor> Create(DType type, const Shape& shape);

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  size_t size_bytes() const { return size_bytes_; }
  void* data() & { return memory_.get(); }
  const void* data() const& { return memory_.get(); }
  const void* data() const&& = delete;  // it ends with the temporary

  // A view of all elements; empty if T is not the tensor's type.
  template <typename T>
  TensorView<T> View() & {
    if (DTypeOf<T>::value != dtype_ || !memory_) return {};
    return TensorView<T>(static_cast<T*>(data()), shape_);
  }
  template <typename T>
  TensorView<const T> View() const& {
    if (DTypeOf<T>::value != dtype_ || !memory_) return {};
    return TensorView<const T>(static_cast<const T*>(data()), shape_);
  }
  template <typename T>
  TensorView<const T> View() const&& = delete;

 private:
  struct ENCORE_API Free {
    void operator()(void* memory) const;
  };
  DType dtype_ = DType::kF32;
  Shape shape_ = Shape(0);
  size_t size_bytes_ = 0;
  std::unique_ptr<void, Free> memory_;
};

}  // namespace encore

#endif  // ENCORE_TENSOR_H_
