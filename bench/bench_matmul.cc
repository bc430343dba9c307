// SPDX-License-Identifier: Apache-2.0
//
// Matrix products in f32: linear layers with packed weights, warm (one layer again and again) and
// cold (a new one each call, out of memory), and MatMul, which packs B in each call. 2 M N K
// floating point operations.

#include <memory>
#include <string>
#include <vector>

#include "bench/common.h"
#include "encore/ops.h"

namespace encore::bench {
namespace {

struct Size {
  size_t n;
  size_t k;
};

std::string Name(const char* what, size_t m, Size size, int threads) {
  return std::string(what) + "/f32/M:" + std::to_string(m) + "/N:" + std::to_string(size.n) +
         "/K:" + std::to_string(size.k) + "/threads:" + std::to_string(threads);
}

double Flops(size_t m, Size size) {
  return 2.0 * static_cast<double>(m) * static_cast<double>(size.n) * static_cast<double>(size.k);
}

// So many linear layers of one size; their weights are the same numbers in different places.
std::vector<PackedLinear> MakeLayers(Size size, size_t copies) {
  const Tensor weight = RandomTensor(Shape(size.n, size.k));
  const Tensor bias = RandomTensor(Shape(size.n));
  std::vector<PackedLinear> layers;
  for (size_t i = 0; i < copies; ++i) {
    layers.push_back(OrFail(PackedLinear::Create(weight.View<float>(), bias.View<float>())));
  }
  return layers;
}

void Packed(benchmark::State& state, size_t m, Size size, bool cold, int threads) {
  const size_t weight_bytes = size.n * size.k * sizeof(float);
  const size_t copies = cold ? CopiesForCold(weight_bytes) : 1;
  const std::string key =
      std::to_string(size.n) + "x" + std::to_string(size.k) + "x" + std::to_string(copies);
  const std::vector<PackedLinear>& layers =
      Kept<std::vector<PackedLinear>>(key, [&] { return MakeLayers(size, copies); });

  const Tensor x = RandomTensor(Shape(m, size.k));
  Tensor y = ZeroTensor(Shape(m, size.n));
  const Executor executor = OrFail(ExecutorOf(threads));
  Work work{.flops = Flops(m, size)};
  if (cold) work.bytes = static_cast<double>(weight_bytes);
  Measure(state, threads, work, [&](size_t i) {
    return layers[i % copies].Apply(x.View<float>(), y.View<float>(), executor);
  });
}

void Unpacked(benchmark::State& state, size_t m, Size size, Transpose transpose_b, int threads) {
  const Tensor a = RandomTensor(Shape(m, size.k));
  const Tensor b =
      RandomTensor(transpose_b == Transpose::kYes ? Shape(size.n, size.k) : Shape(size.k, size.n));
  Tensor c = ZeroTensor(Shape(m, size.n));
  const MatMulOptions options{.transpose_b = transpose_b, .executor = OrFail(ExecutorOf(threads))};
  Measure(state, threads, Work{.flops = Flops(m, size)}, [&](size_t) {
    return MatMul(a.View<float>(), b.View<float>(), c.View<float>(), options);
  });
}

void RegisterPacked(size_t m, Size size, bool cold) {
  for (const int threads : ThreadCounts()) {
    Register(Name(cold ? "packed_linear_cold" : "packed_linear", m, size, threads),
             [=](benchmark::State& state) { Packed(state, m, size, cold, threads); });
  }
}

}  // namespace

void RegisterBenchmarks() {
  // The products of a BERT base block (768 and 3072), and their square combinations.
  constexpr size_t kRows[] = {1, 8, 16, 128, 512};
  constexpr Size kBaseSizes[] = {{768, 768}, {768, 3072}, {3072, 768}, {3072, 3072}};
  for (const bool cold : {false, true}) {
    for (const Size size : kBaseSizes) {
      for (const size_t m : kRows) RegisterPacked(m, size, cold);
    }
  }
  // Those of the worked example, MiniLM and BERT large.
  for (const Size size : {Size{64, 64}, Size{256, 64}, Size{64, 256}})
    RegisterPacked(320, size, false);
  for (const Size size : {Size{1536, 384}, Size{384, 1536}, Size{4096, 1024}, Size{1024, 4096}}) {
    RegisterPacked(128, size, false);
  }
  for (const size_t edge : {size_t{128}, size_t{512}, size_t{1024}}) {
    for (const Transpose transpose_b : {Transpose::kNo, Transpose::kYes}) {
      for (const int threads : ThreadCounts()) {
        Register(Name(transpose_b == Transpose::kYes ? "matmul_abt" : "matmul_ab", edge,
                      {edge, edge}, threads),
                 [=](benchmark::State& state) {
                   Unpacked(state, edge, {edge, edge}, transpose_b, threads);
                 });
      }
    }
  }
}

}  // namespace encore::bench
