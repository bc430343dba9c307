// SPDX-License-Identifier: Apache-2.0
//
// LayerConfig: the switches of an encoder layer. engine/nn/families.md has the switches of each
// published family.

#ifndef ENCORE_LAYER_H_
#define ENCORE_LAYER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "encore/export.h"
#include "encore/status.h"

namespace encore::inline v0_1 {

// kGelu is the erf form, kGeluTanh the tanh form, kSilu x sigmoid(x), kQuickGelu x sigmoid(1.702
// x).
enum class Activation : uint8_t { kRelu, kGelu, kGeluTanh, kSilu, kQuickGelu };
// "relu", "gelu", "gelu_tanh", "silu", "quick_gelu".
ENCORE_API std::string_view ActivationName(Activation activation);
ENCORE_API Result<Activation> ActivationFromName(std::string_view name);

// kLayerNorm: (x - mean) / sqrt(variance + epsilon) * weight + bias (arXiv:1607.06450).
// kRmsNorm: x / sqrt(mean of x^2 + epsilon) * weight + bias (arXiv:1910.07467).
// The weight and the bias may each be missing: 1 and 0.
enum class NormType : uint8_t { kNone, kLayerNorm, kRmsNorm };

struct NormConfig {
  NormType type = NormType::kLayerNorm;
  double epsilon = 1e-5;     // finite, >= 0
  double weight_offset = 0;  // added to a given weight; Gemma stores weight - 1, so it needs 1
};

// The order of a layer's norms. f is attention, then the feed-forward network:
//   kPost  x = norm(x + f(x))          (Vaswani et al. 2017, arXiv:1706.03762)
//   kPre   x = x + f(norm(x))          (Xiong et al. 2020, arXiv:2002.04745)
//   kBoth  x = x + post_norm(f(norm(x)))
enum class NormPlacement : uint8_t { kPost, kPre, kBoth };

// A gated feed-forward network has two first matrices, a and b (Shazeer 2020, arXiv:2002.05202).
//   kNone        linear2(activation(a x))
//   kFirstHalf   linear2(activation(a x) * b x)
//   kSecondHalf  linear2(a x * activation(b x))
// In a fused linear1 [2 d_ff, d_model] the rows of a are first. Separate weights are named by their
// use (EncoderLayerWeights::gate_proj is the activated one); both gates then mean the same.
enum class Gate : uint8_t { kNone, kFirstHalf, kSecondHalf };

// Places on a grid in place of a line, of a picture's patches (DINOv3, arXiv:2508.10104). The first
// `before` rows of a sequence have none and are not turned. Row before + r * columns + c is at r
// and c, and its position is 2 pi ((2 r + 1) / rows - 1) for the first half of the pairs, 2 pi ((2
// c + 1) / columns - 1) for the others. A sequence has before + rows * columns rows at most.
struct RotaryGrid {
  size_t before = 0;
  size_t rows = 0, columns = 0;  // at least 1
  bool operator==(const RotaryGrid&) const = default;
};

// Rotary positions (Su et al. 2021, arXiv:2104.09864): in each head of q and k, pair i of the first
// `size` elements is turned by the angle position * inverse_frequencies[i]. Pairs are
// (x[i], x[i + size / 2]), or (x[2 i], x[2 i + 1]) where interleaved. Angles are computed in double
// precision, their sines and cosines are rounded to f32.
struct RotaryConfig {
  size_t size = 0;  // even, at most the head size; 0 for the head size
  bool interleaved = false;
  double theta = 10000;  // > 0; not read where inverse_frequencies are given
  // [size / 2], finite; empty for theta^(-2 i / size), with a grid in each half of the pairs
  // theta^(-4 i / size). Any scaling rule can be expressed so.
  std::vector<double> inverse_frequencies = {};
  double magnitude = 1;  // multiplies sines and cosines (YaRN's attention factor); finite
  std::optional<RotaryGrid> grid = {};  // size is a multiple of 4 then
};

// ALiBi, symmetric (Press et al. 2021, arXiv:2108.12409; both sides as in Jina v2): the score of
// query i and key j gets -slopes[head] * |i - j|.
struct AlibiConfig {
  // [num_heads], finite; empty for the paper's: 2^(-8 (h + 1) / n) for n heads, n a power of two,
  // else those of the next lower power and every second one of the next higher.
  std::vector<double> slopes = {};
};

// The score of query i and key j gets position_bias[bucket(j - i)][head], the weights' table (T5,
// arXiv:1910.10683; MPNet alike). Half of the buckets are for j > i. Of each half, half are single
// distances; the others widen logarithmically up to max_distance, and the last has all beyond.
struct BucketConfig {
  size_t num_buckets = 32;    // a multiple of 4
  size_t max_distance = 128;  // > num_buckets / 4
};

// Disentangled attention (He et al. 2020, arXiv:2006.03654; shared projections and log buckets: He
// et al. 2021, arXiv:2111.09543): the score of query i and key j is scale (q_i k_j + q_i pk_t +
// pq_t k_j), where pk_t and pq_t are projections of row t of a table of relative embeddings,
// without norms of heads. With span = buckets, or max_distance where buckets is 0, and m = buckets
// / 2,
//   t = min(max(bucket(i - j) + span, 0), 2 span - 1)
//   bucket(d) = d where |d| <= m or buckets is 0, else
//               sign(d) (ceil(log(|d| / m) / log((max_distance - 1) / m) (m - 1)) + m)
struct RelativeConfig {
  size_t buckets = 0;         // 0, or at least 2
  size_t max_distance = 512;  // > buckets / 2 + 1
  // The two terms; at least one.
  bool content_to_position = true;  // q_i pk_t
  bool position_to_content = true;  // pq_t k_j
  // False: pk and pq are made by the layer's own projections of keys and of queries. True: by
  // pos_k_proj and pos_q_proj.
  bool own_projections = false;
  NormConfig norm = {.type = NormType::kNone};  // of the table's rows
};

// A mixture of experts (Shazeer et al. 2017, arXiv:1701.06538) as the feed-forward network. Each
// expert e is a network without biases. A token uses the top_k experts with the largest p, the
// first of equal ones:
//   y = bias + sum over these of p_e linear2_e(activation(linear1_e x)),  p = softmax(router x)
// The softmax is over all experts, in f32 whatever the precision of the products.
struct ExpertsConfig {
  size_t num_experts = 8;          // 1 .. 4096
  size_t top_k = 2;                // 1 .. num_experts
  bool normalize_weights = false;  // p of a token's experts are divided by their sum
};

// A third sublayer, which adds a projection of the encoder's input x0 to every layer
// (per_layer_input of Gemma 3n and EmbeddingGemma 2). With the layer's activation, and post a norm
// as the layer's others:
//   y = scalar (y + post(output(activation(gate y) * norm(proj x0))))
struct LayerInputConfig {
  size_t width = 0;      // outputs of gate and proj
  NormConfig norm = {};  // of proj x0
};

// A sublayer after the others: a convolution over the tokens of the encoder's input x0 (in the
// first layer of DeBERTa v2 XLarge; He et al. 2020, arXiv:2006.03654):
//   y = norm(y + activation(z)),
//   z[i][o] = bias[o] + sum over c, and for each c over t = 0 .. kernel - 1,
//             of weight[o][c kernel + t] x0[i + t - kernel / 2][c]
// Rows before a sequence's first and after its last are zeros, not rows of other sequences. This is
// torch.nn.Conv1d with zeros for padding, whose weight [d_model, d_model, kernel] is the same list.
struct ConvolutionConfig {
  size_t kernel = 3;  // odd, at most 63
  Activation activation = Activation::kGelu;
};

struct LayerConfig {
  // ---- Attention: softmax(scale q k^T + bias) v of each head.
  size_t num_heads = 0;
  // Heads of k and v, a divisor of num_heads: query head h uses head h * num_kv_heads / num_heads
  // (Ainslie et al. 2023, arXiv:2305.13245). 0 for num_heads.
  size_t num_kv_heads = 0;
  size_t head_size = 0;        // 0 for d_model / num_heads, which then must divide
  double attention_scale = 0;  // 0 for 1 / sqrt(head size); T5: 1
  // For each head of q and of k, before positions; its weights are [head size].
  NormConfig qk_norm = {.type = NormType::kNone};
  NormConfig v_norm = {.type = NormType::kNone};  // of each head of v; it has no weights
  bool causal = false;                            // query i sees keys 0 .. i only
  // Sliding window: query i sees keys j with |i - j| <= window only; >= 1.
  std::optional<size_t> window = {};
  // Positions: at most one of these.
  std::optional<RotaryConfig> rotary = {};
  std::optional<AlibiConfig> alibi = {};
  std::optional<BucketConfig> buckets = {};
  std::optional<RelativeConfig> relative = {};

  // ---- Feed-forward network.
  size_t d_ff = 0;  // inner width; of each half where gated
  Activation activation = Activation::kRelu;
  Gate gate = Gate::kNone;
  std::optional<ExpertsConfig> experts = {};          // each d_ff wide; with Gate::kNone only
  std::optional<LayerInputConfig> layer_input = {};   // after it
  std::optional<ConvolutionConfig> convolution = {};  // after that

  // ---- Norms.
  NormPlacement norm_placement = NormPlacement::kPost;
  NormConfig norm = {};        // of all norms of the layer but qk_norm
  bool attention_norm = true;  // false, with kPre only: attention reads x without a norm
};

}  // namespace encore

#endif  // ENCORE_LAYER_H_
