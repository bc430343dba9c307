// SPDX-License-Identifier: Apache-2.0
//
// The order of a layer's steps: what comes before attention, the projection to queries, keys and
// values, and what comes after.

#ifndef ENCORE_ENGINE_NN_RECIPE_H_
#define ENCORE_ENGINE_NN_RECIPE_H_

#include "engine/nn/packed_layer.h"
#include "engine/nn/row_steps.h"

namespace encore::inline v0_1::internal {

struct Recipe {
  RowSteps before;
  RowStep projection;
  RowSteps after;
};

// Where a layer's steps read and write.
struct RecipeBuffers {
  RowBuffer x;        // the layer's input
  RowBuffer y;        // its output; may be x
  RowBuffer context;  // attention's output
  RowBuffer mid;      // a sum before its norm
  RowBuffer normed;
  RowBuffer hidden;  // inside the feed-forward network
  // Rows of A of a product that does not take floats; ld is in bytes, and each product's own.
  RowBuffer input;
};

Recipe MakeRecipe(NormPlacement placement, const PackedLayer& layer, const RecipeBuffers& buffers);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_NN_RECIPE_H_
