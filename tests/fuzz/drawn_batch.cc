// SPDX-License-Identifier: Apache-2.0
//
// Draws a batch, and spoils one in six.

#include "tests/fuzz/drawn_batch.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

namespace encore::fuzz {
namespace {

constexpr size_t kMostTokens = std::numeric_limits<size_t>::max();
constexpr float kHidden = -std::numeric_limits<float>::infinity();

// No operation may read here.
template <typename T>
TensorView<T> Nowhere(const Shape& shape) {
  return TensorView<T>(reinterpret_cast<T*>(uintptr_t{64}), shape);
}

}  // namespace

DrawnBatch::DrawnBatch(Draw& draw, const EncoderConfig& config, bool large) : source_(draw.Seed()) {
  DrawLengths(draw, large);
  starts_ = true_starts_;
  batch_.seq_starts = starts_;
  DrawMask(draw, config);
  DrawViews(draw, config.d_model);
  if (!draw.Chance(6)) return;
  if (draw.Chance(2)) {
    SpoilBatch(draw);
  } else {
    SpoilViews(draw);
  }
}

void DrawnBatch::DrawLengths(Draw& draw, bool large) {
  for (size_t left = draw.Between(0, 5); left > 0; --left) {
    size_t length = draw.Between(0, 9);
    if (draw.Chance(16)) length = draw.Between(10, 20);
    if (draw.Chance(64)) length = draw.Between(60, 75);
    if (large && draw.Chance(4)) length = draw.Chance(4) ? 513 : draw.Between(120, 140);
    true_starts_.push_back(tokens() + length);
  }
}

void DrawnBatch::DrawMask(Draw& draw, const EncoderConfig& config) {
  batch_.mask.causal = draw.Chance(4);
  size_t size = 0;  // rows of the mask
  for (size_t b = 0; b < sequences(); ++b) size = std::max(size, length(b));
  size += draw.Between(0, 2);
  if (tokens() > 0 && draw.Chance(4)) {
    size = std::max<size_t>(size, 1);
    for (size_t t = 0; t < tokens(); ++t) positions_.push_back(source_.Bits() % size);
    batch_.positions = positions_;
  }
  if (size == 0) return;
  if (draw.Chance(4)) {
    const bool of_heads = draw.Chance(2);
    const Shape shape =
        of_heads ? Shape(config.layers[0].num_heads, size, size) : Shape(size, size);
    additive_ = DrawnView<float>(draw, shape, Layout::kInput);
    const Numbers kind = draw.Chance(2) ? Numbers::kTame : DrawNumbers(draw);
    for (float& number : additive_.memory()) {
      number = source_.Bits() % 4 == 0 ? kHidden : source_.Next(kind);
    }
    if (kind != Numbers::kTame) has_reference_ = false;
    batch_.mask.additive = additive_.view();
  }
  if (draw.Chance(4)) {
    blocked_ = DrawnView<bool>(draw, Shape(size, size), Layout::kInput);
    for (bool& flag : blocked_.memory()) flag = source_.Bits() % 4 == 0;
    batch_.mask.blocked = blocked_.view();
  }
}

void DrawnBatch::DrawViews(Draw& draw, size_t d_model) {
  const Shape shape(tokens(), d_model);
  const Numbers kind = DrawNumbers(draw);
  if (kind != Numbers::kTame) has_reference_ = false;
  in_place_ = draw.Chance(4);
  in_ = DrawnView<float>(draw, shape, in_place_ ? Layout::kOutputRows : Layout::kInputRows);
  source_.Fill(in_.memory(), kind);
  x_ = in_.view();
  x_values_ = Dense(x_);
  in_memory_.assign(in_.memory().begin(), in_.memory().end());
  if (in_place_) {
    y_ = in_.view();
    return;
  }
  out_ = DrawnOutput(draw, shape, Layout::kOutputRows);
  y_ = out_.view();
}

void DrawnBatch::SpoilBatch(Draw& draw) {
  const size_t last = starts_.size() - 1;
  switch (draw.Between(0, 7)) {
    case 0:
      fault_ = "no starts";
      batch_.seq_starts = SequenceStarts();
      break;
    case 1:
      fault_ = "a first start that is not 0";
      starts_[0] = 1 + tokens();
      break;
    case 2:
      fault_ = "an end that is not x's";
      if (last == 0) starts_.push_back(tokens());
      starts_.back() = draw.Chance(2) ? tokens() + 1 : kMostTokens;
      batch_.seq_starts = starts_;
      break;
    case 3:
      if (last < 2 || starts_[1] == starts_[2]) return;
      fault_ = "starts that decrease";
      std::swap(starts_[1], starts_[2]);
      break;
    case 4:
      if (tokens() < 2) return;
      fault_ = "positions of some tokens";
      positions_.assign(tokens() - 1, 0);
      batch_.positions = positions_;
      break;
    case 5:
      if (positions_.empty() || (batch_.mask.additive.empty() && batch_.mask.blocked.empty())) {
        return;
      }
      fault_ = "a position beyond the mask";
      positions_[draw.Between(0, tokens() - 1)] = draw.Chance(2) ? kMostTokens : kMostTokens / 4;
      break;
    case 6:
      fault_ = "a mask that is no square";
      batch_.mask.blocked = Nowhere<const bool>(Shape(kMostTokens / 2, 7));
      break;
    default:
      fault_ = "a mask that cannot be";
      batch_.mask.additive = Nowhere<const float>(Shape(kMostTokens, kMostTokens));
      break;
  }
}

void DrawnBatch::SpoilViews(Draw& draw) {
  const size_t d = x_.dim(1);
  switch (draw.Between(0, 5)) {
    case 0:
      fault_ = "x of another shape";
      x_ = Nowhere<const float>(draw.Chance(2) ? Shape(tokens(), d + 1) : Shape(tokens(), d, 1));
      break;
    case 1:
      fault_ = "y of another shape";
      y_ = Nowhere<float>(draw.Chance(2) ? Shape(tokens() + 1, d) : Shape(kMostTokens, d));
      break;
    case 2:
      if (tokens() == 0) return;
      fault_ = "x without data";
      x_ = ConstView(nullptr, x_.shape());
      break;
    case 3:
      if (tokens() < 2) return;
      fault_ = "rows of y that overlap";
      y_ = MutableView(y_.data(), y_.shape(), {static_cast<ptrdiff_t>(d) - 1, 1});
      break;
    case 4:
      if (tokens() == 0 || d < 2) return;
      fault_ = "rows of x that are not contiguous";
      x_ = ConstView(x_.data(), x_.shape(), {x_.stride(0), 2});
      break;
    default:
      if (tokens() < 2 || d < 2) return;
      fault_ = "x and y that overlap";
      y_ = MutableView(const_cast<float*>(x_.data()) + 1, y_.shape());
      break;
  }
}

Batch DrawnBatch::Alone(size_t b, std::vector<size_t>* starts) const {
  *starts = {0, length(b)};
  Batch alone = batch_;
  alone.seq_starts = *starts;
  if (!positions_.empty()) alone.positions = batch_.positions.subspan(begin(b), length(b));
  return alone;
}

void DrawnBatch::CheckInput() const {
  const float* const now = in_.view().data();
  const bool same = in_memory_.empty() ||
                    std::memcmp(now, in_memory_.data(), in_memory_.size() * sizeof(float)) == 0;
  ENCORE_FUZZ_CHECK(same, "x was written");
}

void DrawnBatch::CheckRest() const {
  if (!in_place_) {
    out_.CheckRest();
    return CheckInput();
  }
  // Gaps between rows.
  const float* const now = in_.view().data();
  const size_t d = in_.view().dim(1);
  for (size_t row = 0; row + 1 < tokens(); ++row) {
    const auto stride = static_cast<size_t>(in_.view().stride(0));
    for (size_t i = row * stride + d; i < (row + 1) * stride; ++i) {
      ENCORE_FUZZ_CHECK(SameFloat(now[i], in_memory_[i]), "a write between rows");
    }
  }
}

void DrawnBatch::CheckUntouched() const {
  CheckInput();
  if (!in_place_) out_.CheckUntouched();
}

}  // namespace encore::fuzz
