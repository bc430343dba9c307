// SPDX-License-Identifier: Apache-2.0
//
// The three orders of steps that layer.h names. Read "in -> out" down each function.

#include "engine/nn/recipe.h"

namespace encore::inline v0_1::internal {
namespace {

RowStep Linear(const PackedMatrix& matrix, RowBuffer in, RowBuffer out, RowBuffer residual = {}) {
  return {.matrix = &matrix, .in = in, .out = out, .residual = residual};
}
RowStep FeedForward1(const PackedLayer& layer, RowBuffer in, RowBuffer out) {
  return {.matrix = &layer.linear1,
          .in = in,
          .out = out,
          .residual = {},
          .activation = &layer.activation};
}
RowStep Norm(const PackedNorm& norm, RowBuffer in, RowBuffer out, RowBuffer residual = {}) {
  return {.norm = &norm, .in = in, .out = out, .residual = residual};
}

// Appends to `steps` what makes the input of a linear step into rows of its A, if these are no
// floats, and returns the step that takes them.
RowStep Rounded(RowStep linear, const RecipeBuffers& b, RowSteps* steps) {
  const GemmKernel& kernel = *linear.matrix->view().kernel;
  if (kernel.make_rows == nullptr) return linear;
  RowBuffer input = b.input;
  input.element_bytes = kernel.a_bytes;
  input.ld /= kernel.a_bytes;
  steps->Add({.rows_for = linear.matrix, .in = linear.in, .out = input, .residual = {}});
  linear.in = input;
  return linear;
}
void AddLinear(const RowStep& linear, const RecipeBuffers& b, RowSteps* steps) {
  const RowStep rounded = Rounded(linear, b, steps);
  steps->Add(rounded);
}

// BERT, MPNet, nomic-bert, GTE, Jina: x = norm1(x + attention(x)); y = norm2(x + ff(x)).
Recipe PostNorm(const PackedLayer& l, const RecipeBuffers& b) {
  Recipe recipe;
  recipe.projection = Rounded(Linear(l.qkv, b.x, RowBuffer::Window()), b, &recipe.before);
  AddLinear(Linear(l.out_proj, b.context, b.mid, b.x), b, &recipe.after);
  recipe.after.Add(Norm(l.norm1, b.mid, b.normed));
  AddLinear(FeedForward1(l, b.normed, b.hidden), b, &recipe.after);
  AddLinear(Linear(l.linear2, b.hidden, b.mid, b.normed), b, &recipe.after);
  recipe.after.Add(Norm(l.norm2, b.mid, b.y));
  return recipe;
}

// T5, ModernBERT, EuroBERT, Qwen3, ViT, CLIP, Whisper: y = x + attention(norm1(x)); y +=
// ff(norm2(y)).
Recipe PreNorm(const PackedLayer& l, const RecipeBuffers& b) {
  Recipe recipe;
  if (l.norm1.given()) recipe.before.Add(Norm(l.norm1, b.x, b.normed));
  const RowBuffer in = l.norm1.given() ? b.normed : b.x;
  recipe.projection = Rounded(Linear(l.qkv, in, RowBuffer::Window()), b, &recipe.before);
  AddLinear(Linear(l.out_proj, b.context, b.y, b.x), b, &recipe.after);
  recipe.after.Add(Norm(l.norm2, b.y, b.normed));
  AddLinear(FeedForward1(l, b.normed, b.hidden), b, &recipe.after);
  AddLinear(Linear(l.linear2, b.hidden, b.y, b.y), b, &recipe.after);
  return recipe;
}

// Gemma: y = x + post_norm1(attention(norm1(x))); y += post_norm2(ff(norm2(y))).
Recipe NormsOnBothSides(const PackedLayer& l, const RecipeBuffers& b) {
  Recipe recipe;
  recipe.before.Add(Norm(l.norm1, b.x, b.normed));
  recipe.projection = Rounded(Linear(l.qkv, b.normed, RowBuffer::Window()), b, &recipe.before);
  AddLinear(Linear(l.out_proj, b.context, b.mid), b, &recipe.after);
  recipe.after.Add(Norm(l.post_norm1, b.mid, b.y, b.x));
  recipe.after.Add(Norm(l.norm2, b.y, b.normed));
  AddLinear(FeedForward1(l, b.normed, b.hidden), b, &recipe.after);
  AddLinear(Linear(l.linear2, b.hidden, b.mid), b, &recipe.after);
  recipe.after.Add(Norm(l.post_norm2, b.mid, b.y, b.y));
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
