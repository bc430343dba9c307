// SPDX-License-Identifier: Apache-2.0
//
// Softmax on every SIMD target: the public operation, and the kernels for attention (online tiles
// and weights).

#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "encore/ops.h"
#include "engine/kernels/softmax.h"
#include "gtest/gtest.h"
#include "reference/accuracy.h"
#include "reference/hard_floats.h"
#include "reference/softmax.h"
#include "reference/tile_accuracy.h"
#include "tests/ops/row_layouts.h"
#include "tests/support/compare.h"
#include "tests/support/guarded.h"
#include "tests/support/sanitizers.h"
#include "tests/support/targets.h"

namespace encore {
namespace {

using internal::GetSoftmaxKernels;
using internal::ScoreTile;
using reference::Matrix;
using reference::Rounded;
using Strides = TensorView<float>::Strides;

constexpr float kSoftmaxInf = std::numeric_limits<float>::infinity();
constexpr size_t kSizes[] = {1, 2, 15, 16, 17, 31, 32, 33, 64, 100, 1000};

// Compares [rows, cols] of `got` with the reference for x; *worst grows.
testing::AssertionResult IsSoftmaxOf(const std::vector<float>& got, const std::vector<float>& x,
                                     size_t rows, size_t cols, double* worst) {
  const Matrix<Rounded> want =
      reference::Softmax(Matrix<Rounded>(ConstView(x.data(), Shape{rows, cols})));
  return NearEach(
      got, [&](size_t i) { return want.data[i].value; },
      [&](size_t i) { return want.data[i].Bound(); }, worst);
}

TEST(Softmax, RightForAllSizesAndScales) {
  ForEachTarget([](const std::string& target) {
    double worst = 0;
    for (const size_t cols : kSizes) {
      for (const size_t rows : {1, 2, 3, 4, 5, 9}) {
        for (const float scale : {1e-3f, 1.0f, 30.0f, 1e4f}) {
          const std::vector<float> x =
              RandomFloats(rows * cols, static_cast<uint32_t>(cols + rows), scale, scale);
          const Shape shape{rows, cols};
          Guarded y(shape);
          const Status status = Softmax(ConstView(x.data(), shape), y.view());
          ASSERT_TRUE(status.ok()) << status.message();
          ASSERT_TRUE(y.Intact());
          const std::vector<float> got(y.view().data(), y.view().data() + rows * cols);
          ASSERT_TRUE(IsSoftmaxOf(got, x, rows, cols, &worst))
              << rows << " x " << cols << ", scale " << scale;
          for (size_t r = 0; r < rows; ++r) {
            double sum = 0;
            for (size_t c = 0; c < cols; ++c) sum += static_cast<double>(got[r * cols + c]);
            ASSERT_NEAR(sum, 1.0, 0x1p-24 * (4 + std::sqrt(static_cast<double>(cols))));
          }
        }
      }
    }
    std::printf("%-9s worst error: %.3f of its bound\n", target.c_str(), worst);
  });
}

TEST(Softmax, StridesRowsAndTargetsChangeNoBit) {
  const Shape& shape = kLayoutShape;
  const std::vector<float> values = RandomFloats(3 * 5 * 37, 11, 2.0f);
  std::vector<float> first;
  ForEachTarget([&](const std::string& target) {
    std::vector<float> want(values.size());
    ASSERT_TRUE(Softmax(ConstView(values.data(), shape), {want.data(), shape}).ok());
    if (reference::TargetHasFma(target)) {
      if (first.empty()) first = want;
      EXPECT_TRUE(SameBits(want, first));
    }
    for (size_t r = 0; r < 15; ++r) {  // each row alone
      std::vector<float> alone(37);
      ASSERT_TRUE(Softmax(ConstView(&values[r * 37], Shape{37}), {alone.data(), Shape{37}}).ok());
      EXPECT_TRUE(SameBits(alone, {&want[r * 37], 37}));
    }
    ExpectLayoutsChangeNoBit(values, want,
                             [](ConstView x, MutableView y) { return Softmax(x, y); });
  });
}

TEST(Softmax, ShiftsThatAreExactChangeNoBit) {
  std::vector<float> x = RandomFloats(100, 3, 2.0f);
  for (float& v : x) v = std::round(v * 256.0f) / 256.0f;
  std::vector<float> shifted = x;
  for (float& v : shifted) v += 1000.0f;
  ForEachTarget([&](const std::string&) {
    std::vector<float> a(100), b(100);
    ASSERT_TRUE(Softmax(ConstView(x.data(), Shape{100}), {a.data(), Shape{100}}).ok());
    ASSERT_TRUE(Softmax(ConstView(shifted.data(), Shape{100}), {b.data(), Shape{100}}).ok());
    EXPECT_TRUE(SameBits(a, b));
  });
}

TEST(Softmax, InfinitiesAndNans) {
  ForEachTarget([](const std::string&) {
    for (const size_t cols : {1, 3, 16, 37, 100}) {
      const Shape shape{6, cols};
      std::vector<float> x(6 * cols, 0.5f);
      for (size_t c = 0; c < cols; ++c) x[1 * cols + c] = -kSoftmaxInf;  // row 1: nothing to see
      x[2 * cols + cols / 2] = -kSoftmaxInf;                             // row 2: one hidden
      x[3 * cols + cols - 1] = std::nanf("");                            // row 3: NaN
      x[4 * cols] = kSoftmaxInf;                                         // row 4: inf
      x[5 * cols] = 3e38f;                                               // row 5: one takes all
      std::vector<float> y(6 * cols);
      ASSERT_TRUE(Softmax(ConstView(x.data(), shape), {y.data(), shape}).ok());
      for (size_t c = 0; c < cols; ++c) {
        const float n = static_cast<float>(cols);
        EXPECT_NEAR(y[c], 1.0f / n, 1e-6f);
        EXPECT_EQ(y[1 * cols + c], 0.0f);
        if (c == cols / 2) {
          EXPECT_EQ(y[2 * cols + c], 0.0f);
        } else {
          EXPECT_NEAR(y[2 * cols + c], 1.0f / (n - 1), 1e-6f);
        }
        EXPECT_TRUE(std::isnan(y[3 * cols + c]));
        EXPECT_TRUE(c != 0 || std::isnan(y[4 * cols + c]));
        EXPECT_EQ(y[5 * cols + c], c == 0 ? 1.0f : 0.0f);
      }
    }
  });
}

TEST(Softmax, RefusesBadViews) {
  float x[8] = {};
  float y[8] = {};
  EXPECT_NE(Softmax(ConstView(x, Shape()), MutableView(y, Shape())).message().find("rank"),
            std::string::npos);
  EXPECT_FALSE(Softmax(ConstView(x, Shape{2, 4}), MutableView(y, Shape{4, 2})).ok());
  EXPECT_FALSE(Softmax(ConstView(nullptr, Shape{2, 4}), MutableView(y, Shape{2, 4})).ok());
  EXPECT_FALSE(Softmax(ConstView(x, Shape{2, 4}), MutableView(y, Shape{2, 4}, Strides{0, 1})).ok());
  EXPECT_FALSE(Softmax(ConstView(x, Shape{1, 7}), MutableView(x + 1, Shape{1, 7})).ok());
  EXPECT_TRUE(Softmax(ConstView(x, Shape{4, 0}), MutableView(y, Shape{4, 0})).ok());
  EXPECT_TRUE(Softmax(ConstView(x, Shape{0, 4}), MutableView(y, Shape{0, 4})).ok());
}

// Scores in tiles of keys against the softmax of whole rows; every way to hide keys.
struct TileCase {
  size_t rows;
  size_t cols;
  size_t tile_cols;
  bool additive;
  bool causal;
  bool window;  // rows begin at a key of their own, some after their end
};

void CheckTiles(const TileCase& t, double* worst) {
  constexpr float kScale = 0.3f;
  const size_t ld = t.cols + 3;
  const std::vector<float> raw = RandomFloats(t.rows * ld, 5, 9.0f);
  std::vector<float> additive = RandomFloats(t.rows * ld, 6, 1.0f);
  std::vector<float> z(t.rows * t.cols);
  std::vector<size_t> limit(t.rows), start(t.rows);
  for (size_t r = 0; r < t.rows; ++r) {
    limit[r] = t.causal ? r * t.cols / t.rows : t.cols;
    start[r] = !t.window ? 0 : r % 5 == 2 ? t.cols : r * t.cols / (2 * t.rows);
    for (size_t c = 0; c < t.cols; ++c) {
      float& a = additive[r * ld + c];
      if ((r * 7 + c * 3) % 5 == 0 || r == 1) a = -kSoftmaxInf;
      float& out = z[r * t.cols + c];
      out = raw[r * ld + c] * kScale;
      if (t.additive) out = a == -kSoftmaxInf ? -kSoftmaxInf : std::fma(raw[r * ld + c], kScale, a);
      if (c >= limit[r] || c < start[r]) out = -kSoftmaxInf;
    }
  }
  std::vector<float> m(t.rows, -kSoftmaxInf), l(t.rows, 0.0f), factor(t.rows);
  std::vector<float> p(t.rows * t.cols);  // as if one tile had held all keys
  std::vector<size_t> visible(t.rows), first(t.rows);
  const auto make_tile = [&](size_t begin, Guarded& scores) {
    ScoreTile tile{};
    tile.cols = std::min(t.tile_cols, t.cols - begin);
    tile.rows = t.rows;
    tile.scores = scores.view().data();
    tile.ld_scores = static_cast<size_t>(scores.view().stride(0));
    tile.scale = kScale;
    tile.additive = t.additive ? additive.data() + begin : nullptr;
    tile.ld_additive = static_cast<ptrdiff_t>(ld);
    for (size_t r = 0; r < t.rows; ++r) {
      visible[r] = limit[r] > begin ? limit[r] - begin : 0;
      first[r] = start[r] > begin ? std::min(start[r] - begin, tile.cols) : 0;
      for (size_t c = 0; c < tile.cols; ++c) scores.view()(r, c) = raw[r * ld + begin + c];
    }
    tile.visible = t.causal ? visible.data() : nullptr;
    tile.first = t.window ? first.data() : nullptr;
    return tile;
  };
  for (size_t begin = 0; begin < t.cols; begin += t.tile_cols) {
    Guarded scores(Shape{t.rows, std::min(t.tile_cols, t.cols - begin)},
                   Strides{static_cast<ptrdiff_t>(t.tile_cols + 5), 1});
    const ScoreTile tile = make_tile(begin, scores);
    GetSoftmaxKernels().tile(tile, m.data(), l.data(), factor.data());
    ASSERT_TRUE(scores.Intact());
    for (size_t r = 0; r < t.rows; ++r) {
      for (size_t c = 0; c < begin; ++c) p[r * t.cols + c] *= factor[r];
      for (size_t c = 0; c < tile.cols; ++c) p[r * t.cols + begin + c] = scores.view()(r, c);
    }
  }
  std::vector<float> weights(t.rows * t.cols);
  for (size_t begin = 0; begin < t.cols; begin += t.tile_cols) {
    Guarded scores(Shape{t.rows, std::min(t.tile_cols, t.cols - begin)},
                   Strides{static_cast<ptrdiff_t>(t.tile_cols + 5), 1});
    const ScoreTile tile = make_tile(begin, scores);
    GetSoftmaxKernels().weights(tile, m.data(), l.data());
    ASSERT_TRUE(scores.Intact());
    for (size_t r = 0; r < t.rows; ++r) {
      for (size_t c = 0; c < tile.cols; ++c) {
        weights[r * t.cols + begin + c] = scores.view()(r, c);
      }
    }
  }
  for (size_t r = 0; r < t.rows; ++r) {
    for (size_t c = 0; c < t.cols; ++c) {
      float& v = p[r * t.cols + c];
      if (z[r * t.cols + c] == -kSoftmaxInf) {
        ASSERT_EQ(v, 0.0f) << "hidden";
        ASSERT_EQ(weights[r * t.cols + c], 0.0f) << "hidden";
      }
      v = l[r] == 0 ? 0.0f : v / l[r];
    }
  }
  // z is rounded here as it is there with FMA; without, it may differ by a rounding: |z| u. Each
  // tile adds a rounding of the factor, which is that of an exponential.
  const Matrix<Rounded> want =
      reference::Softmax(Matrix<Rounded>(ConstView(z.data(), Shape{t.rows, t.cols})));
  const double tiles = std::ceil(static_cast<double>(t.cols) / static_cast<double>(t.tile_cols));
  const auto wanted = [&](size_t i) { return want.data[i].value; };
  const auto bound = [&](size_t i) {
    return want.data[i].Bound() + want.data[i].value * 0x1p-24 * (10 + 3 * tiles);
  };
  ASSERT_TRUE(NearEach(p, wanted, bound, worst));
  ASSERT_TRUE(NearEach(weights, wanted, bound, worst));
}

TEST(SoftmaxTile, OnlineFormEqualsWholeRows) {
  ForEachTarget([](const std::string& target) {
    double worst = 0;
    for (const int hiding : {0, 1, 2, 3, 4, 5, 6, 7}) {
      const bool additive = (hiding & 1) != 0, causal = (hiding & 2) != 0;
      const bool window = (hiding & 4) != 0;
      for (const size_t rows : {1, 3, 4, 5, 11}) {
        for (const size_t cols : {1, 15, 16, 17, 64, 100}) {
          for (const size_t tile_cols : {1, 16, 24, 64, 128}) {
            SCOPED_TRACE(testing::Message()
                         << rows << " x " << cols << " by " << tile_cols
                         << (additive ? " additive" : "") << (causal ? " causal" : "")
                         << (window ? " window" : ""));
            CheckTiles({rows, cols, tile_cols, additive, causal, window}, &worst);
            if (testing::Test::HasFatalFailure()) return;
          }
        }
      }
    }
    std::printf("%-9s worst error: %.3f of its bound\n", target.c_str(), worst);
  });
}

TEST(SoftmaxTile, RowsWithoutKeysStayEmpty) {
  ForEachTarget([](const std::string&) {
    float scores[2][20];
    for (float& s : scores[0]) s = 1.0f;
    for (float& s : scores[1]) s = std::nanf("");  // hidden, so it must not show
    std::vector<float> additive(20, -kSoftmaxInf);
    ScoreTile tile{};
    tile.scores = scores[0];
    tile.ld_scores = 20;
    tile.rows = 2;
    tile.cols = 20;
    tile.scale = 1.0f;
    tile.additive = additive.data();
    tile.ld_additive = 0;
    float m[2] = {-kSoftmaxInf, -kSoftmaxInf}, l[2] = {0, 0}, factor[2] = {7, 7};
    GetSoftmaxKernels().tile(tile, m, l, factor);
    for (size_t r = 0; r < 2; ++r) {
      EXPECT_EQ(m[r], -kSoftmaxInf);
      EXPECT_EQ(l[r], 0.0f);
      EXPECT_EQ(factor[r], 0.0f);
      for (const float p : scores[r]) EXPECT_EQ(p, 0.0f);
    }
    // With keys before, an empty tile changes nothing.
    const size_t visible[2] = {0, 0};
    tile.visible = visible;
    tile.additive = nullptr;
    m[0] = 2.5f;
    l[0] = 3.0f;
    GetSoftmaxKernels().tile(tile, m, l, factor);
    EXPECT_EQ(m[0], 2.5f);
    EXPECT_EQ(l[0], 3.0f);
    EXPECT_EQ(factor[0], 1.0f);
    GetSoftmaxKernels().weights(tile, m, l);
    for (const float p : scores[1]) EXPECT_EQ(p, 0.0f);
  });
}

TEST(SoftmaxTile, NanReachesItsRowAlone) {
  ForEachTarget([](const std::string&) {
    for (size_t at = 0; at < 40; ++at) {
      std::vector<float> scores(5 * 40, 0.25f);
      scores[2 * 40 + at] = std::nanf("");
      ScoreTile tile{};
      tile.scores = scores.data();
      tile.ld_scores = 40;
      tile.rows = 5;
      tile.cols = 40;
      tile.scale = 1.0f;
      std::vector<float> m(5, -kSoftmaxInf), l(5, 0.0f), factor(5);
      GetSoftmaxKernels().tile(tile, m.data(), l.data(), factor.data());
      for (size_t r = 0; r < 5; ++r) EXPECT_EQ(std::isnan(l[r]), r == 2) << at;
      std::fill(scores.begin(), scores.end(), 0.25f);  // and stays in it
      GetSoftmaxKernels().tile(tile, m.data(), l.data(), factor.data());
      for (size_t r = 0; r < 5; ++r) EXPECT_EQ(std::isnan(l[r]), r == 2) << at;
    }
  });
}

// What one step makes of a tile: p, m, l and factor, one after another.
std::vector<float> StepOf(const std::vector<float>& scores, size_t rows, size_t cols, float scale,
                          const float* additive, const size_t* visible,
                          const size_t* start = nullptr) {
  std::vector<float> out = scores;
  std::vector<float> m(rows, -kSoftmaxInf), l(rows, 0.0f), factor(rows, 0.0f);
  ScoreTile tile{};
  tile.scores = out.data();
  tile.ld_scores = cols;
  tile.rows = rows;
  tile.cols = cols;
  tile.scale = scale;
  tile.additive = additive;
  tile.ld_additive = static_cast<ptrdiff_t>(cols);
  tile.visible = visible;
  tile.first = start;
  m[0] = 0.25f;  // as if there had been a tile before
  l[0] = 2.0f;
  GetSoftmaxKernels().tile(tile, m.data(), l.data(), factor.data());
  for (const std::vector<float>* part : {&m, &l, &factor}) {
    out.insert(out.end(), part->begin(), part->end());
  }
  return out;
}

TEST(SoftmaxTile, TargetsAndNeighboursChangeNoBit) {
  for (const size_t cols : {1, 10, 16, 17, 40, 100, 512}) {
    for (const size_t rows : {1, 3, 4, 10, 21}) {
      for (const int hiding : {0, 1, 2, 3, 4, 5, 6, 7}) {
        const std::vector<float> scores = RandomFloats(rows * cols, 17, 9.0f);
        std::vector<float> additive = RandomFloats(rows * cols, 18);
        for (size_t i = 0; i < additive.size(); i += 5) additive[i] = -kSoftmaxInf;
        std::vector<size_t> visible(rows);
        for (size_t r = 0; r < rows; ++r) visible[r] = (r + 1) * cols / rows;
        std::vector<size_t> begins(rows);
        for (size_t r = 0; r < rows; ++r) begins[r] = r * cols / rows / 2;
        const float* add = hiding % 2 != 0 ? additive.data() : nullptr;
        const size_t* limits = (hiding & 2) != 0 ? visible.data() : nullptr;
        const size_t* start = (hiding & 4) != 0 ? begins.data() : nullptr;
        std::vector<float> first;
        ForEachTarget([&](const std::string& target) {
          const std::vector<float> all = StepOf(scores, rows, cols, 0.3f, add, limits, start);
          if (reference::TargetHasFma(target)) {
            if (first.empty()) first = all;
            ASSERT_TRUE(SameBits(all, first)) << rows << " x " << cols << ", hiding " << hiding;
          }
          for (size_t r = 1; r < rows; ++r) {
            ScoreTile alone{};
            std::vector<float> row(scores.begin() + static_cast<ptrdiff_t>(r * cols),
                                   scores.begin() + static_cast<ptrdiff_t>((r + 1) * cols));
            alone.scores = row.data();
            alone.ld_scores = cols;
            alone.rows = 1;
            alone.cols = cols;
            alone.scale = 0.3f;
            alone.additive = add == nullptr ? nullptr : add + r * cols;
            alone.visible = limits == nullptr ? nullptr : limits + r;
            alone.first = start == nullptr ? nullptr : start + r;
            float m = -kSoftmaxInf, l = 0, factor = 0;
            GetSoftmaxKernels().tile(alone, &m, &l, &factor);
            ASSERT_TRUE(SameBits(row, {&all[r * cols], cols})) << rows << " x " << cols;
            ASSERT_EQ(m, all[rows * cols + r]);
            ASSERT_EQ(l, all[rows * cols + rows + r]);
          }
        });
      }
    }
  }
}

TEST(SoftmaxTile, ExponentialsHoldTheirErrors) {
  if (kEmulated) GTEST_SKIP() << "takes minutes under an emulator";
  // One row whose largest score so far is 0, so that no subtraction rounds. Scales of head sizes
  // and others.
  std::vector<float> hard = reference::HardFloats(100000);
  std::erase_if(hard, [](float x) { return x > 0; });
  ForEachTarget([&](const std::string& target) {
    const auto exponentials = [](const std::vector<float>& x, float scale) {
      std::vector<float> p = x;
      ScoreTile tile{};
      tile.scores = p.data();
      tile.ld_scores = tile.cols = p.size();
      tile.rows = 1;
      tile.scale = scale;
      float m = 0, l = 0, factor = 0;
      GetSoftmaxKernels().tile(tile, &m, &l, &factor);
      return p;
    };
    for (const int head : {1, 32, 64, 80, 96, 128, 3, 11}) {
      const float scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(head)));
      double worst = 0;
      const auto check = [&](const std::vector<float>& x) {
        const std::vector<float> p = exponentials(x, scale);
        for (size_t i = 0; i < x.size(); ++i) {
          const double error = reference::SoftmaxExpError(scale, x[i], p[i]);
          worst = std::max(worst, error);
          ASSERT_LE(error, reference::kSoftmaxExpUlps) << x[i] << " times " << scale;
        }
      };
      check(hard);
      for (int part = 0; part < 100; ++part) {
        std::vector<float> x(4096);
        for (size_t i = 0; i < x.size(); ++i) {
          const double at = static_cast<double>(part) * 4096 + static_cast<double>(i);
          x[i] = static_cast<float>(-87.0 * at / (100 * 4096)) / scale;
        }
        check(x);
      }
      std::printf("%-9s e^(%g x): %.3f ulp + %.1e |s x| of itself\n", target.c_str(),
                  static_cast<double>(scale), worst, reference::SoftmaxExpSlope(scale));
    }
    for (const float x : {-87.01f, -1e3f, -3e38f, -kSoftmaxInf}) {
      const std::vector<float> out = StepOf({0.25f, x}, 1, 2, 1.0f, nullptr, nullptr);
      EXPECT_EQ(out[0], 1.0f);
      EXPECT_EQ(out[1], 0.0f) << x;
    }
  });
}

TEST(SoftmaxTile, AnyScale) {
  constexpr size_t kCols = 37;
  const std::vector<float> raw = RandomFloats(5 * kCols, 23);
  ForEachTarget([&](const std::string&) {
    for (const float scale : {-0.5f, 0.0f, 1e-30f, 1e-6f, 3e6f, 1e30f}) {
      std::vector<float> x = raw, z = raw;
      for (float& v : x) v *= std::fabs(scale) > 1 ? 4 / scale : 4;
      for (size_t i = 0; i < z.size(); ++i) z[i] = x[i] * scale;
      const std::vector<float> out = StepOf(x, 5, kCols, scale, nullptr, nullptr);
      const Matrix<Rounded> want =
          reference::Softmax(Matrix<Rounded>(ConstView(z.data(), Shape{5, kCols})));
      for (size_t i = kCols; i < z.size(); ++i) {  // row 0 goes on from a tile before
        const double got = static_cast<double>(out[i] / out[5 * (kCols + 1) + i / kCols]);
        const double bound = want.data[i].Bound() + want.data[i].value * 0x1p-24 * 20;
        ASSERT_NEAR(got, want.data[i].value, bound) << scale;
      }
    }
  });
}

}  // namespace
}  // namespace encore
