// SPDX-License-Identifier: Apache-2.0
//
// Pillow's resampling in fixed point. Both passes are the same sum: of lanes of bytes over rows.
// For the horizontal one, some source rows are turned so that a pixel's lanes lie side by side.

#include "engine/images/resample.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <numbers>
#include <span>
#include <utility>
#include <vector>

#include "engine/base/strict_math.h"  // IWYU pragma: keep

namespace encore::inline v0_1::internal {
namespace {

constexpr int kPrecisionBits = 32 - 8 - 2;  // of the weights: a byte and a sign are left

// Source rows that are turned together, and a turned pixel: theirs, 4 bytes each.
constexpr size_t kRows = 16;
constexpr size_t kTurnedPixel = 4 * kRows;
// Source pixels that are turned together: 32 KiB, which a cache of the first level has.
constexpr size_t kSpan = 512;

// ---- Filters, with 0 outside of their support ----------------------------------------------

double Box(double x) { return x > -0.5 && x <= 0.5 ? 1.0 : 0.0; }

double Triangle(double x) {
  x = std::abs(x);
  return x < 1.0 ? 1.0 - x : 0.0;
}

double Hamming(double x) {
  x = std::abs(x);
  if (x == 0.0) return 1.0;
  if (x >= 1.0) return 0.0;
  x *= std::numbers::pi;
  return std::sin(x) / x * (0.54f + 0.46f * std::cos(x));
}

double Cubic(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
  if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * a;
  return 0.0;
}

double Sinc(double x) {
  if (x == 0.0) return 1.0;
  x *= std::numbers::pi;
  return std::sin(x) / x;
}

double Lanczos(double x) { return x >= -3.0 && x < 3.0 ? Sinc(x) * Sinc(x / 3) : 0.0; }

struct Filter {
  double (*weight)(double x);
  double support;
};

// An ulp of the C library's sine moves a weight once in 2^30.
Filter FilterOf(ResampleFilter filter) {
  switch (filter) {
    case ResampleFilter::kLanczos:
      return {Lanczos, 3.0};
    case ResampleFilter::kBilinear:
      return {Triangle, 1.0};
    case ResampleFilter::kBicubic:
      return {Cubic, 2.0};
    case ResampleFilter::kHamming:
      return {Hamming, 1.0};
    case ResampleFilter::kNearest:
    case ResampleFilter::kBox:
      break;
  }
  return {Box, 0.5};
}

// ---- Weights --------------------------------------------------------------------------------

// The source pixels of each output pixel of one direction. They begin and end in order.
struct Axis {
  struct Taps {
    size_t first, count;
    size_t weights;  // of the first one, in `weights`
    size_t end() const { return first + count; }
  };
  std::vector<Taps> taps;
  std::vector<int32_t> weights;

  void Add(size_t first, std::span<const double> exact) {
    taps.push_back({first, exact.size(), weights.size()});
    for (const double weight : exact) {
      const double scaled = weight * (1 << kPrecisionBits);
      weights.push_back(static_cast<int32_t>(weight < 0 ? scaled - 0.5 : scaled + 0.5));
    }
  }
  std::span<const int32_t> Weights(const Taps& one) const {
    return {weights.data() + one.weights, one.count};
  }
  size_t max_count() const {
    size_t count = 1;
    for (const Taps& one : taps) count = std::max(count, one.count);
    return count;
  }
};

Axis NearestAxis(size_t in, size_t out, size_t begin, size_t count) {
  Axis axis;
  const double scale = static_cast<double>(in) / static_cast<double>(out);
  const double one = 1.0;
  double position = scale * 0.5;
  // The positions are sums, so those before the window count.
  for (size_t x = 0; x < begin + count; ++x, position += scale) {
    const size_t nearest = std::min(static_cast<size_t>(position), in - 1);
    if (x >= begin) axis.Add(nearest, {&one, 1});
  }
  return axis;
}

// Of output pixels begin .. begin + count.
Axis MakeAxis(ResampleFilter kind, size_t in, size_t out, size_t begin, size_t count) {
  if (kind == ResampleFilter::kNearest || in == out) return NearestAxis(in, out, begin, count);
  const Filter filter = FilterOf(kind);
  const double scale = static_cast<double>(in) / static_cast<double>(out);
  const double filter_scale = std::max(scale, 1.0);
  const double support = filter.support * filter_scale;
  const double inverse = 1.0 / filter_scale;
  Axis axis;
  axis.taps.reserve(count);
  std::vector<double> exact;
  for (size_t x = begin; x < begin + count; ++x) {
    const double center = (static_cast<double>(x) + 0.5) * scale;
    const auto first = static_cast<size_t>(std::max(center - support + 0.5, 0.0));
    const double after = center + support + 0.5;
    const size_t end = std::min(static_cast<size_t>(after), in);
    exact.resize(end - first);
    double sum = 0.0;
    for (size_t i = 0; i < exact.size(); ++i) {
      exact[i] = filter.weight((static_cast<double>(i + first) - center + 0.5) * inverse);
      sum += exact[i];
    }
    if (sum != 0.0) {
      for (double& weight : exact) weight /= sum;
    }
    axis.Add(first, exact);
  }
  return axis;
}

// ---- Sums -----------------------------------------------------------------------------------

uint8_t Clipped(int32_t sum) {
  return static_cast<uint8_t>(std::clamp(sum >> kPrecisionBits, 0, 255));
}

// out[i] = the rounded sum over t of weights[t] * in[t * stride + i], for n lanes.
void SumOfRows(const uint8_t* in, size_t stride, std::span<const int32_t> weights, size_t n,
               uint8_t* out) {
  constexpr size_t kLanes = 64;
  std::array<int32_t, kLanes> sums;
  for (size_t begin = 0; begin < n; begin += kLanes, in += kLanes, out += kLanes) {
    const size_t lanes = std::min(kLanes, n - begin);
    sums.fill(1 << (kPrecisionBits - 1));
    const uint8_t* row = in;
    for (const int32_t weight : weights) {
      for (size_t i = 0; i < lanes; ++i) sums[i] += weight * row[i];
      row += stride;
    }
    for (size_t i = 0; i < lanes; ++i) out[i] = Clipped(sums[i]);
  }
}

// The colour over white, rounded to nearest: what Pillow's alpha_composite gives as well.
uint8_t OverWhite(uint8_t colour, uint8_t alpha) {
  const unsigned sum = colour * alpha + 255u * (255u - alpha);
  return static_cast<uint8_t>((sum + 127) / 255);
}

// Turns pixels [begin, end) of the rows [top, top + rows): [end - begin, kRows, RGB and a byte].
void TurnRows(const ImageView& image, size_t top, size_t rows, size_t begin, size_t end,
              uint8_t* turned) {
  for (size_t row = 0; row < rows; ++row) {
    const uint8_t* pixel = image.pixels + (top + row) * image.stride + begin * image.channels;
    uint8_t* to = turned + 4 * row;
    for (size_t x = begin; x < end; ++x, pixel += image.channels, to += kTurnedPixel) {
      if (image.channels == 3) {
        std::memcpy(to, pixel, 3);
      } else if (image.channels == 1) {
        to[0] = to[1] = to[2] = pixel[0];
      } else {
        for (size_t c = 0; c < 3; ++c) to[c] = OverWhite(pixel[c], pixel[3]);
      }
    }
  }
}

// The horizontal pass.
class HorizontalPass {
 public:
  explicit HorizontalPass(const Axis& axis)
      : axis_(axis), turned_(kTurnedPixel * std::max(kSpan, axis.max_count())) {}

  // Rows [top, top + rows) of the image, at most kRows, as RGB of the axis's pixels.
  void Run(const ImageView& image, size_t top, size_t rows, uint8_t* out, size_t out_stride) {
    std::array<uint8_t, kTurnedPixel> pixel;
    for (size_t x = 0; x < axis_.taps.size();) {
      const size_t begin = axis_.taps[x].first;
      size_t after = x + 1;
      while (after < axis_.taps.size() && axis_.taps[after].end() <= begin + kSpan) ++after;
      TurnRows(image, top, rows, begin, axis_.taps[after - 1].end(), turned_.data());
      for (; x < after; ++x) {
        const Axis::Taps& taps = axis_.taps[x];
        SumOfRows(turned_.data() + (taps.first - begin) * kTurnedPixel, kTurnedPixel,
                  axis_.Weights(taps), kTurnedPixel, pixel.data());
        for (size_t row = 0; row < rows; ++row) {
          std::memcpy(out + row * out_stride + 3 * x, pixel.data() + 4 * row, 3);
        }
      }
    }
  }

 private:
  const Axis& axis_;
  std::vector<uint8_t> turned_;  // [source pixels, kRows, 4]
};

// Rows that are made from the top on, some at a time, and kept while a window may want them.
class SlidingRows {
 public:
  // Writes rows [top, top + rows), at most kRows, one after the other.
  using Make = std::function<void(size_t top, size_t rows, uint8_t* out)>;

  SlidingRows(size_t height, size_t row_bytes, size_t max_window, Make make)
      : height_(height),
        row_bytes_(row_bytes),
        make_(std::move(make)),
        rows_(row_bytes * (2 * max_window + 2 * kRows)) {}

  // The rows [first, end). Neither may fall from call to call.
  const uint8_t* Get(size_t first, size_t end) {
    if (first >= end_) base_ = end_ = first;  // none of those here
    while (end_ < end) {
      if ((end_ - base_ + kRows) * row_bytes_ > rows_.size()) {
        std::memmove(rows_.data(), At(first), (end_ - first) * row_bytes_);
        base_ = first;
      }
      const size_t rows = std::min(kRows, height_ - end_);
      make_(end_, rows, At(end_));
      end_ += rows;
    }
    return At(first);
  }

 private:
  uint8_t* At(size_t row) { return rows_.data() + (row - base_) * row_bytes_; }

  size_t height_, row_bytes_;
  Make make_;
  std::vector<uint8_t> rows_;  // [base_, end_)
  size_t base_ = 0, end_ = 0;
};

void HorizontalFirst(const ImageView& image, const Axis& across, const Axis& down, uint8_t* out,
                     size_t out_stride) {
  const size_t row_bytes = 3 * across.taps.size();
  HorizontalPass horizontal(across);
  SlidingRows narrow(image.height, row_bytes, down.max_count(),
                     [&](size_t top, size_t rows, uint8_t* made) {
                       horizontal.Run(image, top, rows, made, row_bytes);
                     });
  for (const Axis::Taps& taps : down.taps) {
    SumOfRows(narrow.Get(taps.first, taps.end()), row_bytes, down.Weights(taps), row_bytes, out);
    out += out_stride;
  }
}

void VerticalFirst(const ImageView& image, const Axis& across, const Axis& down, uint8_t* out,
                   size_t out_stride) {
  // What the sums read: the image as it is or, if it has an alpha, rows without.
  const size_t channels = image.channels == 1 ? 1 : 3;
  const size_t row_bytes = channels * image.width;
  const size_t begin = channels * across.taps.front().first;
  const size_t bytes = channels * across.taps.back().end() - begin;
  SlidingRows opaque(image.height, row_bytes, image.channels == 4 ? down.max_count() : 0,
                     [&](size_t top, size_t rows, uint8_t* made) {
                       for (size_t row = top; row < top + rows; ++row) {
                         const uint8_t* pixel = image.pixels + row * image.stride;
                         for (size_t x = 0; x < image.width; ++x, pixel += 4) {
                           for (size_t c = 0; c < 3; ++c) *made++ = OverWhite(pixel[c], pixel[3]);
                         }
                       }
                     });
  HorizontalPass horizontal(across);
  std::vector<uint8_t> low(kRows * row_bytes);
  const ImageView lower = {.pixels = low.data(),
                           .width = image.width,
                           .height = kRows,
                           .stride = row_bytes,
                           .channels = channels};
  for (size_t top = 0; top < down.taps.size(); top += kRows) {
    const size_t rows = std::min(kRows, down.taps.size() - top);
    for (size_t row = 0; row < rows; ++row) {
      const Axis::Taps& taps = down.taps[top + row];
      const uint8_t* in = image.pixels + taps.first * image.stride;
      size_t stride = image.stride;
      if (image.channels == 4) {
        in = opaque.Get(taps.first, taps.end());
        stride = row_bytes;
      }
      SumOfRows(in + begin, stride, down.Weights(taps), bytes,
                low.data() + row * row_bytes + begin);
    }
    horizontal.Run(lower, 0, rows, out + top * out_stride, out_stride);
  }
}

}  // namespace

void Resample(const ImageView& image, ResampleFilter filter, const ImageWindow& window,
              uint8_t* out, size_t out_stride) {
  const Axis across = MakeAxis(filter, image.width, window.width, window.left, window.columns);
  const Axis down = MakeAxis(filter, image.height, window.height, window.top, window.rows);
  const auto lost = [](size_t from, size_t to) {
    return static_cast<int64_t>(from) - static_cast<int64_t>(to);
  };
  const int64_t lost_rows = lost(image.height, window.height);
  const bool vertical_first = lost_rows > 0 && lost_rows > 2 * lost(image.width, window.width);
  (vertical_first ? VerticalFirst : HorizontalFirst)(image, across, down, out, out_stride);
}

}  // namespace encore::internal
