// SPDX-License-Identifier: Apache-2.0
//
// Functions of rows on one thread, in the sizes of models in use: exp and tanh, the activations of
// a feed-forward network on [tokens, d_ff], softmax of scores, LayerNorm of [tokens, d_model].
// Softmax in the tiles of attention is in bench_attention.cc.

#include <utility>

#include "bench/elementwise.h"
#include "bench/measure/models.h"

namespace encore::bench {

void RegisterBenchmarks() {
  // 16 KiB, in L1; the scores of BERT base at 128 tokens; 16 MiB.
  for (const size_t n : {size_t{4096}, size_t{12} * 128 * 128, size_t{4} << 20}) {
    RegisterElementwise("exp", Exp, kExpFlops, Shape(n));
    RegisterElementwise("tanh", Tanh, kTanhFlops, Shape(n));
  }
  for (const auto& [model, tokens] :
       {std::pair<Model, size_t>{kExample, 320}, {kMiniLm, 128}, {kBase, 1024}}) {
    const size_t n = tokens * model.d_ff;
    RegisterElementwise("gelu", Gelu, kGeluFlops, Shape(n));
    RegisterElementwise("gelu_tanh", GeluTanh, kGeluTanhFlops, Shape(n));
    RegisterElementwise("silu", Silu, kSiluFlops, Shape(n));
    RegisterElementwise("relu", Relu, kReluFlops, Shape(n));
  }
  // The worked example; BERT base with 16, 128 and 512 tokens; rows of a long text.
  for (const auto& [rows, cols] : {std::pair<size_t, size_t>{32 * 4 * 10, 10},
                                   {12 * 16, 16},
                                   {12 * 128, 128},
                                   {12 * 512, 512},
                                   {16, 16384}}) {
    RegisterElementwise("softmax", Softmax, kSoftmaxFlops, Shape(rows, cols));
  }
  for (const auto& [model, tokens] : {std::pair<Model, size_t>{kExample, 320},
                                      {kMiniLm, 128},
                                      {kBase, 16},
                                      {kBase, 128},
                                      {kBase, 1024},
                                      {kLarge, 128}}) {
    RegisterElementwise("layer_norm", LayerNormRows, kLayerNormFlops, Shape(tokens, model.d_model));
  }
}

}  // namespace encore::bench
