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
  RowSteps before;  // ends with the projection
  RowSteps after;

  RowStep& projection() { return before.last(); }
  const RowStep& projection() const { return before.last(); }
};

Recipe MakeRecipe(NormPlacement placement, const PackedLayer& layer);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_NN_RECIPE_H_
