// SPDX-License-Identifier: Apache-2.0
//
// The ways in which threads share a forward pass, and the test that a batch shared in one of them
// has the bits of its sequences alone.

#ifndef ENCORE_TESTS_CONTRACT_PLAN_WAYS_H_
#define ENCORE_TESTS_CONTRACT_PLAN_WAYS_H_

#include <cstddef>
#include <vector>

#include "encore/encoder.h"

namespace encore {

enum class Way {
  kSequencesInOwnWindows,
  kSequencesInPlace,
  kRowsWithAttention,
  kRowsAttentionApart,
  kColumnsHeadsTogether,
  kColumnsInSteps,
};

// Whether threads of a plan by columns take heads together in the first layer.
bool HeadsTogether(const EncoderConfig& config, size_t threads);

// Of a drawn model on the active target, in one precision after another: so many threads share the
// batch in that way, and each sequence equals the same one alone, and so do single rows.
void ExpectWay(Way way, const EncoderConfig& config, const std::vector<size_t>& lengths,
               int threads, const AttentionMask& mask = {});

}  // namespace encore

#endif  // ENCORE_TESTS_CONTRACT_PLAN_WAYS_H_
