// SPDX-License-Identifier: Apache-2.0
//
// The sizes of a forward pass's intermediates, added up with overflow checks.

#include "engine/nn/scratch_plan.h"

#include <algorithm>
#include <string>

#include "engine/base/int_math.h"
#include "engine/nn/thread_plan.h"
#include "engine/ops/attention.h"

namespace encore::internal {
namespace {

constexpr size_t kLine = 16;  // floats in a cache line

// Hands out room and remembers whether any size overflowed.
class Layout {
 public:
  // Room for rows * cols floats; its offset.
  size_t Take(size_t rows, size_t cols) {
    const size_t offset = floats_;
    size_t size = 0;
    ok_ = ok_ && CheckedMul(rows, cols, &size) && CheckedRoundUp(size, kLine, &size) &&
          CheckedAdd(floats_, size, &floats_);
    return offset;
  }
  // Sums and products of the counts that go into Take.
  size_t Sum(size_t a, size_t b) {
    size_t sum = 0;
    ok_ = ok_ && CheckedAdd(a, b, &sum);
    return sum;
  }
  size_t Product(size_t a, size_t b) {
    size_t product = 0;
    ok_ = ok_ && CheckedMul(a, b, &product);
    return product;
  }
  bool ok() const { return ok_; }
  size_t floats() const { return floats_; }

 private:
  bool ok_ = true;
  size_t floats_ = 0;
};

// Whole lines, and never a multiple of a page: rows of equal column would meet in the same few sets
// of L1.
size_t PaddedRow(size_t cols) {
  const size_t padded = RoundUp(cols, kLine);
  return padded % 1024 == 0 ? padded + kLine : padded;
}

}  // namespace

Result<ScratchPlan> ScratchPlan::Create(const EncoderConfig& config, size_t tokens,
                                        size_t sequences, size_t lanes) {
  // The configuration was validated with its weights in memory: sums and products of two of its
  // sizes are safe.
  const size_t head_size = config.d_model / config.num_heads;
  ScratchPlan plan{};
  plan.ld_model = PaddedRow(config.d_model);
  // Attention reads whole vectors past the last head's end: they are none of the next row, which
  // may be another lane's.
  plan.ld_qkv = PaddedRow(3 * config.d_model + (head_size % kLine != 0 ? kLine - 1 : 0));
  plan.ld_ff = PaddedRow(config.d_ff);

  Layout layout;
  plan.block_rows = layout.Product(lanes, std::min(tokens, kRowsOfTask));
  plan.qkv = layout.Take(tokens, plan.ld_qkv);
  plan.keys = layout.Take(layout.Sum(tokens, layout.Product(sequences, 16)), config.d_model);
  plan.context = layout.Take(std::max(tokens, plan.block_rows), plan.ld_model);
  plan.mid = layout.Take(plan.block_rows, plan.ld_model);
  plan.normed = layout.Take(plan.block_rows, plan.ld_model);
  plan.hidden = layout.Take(plan.block_rows, plan.ld_ff);
  plan.attention_floats = AttentionScratchFloats(tokens, head_size, /*masked=*/true);
  plan.attention = layout.Take(lanes, plan.attention_floats);
  constexpr size_t kWord = sizeof(size_t) / sizeof(float);
  plan.words = layout.Take(layout.Sum(layout.Sum(layout.Product(sequences, 2), 1), lanes),
                           kWord);  // ThreadPlanWords
  plan.block_starts = layout.Take(layout.Sum(sequences, 1), kWord);
  plan.bytes = layout.Product(layout.floats(), sizeof(float));
  if (!layout.ok()) {
    return InvalidArgument("the workspace for " + std::to_string(tokens) + " tokens in " +
                           std::to_string(sequences) + " sequences on " + std::to_string(lanes) +
                           " lanes exceeds what can be addressed");
  }
  return plan;
}

}  // namespace encore::internal
