// SPDX-License-Identifier: Apache-2.0
//
// Draws strides and numbers, and looks at what was written.

#include "tests/fuzz/drawn_views.h"

#include <cmath>
#include <cstdio>
#include <iterator>
#include <limits>
#include <string>
#include <utility>

namespace encore::fuzz {
namespace {

constexpr float kInfinite = std::numeric_limits<float>::infinity();
constexpr float kSpecials[] = {std::numeric_limits<float>::quiet_NaN(),
                               kInfinite,
                               -kInfinite,
                               0.0f,
                               -0.0f,
                               std::numeric_limits<float>::max(),
                               std::numeric_limits<float>::denorm_min()};

// What nobody may step by, since the axis has one element at most.
constexpr ptrdiff_t kWildStrides[] = {PTRDIFF_MAX, PTRDIFF_MIN, -1, 0, PTRDIFF_MAX / 3};

bool IsOutput(Layout layout) { return layout == Layout::kOutput || layout == Layout::kOutputRows; }
bool HasRows(Layout layout) {
  return layout == Layout::kInputRows || layout == Layout::kOutputRows;
}

}  // namespace

Numbers DrawNumbers(Draw& draw) {
  return draw.Chance(2) ? Numbers::kTame : static_cast<Numbers>(draw.Between(0, 6));
}

float NumberSource::Next(Numbers kind) {
  switch (kind) {
    case Numbers::kTame:
      break;
    case Numbers::kWide:
      return std::ldexp(Tame(), static_cast<int>(Bits() % 60) - 30);
    case Numbers::kHuge:
      return Tame() * 3e38f;
    case Numbers::kSubnormal:
      return Tame() * 1e-39f;
    case Numbers::kSpecial:
      if (Bits() % 16 != 0) break;
      return kSpecials[Bits() % std::size(kSpecials)];
    case Numbers::kConstant:
      return 0.75f;
    case Numbers::kAnyBits:
      return std::bit_cast<float>(static_cast<uint32_t>(Bits()));
  }
  return Tame();
}

TensorView<float>::Strides DrawStrides(Draw& draw, const Shape& shape, Layout layout) {
  const size_t rank = shape.rank();
  const size_t rows = HasRows(layout) ? 1 : 0;
  TensorView<float>::Strides strides = ConstView(nullptr, shape).strides();
  if (draw.Chance(2)) return strides;
  // Axes from the innermost in memory to the outermost.
  std::array<size_t, Shape::kMaxRank> order{};
  for (size_t i = 0; i < rank; ++i) order[i] = rank - 1 - i;
  if (rows == 0 && draw.Chance(2)) {
    for (size_t i = rank; i > 1; --i) std::swap(order[i - 1], order[draw.Between(0, i - 1)]);
  }
  size_t step = 1;
  for (size_t i = 0; i < rank; ++i) {
    const size_t axis = order[i];
    const bool contiguous = rows == 1 && i == 0;
    if (!contiguous && draw.Chance(3)) step += draw.Between(1, 3);
    strides[axis] = static_cast<ptrdiff_t>(step);
    step *= std::max<size_t>(shape[axis], 1);
    if (contiguous) continue;
    if (rows == 0 && draw.Chance(4)) strides[axis] = -strides[axis];
    if (!IsOutput(layout) && draw.Chance(12)) strides[axis] = 0;
    if (shape[axis] <= 1 && draw.Chance(2)) strides[axis] = kWildStrides[draw.Between(0, 4)];
  }
  return strides;
}

void DrawnOutput::CheckRest() const {
  std::vector<bool> inside(size());
  ForEachElement(view(),
                 [&](const float& v) { inside[static_cast<size_t>(&v - memory_.get())] = true; });
  for (size_t i = 0; i < inside.size(); ++i) {
    if (inside[i]) continue;
    ENCORE_FUZZ_CHECK(std::bit_cast<uint32_t>(memory_[i]) == kFill,
                      "a write beside the view, at " + std::to_string(i));
  }
}

void DrawnOutput::CheckUntouched() const {
  for (size_t i = 0; i < size(); ++i) {
    ENCORE_FUZZ_CHECK(std::bit_cast<uint32_t>(memory_[i]) == kFill,
                      "a call that failed wrote at " + std::to_string(i));
  }
}

std::string Exactly(float value) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%a", static_cast<double>(value));
  return text.data();
}

void CheckSame(std::span<const float> got, std::span<const float> want, const char* what) {
  ENCORE_FUZZ_CHECK(got.size() == want.size(), what);
  for (size_t i = 0; i < got.size(); ++i) {
    ENCORE_FUZZ_CHECK(SameFloat(got[i], want[i]), std::string(what) + ": [" + std::to_string(i) +
                                                      "] is " + std::to_string(got[i]) +
                                                      "; wanted the bits of " +
                                                      std::to_string(want[i]));
  }
}

}  // namespace encore::fuzz
