// SPDX-License-Identifier: Apache-2.0
//
// BGE-M3's two heads beside its dense vector (arXiv:2402.03216), which FlagEmbedding saves as files
// of torch next to the model: a weight for each token, and a vector for each.

#ifndef ENCORE_ENGINE_TEXT_M3_HEADS_H_
#define ENCORE_ENGINE_TEXT_M3_HEADS_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "encore/ops.h"
#include "encore/status.h"
#include "encore/tokenizer.h"
#include "engine/text/folder_files.h"

namespace encore::inline v0_1::internal {

inline constexpr std::string_view kTokenWeightFile = "sparse_linear.pt";
inline constexpr std::string_view kTokenVectorFile = "colbert_linear.pt";

// weight [outputs, inputs] and bias [outputs] of such a file. outputs 0: any number. kUnsupported,
// kCorruptData and kInvalidArgument name the file, what was found and what was wanted.
Result<PackedLinear> ReadTorchLinear(const Folder& folder, std::string_view file, size_t inputs,
                                     size_t outputs);

// A text's sparse vector: of each id the largest of its tokens' weights, where it is above 0. Of
// these tokens' ids none: the tokenizer's cls_token, eos_token, pad_token and unk_token.
struct TokenWeights {
  PackedLinear linear;           // [1, hidden width]; then relu
  std::vector<int32_t> dropped;  // sorted
};
Result<TokenWeights> ReadTokenWeights(const ModelFolder& found, const Tokenizer& tokenizer,
                                      size_t width, const FolderReading& reading);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TEXT_M3_HEADS_H_
