// SPDX-License-Identifier: Apache-2.0
//
// The encoder block: "block" is one layer again and again, its weights in cache as far as they fit;
// "stack" is as many layers as it takes to read every layer's weights from memory, as a whole model
// does. measure/models.h says what counts as an operation. "ragged" is a batch of sequences of 4 to
// 128 tokens without padding.

#include <string>
#include <vector>

#include "bench/common.h"
#include "bench/measure/forward.h"
#include "bench/measure/models.h"
#include "encore/encoder.h"

namespace encore::bench {
namespace {

void Forward(benchmark::State& state, const Model& model, const std::vector<size_t>& lengths,
             size_t layers, int threads) {
  const Precision precision = ChosenPrecision();
  const auto& encoders = Kept<std::vector<Encoder>>(
      std::string(model.name) + std::to_string(layers),
      [&] { return OrFail(MakeEncoders(model, layers, 1, {precision})); });
  ForwardCall call = OrFail(ForwardCall::Create(encoders, lengths, OrFail(ExecutorOf(threads))));
  Work work{.flops = StackFlops(model, lengths, layers),
            .tokens = static_cast<double>(call.tokens()),
            .precision = precision};
  if (layers > 1) work.bytes = static_cast<double>(layers * LayerBytes(model, precision));
  Measure(state, threads, work, [&](size_t i) { return call.Run(i); });
}

void RegisterForward(const std::string& name, const Model& model,
                     const std::vector<size_t>& lengths, size_t layers) {
  for (const int threads : ThreadCounts()) {
    Register(name + "/threads:" + std::to_string(threads),
             [=](benchmark::State& state) { Forward(state, model, lengths, layers, threads); });
  }
}

}  // namespace

void RegisterBenchmarks() {
  for (const NamedWorkload& load : NamedWorkloads()) {
    if (!load.warm_by_default) continue;
    RegisterForward("block/" + load.name, load.model, load.lengths, load.layers);
  }
  std::vector<size_t> ragged;
  for (size_t i = 0; i < 32; ++i) ragged.push_back(4 + i * 4);
  for (const Model& model : {kMiniLm, kBase}) {
    RegisterForward(std::string("block/") + model.name + "/ragged", model, ragged, 1);
  }
  for (const Model& model : {kMiniLm, kBase, kLarge}) {
    for (const size_t seq : {size_t{1}, size_t{16}, size_t{128}}) {
      RegisterForward(std::string("stack/") + model.name + "/1x" + std::to_string(seq), model,
                      {seq}, CopiesForCold(LayerBytes(model, ChosenPrecision())));
    }
  }
}

}  // namespace encore::bench
