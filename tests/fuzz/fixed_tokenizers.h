// SPDX-License-Identifier: Apache-2.0
//
// Tokenizers over a small vocabulary of many scripts, one for each way through the normalizer and
// the other parts.

#ifndef ENCORE_TESTS_FUZZ_FIXED_TOKENIZERS_H_
#define ENCORE_TESTS_FUZZ_FIXED_TOKENIZERS_H_

#include <vector>

#include "encore/tokenizer.h"

namespace encore::fuzz {

// The same each time, made by the first call.
const std::vector<Tokenizer>& FixedTokenizers();

}  // namespace encore::fuzz

#endif  // ENCORE_TESTS_FUZZ_FIXED_TOKENIZERS_H_
