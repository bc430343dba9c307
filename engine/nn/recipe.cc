// SPDX-License-Identifier: Apache-2.0
//
// The steps of a layer for each NormPlacement of layer.h.

#include "engine/nn/row_steps.h"

namespace encore::inline v0_1::internal {
namespace {

using enum Buffer;

RowStep Linear(const PackedMatrix& matrix, Buffer in, Buffer out, Buffer residual = kNone) {
  return {.kind = StepKind::kLinear, .matrix = &matrix, .in = in, .out = out, .residual = residual};
}
RowStep Activated(const PackedMatrix& matrix, const BlockActivation& activation, Buffer in,
                  Buffer out) {
  RowStep linear = Linear(matrix, in, out);
  linear.activation = &activation;
  return linear;
}
RowStep Norm(const PackedNorm& norm, Buffer in, Buffer out, Buffer residual = kNone) {
  return {.kind = StepKind::kNorm, .norm = &norm, .in = in, .out = out, .residual = residual};
}

// A linear step, after one that packs its input where its kernel takes no floats.
void AddLinear(RowStep linear, RowSteps* steps) {
  if (linear.matrix->view().kernel->pack_lhs != nullptr) {
    steps->Add({.kind = StepKind::kPackLhs, .matrix = linear.matrix, .in = linear.in, .out = kLhs});
    linear.in = kLhs;
  }
  steps->Add(linear);
}

// ff(kNormed) (+ residual).
void AddFeedForward(const PackedLayer& layer, Buffer out, Buffer residual, RowSteps* steps) {
  if (!layer.experts) {
    AddLinear(Activated(layer.linear1, layer.activation, kNormed, kHidden), steps);
    AddLinear(Linear(layer.linear2, kHidden, out, residual), steps);
    return;
  }
  for (const StepKind kind :
       {StepKind::kRouteExperts, StepKind::kComputeExperts, StepKind::kSumExperts}) {
    steps->Add({.kind = kind,
                .activation = &layer.activation,
                .experts = &*layer.experts,
                .in = kNormed,
                .out = out,
                .residual = residual});
  }
}

// BERT, MPNet, nomic-bert, GTE, Jina: x = norm1(x + attention(x)); y = norm2(x + ff(x)).
Recipe PostNorm(const PackedLayer& l) {
  Recipe recipe;
  AddLinear(Linear(l.qkv, kX, kQkv), &recipe.before);
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
  const Buffer in = l.norm1.given() ? kNormed : kX;
  AddLinear(Linear(l.qkv, in, kQkv), &recipe.before);
  AddLinear(Linear(l.out_proj, kContext, kY, kX), &recipe.after);
  recipe.after.Add(Norm(l.norm2, kY, kNormed));
  AddFeedForward(l, kY, kY, &recipe.after);
  return recipe;
}

// Gemma: y = x + post_norm1(attention(norm1(x))); y += post_norm2(ff(norm2(y))).
Recipe NormsOnBothSides(const PackedLayer& l) {
  Recipe recipe;
  recipe.before.Add(Norm(l.norm1, kX, kNormed));
  AddLinear(Linear(l.qkv, kNormed, kQkv), &recipe.before);
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
  AddLinear(Linear(l.proj, kEncoderInput, kPerLayerInput), steps);
  if (l.norm.given()) {
    steps->Add(Norm(l.norm, kPerLayerInput, kPerLayerInput));
    steps->last().width = width;
  }
  AddLinear(Activated(l.gate, l.activation, kY, kHidden), steps);
  steps->Add({.kind = StepKind::kMultiply,
              .width = width,
              .in = kHidden,
              .out = kHidden,
              .residual = kPerLayerInput});
  AddLinear(Linear(l.output, kHidden, kMid), steps);
  steps->Add(Norm(l.post_norm, kMid, kY, kY));
  if (l.scalar != 1) {
    steps->Add({.kind = StepKind::kScale, .scale = l.scalar, .in = kY, .out = kY});
  }
}

// DeBERTa v2 XLarge: y = norm(y + activation(matrix im2col(x0))).
void AddConvolution(const PackedConvolution& l, RowSteps* steps) {
  steps->Add({.kind = StepKind::kIm2Col, .kernel = l.kernel, .in = kEncoderInput, .out = kHidden});
  AddLinear(Activated(l.matrix, l.activation, kHidden, kMid), steps);
  steps->Add({.kind = StepKind::kAdd, .in = kY, .out = kMid, .residual = kMid});
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
