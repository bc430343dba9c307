// SPDX-License-Identifier: Apache-2.0
//
// The three orders of steps that layer.h names. Read "in -> out" down each function.

#include "engine/nn/recipe.h"

namespace encore::internal {
namespace {

RowStep Linear(const PackedMatrix& matrix, RowBuffer in, RowBuffer out) {
  return {.matrix = &matrix, .in = in, .out = out, .residual = {}};
}
RowStep LinearPlus(const PackedMatrix& matrix, RowBuffer in, RowBuffer residual, RowBuffer out) {
  return {.matrix = &matrix, .in = in, .out = out, .residual = residual};
}
RowStep FeedForward1(const PackedLayer& layer, RowBuffer in, RowBuffer out) {
  return {.matrix = &layer.linear1,
          .in = in,
          .out = out,
          .residual = {},
          .activation = &layer.activation};
}
RowStep Norm(const PackedNorm& norm, RowBuffer in, RowBuffer out) {
  return {.norm = &norm, .in = in, .out = out, .residual = {}};
}
RowStep NormPlus(const PackedNorm& norm, RowBuffer in, RowBuffer residual, RowBuffer out) {
  return {.norm = &norm, .in = in, .out = out, .residual = residual};
}

// BERT, MPNet, nomic-bert, GTE, Jina: x = norm1(x + attention(x)); y = norm2(x + ff(x)).
Recipe PostNorm(const PackedLayer& l, const RecipeBuffers& b) {
  Recipe recipe;
  recipe.projection = Linear(l.qkv, b.x, RowBuffer::Window());
  recipe.after.Add(LinearPlus(l.out_proj, b.context, b.x, b.mid));
  recipe.after.Add(Norm(l.norm1, b.mid, b.normed));
  recipe.after.Add(FeedForward1(l, b.normed, b.hidden));
  recipe.after.Add(LinearPlus(l.linear2, b.hidden, b.normed, b.mid));
  recipe.after.Add(Norm(l.norm2, b.mid, b.y));
  return recipe;
}

// T5, ModernBERT, EuroBERT, Qwen3, ViT, CLIP, Whisper: y = x + attention(norm1(x)); y +=
// ff(norm2(y)).
Recipe PreNorm(const PackedLayer& l, const RecipeBuffers& b) {
  Recipe recipe;
  if (l.norm1.given()) recipe.before.Add(Norm(l.norm1, b.x, b.normed));
  recipe.projection = Linear(l.qkv, l.norm1.given() ? b.normed : b.x, RowBuffer::Window());
  recipe.after.Add(LinearPlus(l.out_proj, b.context, b.x, b.y));
  recipe.after.Add(Norm(l.norm2, b.y, b.normed));
  recipe.after.Add(FeedForward1(l, b.normed, b.hidden));
  recipe.after.Add(LinearPlus(l.linear2, b.hidden, b.y, b.y));
  return recipe;
}

// Gemma: y = x + post_norm1(attention(norm1(x))); y += post_norm2(ff(norm2(y))).
Recipe NormsOnBothSides(const PackedLayer& l, const RecipeBuffers& b) {
  Recipe recipe;
  recipe.before.Add(Norm(l.norm1, b.x, b.normed));
  recipe.projection = Linear(l.qkv, b.normed, RowBuffer::Window());
  recipe.after.Add(Linear(l.out_proj, b.context, b.mid));
  recipe.after.Add(NormPlus(l.post_norm1, b.mid, b.x, b.y));
  recipe.after.Add(Norm(l.norm2, b.y, b.normed));
  recipe.after.Add(FeedForward1(l, b.normed, b.hidden));
  recipe.after.Add(Linear(l.linear2, b.hidden, b.mid));
  recipe.after.Add(NormPlus(l.post_norm2, b.mid, b.y, b.y));
  return recipe;
}

}  // namespace

Recipe MakeRecipe(NormPlacement placement, const PackedLayer& layer, const RecipeBuffers& buffers) {
  switch (placement) {
    case NormPlacement::kPost:
      break;
    case NormPlacement::kPre:
      return PreNorm(layer, buffers);
    case NormPlacement::kBoth:
      return NormsOnBothSides(layer, buffers);
  }
  return PostNorm(layer, buffers);
}

}  // namespace encore::internal
