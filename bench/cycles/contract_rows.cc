// SPDX-License-Identifier: Apache-2.0
//
// Softmax and LayerNorm with and without the contract's order of sums.

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "bench/cycles/contract.h"
#include "bench/cycles/cycle_clock.h"
#include "bench/cycles/free_rows.h"
#include "bench/cycles/options.h"
#include "bench/measure/forward.h"
#include "engine/kernels/gemm_kernel.h"
#include "engine/kernels/norm.h"
#include "engine/kernels/softmax.h"

namespace encore::bench {
namespace {

constexpr float kEpsilon = 1e-5f;
constexpr size_t kContractLanes = 16;

struct Way {
  std::string name;
  bool kept;
  std::function<void()> run;
  double cycles = 0;  // a vector
};

// The library's, first, and all others.
std::vector<Way> SoftmaxWays(const float* x, float* y, size_t rows, size_t cols) {
  const size_t lanes = internal::GetGemmKernelF32().lanes;
  std::vector<Way> ways;
  ways.push_back({"library", true, [=, kernel = internal::GetSoftmaxKernels().rows] {
                    kernel(x, cols, y, cols, rows, cols);
                  }});
  for (const FreeRows& free : AllFreeRows()) {
    ways.push_back({std::to_string(free.rows_at_once) + " x " + std::to_string(free.sums),
                    free.sums * lanes == kContractLanes, [=] { free.softmax(x, y, rows, cols); }});
  }
  return ways;
}

std::vector<Way> LayerNormWays(const float* x, const float* weight, const float* bias, float* y,
                               size_t rows, size_t cols) {
  const size_t lanes = internal::GetGemmKernelF32().lanes;
  std::vector<Way> ways;
  const internal::NormArgs args{.x = x,
                                .ldx = cols,
                                .weight = weight,
                                .bias = bias,
                                .epsilon = double{kEpsilon},
                                .residual = nullptr,
                                .ld_residual = 0,
                                .y = y,
                                .ldy = cols,
                                .rows = rows,
                                .cols = cols};
  ways.push_back(
      {"library", true, [args, kernel = internal::GetNormKernels().layer_norm] { kernel(args); }});
  for (const FreeRows& free : AllFreeRows()) {
    ways.push_back({std::to_string(free.rows_at_once) + " x " + std::to_string(free.sums),
                    free.sums * lanes == kContractLanes,
                    [=] { free.layer_norm(x, weight, bias, kEpsilon, y, rows, cols); }});
  }
  return ways;
}

// Each way once: one with 16 lanes whose bits are not the library's all the same does not keep the
// contract either.
void CheckBits(std::vector<Way>* ways, float* y, size_t count) {
  std::vector<float> library;
  for (Way& way : *ways) {
    std::fill_n(y, count, 0.0f);
    way.run();
    if (library.empty()) library.assign(y, y + count);
    way.kept = way.kept && std::memcmp(library.data(), y, count * sizeof(float)) == 0;
  }
}

const Way* Fastest(const std::vector<Way>& ways, bool kept) {
  const Way* best = nullptr;
  for (const Way& way : ways) {
    if (way.kept == kept && (best == nullptr || way.cycles < best->cycles)) best = &way;
  }
  return best;
}

}  // namespace

void CompareRows(const std::string& target, double seconds, nlohmann::ordered_json* json) {
  std::printf(
      "%s: rows, in cycles a vector; \"2 x 4\" takes two rows at a time, with four vectors of\n"
      "sums each\n",
      target.c_str());
  std::printf("%-10s %5s %5s %9s  %9s %-8s %9s %-8s %9s %9s\n", "", "rows", "cols", "library",
              "16 lanes", "", "free", "", "library", "contract");
  struct Case {
    const char* operation;
    size_t cols;
  };
  for (const Case& c : {Case{"softmax", 128}, Case{"softmax", 512}, Case{"layer_norm", 384},
                        Case{"layer_norm", 768}}) {
    const size_t cols = c.cols;
    for (const size_t rows : {size_t{1}, size_t{4}, size_t{8}}) {
      const Tensor x = OrFail(DrawTensor(Shape(rows, cols), -8, 8));
      const Tensor weight = OrFail(DrawTensor(Shape(cols), 0.5f, 2));
      const Tensor bias = OrFail(DrawTensor(Shape(cols), -1, 1));
      Tensor y = OrFail(Tensor::Create(DType::kF32, Shape(rows, cols)));
      const float* from = x.View<float>().data();
      float* to = y.View<float>().data();
      std::vector<Way> ways = std::strcmp(c.operation, "softmax") == 0
                                  ? SoftmaxWays(from, to, rows, cols)
                                  : LayerNormWays(from, weight.View<float>().data(),
                                                  bias.View<float>().data(), to, rows, cols);
      CheckBits(&ways, to, rows * cols);
      std::vector<Contender> contenders;
      for (const Way& way : ways) {
        contenders.emplace_back();
        contenders.back().run = [&way](size_t) { way.run(); };
      }
      const std::vector<double> cycles = LeastCycles(contenders, seconds);
      const size_t vectors = rows * cols / internal::GetGemmKernelF32().lanes;
      for (size_t i = 0; i < ways.size(); ++i) {
        ways[i].cycles = cycles[i] / static_cast<double>(vectors);
      }
      const Way& kept = *Fastest(ways, true);
      const Way& free = *Fastest(ways, false);
      const double library_cost = PercentMore(ways[0].cycles, free.cycles);
      const double contract_cost = PercentMore(kept.cycles, free.cycles);
      std::printf("%-10s %5zu %5zu %9.2f  %9.2f %-8s %9.2f %-8s %+8.1f%% %+8.1f%%\n", c.operation,
                  rows, cols, ways[0].cycles, kept.cycles, kept.name.c_str(), free.cycles,
                  free.name.c_str(), library_cost, contract_cost);
      std::fflush(stdout);
      AppendFigures({{"target", target},
                     {"operation", c.operation},
                     {"rows", rows},
                     {"cols", cols},
                     {"cycles_a_vector", ways[0].cycles},
                     {"cycles_a_vector_16_lanes", kept.cycles},
                     {"cycles_a_vector_free", free.cycles}},
                    library_cost, contract_cost, ways, json);
    }
  }
  std::printf("\n");
}

}  // namespace encore::bench
