// SPDX-License-Identifier: Apache-2.0
//
// The matrix product with and without the contract. All ways use packed panels, and all but the
// wide ones the library's loops: they differ in their tiles alone.

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "bench/cycles/contract.h"
#include "bench/cycles/cycle_clock.h"
#include "bench/cycles/free_product.h"
#include "bench/cycles/options.h"
#include "bench/cycles/wide_product.h"
#include "bench/measure/forward.h"
#include "encore/ops.h"
#include "engine/base/aligned_buffer.h"
#include "engine/kernels/gemm_kernel.h"
#include "engine/ops/gemm.h"
#include "engine/ops/gemm_blocking.h"
#include "engine/ops/packed_matrix.h"

namespace encore::bench {
namespace {

constexpr size_t kN = 768;
constexpr size_t kRows[] = {1, 2, 4, 16, 128};
constexpr size_t kDepths[] = {384, 768, 3072};

// A [K, kN] matrix in panels of nv vectors, for a kernel.
class Panels {
 public:
  // weight: [kN, K], as a linear layer has it.
  Panels(const internal::GemmKernel& kernel, size_t nv, ConstView weight) {
    view_ = {.kernel = &kernel, .k = weight.dim(1), .n = kN, .nv = nv, .panel_rows = weight.dim(1)};
    if (!data_.Allocate(view_.packed_bytes())) Fail("out of memory", 1);
    view_.data = data_.data();
    internal::PackInto(view_, weight.data(), weight.stride(1), weight.stride(0), data_.data());
    blocking_ = internal::ChooseGemmBlocking(internal::MachineCaches(), view_.k, view_.nr());
  }

  const internal::PackedView& view() const { return view_; }
  const internal::GemmBlocking& blocking() const { return blocking_; }

 private:
  internal::PackedView view_;
  internal::AlignedBuffer<std::byte> data_;
  internal::GemmBlocking blocking_{};
};

struct Way {
  std::string name;
  bool one_chain;
  Contender contender;
  double cycles = 0;
};

// Pieces of some 10 to 30 us each, as far as panels allow.
internal::EvenSplit PiecesOf(size_t m, const internal::PackedView& b, size_t panels) {
  const size_t wanted = m * b.n * b.k / 3'000'000;
  return {panels, std::clamp<size_t>(wanted, 1, panels)};
}

// Other ways have taken the caches since the last time.
void SetWarm(Contender* contender) {
  contender->prepare = [run = contender->run, pieces = contender->pieces] {
    for (size_t piece = 0; piece < pieces; ++piece) run(piece);
  };
}

Way LoopWay(const Panels& panels, size_t chains, const float* x, float* y, size_t m) {
  const internal::PackedView& b = panels.view();
  const internal::EvenSplit split = PiecesOf(m, b, b.panels());
  Way way{
      (chains == 1 ? "" : std::to_string(chains) + " chains, ") + "width " + std::to_string(b.nv),
      chains == 1,
      {}};
  way.contender.pieces = split.parts;
  way.contender.run = [&panels, x, y, m, split](size_t piece) {
    const size_t k = panels.view().k;
    internal::GemmBlock({.a = x, .lda = k, .b = panels.view(), .c = y, .ldc = kN, .groups = {}},
                        panels.blocking(), 0, m, split.begin(piece), split.begin(piece + 1));
  };
  SetWarm(&way.contender);
  return way;
}

Way WideWay(const Panels& panels, const WideProduct& wide, const float* x, float* y) {
  const internal::PackedView& b = panels.view();
  const internal::EvenSplit split = PiecesOf(wide.rows, b, b.panels() / wide.panels);
  Way way{"width " + std::to_string(wide.panels) + " x " + std::to_string(wide.nv), true, {}};
  way.contender.pieces = split.parts;
  way.contender.run = [&b, x, y, split, wide](size_t piece) {
    wide.run(x, b, y, split.begin(piece) * wide.panels, split.begin(piece + 1) * wide.panels);
  };
  SetWarm(&way.contender);
  return way;
}

// The library's kernels with panels of every width, the one that it would choose first; and those
// with more chains.
struct AllPanels {
  explicit AllPanels(ConstView weight) {
    const internal::GemmKernel& kernel = internal::GetGemmKernelF32();
    const size_t chosen = internal::ChoosePanelVectors(kernel, kN);
    Add(kernel, 1, chosen, weight);
    for (size_t nv = 1; nv <= kernel.max_nv(); ++nv) {
      if (nv != chosen) Add(kernel, 1, nv, weight);
    }
    for (const size_t count : kChainCounts) {
      const internal::GemmKernel& free = FreeKernel(count);
      for (size_t nv = 1; nv <= free.max_nv(); ++nv) Add(free, count, nv, weight);
    }
  }

  std::vector<Way> Ways(const float* x, float* y, size_t m) const {
    std::vector<Way> ways;
    for (size_t i = 0; i < panels.size(); ++i) {
      ways.push_back(LoopWay(*panels[i], chains[i], x, y, m));
    }
    const internal::PackedView& chosen = panels[0]->view();
    for (const WideProduct& wide : WideProducts()) {
      if (wide.rows == m && wide.nv == chosen.nv && chosen.panels() % wide.panels == 0) {
        ways.push_back(WideWay(*panels[0], wide, x, y));
      }
    }
    return ways;
  }

  std::vector<std::unique_ptr<Panels>> panels;
  std::vector<size_t> chains;

 private:
  void Add(const internal::GemmKernel& kernel, size_t count, size_t nv, ConstView weight) {
    panels.push_back(std::make_unique<Panels>(kernel, nv, weight));
    chains.push_back(count);
  }
};

const Way& Fastest(const std::vector<Way>& ways, bool one_chain) {
  const Way* best = nullptr;
  for (const Way& way : ways) {
    if (way.one_chain == one_chain && (best == nullptr || way.cycles < best->cycles)) best = &way;
  }
  return *best;
}

// Each way once: those of one chain must agree to the bit.
void CheckBits(const std::vector<Way>& ways, Tensor* y) {
  std::vector<float> library;
  const size_t count = y->View<float>().dim(0) * kN;
  float* data = y->View<float>().data();
  for (const Way& way : ways) {
    std::fill_n(data, count, 0.0f);
    way.contender.prepare();
    if (library.empty()) library.assign(data, data + count);
    if (way.one_chain && std::memcmp(library.data(), data, count * sizeof(float)) != 0) {
      Fail("the bits of '" + way.name + "' are not those of the library", 1);
    }
  }
}

}  // namespace

void CompareProducts(const std::string& target, double seconds, nlohmann::ordered_json* json) {
  std::printf("%s: product of [M, K] and [K, %zu], in cycles\n", target.c_str(), kN);
  std::printf("%5s %5s %10s  %10s %-18s %10s %-18s %9s %9s\n", "M", "K", "library", "one chain", "",
              "free", "", "library", "contract");
  for (const size_t k : kDepths) {
    const Tensor weight = OrFail(DrawTensor(Shape(kN, k), -1, 1));
    const AllPanels all(weight.View<float>());
    for (const size_t m : kRows) {
      const Tensor x = OrFail(DrawTensor(Shape(m, k), -1, 1));
      Tensor y = OrFail(Tensor::Create(DType::kF32, Shape(m, kN)));
      std::vector<Way> ways = all.Ways(x.View<float>().data(), y.View<float>().data(), m);
      CheckBits(ways, &y);
      std::vector<Contender> contenders;
      contenders.reserve(ways.size());
      for (const Way& way : ways) contenders.push_back(way.contender);
      const std::vector<double> cycles = LeastCycles(contenders, seconds);
      for (size_t i = 0; i < ways.size(); ++i) ways[i].cycles = cycles[i];
      const Way& kept = Fastest(ways, true);
      const Way& free = Fastest(ways, false);
      const double library_cost = PercentMore(cycles[0], free.cycles);
      const double contract_cost = PercentMore(kept.cycles, free.cycles);
      std::printf("%5zu %5zu %10.0f  %10.0f %-18s %10.0f %-18s %+8.1f%% %+8.1f%%\n", m, k,
                  cycles[0], kept.cycles, kept.name.c_str(), free.cycles, free.name.c_str(),
                  library_cost, contract_cost);
      std::fflush(stdout);
      AppendFigures({{"target", target},
                     {"operation", "product"},
                     {"m", m},
                     {"n", kN},
                     {"k", k},
                     {"cycles", cycles[0]},
                     {"cycles_one_chain", kept.cycles},
                     {"cycles_free", free.cycles}},
                    library_cost, contract_cost, ways, json);
    }
  }
  std::printf("\n");
}

}  // namespace encore::bench
