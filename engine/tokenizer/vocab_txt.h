// SPDX-License-Identifier: Apache-2.0
//
// A tokenizer from vocab.txt and tokenizer_config.json: what transformers builds of them for BERT
// and its kin. Not here: tokenizer.json (tokenizer_json.h).

#ifndef ENCORE_ENGINE_TOKENIZER_VOCAB_TXT_H_
#define ENCORE_ENGINE_TOKENIZER_VOCAB_TXT_H_

#include <string>
#include <string_view>

#include "encore/status.h"
#include "encore/tokenizer.h"
#include "engine/tokenizer/tokenizer_config.h"
#include "engine/tokenizer/tokenizer_parts.h"

namespace encore::inline v0_1::internal {

// `vocab`: a token a line, its number from 0 being the id; white space at its end is left out, and
// the last of equal lines counts. kCorruptData for bytes that are not UTF-8; kUnsupported for the
// class of another kind of tokenizer; kInvalidArgument if the unknown, the class or the separator
// token is not there; sentences name the file. Throws std::bad_alloc.
Result<TokenizerParts> ReadVocabTxt(std::string_view vocab, const TokenizerConfig& config,
                                    const TokenizerOptions& options);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_VOCAB_TXT_H_
