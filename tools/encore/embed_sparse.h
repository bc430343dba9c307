// SPDX-License-Identifier: Apache-2.0
//
// What `encore embed` does with a folder of sparse vectors.

#ifndef ENCORE_TOOLS_ENCORE_EMBED_SPARSE_H_
#define ENCORE_TOOLS_ENCORE_EMBED_SPARSE_H_

#include <string>

#include "encore/text_encoder.h"
#include "tools/encore/text_input.h"

namespace encore::tool {

// Writes to `output`, by its ending. .jsonl: a JSON object a text, {"indices": [7, 12], "values":
// [0.5, 1.25]}, with the input's "id" in front where it has one. .npz: what scipy.sparse.load_npz
// makes a CSR matrix of; its indices are kept in memory until the end, 4 bytes an entry. Returns
// the exit status; throws Failure.
int EmbedSparse(const TextEncoder& model, const SparseOptions& options, const std::string& output,
                TextChunks* input);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_EMBED_SPARSE_H_
