// SPDX-License-Identifier: Apache-2.0
//
// Views with drawn strides on memory of their own, filled with drawn numbers: tame ones, and those
// that arithmetic stumbles over.

#ifndef ENCORE_TESTS_FUZZ_DRAWN_VIEWS_H_
#define ENCORE_TESTS_FUZZ_DRAWN_VIEWS_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "encore/tensor.h"
#include "tests/fuzz/target.h"
#include "tests/support/drawn_config.h"
#include "tests/support/fma_chain.h"
#include "tests/support/sanitizers.h"

namespace encore::fuzz {

// kTame: within 1. kWide: of all magnitudes. kSpecial: NaN, infinities, zeros among tame ones.
enum class Numbers : uint8_t { kTame, kWide, kHuge, kSubnormal, kSpecial, kConstant, kAnyBits };
// Tame in half of the draws.
Numbers DrawNumbers(Draw& draw);
constexpr bool IsTame(Numbers kind) { return kind == Numbers::kTame || kind == Numbers::kConstant; }

// A fast generator of such numbers (splitmix64; Steele, Lea & Flood 2014).
class NumberSource {
 public:
  explicit NumberSource(uint32_t seed) : state_(seed) {}
  uint64_t Bits() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
  }
  float Tame() { return static_cast<float>(static_cast<int32_t>(Bits() >> 32)) * 0x1p-31f; }
  float Next(Numbers kind);
  void Fill(std::span<float> numbers, Numbers kind) {
    for (float& number : numbers) number = Next(kind);
  }

 private:
  uint64_t state_;
};

// kRows: the last axis is contiguous and rows follow each other, as the encoder wants them.
enum class Layout : uint8_t { kInput, kOutput, kInputRows, kOutputRows };

TensorView<float>::Strides DrawStrides(Draw& draw, const Shape& shape, Layout layout);

// Elements of such a view below and above its first one; their sum is the view's extent less 1.
struct Reach {
  size_t below = 0;
  size_t above = 0;
};
template <typename Strides>
Reach ReachOf(const Shape& shape, const Strides& strides) {
  Reach reach;
  for (size_t i = 0; i < shape.rank(); ++i) {
    if (shape[i] == 0) return {};
    if (shape[i] == 1) continue;  // such a stride may be anything
    const ptrdiff_t span = static_cast<ptrdiff_t>(shape[i] - 1) * strides[i];
    if (span < 0) {
      reach.below += static_cast<size_t>(-span);
    } else {
      reach.above += static_cast<size_t>(span);
    }
  }
  return reach;
}

inline bool HasElements(const Shape& shape) {
  for (size_t i = 0; i < shape.rank(); ++i) {
    if (shape[i] == 0) return false;
  }
  return true;
}

// Calls f(element) for each element, the last axis innermost.
template <typename T, typename F>
void ForEachElement(const TensorView<T>& view, const F& f) {
  const size_t rank = view.rank();
  if (!HasElements(view.shape())) return;
  std::array<size_t, Shape::kMaxRank> index{};
  T* p = view.data();
  while (true) {
    f(*p);
    size_t axis = rank;
    while (axis > 0 && index[axis - 1] + 1 == view.dim(axis - 1)) {
      --axis;
      if (index[axis] != 0) p -= static_cast<ptrdiff_t>(index[axis]) * view.stride(axis);
      index[axis] = 0;
    }
    if (axis == 0) return;
    ++index[axis - 1];
    p += view.stride(axis - 1);
  }
}

inline std::vector<float> Dense(const ConstView& view) {
  std::vector<float> elements;
  ForEachElement(view, [&](const float& v) { elements.push_back(v); });
  return elements;
}

// Memory for exactly this view, with a zone on both sides where no sanitizer watches.
template <typename T>
class DrawnView {
 public:
  DrawnView() = default;
  DrawnView(Draw& draw, const Shape& shape, Layout layout)
      : DrawnView(shape, DrawStrides(draw, shape, layout)) {}
  DrawnView(const Shape& shape, const typename TensorView<T>::Strides& strides) {
    const Reach reach = ReachOf(shape, strides);
    count_ = HasElements(shape) ? reach.below + reach.above + 1 : 0;
    memory_.reset(new T[count_ + 2 * kZone]);  // libc++ 14 has no make_unique_for_overwrite
    view_ = TensorView<T>(memory_.get() + kZone + reach.below, shape, strides);
  }

  const TensorView<T>& view() const { return view_; }
  // All of the view's memory, gaps included.
  std::span<T> memory() { return {memory_.get() + kZone, count_}; }
  // Whether two elements share memory, as inputs' may.
  bool folded() const {
    for (size_t i = 0; i < view_.rank(); ++i) {
      if (view_.dim(i) > 1 && view_.stride(i) == 0) return true;
    }
    return false;
  }

 protected:
  static constexpr size_t kZone = kSanitized ? 0 : 16;
  size_t size() const { return count_ + 2 * kZone; }
  std::unique_ptr<T[]> memory_;

 private:
  size_t count_ = 0;
  TensorView<T> view_;
};

class DrawnInput : public DrawnView<float> {
 public:
  DrawnInput(Draw& draw, const Shape& shape, NumberSource& source, Numbers kind,
             Layout layout = Layout::kInput)
      : DrawnView(draw, shape, layout) {
    source.Fill(memory(), kind);
  }
};

// Every float of it, and round it, starts as one NaN.
class DrawnOutput : public DrawnView<float> {
 public:
  DrawnOutput() = default;
  DrawnOutput(Draw& draw, const Shape& shape, Layout layout = Layout::kOutput)
      : DrawnView(draw, shape, layout) {
    std::fill_n(memory_.get(), size(), std::bit_cast<float>(kFill));
  }
  // Ends the process if anything but the view's elements was written, or those too.
  void CheckRest() const;
  void CheckUntouched() const;

 private:
  static constexpr uint32_t kFill = 0x7FC0DEAD;
};

// All digits of it: "-0x1.6d3f38p-3".
std::string Exactly(float value);

// Ends the process unless both have the same bits; any NaN is as good as another.
void CheckSame(std::span<const float> got, std::span<const float> want, const char* what);

}  // namespace encore::fuzz

#endif  // ENCORE_TESTS_FUZZ_DRAWN_VIEWS_H_
