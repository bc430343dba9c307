// SPDX-License-Identifier: Apache-2.0
//
// `encore verify`: the operations and the block against double precision, within the bounds that
// their references come with (reference).

#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "encore/encoder.h"
#include "encore/ops.h"
#include "engine/base/activations.h"
#include "tools/encore/definitions.h"
#include "tools/encore/failure.h"
#include "tools/encore/seeded_block.h"
#include "tools/encore/verify_checks.h"

namespace encore::tool {
namespace {

using reference::Matrix;
using reference::Rounded;

constexpr float kInf = std::numeric_limits<float>::infinity();

// One row of the table: run(found) computes with the active target, and compares with a reference
// that was computed once.
void Try(const VerifyContext& context, const std::string& check,
         const std::function<void(Deviation& found)>& run) {
  ForEachVerifyTarget(context, [&](const std::string& target) {
    Deviation found;
    run(found);
    context.report.Add({.section = VerifySection::kOperations,
                        .check = check,
                        .target = target,
                        .kept = found.ok(),
                        .observed = found.share_of_bound,
                        .promise = 1});
  });
}

// The bound of encore/ops.h.
void TryMatMul(const VerifyContext& context, size_t m, size_t k, size_t n) {
  const std::vector<float> a = RandomFloats(m * k, 51);
  const std::vector<float> b = RandomFloats(k * n, 52);
  const std::vector<float> bias = RandomFloats(n, 53);
  const ConstView av(a.data(), {m, k}), bv(b.data(), {k, n}), biasv(bias.data(), {n});
  const reference::Bounded wanted = reference::BoundedMatMul(av, bv, biasv);
  Try(context, "matmul, K = " + std::to_string(k), [&](Deviation& found) {
    std::vector<float> c(m * n, kInf);
    Check(MatMul(av, bv, {c.data(), {m, n}}, {.bias = biasv}));
    found.Compare(c, wanted);
  });
}

void TrySoftmax(const VerifyContext& context, const std::string& name, size_t rows, size_t cols,
                std::vector<float> x) {
  const Shape shape(rows, cols);
  const Matrix<Rounded> wanted = reference::Softmax(Matrix<Rounded>(ConstView(x.data(), shape)));
  Try(context, "softmax, " + name, [&](Deviation& found) {
    std::vector<float> y(x.size(), kInf);
    Check(Softmax({x.data(), shape}, {y.data(), shape}));
    found.Compare(y, wanted);
  });
}

void TrySoftmaxes(const VerifyContext& context) {
  constexpr size_t kRows = 12, kCols = 1001;
  const std::vector<float> drawn = RandomFloats(kRows * kCols, 54, 4);
  TrySoftmax(context, "drawn scores", kRows, kCols, drawn);
  std::vector<float> x = drawn;
  for (size_t r = 0; r < kRows; ++r) x[r * kCols + 83 * r] = r % 2 == 0 ? 1e4f : 60.0f;
  TrySoftmax(context, "one huge score", kRows, kCols, x);
  x = drawn;
  for (size_t i = 0; i < x.size(); ++i) {
    if (i % 3 == 1 || i < 2 * kCols) x[i] = -kInf;  // the first two rows altogether
  }
  TrySoftmax(context, "scores of -inf", kRows, kCols, x);
}

void TryLayerNorm(const VerifyContext& context, const std::string& name, std::vector<float> x) {
  constexpr size_t kCols = 771;
  const Shape shape(x.size() / kCols, kCols);
  const std::vector<float> weight = RandomFloats(kCols, 56, 0.2f, 1);
  const std::vector<float> bias = RandomFloats(kCols, 57);
  const ConstView w(weight.data(), {kCols}), b(bias.data(), {kCols});
  const reference::Bounded wanted = reference::BoundedLayerNorm({x.data(), shape}, w, b, 1e-5);
  Try(context, "layer_norm, " + name, [&](Deviation& found) {
    std::vector<float> y(x.size(), kInf);
    Check(LayerNorm({x.data(), shape}, w, b, 1e-5, {y.data(), shape}));
    found.Compare(y, wanted);
  });
}

void TryLayerNorms(const VerifyContext& context) {
  constexpr size_t kCount = size_t{9} * 771;
  TryLayerNorm(context, "drawn rows", RandomFloats(kCount, 55));
  TryLayerNorm(context, "a mean of 1000", RandomFloats(kCount, 58, 1, 1000));
  TryLayerNorm(context, "constant rows", std::vector<float>(kCount, 0.3f));
}

void TryAttention(const VerifyContext& context, const std::string& name, size_t queries,
                  size_t keys, size_t size, const AttentionMask& mask) {
  const std::vector<float> q = RandomFloats(queries * size, 61, 1.5f);
  const std::vector<float> k = RandomFloats(keys * size, 62, 1.5f);
  const std::vector<float> v = RandomFloats(keys * size, 63);
  const ConstView qv(q.data(), {queries, size}), kv(k.data(), {keys, size}),
      vv(v.data(), {keys, size});
  Matrix<Rounded> weights;
  const Matrix<Rounded> wanted =
      reference::Attention<Rounded>(Matrix<Rounded>(qv), Matrix<Rounded>(kv), Matrix<Rounded>(vv),
                                    reference::DefaultScale(size), mask, {}, &weights);
  Try(context, "attention, " + name, [&](Deviation& found) {
    std::vector<float> y(q.size(), kInf);
    std::vector<float> tapped(queries * keys, kInf);
    Check(Attention(qv, kv, vv, {y.data(), {queries, size}},
                    {.mask = mask, .weights = MutableView(tapped.data(), {queries, keys})}));
    found.Compare(y, wanted);
    found.Compare(tapped, weights);
  });
}

void TryAttentions(const VerifyContext& context) {
  TryAttention(context, "70 x 70, causal", 70, 70, 64, {.causal = true});
  TryAttention(context, "33 x 1100", 33, 1100, 40, {});
  std::vector<float> additive = RandomFloats(size_t{65} * 600, 64);
  for (size_t i = 0; i < additive.size(); ++i) {
    if (i % 5 == 2 || i < 600) additive[i] = -kInf;  // the first query sees no key
  }
  TryAttention(context, "65 x 600, masked", 65, 600, 24,
               {.additive = ConstView(additive.data(), {65, 600})});
}

void TryBlock(const VerifyContext& context, const TorchStack& config, size_t tokens) {
  const EncoderModel model(config);
  const std::vector<float> x = RandomFloats(tokens * config.d_model, 65);
  const auto wanted = reference::Encode<Rounded>(config, model.weights(),
                                                 ConstView(x.data(), {tokens, config.d_model}));
  const std::string name = "block, " + std::string(ActivationName(config.activation)) +
                           (config.norm_first ? ", pre-norm" : ", post-norm") + ", d " +
                           std::to_string(config.d_model);
  Try(context, name, [&](Deviation& found) {
    const std::vector<size_t> starts = {0, tokens};
    found.Compare(Forward(model.Make(), Batch{.seq_starts = starts}, x), wanted.y);
  });
}

void TryBlocks(const VerifyContext& context) {
  for (const internal::ActivationRow& row : internal::kActivations) {
    if (!row.layer) continue;
    for (const bool norm_first : {false, true}) {
      TryBlock(context,
               {.d_model = 64,
                .num_heads = 4,
                .d_ff = 256,
                .activation = *row.layer,
                .norm_first = norm_first},
               70);
    }
  }
  if (!context.full) return;
  TryBlock(context,
           {.d_model = 768, .num_heads = 12, .d_ff = 3072, .activation = Activation::kGelu}, 130);
  TryBlock(context, {.d_model = 390, .num_heads = 6, .d_ff = 1000, .norm_first = true}, 129);
}

}  // namespace

void VerifyOperations(const VerifyContext& context) {
  double tried = 0;
  const auto advance = [&] { context.progress.Advance(++tried / 10); };
  std::vector<size_t> depths = {1, 64, 1000};
  if (context.full) depths.insert(depths.end(), {4096, 100000});
  for (const size_t k : depths) {
    TryMatMul(context, 29, k, 75);
    advance();
  }
  TrySoftmaxes(context);
  advance();
  TryLayerNorms(context);
  advance();
  TryAttentions(context);
  advance();
  TryBlocks(context);
}

}  // namespace encore::tool
