// SPDX-License-Identifier: Apache-2.0
//
// Extended grapheme clusters (Unicode Standard Annex 29), as far as clusters of few bytes need
// them.

#ifndef ENCORE_ENGINE_TOKENIZER_GRAPHEME_H_
#define ENCORE_ENGINE_TOKENIZER_GRAPHEME_H_

namespace encore::inline v0_1::internal {

// The end of the cluster that starts at `at`, in valid text that goes on to `end`. Clusters of up
// to 5 bytes are exact; longer ones may be cut where both parts have 6 bytes or one character.
const char* ClusterEnd(const char* at, const char* end);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_GRAPHEME_H_
