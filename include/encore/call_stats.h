// SPDX-License-Identifier: Apache-2.0
//
// CallStats and CallProgress: what a call on texts did, and how far it is.

#ifndef ENCORE_CALL_STATS_H_
#define ENCORE_CALL_STATS_H_

#include <cstddef>
#include <cstdint>

namespace encore::inline v0_1 {

// Of a call, or of one that failed as far as it came. Times are nanoseconds of the calling thread,
// together about those of the whole call.
struct CallStats {
  int64_t tokenizing = 0;        // texts to ids, and ids into batches
  int64_t embedding = 0;         // rows of the tables; of static embeddings their means
  int64_t layers = 0;            // of the encoder; 0 where there are none
  int64_t pooling = 0;           // and what follows: dense layers, heads, normalization
  int64_t waiting = 0;           // to wake other threads, and for their last tasks
  size_t texts = 0, tokens = 0;  // computed
  size_t helpers = 0;            // threads beside the first that computed a task
  size_t scratch_bytes = 0;      // that the call held
};

// How far a call is: texts that are done, of all, and tokens, of all texts tokenized so far.
struct CallProgress {
  size_t texts = 0, all_texts = 0, tokens = 0, all_tokens = 0;
};

}  // namespace encore

#endif  // ENCORE_CALL_STATS_H_
