// SPDX-License-Identifier: Apache-2.0
//
// The subjects, and their errors as loops that compilers make vectors of.

#include "reference/exhaustive/subject.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

#include "encore/cpu.h"
#include "reference/accuracy.h"
#include "reference/exhaustive/fast_reference.h"
#include "reference/tile_accuracy.h"

namespace encore::tool {
namespace {

using reference::Accuracy;
using reference::kInfinity;
using reference::TileAccuracy;

constexpr double kNoPromise = std::numeric_limits<double>::infinity();

// 1 / (the f32 spacing at value), as reference::UlpError and SpacingAt have it, but for inf.
inline double InverseSpacing(double value) {
  constexpr uint64_t kExponent = 0x7FF0000000000000u;
  double power = std::bit_cast<double>(std::bit_cast<uint64_t>(value) & kExponent);
  power = power > 0x1p-126 ? power : 0x1p-126;
  power = power < 0x1p127 ? power : 0x1p127;
  // Of a power of two the exponent changes its sign.
  constexpr uint64_t kTwiceBias = uint64_t{2 * 1023} << 52;
  return 0x1p23 * std::bit_cast<double>(kTwiceBias - std::bit_cast<uint64_t>(power));
}

// (y - exact) in ulps: reference::UlpError for finite `exact`, with a sign.
inline double SignedUlps(float y, double exact) {
  double value = y;
  value = value > 0x1p128 ? 0x1p128 : value;
  value = value < -0x1p128 ? -0x1p128 : value;
  const double error = (value - exact) * InverseSpacing(exact);
  // 0 for an infinity that is right; `value` is 2^128 in magnitude then and exact beyond it.
  const double sign = std::copysign(1.0, value);
  const double right = exact * sign >= 0x1p128 ? 0.0 : error;
  return value * sign == 0x1p128 ? right : error;
}

using Fast = void (*)(const float*, double*, size_t);
struct FastOf {
  double (*exact)(double);
  Fast fast;
};
constexpr FastOf kFast[] = {
    {&reference::Exp, &FastExp},
    {&reference::Tanh, &FastTanh},
    {&reference::Relu, &FastRelu},
    {&reference::Gelu, &FastGelu},
    {&reference::GeluTanh, &FastGeluTanh},
    {&reference::Silu, &FastSilu},
    {&reference::QuickGelu, &FastQuickGelu},
};

Fast FindFast(double (*exact)(double)) {
  for (const FastOf& entry : kFast) {
    if (entry.exact == exact) return entry.fast;
  }
  return nullptr;
}

// Subjects that are defined by a function of the C library.
template <class Promises>
class Elementwise : public Subject {
 public:
  void FastExact(const float* x, double* exact, size_t n) const override {
    if (fast_ != nullptr) return fast_(x, exact, n);
    for (size_t i = 0; i < n; ++i) exact[i] = accuracy_.exact(static_cast<double>(x[i]));
  }
  double Exact(float x) const override { return accuracy_.exact(static_cast<double>(x)); }

 protected:
  Elementwise(const Promises& accuracy, Family family)
      : Subject(std::string(accuracy.name), family),
        accuracy_(accuracy),
        fast_(FindFast(accuracy.exact)) {
    rises_from_ = accuracy.rises_from;
  }
  Promises accuracy_;

 private:
  Fast fast_;  // null: no fast form
};

class Function : public Elementwise<Accuracy> {
 public:
  explicit Function(const Accuracy& accuracy) : Elementwise(accuracy, Family::kFunction) {
    measures_ = {{"ulp", accuracy.ulps, accuracy.ulps_no_fma}};
    const float* x = reference::kSpecialArguments;
    const reference::SpecialValues& y = accuracy.special;
    special_values_ = {
        {x[0], y.at_zero}, {x[1], y.at_minus_zero}, {x[2], y.at_inf}, {x[3], y.at_minus_inf}};
    monotone_ = accuracy.monotone;
  }

  void Run(const TargetKernels& kernels, const float* x, float* y, size_t n) const override {
    (kernels.elementwise->*accuracy_.kernel)(x, y, n);
  }
  void FastErrors(size_t /*measure*/, const float* /*x*/, const float* y, const double* exact,
                  size_t n, float* errors) const override {
    for (size_t i = 0; i < n; ++i) errors[i] = static_cast<float>(SignedUlps(y[i], exact[i]));
  }
  double Error(size_t /*measure*/, float x, float y) const override {
    return reference::UlpError(y, Exact(x));
  }
};

class Tile : public Elementwise<TileAccuracy> {
 public:
  enum { kWhole, kEarly, kBelowZero, kAboveZero };

  explicit Tile(const TileAccuracy& accuracy) : Elementwise(accuracy, Family::kTile) {
    measures_ = {{"ulp of x", accuracy.ulps, accuracy.ulps_no_fma},
                 {"before the last rounding", accuracy.early_ulps, kNoPromise},
                 {"absolute, x < 0", kNoPromise, kNoPromise},
                 {"absolute, x > 0", kNoPromise, kNoPromise}};
    special_values_ = {
        {0.0f, 0.0f}, {-0.0f, -0.0f}, {kInfinity, kInfinity}, {-kInfinity, 0.0f, true}};
  }

  void Run(const TargetKernels& kernels, const float* x, float* y, size_t n) const override {
    std::memcpy(y, x, n * sizeof(float));
    kernels.elementwise->activation[static_cast<size_t>(accuracy_.activation)].tile(y, n, 1, n);
  }
  void FastErrors(size_t measure, const float* x, const float* y, const double* exact, size_t n,
                  float* errors) const override {
    switch (measure) {
      case kWhole:
        for (size_t i = 0; i < n; ++i) {
          const double error = static_cast<double>(y[i]) - exact[i];
          errors[i] = static_cast<float>(error * InverseSpacing(static_cast<double>(x[i])));
        }
        return;
      case kEarly:
        for (size_t i = 0; i < n; ++i) {
          const double value = y[i];
          const double error = std::fabs(value - exact[i]) - 0.5 / InverseSpacing(value);
          const double positive = error < 0 ? 0.0 : error;  // NaN stays
          errors[i] = static_cast<float>(positive * InverseSpacing(static_cast<double>(x[i])));
        }
        return;
      default: {
        const float side = measure == kBelowZero ? -1.0f : 1.0f;
        for (size_t i = 0; i < n; ++i) {
          const float error = static_cast<float>(static_cast<double>(y[i]) - exact[i]);
          errors[i] = x[i] * side > 0 ? std::fabs(error) : 0.0f;
        }
      }
    }
  }
  double Error(size_t measure, float x, float y) const override {
    const reference::TileError error = reference::TileErrorOf(x, y, Exact(x));
    if (measure == kWhole) return error.ulps;
    if (measure == kEarly) return error.early_ulps;
    const bool counts = std::isfinite(x) && (measure == kBelowZero ? x < 0 : x > 0);
    const double absolute = counts ? std::fabs(static_cast<double>(y) - Exact(x)) : 0.0;
    return std::isnan(absolute) ? HUGE_VAL : absolute;
  }
};

class SoftmaxExp : public Subject {
 public:
  enum { kBeyondSlope, kPlain };

  SoftmaxExp(std::string name, float scale)
      : Subject(std::move(name), Family::kSoftmaxExp),
        scale_(scale),
        slope_(reference::SoftmaxExpSlope(scale)) {
    const std::string allowance = slope_ == 3e-9 ? "less 3.0e-9 |s x|" : "less 6.3e-8 |s x|";
    measures_ = {{"ulp", reference::kSoftmaxExpUlps, reference::kSoftmaxExpUlps, allowance},
                 {"without the allowance", kNoPromise, kNoPromise}};
    special_values_ = {{0.0f, 1.0f}, {-0.0f, 1.0f}, {-kInfinity, 0.0f}};
    rises_from_ = -kInfinity;
  }

  // NaNs, which would spread over their row, go by themselves.
  void Run(const TargetKernels& kernels, const float* x, float* y, size_t n) const override {
    std::memcpy(y, x, n * sizeof(float));
    std::vector<size_t> nans;
    for (size_t i = 0; i < n; ++i) {
      if (!std::isnan(x[i])) continue;
      nans.push_back(i);
      y[i] = 0;
    }
    RunRow(kernels, y, n);
    if (nans.empty()) return;
    std::vector<float> row;
    row.reserve(nans.size());
    for (const size_t i : nans) row.push_back(x[i]);
    RunRow(kernels, row.data(), row.size());
    for (size_t i = 0; i < nans.size(); ++i) y[nans[i]] = row[i];
  }
  void FastExact(const float* x, double* exact, size_t n) const override {
    FastScaledExp(scale_, x, exact, n);
  }
  void FastErrors(size_t measure, const float* x, const float* y, const double* exact, size_t n,
                  float* errors) const override {
    const double scale = scale_;
    const double slope = measure == kBeyondSlope ? slope_ : 0.0;
    constexpr double kSurelyZero = reference::kSoftmaxExpLowest - reference::kSoftmaxExpBlur;
    constexpr double kMayBeZero = reference::kSoftmaxExpLowest + reference::kSoftmaxExpBlur;
    for (size_t i = 0; i < n; ++i) {
      const double value = y[i];
      const double exponent = scale * static_cast<double>(x[i]);
      const double inverse = InverseSpacing(exact[i]);
      double error = (value - exact[i]) * inverse;
      const double allowed = slope * exponent * exact[i] * inverse;  // negative
      const double beyond = std::fabs(error) + allowed;
      error = measure == kBeyondSlope ? (beyond < 0 ? 0.0 : beyond) : error;
      error = measure == kBeyondSlope && exponent < kSurelyZero ? value * 0x1p200 : error;
      error = value == 0 && exponent < kMayBeZero ? 0.0 : error;
      errors[i] = static_cast<float>(error);
    }
  }
  double Exact(float x) const override {
    return reference::Exp(static_cast<double>(scale_) * static_cast<double>(x));
  }
  double Error(size_t measure, float x, float y) const override {
    if (measure == kBeyondSlope) return reference::SoftmaxExpError(scale_, x, y);
    const double exponent = static_cast<double>(scale_) * static_cast<double>(x);
    const bool zero = exponent < reference::kSoftmaxExpLowest + reference::kSoftmaxExpBlur;
    return zero && y == 0 ? 0.0 : reference::UlpError(y, Exact(x));
  }

 private:
  // A step of the online softmax whose maximum so far is 0.
  void RunRow(const TargetKernels& kernels, float* row, size_t n) const {
    internal::ScoreTile tile{};
    tile.scores = row;
    tile.ld_scores = tile.cols = n;
    tile.rows = 1;
    tile.scale = scale_;
    float m = 0, l = 0, factor = 0;
    kernels.softmax->tile(tile, &m, &l, &factor);
  }

  float scale_;
  double slope_;
};

}  // namespace

std::vector<TargetKernels> AllTargetKernels() {
  std::vector<TargetKernels> targets;
  for (const std::string& name : SupportedTargets()) {
    if (!SetTarget(name).ok() || ActiveTarget() != name) continue;
    targets.push_back({name, reference::TargetHasFma(name), &internal::GetElementwiseKernels(),
                       &internal::GetSoftmaxKernels(), &internal::GetGemmKernelBf16()});
  }
  (void)SetTarget("");
  return targets;
}

std::vector<std::unique_ptr<Subject>> AllSubjects() {
  std::vector<std::unique_ptr<Subject>> subjects;
  for (const Accuracy& accuracy : reference::kAccuracies) {
    subjects.push_back(std::make_unique<Function>(accuracy));
  }
  for (const TileAccuracy& accuracy : reference::kTileAccuracies) {
    subjects.push_back(std::make_unique<Tile>(accuracy));
  }
  subjects.push_back(std::make_unique<SoftmaxExp>("softmax_exp", 1.0f));
  for (const int head : {32, 64, 80, 96, 128}) {
    const float scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(head)));
    subjects.push_back(std::make_unique<SoftmaxExp>("softmax_exp/" + std::to_string(head), scale));
  }
  return subjects;
}

}  // namespace encore::tool
