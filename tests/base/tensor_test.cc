// SPDX-License-Identifier: Apache-2.0
//
// Tests of encore/tensor.h and of engine/base/aligned_buffer.h.

#include "encore/tensor.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/base/aligned_buffer.h"
#include "tests/support/results.h"

namespace encore {
namespace {

constexpr size_t kHuge = size_t{1} << 62;

bool IsAligned(const void* memory, size_t alignment) {
  return reinterpret_cast<uintptr_t>(memory) % alignment == 0;
}

TEST(DTypeTest, SizesAndNames) {
  const struct {
    DType type;
    size_t size;
    const char* name;
  } kExpected[] = {{DType::kBool, 1, "BOOL"}, {DType::kU8, 1, "U8"},   {DType::kI8, 1, "I8"},
                   {DType::kI32, 4, "I32"},   {DType::kI64, 8, "I64"}, {DType::kF16, 2, "F16"},
                   {DType::kBF16, 2, "BF16"}, {DType::kF32, 4, "F32"}, {DType::kF64, 8, "F64"}};
  for (const auto& expected : kExpected) {
    EXPECT_EQ(DTypeSize(expected.type), expected.size) << expected.name;
    EXPECT_EQ(DTypeName(expected.type), expected.name);
  }
}

TEST(ShapeTest, CountsAndPrints) {
  EXPECT_EQ(*Shape().NumElements(), 1u);
  EXPECT_EQ(Shape().ToString(), "[]");
  EXPECT_EQ(*Shape(2, 3).NumElements(), 6u);
  EXPECT_EQ(Shape(2, 3).ToString(), "[2, 3]");
  EXPECT_EQ(*Shape(2, 0, 3).NumElements(), 0u);
  EXPECT_EQ(Shape(2, 3), (Shape{2, 3}));
  EXPECT_FALSE(Shape(2, 3) == Shape(3, 2));
  EXPECT_FALSE(Shape(2) == Shape(2, 0));
}

TEST(ShapeTest, OverflowIsAnError) {
  const Result<size_t> count = Shape(kHuge, 2, 2).NumElements();
  EXPECT_TRUE(FailsWith(count, {"[4611686018427387904, 2, 2]"}));
  EXPECT_TRUE(Shape(kHuge, 2).NumElements().ok());
  EXPECT_EQ(*Shape(kHuge, kHuge, 0).NumElements(), 0u);
  EXPECT_EQ(Shape(kHuge, 2, 2).RequireElements(0).message(), count.status().message());
}

TEST(ShapeTest, NegativeExtentsAreRefused) {
  for (const Shape& shape : {Shape(2, -1), Shape(-1, 0), Shape(-1, -1), Shape(int8_t{-1})}) {
    const Result<size_t> count = shape.NumElements();
    ASSERT_FALSE(count.ok()) << shape.ToString();
    EXPECT_EQ(count.status().code(), ErrorCode::kInvalidArgument);
    EXPECT_FALSE(Tensor::Create(DType::kU8, shape).ok()) << shape.ToString();
  }
  EXPECT_EQ(Shape(2, -1).NumElements().status().message(),
            "the shape [2, 18446744073709551615] has the extent -1");
}

TEST(ShapeTest, CreateRefusesTooManyExtents) {
  const std::vector<size_t> extents = {1, 2, 3, 4, 5, 6, 7};
  EXPECT_FALSE(Shape::Create(extents.data(), 7).ok());
  const Shape shape = Taken(Shape::Create(extents.data(), 6));
  EXPECT_EQ(shape.ToString(), "[1, 2, 3, 4, 5, 6]");
  EXPECT_EQ((*Shape::Create(nullptr, 0)).rank(), 0u);
}

// Misuse that must not compile.
static_assert(std::is_constructible_v<Shape, int, int, int, int, int, int>);
static_assert(!std::is_constructible_v<Shape, int, int, int, int, int, int, int>);
static_assert(std::is_convertible_v<TensorView<float>, TensorView<const float>>);
static_assert(!std::is_convertible_v<TensorView<const float>, TensorView<float>>);
static_assert(!std::is_copy_constructible_v<Tensor>);

TEST(TensorViewTest, IndexesRowMajor) {
  float data[24];
  for (size_t i = 0; i < 24; ++i) data[i] = static_cast<float>(i);
  const TensorView<float> view(data, Shape(2, 3, 4));
  EXPECT_EQ(view.stride(0), 12);
  EXPECT_EQ(view.stride(1), 4);
  EXPECT_EQ(view.stride(2), 1);
  EXPECT_EQ(view(1, 2, 3), 23.0f);
  EXPECT_EQ(view[1](2, 3), 23.0f);
  EXPECT_EQ(view[1][2](3), 23.0f);
  EXPECT_EQ(view[1][2][3](), 23.0f);
  EXPECT_EQ(view[1].Transposed()(3, 2), 23.0f);
  EXPECT_EQ(view[1].Transposed().shape(), Shape(4, 3));
  const TensorView<const float> constant = view;
  EXPECT_EQ(constant(0, 1, 1), 5.0f);
}

TEST(TensorViewTest, StridesMayGoBackwards) {
  float data[] = {0, 1, 2, 3};
  const TensorView<float> view(data + 3, Shape(4), {-1});
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(view(i), static_cast<float>(3 - i));
}

TEST(TensorViewTest, DefaultIsEmpty) {
  EXPECT_TRUE(TensorView<float>().empty());
  float scalar = 1;
  EXPECT_FALSE(TensorView<float>(&scalar, Shape()).empty());
}

TEST(TensorViewTest, AHostileShapeOverflowsNothing) {
  float data[1] = {};
  const TensorView<float> view(data, Shape(kHuge, kHuge, kHuge));  // run under UBSan
  EXPECT_EQ(view.dim(2), kHuge);
}

TEST(TensorTest, IsAlignedAndZero) {
  for (const size_t count : {size_t{1}, size_t{3}, size_t{1000}, (size_t{3} << 20) / 4}) {
    Tensor tensor = Taken(Tensor::Create(DType::kF32, Shape(count)));
    EXPECT_EQ(tensor.size_bytes(), count * 4);
    EXPECT_TRUE(IsAligned(tensor.data(), 64));
    const TensorView<float> view = tensor.View<float>();
    ASSERT_FALSE(view.empty());
    for (size_t i = 0; i < count; ++i) ASSERT_EQ(view(i), 0.0f);
    view(count - 1) = 1.0f;
  }
}

TEST(TensorViewTest, CreateChecksTheSize) {
  std::vector<float> six(6);
  const TensorView<float> view = Taken(TensorView<float>::Create(six, Shape(2, 3)));
  (view)(1, 2) = 7;
  EXPECT_EQ(six[5], 7);
  EXPECT_TRUE(TensorView<const float>::Create(six, Shape(6)).ok());
  EXPECT_EQ(TensorView<float>::Create(six, Shape(2, 4)).status().message(),
            "found 6 elements, wanted 8 for the shape [2, 4]");
  for (const Shape& shape : {Shape(5), Shape(7), Shape(), Shape(0), Shape(-6), Shape(kHuge, 8)})
    EXPECT_FALSE(TensorView<float>::Create(six, shape).ok()) << shape.ToString();
}

TEST(TensorTest, RefusesATypeThatIsNone) {
  const Result<Tensor> tensor = Tensor::Create(static_cast<DType>(99), Shape(2));
  ASSERT_FALSE(tensor.ok());
  EXPECT_EQ(tensor.status().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(tensor.status().message(), "DType 99 is not one of the element types");
}

TEST(TensorTest, AViewOfAnotherTypeIsEmpty) {
  Tensor tensor = Taken(Tensor::Create(DType::kI64, Shape(2)));
  EXPECT_TRUE(tensor.View<float>().empty());
  EXPECT_FALSE(tensor.View<int64_t>().empty());
  EXPECT_FALSE(std::as_const(tensor).View<int64_t>().empty());
  const Tensor none;
  EXPECT_TRUE(none.View<float>().empty());
}

TEST(TensorTest, NoElementsIsNotEmpty) {
  Tensor tensor = Taken(Tensor::Create(DType::kF32, Shape(0, 5)));
  EXPECT_EQ(tensor.size_bytes(), 0u);
  EXPECT_NE(tensor.data(), nullptr);
  EXPECT_FALSE(tensor.View<float>().empty());
}

TEST(TensorTest, ImpossibleSizesAreErrors) {
  EXPECT_EQ(Tensor::Create(DType::kF32, Shape(kHuge, 4)).status().code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(Tensor::Create(DType::kF32, Shape(kHuge)).status().code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(FailsWith(Tensor::Create(DType::kF32, Shape(kHuge / 4)),
                        {"F32", "4611686018427387904 bytes"}, ErrorCode::kOutOfMemory));
}

TEST(TensorTest, Moves) {
  Tensor made = Taken(Tensor::Create(DType::kF32, Shape(2, 2)));
  const void* data = made.data();
  Tensor tensor = std::move(made);
  EXPECT_EQ(tensor.data(), data);
  EXPECT_EQ(tensor.shape(), Shape(2, 2));
}

TEST(AlignedBufferTest, AlignsAndMoves) {
  internal::AlignedBuffer<float> buffer;
  EXPECT_EQ(buffer.size(), 0u);
  ASSERT_TRUE(buffer.Allocate(5));
  EXPECT_EQ(buffer.size(), 5u);
  EXPECT_TRUE(IsAligned(buffer.data(), internal::kMemoryAlignment));
  std::memset(buffer.data(), 0, 5 * sizeof(float));
  const float* data = buffer.data();
  internal::AlignedBuffer<float> other = std::move(buffer);
  EXPECT_EQ(other.data(), data);
  EXPECT_EQ(other.size(), 5u);
  EXPECT_EQ(buffer.size(), 0u);  // NOLINT(bugprone-use-after-move): a moved-from buffer is empty
  EXPECT_EQ(buffer.data(), nullptr);
  buffer = std::move(other);
  EXPECT_EQ(buffer.data(), data);
}

TEST(TensorTest, MovingLeavesNothingBehind) {
  Tensor made = Taken(Tensor::Create(DType::kI32, Shape(2, 3)));
  Tensor first = std::move(made);
  const void* const data = first.data();
  const Tensor second = std::move(first);
  EXPECT_EQ(second.data(), data);
  EXPECT_EQ(second.shape(), Shape(2, 3));
  EXPECT_EQ(second.dtype(), DType::kI32);
  EXPECT_EQ(first.data(), nullptr);  // NOLINT(bugprone-use-after-move): that is what is tested
  EXPECT_EQ(first.size_bytes(), 0u);
  EXPECT_EQ(first.shape(), Shape(0));
}

TEST(AlignedBufferTest, BigOnesStartOnALargePage) {
  internal::AlignedBuffer<uint8_t> buffer;
  ASSERT_TRUE(buffer.Allocate(internal::kHugePageBytes + 12345));
  EXPECT_TRUE(IsAligned(buffer.data(), internal::kHugePageBytes));
  std::memset(buffer.data(), 1, buffer.size());
}

TEST(AlignedBufferTest, ImpossibleSizesLeaveItEmpty) {
  internal::AlignedBuffer<double> buffer;
  ASSERT_TRUE(buffer.Allocate(1));
  EXPECT_FALSE(buffer.Allocate(kHuge));  // 2^65 bytes
  EXPECT_EQ(buffer.size(), 0u);
  EXPECT_FALSE(buffer.Allocate(kHuge / 8));
  EXPECT_EQ(buffer.data(), nullptr);
}

}  // namespace
}  // namespace encore
