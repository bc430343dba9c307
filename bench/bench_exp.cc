// SPDX-License-Identifier: Apache-2.0
//
// exp and tanh of contiguous arrays. Not here: accuracy (tests/), exp within a softmax
// (bench_softmax.cc).

#include <string>

#include "bench/elementwise.h"

namespace encore::bench {

void RegisterBenchmarks() {
  // 16 KiB, in L1; the scores of BERT base at 128 tokens; 16 MiB.
  for (const size_t n : {size_t{4096}, size_t{12} * 128 * 128, size_t{4} << 20}) {
    RegisterElementwise("exp", Exp, kExpFlops, n);
    RegisterElementwise("tanh", Tanh, kTanhFlops, n);
  }
}

}  // namespace encore::bench
