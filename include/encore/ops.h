// SPDX-License-Identifier: Apache-2.0
//
// The operations by themselves, in f32, on views with any strides.
//
// Common to all: inputs may have any strides. An output must not overlap itself, nor an input
// unless the operation says so. Errors: kInvalidArgument names the view, what was found and what
// was wanted (overlap is rejected where it is cheap to prove); kOutOfMemory. On these errors
// outputs are untouched. All functions are thread-safe if no two calls write the same memory. The
// same input gives the same bits for any executor, number of threads, strides and SIMD target with
// FMA (AVX2, AVX-512, NEON).

#ifndef ENCORE_OPS_H_
#define ENCORE_OPS_H_

#include <cstddef>
#include <memory>
#include <optional>

#include "encore/executor.h"
#include "encore/export.h"
#include "encore/status.h"
#include "encore/tensor.h"

namespace encore::inline v0_1 {

// ---- Matrix products -------------------------------------------------------------------------

// Each element is one chain of fused multiply-adds over k = 0, 1, 2 ... that starts at the bias (or
// 0). Its distance from the exact value is at most (K + 1) (u (|bias| + sum_k |a||b|) + 2^-150), u
// = 2^-24, unless a partial sum leaves the range of f32.

enum class Transpose { kNo, kYes };

struct MatMulOptions {
  Transpose transpose_b = Transpose::kNo;  // kYes: b is [N, K] and the product is A B^T
  ConstView bias = {};                     // [N], added to every row; empty for none
  Executor executor = {};
};

// c[m, n] = bias[n] + sum_k a[m, k] b[k, n]. a [M, K], b [K, N] (or [N, K]), c [M, N]. Any extent
// may be 0. Packs b (and a, where its rows are not contiguous) into memory it allocates; to pack
// once and call often use PackedLinear.
ENCORE_API Status MatMul(ConstView a, ConstView b, MutableView c,
                         const MatMulOptions& options = {});

// The weights of a linear layer, packed for the active SIMD target. Immutable; share it freely
// between threads; copying shares the packed weights.
class ENCORE_API PackedLinear {
 public:
  // weight [out_features, in_features] as torch.nn.Linear has it; bias [out_features] or empty.
  static Result<PackedLinear> Create(ConstView weight, ConstView bias = {});

  // y = x weight^T + bias. x [M, in_features], y [M, out_features]. Allocates nothing if the rows
  // of x and y are contiguous.
  Status Apply(ConstView x, MutableView y, const Executor& executor = {}) const;

  size_t in_features() const;
  size_t out_features() const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

// ---- Elementwise -----------------------------------------------------------------------------

// x and y have the same shape, of any rank; y may be x itself. They run on the calling thread. The
// largest errors are over all floats, subnormal results included (in ulps of the subnormal), on
// targets with FMA, and in brackets on those without; `encore verify` tries every float. At 0,
// +-inf (as a limit) and NaN they are exact, up to which NaN.

ENCORE_API Status Exp(ConstView x, MutableView y);   // e^x                     <= 1 ulp   [1.25]
ENCORE_API Status Tanh(ConstView x, MutableView y);  // tanh x                  <= 1.5 ulp [1.5]
ENCORE_API Status Relu(ConstView x, MutableView y);  // max(x, 0), -0 and NaN stay: exact
ENCORE_API Status Gelu(ConstView x, MutableView y);  // x Phi(x), the erf form  <= 2 ulp   [2]
ENCORE_API Status Silu(ConstView x, MutableView y);  // x / (1 + e^-x)          <= 2 ulp   [2]
// x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), without cancelling   <= 2 ulp   [2]
ENCORE_API Status GeluTanh(ConstView x, MutableView y);
// c = a + b, all of one shape; c may be a or b.
ENCORE_API Status Add(ConstView a, ConstView b, MutableView c);

// ---- Rows ------------------------------------------------------------------------------------

// Over the last axis of a view of rank >= 1; y may be x itself.

// y_i = e^(x_i - max x) / sum_j e^(x_j - max x). -inf gives exactly 0, and so does what lies, after
// rounding, more than 87 below the maximum; a row of nothing but -inf gives zeros. NaN or +inf
// makes its row NaN. With d = x_i - max x, e^d is right to (3 + 1.1 |d|) u of itself, and y_i of a
// row of n to (12 + n / 16 + 1.1 (|d| + ln n)) u of itself + 1.7e-38.
ENCORE_API Status Softmax(ConstView x, MutableView y);

// y_i = (x_i - mean) / sqrt(variance + epsilon) * weight_i + bias_i with the biased variance, as
// torch.nn.LayerNorm. weight and bias are [last extent], or empty for 1 and 0. epsilon >= 0. A
// constant row gives bias exactly, with an epsilon of 0 too. With s = sqrt(variance + epsilon), z =
// (x_i - mean) / s and D = u (n / 16 + 7) (|mean| + mean |x - x_0|) / s, a row of n is right to
//   u (|weight_i| (n / 16 + 7 + |z| (n / 32 + 12)) (1 + 3 D)^2 + |y_i|)
// as long as the squares of x - mean neither overflow nor, where s^2 is below n 2^-126, vanish. D
// is next to nothing up to a mean of some 10,000 s: the mean's size does not matter.
ENCORE_API Status LayerNorm(ConstView x, ConstView weight, ConstView bias, double epsilon,
                            MutableView y);

// y_i = x_i / sqrt(mean of x^2 + epsilon) * weight_i, as torch.nn.RMSNorm. weight is [last extent],
// or empty for 1. epsilon >= 0. A row of zeros gives zeros, with an epsilon of 0 too. With s =
// sqrt(mean of x^2 + epsilon), a row of n is right to
//   u (n / 32 + 9) |y_i| + (|weight_i| + 1) 2^-149
// as long as the squares of x neither overflow when added up nor, where s^2 is below n 2^-126,
// vanish.
ENCORE_API Status RmsNorm(ConstView x, ConstView weight, double epsilon, MutableView y);

// ---- Attention -------------------------------------------------------------------------------

// Which keys a query may see, as PyTorch has it; any of them may be combined. [Sq, Sk] (or [S, S]
// in an encoder).
struct AttentionMask {
  bool causal = false;                  // query i sees keys 0 .. i only
  TensorView<const bool> blocked = {};  // true: this query may not see this key
  ConstView additive = {};              // added to the scaled score; -inf hides a key
  // A hidden key has the weight 0 whatever its score is, NaN included. Its value may still be
  // multiplied by that 0: a NaN or infinity in it can reach queries of the same sequence that do
  // not see it, as in PyTorch.
};

struct AttentionOptions {
  AttentionMask mask = {};
  // Query i sees keys j with |i - j| <= window only; >= 1. Other keys cost nothing.
  std::optional<size_t> window = {};
  double scale = 0;  // multiplies q k^T; 0 means 1 / sqrt(head size)
  // Receives the attention weights [..., Sq, Sk] if given; changes no bit of the output.
  MutableView weights = {};
  Executor executor = {};
};

// softmax(q k^T * scale + mask) v, per sequence and head. q [..., Sq, D], k [..., Sk, D], v [...,
// Sk, Dv], out [..., Sq, Dv] with the same leading axes (none, [H], or [B, H]). A query that may
// see no key gets zeros. Walks the keys in tiles: scratch is linear in Sk. With S the largest
// |scale| sum |q||k| + |mask| among the keys that a query sees, its weights p are right to
//   (1.1 Sk + 24 + (2 D + 22) S) u of themselves + 1.7e-38
// to first order (where that is well below 1), and its output to that much times |v| summed over
// keys. q k^T before scaling and the sum of |v| must be finite in f32 for that.
ENCORE_API Status Attention(ConstView q, ConstView k, ConstView v, MutableView out,
                            const AttentionOptions& options = {});

// As torch.nn.MultiheadAttention names and stacks them (batch_first). Biases may be empty.
struct MultiHeadAttentionWeights {
  size_t num_heads = 0;       // divides d_model
  ConstView in_proj_weight;   // [3 d_model, d_model]: the rows of W_q, W_k, W_v
  ConstView in_proj_bias;     // [3 d_model]
  ConstView out_proj_weight;  // [d_model, d_model]
  ConstView out_proj_bias;    // [d_model]
};

// query [Sq, d_model] or [B, Sq, d_model]; key and value [(B,) Sk, d_model]; out as query.
// options.weights, if given, is
// [(B,) H, Sq, Sk]: the weights of each head. The encoder (encoder.h) does the same with weights
// packed once.
ENCORE_API Status MultiHeadAttention(ConstView query, ConstView key, ConstView value,
                                     const MultiHeadAttentionWeights& weights, MutableView out,
                                     const AttentionOptions& options = {});

}  // namespace encore

#endif  // ENCORE_OPS_H_
