// SPDX-License-Identifier: Apache-2.0
//
// Batches that are drawn for the fuzz target `encoder`: ragged sequences, masks, positions, inputs
// and outputs of any layout; and sometimes one thing in them that Forward has to refuse.

#ifndef ENCORE_TESTS_FUZZ_DRAWN_BATCH_H_
#define ENCORE_TESTS_FUZZ_DRAWN_BATCH_H_

#include <cstddef>
#include <string_view>
#include <vector>

#include "encore/encoder.h"
#include "tests/fuzz/drawn_views.h"

namespace encore::fuzz {

class DrawnBatch {
 public:
  // For an encoder of this configuration; `large` allows hundreds of tokens.
  DrawnBatch(Draw& draw, const EncoderConfig& config, bool large);
  DrawnBatch(const DrawnBatch&) = delete;
  DrawnBatch& operator=(const DrawnBatch&) = delete;

  // As Forward gets it; its starts and positions may be wrong then.
  const Batch& batch() const { return batch_; }
  const ConstView& x() const { return x_; }
  const MutableView& y() const { return y_; }
  // What Forward has to refuse, or "".
  std::string_view fault() const { return fault_; }
  // Whether the input is tame and no mask adds special numbers.
  bool has_reference() const { return has_reference_; }

  size_t tokens() const { return true_starts_.back(); }
  size_t sequences() const { return true_starts_.size() - 1; }
  size_t begin(size_t b) const { return true_starts_[b]; }
  size_t length(size_t b) const { return true_starts_[b + 1] - true_starts_[b]; }
  // All of x as it was drawn, dense: Forward may work in place.
  const std::vector<float>& x_values() const { return x_values_; }
  // Sequence b by itself, under the same mask; *starts holds its two numbers.
  Batch Alone(size_t b, std::vector<size_t>* starts) const;

  // Ends the process unless nothing but y was written, or nothing at all.
  void CheckRest() const;
  void CheckUntouched() const;

 private:
  void DrawLengths(Draw& draw, bool large);
  void DrawMask(Draw& draw, const EncoderConfig& config);
  void DrawViews(Draw& draw, size_t d_model);
  void SpoilBatch(Draw& draw);
  void SpoilViews(Draw& draw);
  void CheckInput() const;

  NumberSource source_;
  std::vector<size_t> true_starts_ = {0};
  std::vector<size_t> starts_;
  std::vector<size_t> positions_;
  DrawnView<float> additive_;
  DrawnView<bool> blocked_;
  DrawnView<float> in_;
  std::vector<float> in_memory_;
  std::vector<float> x_values_;
  DrawnOutput out_;
  bool in_place_ = false;
  Batch batch_;
  ConstView x_;
  MutableView y_;
  std::string_view fault_;
  bool has_reference_ = true;
};

}  // namespace encore::fuzz

#endif  // ENCORE_TESTS_FUZZ_DRAWN_BATCH_H_
