// SPDX-License-Identifier: Apache-2.0
//
// How far the vectors of a converted folder are from those of the original in f32, on sentences.

#ifndef ENCORE_TOOLS_ENCORE_CONVERSION_LOSS_H_
#define ENCORE_TOOLS_ENCORE_CONVERSION_LOSS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "encore/text_encoder.h"

namespace encore::tool {

// 24 sentences in eight languages.
std::vector<std::string> BuiltInSentences();

// Cosines of pairs of vectors of the same text.
struct CosineLoss {
  size_t texts = 0;
  double mean = 1;
  double least = 1;
};

// Of each text's vector; of its hidden states, as one vector, where the model is a classifier or
// reranker. Throws Failure where a folder cannot be opened, has no tokenizer, or refuses a text.
// Both folders are opened at once.
CosineLoss MeasureLoss(const std::string& folder, const OpenOptions& options,
                       const std::string& other_folder, const OpenOptions& other_options,
                       const std::vector<std::string>& texts);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_CONVERSION_LOSS_H_
