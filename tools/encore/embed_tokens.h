// SPDX-License-Identifier: Apache-2.0
//
// What `encore embed` does with a folder of late interaction.

#ifndef ENCORE_TOOLS_ENCORE_EMBED_TOKENS_H_
#define ENCORE_TOOLS_ENCORE_EMBED_TOKENS_H_

#include <string>

#include "encore/multi_vector_encoder.h"
#include "tools/encore/text_input.h"

namespace encore::tool {

// Writes two arrays to `output`, which ends in .npz: "vectors", a row a token, in f32, bf16 (its
// bits) or int8, and "row_starts", the first row of each text and the end; and with int8 the rows'
// "scales". Returns the exit status; throws Failure.
int EmbedTokens(const MultiVectorEncoder& model, const EncodeOptions& options, TextTask task,
                const std::string& output, const std::string& output_type, TextChunks* input);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_EMBED_TOKENS_H_
