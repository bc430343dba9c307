// SPDX-License-Identifier: Apache-2.0
//
// Steps one after another, between two buffers.

#include "engine/tokenizer/normalizer.h"

namespace encore::inline v0_1::internal {

TextView Normalizer::Apply(TextView text, Scratch* scratch) const {
  for (size_t i = 0; i < steps_.size(); ++i) {
    TextBuffer& out = scratch->buffers[i % 2];
    out.Clear(text.origin != nullptr);
    steps_[i]->Apply(text, &scratch->marks, &out);
    text = out.view();
  }
  return text;
}

double Normalizer::Growth() const {
  double growth = 1;
  for (const auto& step : steps_) growth *= step->Growth();
  return growth;
}

}  // namespace encore::internal
