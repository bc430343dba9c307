// SPDX-License-Identifier: Apache-2.0
//
// Pillow's resampling in fixed point. Both passes are the same sum: of lanes of bytes over rows.
// For the horizontal one, some source rows are turned so that a pixel's lanes lie side by side.

#include "encore/resize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <numbers>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/guarded.h"
#include "engine/base/int_math.h"
#include "engine/base/status_macros.h"
#include "engine/base/strict_math.h"  // IWYU pragma: keep
#include "engine/kernels/byte_sums.h"
#include "engine/platform/fp_env.h"

namespace encore::inline v0_1 {
namespace internal {
namespace {

// Source rows that are turned together, and a turned pixel: theirs, 4 bytes each.
constexpr size_t kTurnedRows = 16;
constexpr size_t kTurnedPixel = 4 * kTurnedRows;
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
Filter FilterOf(ResizeFilter filter) {
  switch (filter) {
    case ResizeFilter::kLanczos:
      return {Lanczos, 3.0};
    case ResizeFilter::kBilinear:
      return {Triangle, 1.0};
    case ResizeFilter::kBicubic:
      return {Cubic, 2.0};
    case ResizeFilter::kHamming:
      return {Hamming, 1.0};
    case ResizeFilter::kNearest:
    case ResizeFilter::kBox:
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
  std::vector<WeightPair> weights;

  void Add(size_t first, std::span<const double> exact) {
    taps.push_back({first, exact.size(), weights.size()});
    const auto rounded = [&](size_t i) {
      if (i >= exact.size()) return int32_t{0};
      const double scaled = exact[i] * (1 << kByteSumBits);
      return static_cast<int32_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
    };
    for (size_t i = 0; i < exact.size(); i += 2) {
      weights.push_back(WeightPair::Of(rounded(i), rounded(i + 1)));
    }
  }
  // The sums of n lanes of these pixels, of which the first one's lanes are at `in`.
  void Sum(const Taps& one, const uint8_t* in, size_t stride, size_t n, uint8_t* out) const {
    SumByteRows({.in = in,
                 .stride = stride,
                 .rows = one.count,
                 .weights = weights.data() + one.weights,
                 .n = n,
                 .out = out});
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
Axis MakeAxis(ResizeFilter kind, size_t in, size_t out, size_t begin, size_t count) {
  if (kind == ResizeFilter::kNearest || in == out) return NearestAxis(in, out, begin, count);
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

// The colour over white, rounded to nearest: what Pillow's alpha_composite gives as well.
uint8_t OverWhite(uint8_t colour, uint8_t alpha) {
  const unsigned sum = colour * alpha + 255u * (255u - alpha);
  return static_cast<uint8_t>((sum + 127) / 255);
}

// RGB of a pixel; where a byte is readable behind it, kBytes of 4 are quicker.
template <size_t kChannels, size_t kBytes>
void CopyPixel(const uint8_t* pixel, uint8_t* to) {
  if constexpr (kChannels == 1) {
    to[0] = to[1] = to[2] = pixel[0];
  } else if constexpr (kChannels == 3) {
    std::memcpy(to, pixel, kBytes);
  } else {
    for (size_t c = 0; c < 3; ++c) to[c] = OverWhite(pixel[c], pixel[3]);
  }
}

// Turns pixels [begin, end) of the rows [top, top + rows): [end - begin, kTurnedRows, RGB and a
// byte].
template <size_t kChannels>
void TurnRows(const ImageView& image, size_t top, size_t rows, size_t begin, size_t end,
              uint8_t* turned) {
  constexpr size_t kTile = 8;  // pixels whose cache lines are written together
  for (size_t x = begin; x < end; x += kTile, turned += kTile * kTurnedPixel) {
    const uint8_t* pixel = image.pixels + top * image.stride + x * kChannels;
    for (size_t row = 0; row < rows; ++row, pixel += image.stride) {
      uint8_t* const to = turned + 4 * row;
      if (x + kTile < end) {
        for (size_t i = 0; i < kTile; ++i) {
          CopyPixel<kChannels, 4>(pixel + i * kChannels, to + i * kTurnedPixel);
        }
      } else {
        for (size_t i = 0; i < end - x; ++i) {
          CopyPixel<kChannels, 3>(pixel + i * kChannels, to + i * kTurnedPixel);
        }
      }
    }
  }
}

// The horizontal pass.
class HorizontalPass {
 public:
  explicit HorizontalPass(const Axis& axis)
      : axis_(axis), turned_(kTurnedPixel * std::max(kSpan, axis.max_count())) {}

  // Rows [top, top + rows) of the image, at most kTurnedRows, as RGB of the axis's pixels.
  void Run(const ImageView& image, size_t top, size_t rows, uint8_t* out, size_t out_stride) {
    std::array<uint8_t, kTurnedPixel> pixel;
    for (size_t x = 0; x < axis_.taps.size();) {
      const size_t begin = axis_.taps[x].first;
      size_t after = x + 1;
      while (after < axis_.taps.size() && axis_.taps[after].end() <= begin + kSpan) ++after;
      const auto turn = image.channels == 1   ? TurnRows<1>
                        : image.channels == 3 ? TurnRows<3>
                                              : TurnRows<4>;
      turn(image, top, rows, begin, axis_.taps[after - 1].end(), turned_.data());
      for (; x < after; ++x) {
        const Axis::Taps& taps = axis_.taps[x];
        axis_.Sum(taps, turned_.data() + (taps.first - begin) * kTurnedPixel, kTurnedPixel,
                  kTurnedPixel, pixel.data());
        for (size_t row = 0; row < rows; ++row) {
          std::memcpy(out + row * out_stride + 3 * x, pixel.data() + 4 * row, 3);
        }
      }
    }
  }

 private:
  const Axis& axis_;
  std::vector<uint8_t> turned_;  // [source pixels, kTurnedRows, 4]
};

// Rows that are made from the top on, some at a time, and kept while a window may want them.
class SlidingRows {
 public:
  // Writes rows [top, top + rows), at most kTurnedRows, one after the other.
  using Make = std::function<void(size_t top, size_t rows, uint8_t* out)>;

  SlidingRows(size_t height, size_t row_bytes, size_t max_window, Make make)
      : height_(height),
        row_bytes_(row_bytes),
        make_(std::move(make)),
        rows_(row_bytes * (2 * max_window + 2 * kTurnedRows)) {}

  // The rows [first, end). Neither may fall from call to call.
  const uint8_t* Get(size_t first, size_t end) {
    if (first >= end_) base_ = end_ = first;  // none of those here
    while (end_ < end) {
      if ((end_ - base_ + kTurnedRows) * row_bytes_ > rows_.size()) {
        std::memmove(rows_.data(), At(first), (end_ - first) * row_bytes_);
        base_ = first;
      }
      const size_t rows = std::min(kTurnedRows, height_ - end_);
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
    down.Sum(taps, narrow.Get(taps.first, taps.end()), row_bytes, row_bytes, out);
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
  std::vector<uint8_t> low(kTurnedRows * row_bytes);
  const ImageView lower = {.pixels = low.data(),
                           .width = image.width,
                           .height = kTurnedRows,
                           .stride = row_bytes,
                           .channels = channels};
  for (size_t top = 0; top < down.taps.size(); top += kTurnedRows) {
    const size_t rows = std::min(kTurnedRows, down.taps.size() - top);
    for (size_t row = 0; row < rows; ++row) {
      const Axis::Taps& taps = down.taps[top + row];
      const uint8_t* in = image.pixels + taps.first * image.stride;
      size_t stride = image.stride;
      if (image.channels == 4) {
        in = opaque.Get(taps.first, taps.end());
        stride = row_bytes;
      }
      down.Sum(taps, in + begin, stride, bytes, low.data() + row * row_bytes + begin);
    }
    horizontal.Run(lower, 0, rows, out + top * out_stride, out_stride);
  }
}

void Resize(const ImageView& image, ResizeFilter filter, const ResizeWindow& window, uint8_t* out,
            size_t out_stride) {
  const Axis across = MakeAxis(filter, image.width, window.width, window.left, window.columns);
  const Axis down = MakeAxis(filter, image.height, window.height, window.top, window.rows);
  const auto lost = [](size_t from, size_t to) {
    return static_cast<int64_t>(from) - static_cast<int64_t>(to);
  };
  const int64_t lost_rows = lost(image.height, window.height);
  const bool vertical_first = lost_rows > 0 && lost_rows > 2 * lost(image.width, window.width);
  (vertical_first ? VerticalFirst : HorizontalFirst)(image, across, down, out, out_stride);
}

// Of one direction.
Status CheckWindow(const char* what, size_t size, size_t begin, size_t count) {
  constexpr size_t kMaxResizedEdge = size_t{1} << 30;
  if (size == 0 || size > kMaxResizedEdge) {
    return InvalidArgument("window: a " + std::string(what) + " of " + std::to_string(size) +
                           "; wanted 1 .. 2^30");
  }
  if (count == 0 || begin > size || count > size - begin) {
    return InvalidArgument("window: " + std::to_string(count) + " from " + std::to_string(begin) +
                           " on, of a " + what + " of " + std::to_string(size) +
                           "; wanted at least 1 within it");
  }
  return {};
}

}  // namespace
}  // namespace internal

Status CheckImageView(const ImageView& image) {
  using std::to_string;
  constexpr size_t kMaxEdge = size_t{1} << 20;
  const auto fault = [&](const std::string& found) {
    return InvalidArgument("image: " + to_string(image.width) + " x " + to_string(image.height) +
                           " pixels of " + to_string(image.channels) + " channels" + found);
  };
  if (image.channels != 1 && image.channels != 3 && image.channels != 4) {
    return fault("; wanted 1, 3 or 4 channels");
  }
  if (image.width == 0 || image.height == 0 || image.width > kMaxEdge || image.height > kMaxEdge) {
    return fault("; wanted edges of 1 .. " + to_string(kMaxEdge));
  }
  if (image.width * image.height > ImageView::kMaxPixels) {
    return fault("; wanted at most " + to_string(ImageView::kMaxPixels) + " pixels");
  }
  const std::string rows = ", rows of " + to_string(image.stride) + " bytes";
  if (image.stride < image.width * image.channels) {
    return fault(rows + "; wanted at least " + to_string(image.width * image.channels));
  }
  size_t bytes = 0;
  if (!internal::CheckedMul(image.stride, image.height, &bytes)) {
    return fault(rows + "; wanted what fits into memory");
  }
  return image.pixels == nullptr ? fault(", found a null pointer to pixels") : Status();
}

Status ResizeImage(const ImageView& image, ResizeFilter filter, const ResizeWindow& window,
                   uint8_t* out, size_t out_stride) {
  return internal::Guarded("an image", [&]() -> Status {
    ENCORE_RETURN_IF_ERROR(CheckImageView(image));
    ENCORE_RETURN_IF_ERROR(internal::CheckWindow("height", window.height, window.top, window.rows));
    ENCORE_RETURN_IF_ERROR(
        internal::CheckWindow("width", window.width, window.left, window.columns));
    if (filter > ResizeFilter::kHamming) {
      return InvalidArgument("filter: " + std::to_string(static_cast<int>(filter)) +
                             "; wanted 0 .. 5");
    }
    if (out_stride < 3 * window.columns) {
      return InvalidArgument("out: rows of " + std::to_string(out_stride) +
                             " bytes; wanted at least " + std::to_string(3 * window.columns));
    }
    if (out == nullptr) return InvalidArgument("out: found a null pointer; wanted memory for rows");
    const internal::FpEnvScope default_modes;
    internal::Resize(image, filter, window, out, out_stride);
    return {};
  });
}

}  // namespace encore
