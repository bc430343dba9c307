// SPDX-License-Identifier: Apache-2.0
//
// An encoder on one's own weights: reads them as PyTorch saved them (encore/torch_weights.h says
// how), computes two sequences of different lengths, and prints a little of each result.
//
//   own_weights WEIGHTS.safetensors

#include <cstdio>
#include <vector>

#include "encore/encore.h"

namespace {

int Fail(const encore::Status& status) {
  std::fprintf(stderr, "own_weights: %s\n", status.message().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: own_weights WEIGHTS.safetensors\n");
    return 2;
  }
  const auto file = encore::TorchWeights::Open(argv[1]);
  if (!file.ok()) return Fail(file.status());
  // Packs the weights; `file` is not needed after this.
  const auto encoder = encore::Encoder::Create(file->config(), file->weights());
  if (!encoder.ok()) return Fail(encoder.status());

  const auto pool = encore::ThreadPool::Create({.threads = 2});
  if (!pool.ok()) return Fail(pool.status());
  const encore::Executor executor = pool->executor();

  // Sequences of 3 and 5 tokens, packed: rows 0 to 2 and rows 3 to 7. No padding.
  const encore::Batch batch{.seq_starts = {0, 3, 8}};
  const size_t tokens = 8;
  const size_t d_model = file->config().d_model;
  auto workspace = encoder->MakeWorkspace(batch, executor);  // once, for any number of calls
  if (!workspace.ok()) return Fail(workspace.status());

  std::vector<float> x(tokens * d_model), y(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 17) / 17;
  const encore::Status status =
      encoder->Forward(batch, encore::ConstView(x.data(), {tokens, d_model}),
                       encore::MutableView(y.data(), {tokens, d_model}), *workspace, executor);
  if (!status.ok()) return Fail(status);

  const size_t starts[] = {0, 3, 8};
  for (size_t b = 0; b < 2; ++b) {
    double mean = 0;
    for (size_t i = starts[b] * d_model; i < starts[b + 1] * d_model; ++i) mean += y[i];
    std::printf("sequence %zu: %zu tokens, first element %.4f, mean %.4f\n", b,
                starts[b + 1] - starts[b], y[starts[b] * d_model],
                mean / static_cast<double>((starts[b + 1] - starts[b]) * d_model));
  }
  return 0;
}
