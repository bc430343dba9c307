// SPDX-License-Identifier: Apache-2.0
//
// Packing from the caller's weights in place: every type, alignment, stride and order of parts
// gives the packed bits of one explicit f32 matrix.

#include "engine/ops/weight_source.h"

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/base/bf16.h"
#include "engine/ops/packed_matrix.h"
#include "gtest/gtest.h"
#include "tests/support/compare.h"
#include "tests/support/guarded.h"
#include "tests/support/targets.h"

namespace encore::inline v0_1::internal {
namespace {

constexpr DType kTypes[] = {DType::kF32, DType::kBF16, DType::kF16, DType::kF64};

// How a matrix lies in memory: as [rows, cols] with gaps, turned, with every second column only,
// or backwards; and how many bytes past an aligned address.
struct Place {
  enum Order { kRows, kTurned, kEverySecond, kBackwards } order;
  size_t bytes;
};
constexpr Place kPlaces[] = {{Place::kRows, 0},   {Place::kRows, 1},        {Place::kTurned, 0},
                             {Place::kTurned, 3}, {Place::kEverySecond, 0}, {Place::kBackwards, 5}};

// A matrix of some type somewhere in memory, and the f32 numbers that it holds.
class Stored {
 public:
  Stored(DType type, const Place& place, size_t rows, size_t cols, uint64_t seed)
      : rows_(rows), cols_(cols), values_(RandomFloats(rows * cols, seed)) {
    const size_t size = DTypeSize(type);
    const ptrdiff_t step = place.order == Place::kEverySecond ? 2 : 1;
    const ptrdiff_t r = static_cast<ptrdiff_t>(rows);
    const ptrdiff_t c = static_cast<ptrdiff_t>(cols);
    WeightView::Strides strides{step * c + 3, step};
    ptrdiff_t first = 0;
    if (place.order == Place::kTurned) strides = {1, r + 2};
    if (place.order == Place::kBackwards) {
      strides = {-(c + 1), -1};
      first = r * (c + 1);
    }
    const size_t span = (rows + 3) * (2 * cols + 6);
    memory_.assign(span * size + place.bytes + 64, 0xFF);  // NaN wherever nothing is stored
    uint8_t* data = memory_.data() + place.bytes;
    data += (64 - reinterpret_cast<uintptr_t>(memory_.data()) % 64) % 64;
    data += static_cast<size_t>(first) * size;
    view_ = WeightView(type, data, Shape(rows, cols), strides);
    for (size_t i = 0; i < rows; ++i) {
      for (size_t j = 0; j < cols; ++j) {
        const ptrdiff_t at =
            static_cast<ptrdiff_t>(i) * strides[0] + static_cast<ptrdiff_t>(j) * strides[1];
        Store(type, data + at * static_cast<ptrdiff_t>(size), &values_[i * cols + j]);
      }
    }
  }

  const WeightView& view() const { return view_; }
  // [cols], of one row.
  WeightView Vector() const {
    return {view_.dtype(), view_.data(), Shape(cols_), {view_.stride(1)}};
  }
  float operator()(size_t row, size_t col) const { return values_[row * cols_ + col]; }
  size_t rows() const { return rows_; }

 private:
  // Stores *value, and makes it what was stored.
  static void Store(DType type, uint8_t* to, float* value) {
    if (type == DType::kBF16 || type == DType::kF16) {
      const uint16_t bits = type == DType::kBF16 ? F32ToBf16(*value) : F32ToF16(*value);
      std::memcpy(to, &bits, sizeof bits);
      *value = type == DType::kBF16 ? Bf16ToF32(bits) : F16ToF32(bits);
    } else if (type == DType::kF64) {
      const double wide = static_cast<double>(*value) * (1 + 1e-9);
      std::memcpy(to, &wide, sizeof wide);
      *value = static_cast<float>(wide);
    } else {
      std::memcpy(to, value, sizeof *value);
    }
  }

  size_t rows_;
  size_t cols_;
  std::vector<float> values_;
  std::vector<uint8_t> memory_;
  WeightView view_;
};

using Matrices = std::vector<std::unique_ptr<Stored>>;

std::span<const float> Panel(const PackedView& view, size_t p, size_t half, size_t count) {
  return {reinterpret_cast<const float*>(view.panel(p, half)), count};
}

// The packed matrix has the shape, bits and bias of one packed from `rows` ([n, k], dense) and
// `bias` ([n] or empty). Gated: of two such matrices one under another, in pairs of panels.
void CheckPacked(const WeightSource& source, const std::vector<float>& rows, size_t k,
                 const std::vector<float>& bias) {
  const PackedMatrix packed = Taken(PackedMatrix::Create(source));
  const PackedView& view = packed.view();
  const size_t halves = source.gated ? 2 : 1;
  const size_t n = rows.size() / k / halves;
  ASSERT_EQ(view.n, n);
  ASSERT_EQ(view.k, k);
  ASSERT_EQ(view.bias != nullptr, !bias.empty());
  for (size_t half = 0; half < halves; ++half) {
    const PackedMatrix plain = Taken(PackedMatrix::Create(WeightSource::One(
        ConstView(rows.data() + half * n * k, {n, k}),
        bias.empty() ? ConstView() : ConstView(bias.data() + half * n, Shape(n)))));
    const PackedView& want = plain.view();
    ASSERT_EQ(view.nr(), want.nr());
    ASSERT_EQ(view.panels(), want.panels());
    for (size_t p = 0; p < view.panels(); ++p) {
      const size_t count = k * want.panel_ld(p);
      ASSERT_TRUE(SameBits(Panel(view, p, half, count), Panel(want, p, 0, count)))
          << "panel " << p << ", half " << half;
      if (bias.empty()) continue;
      ASSERT_TRUE(SameBits({view.bias + view.padded_column(p, half), view.nr()},
                           {want.bias + want.padded_column(p, 0), view.nr()}))
          << "panel " << p << ", half " << half;
    }
  }
  // The plain matrix itself has element (k, n) where the layout says.
  WeightSource first{.parts = {source.parts[0]}, .num_parts = 1};
  first.parts[0].bias = {};
  const PackedMatrix one = Taken(PackedMatrix::Create(first));
  float element;
  ReadRows(first, 0, 1, k - 1, 1, &element, 1);
  EXPECT_EQ(std::bit_cast<uint32_t>(
                Panel(one.view(), 0, 0, k * one.view().nr())[(k - 1) * one.view().panel_ld(0)]),
            std::bit_cast<uint32_t>(element));
}

// Parts of `sizes` rows and k columns, each stored in its own way from `first` on.
void CheckParts(const std::vector<size_t>& sizes, size_t k, size_t first, bool gated, bool scaled,
                bool with_bias) {
  Matrices weights;
  Matrices biases;
  WeightSource source{.num_parts = sizes.size(), .gated = gated};
  size_t n = 0;
  for (size_t p = 0; p < sizes.size(); ++p) {
    const DType type = kTypes[(first + p) % std::size(kTypes)];
    const Place& place = kPlaces[(first / 2 + p) % std::size(kPlaces)];
    weights.push_back(std::make_unique<Stored>(type, place, sizes[p], k, 10 + p));
    biases.push_back(std::make_unique<Stored>(type, place, 1, sizes[p], 20 + p));
    source.parts[p].weight = weights[p]->view();
    if (with_bias && p != 1) source.parts[p].bias = biases[p]->Vector();
    n += sizes[p];
  }
  const Stored scale(kTypes[first % 3], kPlaces[first % 6], 1, n, 30);
  if (scaled) source.output_scale = scale.Vector();

  std::vector<float> rows;
  std::vector<float> bias;
  for (size_t p = 0, row = 0; p < sizes.size(); ++p) {
    for (size_t i = 0; i < sizes[p]; ++i, ++row) {
      for (size_t j = 0; j < k; ++j) {
        rows.push_back((*weights[p])(i, j));
        if (scaled) rows.back() *= scale(0, row);
      }
      if (!with_bias) continue;
      bias.push_back(p == 1 ? 0.0f : (*biases[p])(0, i));
      if (scaled && p != 1) bias.back() *= scale(0, row);
    }
  }
  CheckPacked(source, rows, k, bias);
}

TEST(WeightSource, EveryTypeAndPlace) {
  ForEachTarget([](const std::string&) {
    for (size_t type = 0; type < std::size(kTypes); ++type) {
      for (size_t place = 0; place < std::size(kPlaces); ++place) {
        SCOPED_TRACE(std::string(DTypeName(kTypes[type])) + ", place " + std::to_string(place));
        for (const size_t k : {1, 5, 64, 65, 200}) {
          const Stored weight(kTypes[type], kPlaces[place], 67, k, 1);
          const Stored bias(kTypes[type], kPlaces[place], 1, 67, 2);
          std::vector<float> rows;
          std::vector<float> biases;
          for (size_t i = 0; i < 67; ++i) {
            biases.push_back(bias(0, i));
            for (size_t j = 0; j < k; ++j) rows.push_back(weight(i, j));
          }
          CheckPacked(WeightSource::One(weight.view(), bias.Vector()), rows, k, biases);
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  });
}

TEST(WeightSource, PartsScalesAndGates) {
  ForEachTarget([](const std::string&) {
    for (size_t first = 0; first < 12; ++first) {
      for (const bool scaled : {false, true}) {
        for (const bool with_bias : {false, true}) {
          SCOPED_TRACE(testing::Message() << "first " << first << ", scaled " << scaled
                                          << ", with_bias " << with_bias);
          for (const std::vector<size_t>& sizes :
               {std::vector<size_t>{48, 48, 48}, {33, 7, 70}, {1, 100, 1}, {40, 29}}) {
            CheckParts(sizes, 66 + first, first, false, scaled, with_bias);
          }
          for (const size_t half : {1, 16, 48, 50, 97, 150}) {
            CheckParts({half, half}, 20 + first, first, true, scaled, with_bias);
          }
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  });
}

// Integers times their row's scale, the row's other scale, and divided by their column's: as
// floats. As integers they stay what they are, and only their scales are multiplied.
TEST(WeightSource, IntegersWithScales) {
  constexpr size_t kRows = 70;
  constexpr size_t kColumns = 300;
  std::vector<int8_t> integers(kRows * (kColumns + 1));
  for (size_t i = 0; i < integers.size(); ++i) integers[i] = static_cast<int8_t>(i * 37 % 256);
  const WeightView weight(DType::kI8, integers.data(), {kRows, kColumns}, {kColumns + 1, 1});
  const Stored scale(DType::kBF16, kPlaces[1], 1, kRows, 1);
  const Stored output(DType::kF16, kPlaces[4], 1, kRows, 2);
  const Stored input(DType::kF64, kPlaces[5], 1, kColumns, 3);
  std::vector<float> floats;
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t c = 0; c < kColumns; ++c) {
      const float q = integers[r * (kColumns + 1) + c];
      floats.push_back(q * scale(0, r) * output(0, r) / input(0, c));
    }
  }
  const WeightSource source{.parts = {WeightPart{weight, {}, scale.Vector()}},
                            .num_parts = 1,
                            .output_scale = output.Vector(),
                            .input_scale = input.Vector()};
  CheckPacked(source, floats, kColumns, {});

  std::vector<float> scales(kRows);
  std::vector<float> sums(kRows);
  std::vector<float> out(kRows * 280);
  ReadInt8Scales(source, 0, kRows, scales.data());
  ReadInt8Rows(source, scales.data(), 0, kRows, 20, 280, out.data(), 280, sums.data());
  for (size_t r = 0; r < kRows; ++r) {
    ASSERT_EQ(scales[r], scale(0, r) * output(0, r));
    float sum = 0;
    for (size_t c = 20; c < kColumns; ++c) {
      const float q = integers[r * (kColumns + 1) + c];
      ASSERT_EQ(out[r * 280 + c - 20], q);
      sum += q;
    }
    ASSERT_EQ(sums[r], sum);
  }
}

// Both matrices lie in memory as a pass reads them, and no byte is left over.
TEST(WeightSource, PairsFillTheirMemory) {
  const Stored weight(DType::kF32, kPlaces[0], 150, 9, 1);
  WeightSource source{.parts = {WeightPart{weight.view(), {}}, WeightPart{weight.view(), {}}},
                      .num_parts = 2,
                      .gated = true};
  const PackedMatrix packed = Taken(PackedMatrix::Create(source));
  const PackedView& view = packed.view();
  const auto* at = static_cast<const std::byte*>(view.data);
  for (size_t p = 0; p < view.panels(); ++p) {
    for (size_t half = 0; half < 2; ++half) {
      EXPECT_EQ(view.panel(p, half), at);
      at += 9 * view.panel_ld(p) * sizeof(float);
    }
  }
  EXPECT_EQ(static_cast<size_t>(at - view.panel(0)), view.packed_bytes());
}

TEST(WeightSource, F64RoundsToNearestWhateverTheMode) {
  const double value = 1 + 0x1p-24 + 0x1p-40;  // above the middle of 1 and the next float
  const WeightView weight(DType::kF64, &value, {1, 1});
  const WeightView bias(DType::kF64, &value, Shape(1));
  for (const int mode : {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    std::fesetround(mode);
    const Result<PackedMatrix> packed = PackedMatrix::Create(WeightSource::One(weight, bias));
    std::fesetround(FE_TONEAREST);
    ASSERT_TRUE(packed.ok());
    EXPECT_EQ(Panel(packed->view(), 0, 0, 1)[0], 1 + 0x1p-23f);
    EXPECT_EQ(packed->view().bias[0], 1 + 0x1p-23f);
  }
}

TEST(WeightSource, TooLargeIsAnError) {
  const float none = 0;
  const size_t huge = size_t{1} << 45;
  const WeightView weight(DType::kF32, &none, {huge, huge}, {0, 0});
  const Result<PackedMatrix> packed = PackedMatrix::Create(
      {.parts = {WeightPart{weight, {}}, WeightPart{weight, {}}}, .num_parts = 2, .gated = true});
  ASSERT_FALSE(packed.ok());
  EXPECT_EQ(packed.status().code(), ErrorCode::kOutOfMemory);
}

}  // namespace
}  // namespace encore::internal
