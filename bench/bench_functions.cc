// SPDX-License-Identifier: Apache-2.0
//
// What exp, tanh, the activations, softmax and LayerNorm cost: cycles a vector of the SIMD target,
// in L1 and on one thread, and the largest error of a sample, beside Highway's own mathematics and
// the C library's (cycles/functions.h). One table, and JSON. Not here: arrays beyond L1
// (bench_exp.cc, bench_gelu.cc), errors over all floats (tools/exhaustive).

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "bench/cycles/cycle_clock.h"
#include "bench/cycles/errors.h"
#include "bench/cycles/functions.h"
#include "bench/cycles/options.h"
#include "bench/measure/forward.h"
#include "engine/kernels/activation.h"
#include "engine/kernels/elementwise.h"
#include "engine/kernels/gemm_kernel.h"
#include "engine/kernels/norm.h"
#include "engine/kernels/softmax.h"
#include "tests/reference/elementwise.h"

namespace encore::bench {
namespace {

constexpr size_t kElements = 4096;  // 16 KiB in, 16 KiB out
constexpr float kEpsilon = 1e-5f;
constexpr double kLargest = std::numeric_limits<float>::max();

constexpr char kWhat[] =
    "bench_functions: cycles a vector of exp, tanh, activations, softmax and LayerNorm, and the\n"
    "largest sampled errors, beside Highway's own mathematics and the C library's.";

constexpr char kLegend[] =
    "\nCycles of one core for a vector of so many floats, in L1, the least of many samples; and "
    "the\n"
    "largest error of a sample in ulp of the result (\"in a block\": in ulp of x; LayerNorm: in "
    "ulp\n"
    "of 1 for results below it). Highway: hwy/contrib/math's Exp and Tanh; it has no erf, so GELU "
    "is\n"
    "formula 7.1.26 of Abramowitz & Stegun on its Exp; softmax and LayerNorm in three passes a "
    "row,\n"
    "in any order of sums. C library: plain loops over expf, tanhf, erff, compiled for any "
    "CPU.\n\n";

struct Figure {
  double cycles = 0;  // a vector; 0: there is no such function
  double error = 0;
};

enum Side { kEncore, kHighway, kPlain, kSides };
constexpr const char* kSideNames[kSides] = {"encore", "highway", "c_library"};

struct Row {
  std::string name;
  Figure figures[kSides];
};

Tensor Draw(const Shape& shape, float low, float high) {
  return OrFail(DrawTensor(shape, low, high));
}

class Table {
 public:
  Table(std::string target, double seconds)
      : target_(std::move(target)), seconds_(seconds), lanes_(internal::GetGemmKernelF32().lanes) {}

  // What each of the elementwise functions costs on inputs in [low, high), and its error on
  // [error_low, error_high].
  struct Range {
    float low, high;
    double error_low, error_high;
  };
  void AddUnary(const std::string& name, const Functions::Unary (&calls)[kSides],
                double (*exact)(double), const Range& range) {
    const Tensor x = Draw(Shape(kElements), range.low, range.high);
    Tensor y = Draw(Shape(kElements), 0, 1);
    std::vector<Contender> contenders(kSides);
    Row row{name, {}};
    for (int side = 0; side < kSides; ++side) {
      const Functions::Unary call = calls[side];
      if (call == nullptr) continue;
      contenders[side].run = [&, call](size_t) {
        call(x.View<float>().data(), y.View<float>().data(), kElements);
      };
      row.figures[side].error =
          SampledError(call, exact, range.error_low, range.error_high, UlpOf::kResult);
    }
    Time(contenders, std::vector<double>(kSides, kElements), &row);
  }

  // An activation of a block: microtiles, in place, right after each other as a product would have
  // them. The others have nothing like it, and work as above.
  void AddTile(const std::string& name, internal::ActivationKernels::Tile tile,
               Functions::Unary highway, Functions::Unary plain, double (*exact)(double)) {
    const internal::GemmKernel& kernel = internal::GetGemmKernelF32();
    const size_t cols = kernel.best_nv * kernel.lanes;
    const size_t rows = kernel.max_mr[kernel.best_nv];
    const size_t tiles = kElements / (rows * cols);
    const Tensor x = Draw(Shape(kElements), -8, 8);
    Tensor y = Draw(Shape(kElements), 0, 1);
    std::vector<Contender> contenders(kSides);
    contenders[kEncore] = {
        .run =
            [&](size_t) {
              float* c = y.View<float>().data();
              for (size_t i = 0; i < tiles; ++i, c += rows * cols) tile(c, cols, rows, cols);
            },
        .prepare = [&] { std::copy_n(x.View<float>().data(), kElements, y.View<float>().data()); },
        // Each call halves small negative numbers: these stay far from the smallest normal one.
        .most_calls = 8};
    Row row{name + " in a block", {}};
    row.figures[kEncore].error = SampledError(
        [tile](const float* from, float* to, size_t n) {
          std::copy_n(from, n, to);
          tile(to, n, 1, n);
        },
        exact, -kLargest, kLargest, UlpOf::kArgument);
    const Functions::Unary others[kSides] = {nullptr, highway, plain};
    for (const Side side : {kHighway, kPlain}) {
      const Functions::Unary call = others[side];
      if (call == nullptr) continue;
      contenders[side].run = [&, call](size_t) {
        call(x.View<float>().data(), y.View<float>().data(), kElements);
      };
      row.figures[side].error = SampledError(call, exact, -kLargest, kLargest, UlpOf::kArgument);
    }
    const double whole = static_cast<double>(tiles * rows * cols);
    Time(contenders, {whole, kElements, kElements}, &row);
  }

  void AddSoftmax(size_t cols) {
    const size_t rows = kElements / cols;
    const Tensor x = Draw(Shape(rows, cols), -8, 8);
    Tensor y = Draw(Shape(rows, cols), 0, 1);
    const float* from = x.View<float>().data();
    float* to = y.View<float>().data();
    const auto encore = [from, to, rows, cols, kernel = internal::GetSoftmaxKernels().rows](
                            size_t) { kernel(from, cols, to, cols, rows, cols); };
    std::vector<Contender> contenders(kSides);
    contenders[kEncore].run = encore;
    const Functions::Softmax others[kSides] = {nullptr, HighwayFunctions().softmax,
                                               PlainFunctions().softmax};
    for (const Side side : {kHighway, kPlain}) {
      if (others[side] == nullptr) continue;
      contenders[side].run = [=, call = others[side]](size_t) { call(from, to, rows, cols); };
    }
    Row row{"softmax, rows of " + std::to_string(cols), {}};
    TimeRows(
        contenders, rows * cols, [&] { return SoftmaxError(x.View<float>(), to); }, &row);
  }

  void AddLayerNorm(size_t cols) {
    const size_t rows = kElements / cols;
    const Tensor x = Draw(Shape(rows, cols), -8, 8);
    const Tensor weight = Draw(Shape(cols), 0.5f, 2);
    const Tensor bias = Draw(Shape(cols), -1, 1);
    Tensor y = Draw(Shape(rows, cols), 0, 1);
    const float* from = x.View<float>().data();
    const float* w = weight.View<float>().data();
    const float* b = bias.View<float>().data();
    float* to = y.View<float>().data();
    std::vector<Contender> contenders(kSides);
    const internal::NormArgs args{.x = from,
                                  .ldx = cols,
                                  .weight = w,
                                  .bias = b,
                                  .epsilon = double{kEpsilon},
                                  .residual = nullptr,
                                  .ld_residual = 0,
                                  .y = to,
                                  .ldy = cols,
                                  .rows = rows,
                                  .cols = cols};
    contenders[kEncore].run = [args, kernel = internal::GetNormKernels().layer_norm](size_t) {
      kernel(args);
    };
    const Functions::LayerNorm others[kSides] = {nullptr, HighwayFunctions().layer_norm,
                                                 PlainFunctions().layer_norm};
    for (const Side side : {kHighway, kPlain}) {
      if (others[side] == nullptr) continue;
      contenders[side].run = [=, call = others[side]](size_t) {
        call(from, w, b, kEpsilon, to, rows, cols);
      };
    }
    Row row{"layer_norm, rows of " + std::to_string(cols), {}};
    TimeRows(
        contenders, rows * cols,
        [&] {
          return LayerNormError(x.View<float>(), weight.View<float>(), bias.View<float>(), kEpsilon,
                                to);
        },
        &row);
  }

  void Print() const {
    std::printf("%-10s %-27s %18s %18s %18s\n", "", "", "encore", "Highway", "C library");
    std::printf("%-10s %-27s", target_.c_str(), (std::to_string(lanes_) + " floats").c_str());
    for (int side = 0; side < kSides; ++side) std::printf(" %9s%9s", "cycles", "error");
    std::printf("\n");
    for (const Row& row : rows_) {
      std::printf("%-10s %-27s", "", row.name.c_str());
      for (const Figure& figure : row.figures) {
        if (figure.cycles == 0) {
          std::printf(" %9s%9s", "-", "-");
        } else {
          std::printf(" %9.2f%9s", figure.cycles, ErrorText(figure.error).c_str());
        }
      }
      std::printf("\n");
    }
    std::printf("\n");
    std::fflush(stdout);
  }

  void AppendTo(nlohmann::ordered_json* json) const {
    for (const Row& row : rows_) {
      nlohmann::ordered_json entry = {{"target", target_}, {"lanes", lanes_}, {"name", row.name}};
      for (int side = 0; side < kSides; ++side) {
        const Figure& figure = row.figures[side];
        if (figure.cycles == 0) continue;
        entry[kSideNames[side]] = {{"cycles_a_vector", figure.cycles}, {"error_ulp", figure.error}};
      }
      json->push_back(entry);
    }
  }

 private:
  static std::string ErrorText(double error) {
    char text[32];
    std::snprintf(text, sizeof(text), error < 1e4 ? "%.2f" : "%.0e", error);
    return text;
  }

  // Takes turns among those that are there and keeps the row. elements: that each call does.
  void Time(const std::vector<Contender>& contenders, const std::vector<double>& elements,
            Row* row) {
    std::vector<Contender> there;
    for (const Contender& contender : contenders) {
      if (contender.run) there.push_back(contender);
    }
    const std::vector<double> cycles = LeastCycles(there, seconds_);
    size_t next = 0;
    for (size_t side = 0; side < kSides; ++side) {
      if (!contenders[side].run) continue;
      row->figures[side].cycles = cycles[next++] / (elements[side] / static_cast<double>(lanes_));
    }
    rows_.push_back(*row);
  }

  // The same, with an error that is that of the results which a call leaves behind.
  template <class Error>
  void TimeRows(const std::vector<Contender>& contenders, size_t elements, Error error, Row* row) {
    for (size_t side = 0; side < kSides; ++side) {
      if (!contenders[side].run) continue;
      contenders[side].run(0);
      row->figures[side].error = error();
    }
    Time(contenders, std::vector<double>(kSides, static_cast<double>(elements)), row);
  }

  std::string target_;
  double seconds_;
  size_t lanes_;
  std::vector<Row> rows_;
};

void Fill(Table* table) {
  const internal::ElementwiseKernels& encore = internal::GetElementwiseKernels();
  const internal::ActivationKernels& tile = internal::GetActivationKernels();
  const Functions& highway = HighwayFunctions();
  const Functions& plain = PlainFunctions();
  // Where exp is neither 0 nor inf; the others take any float.
  table->AddUnary("exp", {encore.exp, highway.exp, plain.exp}, &reference::Exp,
                  {-8, 8, -103.9, 88.7});
  table->AddUnary("exp of x <= 0, in softmax", {SoftmaxExp(), highway.exp, plain.exp},
                  &reference::Exp, {-16, 0, -86.9, 0});
  const Table::Range all{-8, 8, -kLargest, kLargest};
  table->AddUnary("tanh", {encore.tanh, highway.tanh, plain.tanh}, &reference::Tanh, all);
  table->AddUnary("gelu (erf)", {encore.gelu, highway.gelu, plain.gelu}, &reference::Gelu, all);
  table->AddTile("gelu (erf)", tile.gelu.tile, highway.gelu, plain.gelu, &reference::Gelu);
  table->AddUnary("gelu_tanh", {encore.gelu_tanh, highway.gelu_tanh, plain.gelu_tanh},
                  &reference::GeluTanh, all);
  table->AddTile("gelu_tanh", tile.gelu_tanh.tile, highway.gelu_tanh, plain.gelu_tanh,
                 &reference::GeluTanh);
  table->AddUnary("silu", {encore.silu, highway.silu, plain.silu}, &reference::Silu, all);
  table->AddTile("silu", tile.silu.tile, highway.silu, plain.silu, &reference::Silu);
  table->AddTile("quick_gelu", tile.quick_gelu.tile, nullptr, nullptr, &reference::QuickGelu);
  for (const size_t cols : {size_t{128}, size_t{512}}) table->AddSoftmax(cols);
  for (const size_t cols : {size_t{384}, size_t{768}}) table->AddLayerNorm(cols);
}

void Measure(const std::string& target, double seconds, nlohmann::ordered_json* rows) {
  Table table(target, seconds);
  Fill(&table);
  table.Print();
  table.AppendTo(rows);
}

constexpr CycleBenchmark kBenchmark{"bench_functions", kWhat, kLegend, Measure};

}  // namespace
}  // namespace encore::bench

int main(int argc, char** argv) {
  const int status = encore::bench::RunCycleBenchmark(argc, argv, encore::bench::kBenchmark);
  if (status == 0 && encore::bench::HighwayFunctions().exp == nullptr) {
    std::puts("Highway's own mathematics (hwy/contrib/math) were not found when this was built.");
  }
  return status;
}
