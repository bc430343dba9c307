// SPDX-License-Identifier: Apache-2.0
//
// The three orders of steps that layer.h names. Read "in -> out" down each function.

#include "engine/nn/row_steps.h"

namespace encore::inline v0_1::internal {
namespace {

using enum Place;

RowStep Linear(const PackedMatrix& matrix, Place in, Place out, Place residual = kNone) {
  return {.matrix = &matrix, .in = in, .out = out, .residual = residual};
}
RowStep FeedForward1(const PackedLayer& layer) {
  return {.matrix = &layer.linear1, .in = kNormed, .out = kHidden, .activation = &layer.activation};
}
RowStep Norm(const PackedNorm& norm, Place in, Place out, Place residual = kNone) {
  return {.norm = &norm, .in = in, .out = out, .residual = residual};
}

// Adds a linear step. If its kernel does not take floats, first adds a step that converts the
// input.
void AddLinear(RowStep linear, RowSteps* steps) {
  if (linear.matrix->view().kernel->make_rows != nullptr) {
    steps->Add({.rows_for = linear.matrix, .in = linear.in, .out = kInput});
    linear.in = kInput;
  }
  steps->Add(linear);
}

// ff(kNormed) (+ residual).
void AddFeedForward(const PackedLayer& layer, Place out, Place residual, RowSteps* steps) {
  if (!layer.experts) {
    AddLinear(FeedForward1(layer), steps);
    AddLinear(Linear(layer.linear2, kHidden, out, residual), steps);
    return;
  }
  for (const ExpertsStep part : {ExpertsStep::kRoute, ExpertsStep::kCompute, ExpertsStep::kAdd}) {
    steps->Add({.experts = &*layer.experts,
                .part = part,
                .in = kNormed,
                .out = out,
                .residual = residual,
                .activation = &layer.activation});
  }
}

// BERT, MPNet, nomic-bert, GTE, Jina: x = norm1(x + attention(x)); y = norm2(x + ff(x)).
Recipe PostNorm(const PackedLayer& l) {
  Recipe recipe;
  AddLinear(Linear(l.qkv, kX, kProjection), &recipe.before);
  AddLinear(Linear(l.out_proj, kContext, kMid, kX), &recipe.after);
  recipe.after.Add(Norm(l.norm1, kMid, kNormed));
  AddFeedForward(l, kMid, kNormed, &recipe.after);
  recipe.after.Add(Norm(l.norm2, kMid, kY));
  return recipe;
}

// T5, ModernBERT, EuroBERT, Qwen3, ViT, CLIP, Whisper: y = x + attention(norm1(x)); y +=
// ff(norm2(y)).
Recipe PreNorm(const PackedLayer& l) {
  Recipe recipe;
  if (l.norm1.given()) recipe.before.Add(Norm(l.norm1, kX, kNormed));
  const Place in = l.norm1.given() ? kNormed : kX;
  AddLinear(Linear(l.qkv, in, kProjection), &recipe.before);
  AddLinear(Linear(l.out_proj, kContext, kY, kX), &recipe.after);
  recipe.after.Add(Norm(l.norm2, kY, kNormed));
  AddFeedForward(l, kY, kY, &recipe.after);
  return recipe;
}

// Gemma: y = x + post_norm1(attention(norm1(x))); y += post_norm2(ff(norm2(y))).
Recipe NormsOnBothSides(const PackedLayer& l) {
  Recipe recipe;
  recipe.before.Add(Norm(l.norm1, kX, kNormed));
  AddLinear(Linear(l.qkv, kNormed, kProjection), &recipe.before);
  AddLinear(Linear(l.out_proj, kContext, kMid), &recipe.after);
  recipe.after.Add(Norm(l.post_norm1, kMid, kY, kX));
  recipe.after.Add(Norm(l.norm2, kY, kNormed));
  AddFeedForward(l, kMid, kNone, &recipe.after);
  recipe.after.Add(Norm(l.post_norm2, kMid, kY, kY));
  return recipe;
}

// EmbeddingGemma 2: y = scalar (y + post_norm(output(activation(gate y) * norm(proj x0)))).
void AddLayerInput(const PackedLayerInput& l, RowSteps* steps) {
  const size_t width = l.gate.view().n;
  AddLinear(Linear(l.proj, kFirst, kLayerInput), steps);
  if (l.norm.given()) {
    steps->Add({.norm = &l.norm, .width = width, .in = kLayerInput, .out = kLayerInput});
  }
  RowStep gate = Linear(l.gate, kY, kHidden);
  gate.activation = &l.activation;
  AddLinear(gate, steps);
  steps->Add(
      {.product = true, .width = width, .in = kHidden, .out = kHidden, .residual = kLayerInput});
  AddLinear(Linear(l.output, kHidden, kMid), steps);
  steps->Add(Norm(l.post_norm, kMid, kY, kY));
  if (l.scalar != 1) steps->Add({.product = true, .scale = l.scalar, .in = kY, .out = kY});
}

// DeBERTa v2 XLarge: y = norm(y + activation(matrix (x0 of the token and its neighbours))).
void AddConvolution(const PackedConvolution& l, RowSteps* steps) {
  steps->Add({.neighbours = l.kernel, .in = kFirst, .out = kHidden});
  RowStep linear = Linear(l.matrix, kHidden, kMid);
  linear.activation = &l.activation;
  AddLinear(linear, steps);
  steps->Add({.sum = true, .in = kY, .out = kMid, .residual = kMid});
  steps->Add(Norm(l.norm, kMid, kY));
}

Recipe MakeTwoSublayers(NormPlacement placement, const PackedLayer& layer) {
  switch (placement) {
    case NormPlacement::kPost:
      break;
    case NormPlacement::kPre:
      return PreNorm(layer);
    case NormPlacement::kBoth:
      return NormsOnBothSides(layer);
  }
  return PostNorm(layer);
}

}  // namespace

Recipe MakeRecipe(NormPlacement placement, const PackedLayer& layer) {
  Recipe recipe = MakeTwoSublayers(placement, layer);
  if (layer.layer_input) AddLayerInput(*layer.layer_input, &recipe.after);
  if (layer.convolution) AddConvolution(*layer.convolution, &recipe.after);
  return recipe;
}

}  // namespace encore::internal
