// SPDX-License-Identifier: Apache-2.0
//
// Drawn inputs for tests of attention: q, k and v of one head, and masks.

#ifndef ENCORE_TESTS_SUPPORT_ATTENTION_CASE_H_
#define ENCORE_TESTS_SUPPORT_ATTENTION_CASE_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "encore/ops.h"
#include "tests/support/guarded.h"

namespace encore {

struct AttentionCase {
  AttentionCase(size_t q_rows, size_t k_rows, size_t q_cols, size_t v_cols)
      : queries(q_rows),
        keys(k_rows),
        head_size(q_cols),
        value_size(v_cols),
        q(RandomFloats(q_rows * q_cols, 1)),
        k(RandomFloats(k_rows * q_cols, 2)),
        v(RandomFloats(k_rows * v_cols, 3)) {}
  ConstView q_view() const { return {q.data(), {queries, head_size}}; }
  ConstView k_view() const { return {k.data(), {keys, head_size}}; }
  ConstView v_view() const { return {v.data(), {keys, value_size}}; }

  size_t queries, keys, head_size, value_size;
  std::vector<float> q, k, v;
};

// Matrices [queries, keys] that hide about a third of the keys each, a whole row now and then.
class Masks {
 public:
  Masks(size_t queries, size_t keys)
      : shape_(queries, keys), flags_(queries * keys), add_(RandomFloats(queries * keys, 4)) {
    const std::vector<float> drawn = RandomFloats(queries * keys, 5);
    for (size_t i = 0; i < flags_.size(); ++i) {
      flags_[i] = drawn[i] > 0.4f || i / keys % 13 == 5;
      if (add_[i] > 0.4f || i / keys % 11 == 7) add_[i] = -std::numeric_limits<float>::infinity();
    }
  }
  TensorView<const bool> blocked() const {
    return {reinterpret_cast<const bool*>(flags_.data()), shape_};
  }
  ConstView additive() const { return {add_.data(), shape_}; }

 private:
  Shape shape_;
  std::vector<uint8_t> flags_;  // 0 or 1; std::vector<bool> has no bools to point at
  std::vector<float> add_;
};

}  // namespace encore

#endif  // ENCORE_TESTS_SUPPORT_ATTENTION_CASE_H_
