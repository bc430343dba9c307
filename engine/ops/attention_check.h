// SPDX-License-Identifier: Apache-2.0
//
// Validation of attention masks, shared by the operations and the encoder.

#ifndef ENCORE_ENGINE_OPS_ATTENTION_CHECK_H_
#define ENCORE_ENGINE_OPS_ATTENTION_CHECK_H_

#include <cstddef>

#include "encore/ops.h"
#include "engine/ops/view_check.h"

namespace encore::inline v0_1::internal {

// Matrices of the mask, where given, are exactly [queries, keys].
inline Status CheckMask(const AttentionMask& mask, size_t queries, size_t keys) {
  if (!mask.blocked.empty()) {
    ENCORE_RETURN_IF_ERROR(
        CheckShape("mask.blocked", mask.blocked, Shape(queries, keys), "queries by keys"));
  }
  if (!mask.additive.empty()) {
    ENCORE_RETURN_IF_ERROR(
        CheckShape("mask.additive", mask.additive, Shape(queries, keys), "queries by keys"));
  }
  return {};
}

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_OPS_ATTENTION_CHECK_H_
