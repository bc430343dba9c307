// SPDX-License-Identifier: Apache-2.0
//
// Sizes added up with overflow checks.

#include "engine/nn/scratch_plan.h"

#include <algorithm>
#include <string>

#include "engine/base/int_math.h"
#include "engine/kernels/gemm_kernel.h"
#include "engine/ops/attention.h"

namespace encore::inline v0_1::internal {
namespace {

constexpr size_t kLine = 64;  // bytes of a cache line

// Hands out room and remembers whether any size overflowed.
class Layout {
 public:
  // Room for rows * cols elements of so many bytes; its offset.
  size_t Take(size_t rows, size_t cols, size_t element_bytes = sizeof(float)) {
    const size_t offset = bytes_;
    size_t size = 0;
    ok_ = ok_ && CheckedMul(rows, cols, &size) && CheckedMul(size, element_bytes, &size) &&
          CheckedRoundUp(size, kLine, &size) && CheckedAdd(bytes_, size, &bytes_);
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
  size_t bytes() const { return bytes_; }

 private:
  bool ok_ = true;
  size_t bytes_ = 0;
};

// The elements of a row with its padding: whole lines, and never a multiple of a page, because rows
// of equal column would meet in the same few sets of L1.
size_t PaddedRow(size_t cols, size_t element_bytes = sizeof(float)) {
  const size_t line = kLine / element_bytes;
  const size_t padded = RoundUp(cols, line);
  return padded * element_bytes % 4096 == 0 ? padded + line : padded;
}

}  // namespace

Result<ScratchPlan> ScratchPlan::Create(const ModelSizes& model, size_t tokens, size_t sequences,
                                        size_t longest, size_t threads) {
  // The configuration was validated with its weights in memory: sums and products of two of its
  // sizes are safe.
  ScratchPlan plan{};
  plan.ld_model = PaddedRow(model.d_model);
  plan.ld_context = PaddedRow(model.q_width);
  // Attention reads whole vectors past the last head's end. They must not reach the next row, which
  // may be another thread's.
  plan.ld_qkv = PaddedRow(model.qkv_width + (model.packed_value_bytes != 0 ? 15 : 0));
  plan.ld_ff = PaddedRow(model.d_ff);
  plan.ld_routes = PaddedRow(2 * model.experts);
  plan.ld_per_layer_input = PaddedRow(model.per_layer_input);
  plan.lhs_stride = PaddedRow(model.lhs_row_bytes, 1);

  Layout layout;
  layout.Product(threads, kRowsOfTask);  // the most of RowsOfAllBlocks
  plan.block_rows = RowsOfAllBlocks(tokens, threads);
  plan.qkv = layout.Take(tokens, plan.ld_qkv);
  const size_t packed_rows = layout.Sum(tokens, layout.Product(sequences, 16));
  plan.keys = layout.Take(packed_rows, model.kv_width);
  plan.values = layout.Take(model.packs_lhs || longest >= kPackedValueKeys ? packed_rows : 0,
                            model.packed_value_bytes, 1);
  plan.context = layout.Take(std::max(tokens, plan.block_rows), plan.ld_context);
  plan.mid = layout.Take(plan.block_rows, plan.ld_model);
  plan.normed = layout.Take(plan.block_rows, plan.ld_model);
  plan.expert_rows = model.expert_rows;
  const size_t rows = layout.Product(plan.block_rows, plan.expert_rows);
  plan.hidden = layout.Take(rows, plan.ld_ff);
  plan.lhs = layout.Take(model.lhs_row_bytes != 0 ? rows : 0, plan.lhs_stride, 1);
  plan.quants = layout.Take(model.lhs_row_bytes != 0 ? rows : 0, 1, sizeof(RowQuant));
  plan.per_layer_input =
      layout.Take(model.per_layer_input != 0 ? plan.block_rows : 0, plan.ld_per_layer_input);
  plan.encoder_input = layout.Take(model.keeps_encoder_input ? tokens : 0, plan.ld_model);
  plan.routes = layout.Take(model.experts != 0 ? plan.block_rows : 0, plan.ld_routes);
  plan.expert = layout.Take(model.experts != 0 ? rows : 0, plan.ld_model);
  plan.attention_floats =
      AttentionScratchFloats(longest, model.head_size, /*masked=*/true,
                             model.packs_lhs ? model.head_size : 0, model.relative);
  // A task of attention has a sequence, a block of at least kMinRowsOfBlock rows, or some heads of
  // a block of queries.
  const size_t query_blocks =
      layout.Sum(tokens, layout.Product(sequences, kQueryBlock - 1)) / kQueryBlock;
  const size_t tasks = std::max(
      {size_t{1}, sequences, tokens / kMinRowsOfBlock, layout.Product(model.heads, query_blocks)});
  plan.attention = layout.Take(std::min(threads, tasks), plan.attention_floats);
  plan.positions = layout.Take(
      layout.Sum(layout.Product(longest, model.floats_per_position), model.floats_beside), 1);
  plan.words = layout.Take(layout.Sum(layout.Sum(layout.Product(sequences, 2), 1), threads), 1,
                           sizeof(size_t));  // ThreadPlanWords
  plan.bytes = layout.bytes();
  if (!layout.ok()) {
    return InvalidArgument("the workspace for " + std::to_string(tokens) + " tokens in " +
                           std::to_string(sequences) + " sequences on " + std::to_string(threads) +
                           " threads exceeds what can be addressed");
  }
  return plan;
}

}  // namespace encore::internal
