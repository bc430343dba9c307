// SPDX-License-Identifier: Apache-2.0
//
// PaddedBatch: from [B, S, D] with a key-padding mask to packed rows and back.

#include <string>
#include <vector>

#include "encore/encoder.h"
#include "engine/base/guarded.h"
#include "engine/base/int_math.h"
#include "engine/ops/view_check.h"

namespace encore::inline v0_1 {

Result<PaddedBatch> PaddedBatch::Create(size_t batch, size_t seq,
                                        TensorView<const bool> key_padding_mask) {
  return internal::Guarded("a padded batch", [&]() -> Result<PaddedBatch> {
    if (!key_padding_mask.empty()) {
      ENCORE_RETURN_IF_ERROR(internal::CheckShape("key_padding_mask", key_padding_mask,
                                                  Shape(batch, seq), "batch by sequence length"));
    }
    size_t rows = 0;
    size_t starts = 0;
    if (!internal::CheckedMul(batch, seq, &rows) || !internal::CheckedAdd(batch, 1, &starts)) {
      return InvalidArgument("a batch of " + std::to_string(batch) + " sequences of " +
                             std::to_string(seq) + " tokens exceeds what can be addressed");
    }
    PaddedBatch padded;
    padded.batch_ = batch;
    padded.seq_ = seq;
    padded.starts_.reserve(starts);
    padded.positions_.reserve(rows);
    padded.rows_.reserve(rows);
    for (size_t b = 0; b < batch; ++b) {
      for (size_t s = 0; s < seq; ++s) {
        if (!key_padding_mask.empty() && key_padding_mask(b, s)) continue;
        padded.positions_.push_back(s);
        padded.rows_.push_back(b * seq + s);
      }
      padded.starts_.push_back(padded.rows_.size());
    }
    return padded;
  });
}

Result<PaddedBatch> PaddedBatch::FromAttentionMask(TensorView<const int64_t> attention_mask) {
  return internal::Guarded("a padded batch", [&]() -> Result<PaddedBatch> {
    ENCORE_RETURN_IF_ERROR(internal::CheckRank("attention_mask", attention_mask, 2));
    const size_t batch = attention_mask.dim(0);
    const size_t seq = attention_mask.dim(1);
    std::vector<bool> mask;
    mask.reserve(batch * seq);
    for (size_t b = 0; b < batch; ++b) {
      for (size_t s = 0; s < seq; ++s) {
        const int64_t value = attention_mask(b, s);
        if (value != 0 && value != 1) {
          return InvalidArgument("attention_mask[" + std::to_string(b) + ", " + std::to_string(s) +
                                 "] is " + std::to_string(value) +
                                 "; wanted 1 for a token or 0 for padding");
        }
        mask.push_back(value == 1);
      }
    }
    return FromAttentionMask(batch, seq, mask);
  });
}

Result<PaddedBatch> PaddedBatch::FromAttentionMask(size_t batch, size_t seq,
                                                   const std::vector<bool>& attention_mask) {
  return internal::Guarded("a padded batch", [&]() -> Result<PaddedBatch> {
    size_t rows = 0;
    if (!internal::CheckedMul(batch, seq, &rows) || attention_mask.size() != rows) {
      return InvalidArgument("attention_mask has " + std::to_string(attention_mask.size()) +
                             " entries; wanted " + std::to_string(batch) + " times " +
                             std::to_string(seq));
    }
    ENCORE_ASSIGN_OR_RETURN(Tensor padding, Tensor::Create(DType::kBool, Shape(batch, seq)));
    const TensorView<bool> is_padding = padding.View<bool>();
    for (size_t i = 0; i < rows; ++i) is_padding(i / seq, i % seq) = !attention_mask[i];
    return Create(batch, seq, is_padding);
  });
}

namespace {

Status CheckPair(const ConstView& padded, const ConstView& packed, size_t batch, size_t seq,
                 size_t tokens) {
  ENCORE_RETURN_IF_ERROR(internal::CheckRank("padded", padded, 3));
  const size_t width = padded.dim(2);
  ENCORE_RETURN_IF_ERROR(
      internal::CheckShape("padded", padded, Shape(batch, seq, width), "batch, length, any width"));
  return internal::CheckShape("packed", packed, Shape(tokens, width),
                              "tokens that are no padding, padded's width");
}

}  // namespace

Status PaddedBatch::Pack(ConstView padded, MutableView packed) const {
  return internal::Guarded("a padded batch", [&]() -> Status {
    ENCORE_RETURN_IF_ERROR(CheckPair(padded, packed, batch_, seq_, tokens()));
    ENCORE_RETURN_IF_ERROR(internal::CheckOutput("packed", packed));
    for (size_t t = 0; t < tokens(); ++t) {
      const ConstView from = padded[rows_[t] / seq_][rows_[t] % seq_];
      for (size_t c = 0; c < packed.dim(1); ++c) packed(t, c) = from(c);
    }
    return {};
  });
}

Status PaddedBatch::Unpack(ConstView packed, MutableView padded) const {
  return internal::Guarded("a padded batch", [&]() -> Status {
    ENCORE_RETURN_IF_ERROR(CheckPair(padded, packed, batch_, seq_, tokens()));
    ENCORE_RETURN_IF_ERROR(internal::CheckOutput("padded", padded));
    size_t t = 0;  // rows_ is in rising order
    for (size_t row = 0; row < batch_ * seq_; ++row) {
      const MutableView to = padded[row / seq_][row % seq_];
      const bool padding = t == tokens() || rows_[t] != row;
      for (size_t c = 0; c < padded.dim(2); ++c) to(c) = padding ? 0.0f : packed(t, c);
      t += padding ? 0 : 1;
    }
    return {};
  });
}

}  // namespace encore
