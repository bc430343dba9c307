// SPDX-License-Identifier: Apache-2.0
//
// MaxSim of late interaction: queries of 32 tokens with documents of 180, in vectors of 128, whose
// documents are f32, bf16 or int8. 2 x 128 operations for each pair of tokens; maxima and sums
// count as none.
// `bench/peers/compare.py max_sim` measures the same with numpy and torch.

#include <string>
#include <vector>

#include "bench/common.h"
#include "encore/max_sim.h"

namespace encore::bench {
namespace {

constexpr size_t kQueryTokens = 32;
constexpr size_t kDocumentTokens = 180;
constexpr size_t kWidth = 128;

std::vector<size_t> Starts(size_t texts, size_t tokens) {
  std::vector<size_t> starts;
  for (size_t i = 0; i <= texts; ++i) starts.push_back(i * tokens);
  return starts;
}

void LateInteraction(benchmark::State& state, DType type, size_t queries, size_t documents,
                     int threads) {
  const std::vector<size_t> query_starts = Starts(queries, kQueryTokens);
  const std::vector<size_t> document_starts = Starts(documents, kDocumentTokens);
  const Tensor x = RandomTensor(Shape(query_starts.back(), kWidth));
  const Tensor y = RandomTensor(Shape(document_starts.back(), kWidth));
  Tensor scores = ZeroTensor(Shape(queries, documents));
  const RowGroups query_rows{x.View<float>(), query_starts};
  const RowGroups document_rows{y.View<float>(), document_starts};
  const bool plain = type == DType::kF32;
  const StoredVectors stored =
      plain ? StoredVectors() : OrFail(StoreVectors(y.View<float>(), type));
  const MaxSimOptions options{.executor = OrFail(ExecutorOf(threads))};
  const double pairs = static_cast<double>(query_starts.back() * document_starts.back());
  Measure(state, threads,
          Work{.flops = 2.0 * static_cast<double>(kWidth) * pairs,
               .tokens = static_cast<double>(document_starts.back()),
               .precision = type == DType::kI8     ? Precision::kInt8
                            : type == DType::kBF16 ? Precision::kBF16
                                                   : Precision::kF32},
          [&](size_t) {
            return plain ? MaxSim(query_rows, document_rows, scores.View<float>(), options)
                         : MaxSim(query_rows, stored.groups(document_starts), scores.View<float>(),
                                  options);
          });
}

}  // namespace

void RegisterBenchmarks() {
  for (const int threads : ThreadCounts()) {
    for (const size_t queries : {size_t{1}, size_t{8}}) {
      for (const DType type : {DType::kF32, DType::kBF16, DType::kI8}) {
        Register(
            "max_sim/" + TypeName(type) + "/" + std::to_string(queries) +
                "x1000/threads:" + std::to_string(threads),
            [=](benchmark::State& state) { LateInteraction(state, type, queries, 1000, threads); });
      }
    }
  }
}

}  // namespace encore::bench
