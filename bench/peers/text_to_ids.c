// SPDX-License-Identifier: Apache-2.0
//
// A loop over encore_tokenize for text_to_ids.py, which compiles it: the peers take a list of texts
// in one call too.

#include "encore/c_api.h"

// ids holds what the texts need one after another, at most `capacity` of each; counts [texts].
// Returns the ids of all texts, or 0 for a failure.
size_t tokenize_all(const encore_model* model, const encore_text* texts, size_t size, int32_t* ids,
                    size_t capacity, size_t* counts);

size_t tokenize_all(const encore_model* model, const encore_text* texts, size_t size, int32_t* ids,
                    size_t capacity, size_t* counts) {
  const encore_tokenize_options options = {.size = sizeof options, .max_length = SIZE_MAX};
  size_t total = 0;
  for (size_t i = 0; i < size; ++i) {
    if (encore_tokenize(model, texts[i], &options, ids + total, capacity, &counts[i], NULL) !=
        ENCORE_OK) {
      return 0;
    }
    total += counts[i];
  }
  return total;
}
