// SPDX-License-Identifier: Apache-2.0
//
// The activations of a feed-forward network, on [tokens, d_ff] of models in use. Not here: accuracy
// (tests/).

#include <string>

#include "bench/elementwise.h"
#include "bench/models.h"

namespace encore::bench {

void RegisterBenchmarks() {
  for (const Workload& load :
       {Workload{kExample, 32, 10}, Workload{kMiniLm, 1, 128}, Workload{kBase, 8, 128}}) {
    const size_t n = load.batch * load.seq * load.model.d_ff;
    RegisterElementwise("gelu", Gelu, kGeluFlops, n);
    RegisterElementwise("gelu_tanh", GeluTanh, kGeluTanhFlops, n);
    RegisterElementwise("silu", Silu, kSiluFlops, n);
    RegisterElementwise("relu", Relu, kReluFlops, n);
  }
}

}  // namespace encore::bench
