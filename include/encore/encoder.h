// SPDX-License-Identifier: Apache-2.0
//
// The transformer encoder: one block or a stack of them, over a batch of packed sequences. Not
// here: reading weights from a file (torch_weights.h).
//
// Block, post-norm (norm_first false):            Block, pre-norm (norm_first true):
//   x = norm1(x + attention(x))                     x = x + attention(norm1(x))
//   x = norm2(x + ff(x))                            x = x + ff(norm2(x))
// with ff(x) = linear2(activation(linear1(x))), as torch.nn.TransformerEncoderLayer in evaluation
// mode (Vaswani et al. 2017, arXiv:1706.03762; pre-norm: Xiong et al. 2020, arXiv:2002.04745).
//
// Accuracy: each operation keeps its bound of ops.h; the activation is right to 0.9 ulp of its
// argument (1.2 on targets without FMA) rather than of its result. What worst cases of all of them
// would add up to says nothing. Taken as independent errors of mean zero (Higham & Mary 2019,
// doi:10.1137/18M1226312), each a standard deviation of 2^-24 of its result, and carried through
// the operations that follow to first order, they give each element a standard deviation; y is
// within 8 of them, which the tests hold on every target.

#ifndef ENCORE_ENCODER_H_
#define ENCORE_ENCODER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "encore/executor.h"
#include "encore/export.h"
#include "encore/layer.h"
#include "encore/ops.h"
#include "encore/status.h"
#include "encore/tensor.h"
#include "encore/workspace.h"

namespace encore {

struct EncoderConfig {
  size_t d_model = 0;    // width of a token's vector
  size_t num_heads = 0;  // divides d_model; the head size is d_model / num_heads
  size_t d_ff = 0;       // inner width of the feed-forward network
  size_t num_layers = 1;
  Activation activation = Activation::kRelu;
  bool norm_first = false;       // true: pre-norm
  double layer_norm_eps = 1e-5;  // >= 0 and finite
  bool final_norm = false;       // a LayerNorm after the last block
};

// Views of the caller's weights, needed only during Encoder::Create. Names and layouts are those of
// torch.nn.TransformerEncoderLayer. Any bias may be empty, and then is 0.
struct EncoderLayerWeights {
  ConstView in_proj_weight;   // self_attn.in_proj_weight  [3 d_model, d_model]: W_q, W_k, W_v
  ConstView in_proj_bias;     // self_attn.in_proj_bias    [3 d_model]
  ConstView out_proj_weight;  // self_attn.out_proj.weight [d_model, d_model]
  ConstView out_proj_bias;    // self_attn.out_proj.bias   [d_model]
  ConstView linear1_weight;   // linear1.weight            [d_ff, d_model]
  ConstView linear1_bias;     // linear1.bias              [d_ff]
  ConstView linear2_weight;   // linear2.weight            [d_model, d_ff]
  ConstView linear2_bias;     // linear2.bias              [d_model]
  ConstView norm1_weight;     // norm1.weight              [d_model]
  ConstView norm1_bias;       // norm1.bias                [d_model]
  ConstView norm2_weight;     // norm2.weight              [d_model]
  ConstView norm2_bias;       // norm2.bias                [d_model]
};

struct EncoderWeights {
  std::vector<EncoderLayerWeights> layers;  // num_layers of them
  ConstView norm_weight;                    // norm.weight [d_model], with final_norm only
  ConstView norm_bias;                      // norm.bias   [d_model], with final_norm only
};

// A batch of sequences packed one after another: sequence b owns rows seq_starts[b] .. seq_starts[b
// + 1] - 1 of x and y. There is no padding. seq_starts[0] is 0, the last entry is the number of
// tokens, entries never decrease; a sequence may be empty.
struct Batch {
  std::span<const size_t> seq_starts;  // one entry a sequence, plus the end
  // [S, S], shared by all sequences and heads: token i of a sequence is row and column i of it (or
  // positions[row], where given). S must exceed all of these.
  AttentionMask mask = {};
  // Row and column of the mask for each token, [tokens]; empty: a token's index in its sequence.
  // They have no part in `causal`, which goes by the order of rows.
  std::span<const size_t> positions = {};
};

// What to copy out on the way; any view may be empty, and empty spans ask for nothing. Taps change
// no bit of y.
struct Taps {
  // Attention weights: entry [layer * sequences + b] is [num_heads, S_b, S_b].
  std::span<const MutableView> attention = {};
  // Entry [layer] is [tokens, d_model]: the output of that block, before any final norm.
  std::span<const MutableView> hidden = {};
};

// An encoder with its weights packed for the SIMD target that was active at creation. Immutable:
// any number of threads may call Forward at once, with a workspace each. Copying shares the packed
// weights.
class ENCORE_API Encoder {
 public:
  // Validates the configuration and every shape, packs the weights with the executor's threads,
  // once: afterwards they are held in that form alone, and the first Forward is as fast as any.
  // kInvalidArgument names the tensor, what was found and what was wanted; kOutOfMemory.
  static Result<Encoder> Create(const EncoderConfig& config, const EncoderWeights& weights,
                                const Executor& executor = {});

  // These two must not be asked of an encoder that was moved from.
  const EncoderConfig& config() const;
  // The SIMD target it computes with, e.g. "AVX2".
  std::string_view target() const;

  // Bytes of workspace that suffice for every batch of at most this many tokens and sequences with
  // an executor of at most this many lanes. Linear in tokens. kInvalidArgument if the size
  // overflows.
  Result<size_t> WorkspaceBytes(size_t tokens, size_t sequences, int lanes) const;
  Result<size_t> WorkspaceBytes(const Batch& batch, const Executor& executor) const;

  // y = encoder(x). x and y are [tokens, d_model] with contiguous rows (stride 1 along d_model); y
  // may be x itself, else they must not overlap. Allocates nothing on success. Each sequence's bits
  // depend on that sequence alone (and the mask): not on its mates, its place, the executor or the
  // number of lanes. kInvalidArgument names seq_starts, the mask, x, y, a tap or the workspace,
  // what was found and what was wanted; nothing is written then.
  Status Forward(const Batch& batch, ConstView x, MutableView y, const Workspace& workspace,
                 const Executor& executor = {}, const Taps& taps = {}) const;

 private:
  struct Impl;
  explicit Encoder(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

// Turns [B, S, D] with a key-padding mask, holes included, into a packed batch and back. A padding
// token is left out altogether: no key, no query, and zeros in the output. Immutable: any number of
// threads may use it at once.
class ENCORE_API PaddedBatch {
 public:
  // key_padding_mask [B, S], true = padding, as PyTorch's src_key_padding_mask; or empty for none.
  // kInvalidArgument if it has another shape or B S overflows; kOutOfMemory.
  static Result<PaddedBatch> Create(size_t batch, size_t seq,
                                    TensorView<const bool> key_padding_mask = {});

  size_t tokens() const { return rows_.size(); }
  size_t sequences() const { return starts_.empty() ? 0 : starts_.size() - 1; }
  // Valid as long as this object lives. The mask's rows and columns are those of the padded
  // sequence, [S, S].
  Batch batch(const AttentionMask& mask = {}) const { return Batch{starts_, mask, positions_}; }
  // Where packed row t was: index into the B * S padded rows.
  std::span<const size_t> rows() const { return rows_; }

  // padded [B, S, D] to packed [tokens, D]. Both refuse other shapes: kInvalidArgument says what
  // was found and what was wanted.
  Status Pack(ConstView padded, MutableView packed) const;
  // packed [tokens, D] to padded [B, S, D]; rows of padding become zeros.
  Status Unpack(ConstView packed, MutableView padded) const;

 private:
  size_t batch_ = 0;
  size_t seq_ = 0;
  std::vector<size_t> starts_{0};
  std::vector<size_t> positions_;
  std::vector<size_t> rows_;
};

}  // namespace encore

#endif  // ENCORE_ENCODER_H_
