// SPDX-License-Identifier: Apache-2.0
//
// The attention weights of a real model, from its folder and a text. Not here: what they say
// (attention_habits.h), how they are shown (model_attention_report.h, model_attention_svg.h).

#ifndef ENCORE_TOOLS_ENCORE_MODEL_ATTENTION_H_
#define ENCORE_TOOLS_ENCORE_MODEL_ATTENTION_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "encore/precision.h"
#include "encore/tensor.h"
#include "tools/encore/shared_options.h"

namespace encore::tool {

struct ModelToken {
  std::string label;  // as the vocabulary spells it; printable
  int32_t id = 0;
  bool special = false;  // of the template: [CLS], [SEP]
  bool second = false;   // of the second text
};

struct ModelAttention {
  std::string model;  // the folder's own name
  Precision precision = Precision::kF32;
  std::string text;  // printable; the pair's second text behind " | "
  bool pair = false;
  std::vector<ModelToken> tokens;
  size_t heads = 0;             // of every layer
  std::vector<Tensor> weights;  // of each layer, F32 [heads, T, T]: [h, i, j] is how much i gets
                                // of j; a row sums to 1

  size_t layers() const { return weights.size(); }
  size_t size() const { return tokens.size(); }
  // [heads, T, T]
  ConstView layer(size_t i) const { return weights[i].View<float>(); }
  // Labels, those that occur several times with a number: "the", "the(2)".
  std::vector<std::string> Labels() const;
};

// Opens the folder and runs the model on the text or pair. Throws Failure: for what cannot be
// opened, and for a text of more tokens than the model takes.
ModelAttention AttendWithModel(const std::string& folder, const PrecisionOptions& precision,
                               const std::string& text, const std::optional<std::string>& pair);

// [T, T]: the mean over the heads of a layer.
Tensor MeanOfHeads(ConstView layer);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_MODEL_ATTENTION_H_
