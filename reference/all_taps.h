// SPDX-License-Identifier: Apache-2.0
//
// Memory for all taps of a batch, and everything that belongs to one sequence of it: what is
// compared where a sequence must have the same bits wherever it stands.

#ifndef ENCORE_REFERENCE_ALL_TAPS_H_
#define ENCORE_REFERENCE_ALL_TAPS_H_

#include <cstddef>
#include <span>
#include <vector>

#include "encore/encoder.h"

namespace encore {

class AllTaps {
 public:
  AllTaps(const EncoderConfig& config, std::span<const size_t> starts);
  AllTaps(const AllTaps&) = delete;
  AllTaps& operator=(const AllTaps&) = delete;

  Taps taps() const { return {.attention = attention_views_, .hidden = hidden_views_}; }

  // Of each sequence: its rows of y, then of each layer its hidden state and its attention weights.
  std::vector<std::vector<float>> Parts(std::span<const float> y) const;

 private:
  size_t d_model_;
  std::vector<size_t> starts_;
  std::vector<std::vector<float>> hidden_;     // [layer]
  std::vector<std::vector<float>> attention_;  // [layer * sequences + b]
  std::vector<MutableView> hidden_views_, attention_views_;
};

}  // namespace encore

#endif  // ENCORE_REFERENCE_ALL_TAPS_H_
