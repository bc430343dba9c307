// SPDX-License-Identifier: Apache-2.0
//
// Whether what is about to be timed computes what it should.

#ifndef ENCORE_BENCH_MEASURE_CHECK_H_
#define ENCORE_BENCH_MEASURE_CHECK_H_

#include <optional>

#include "bench/measure/models.h"
#include "bench/measure/peak.h"
#include "encore/ops.h"
#include "encore/status.h"

namespace encore::bench {

// Runs a model's first layers (one, or two where they differ) on a sequence of four tokens, and
// returns how far the output is from the reference in double precision, of the same weights: the
// largest difference over the largest element. On the active target. Nothing where the reference
// would take more than some seconds. Not thread-safe.
Result<std::optional<double>> ErrorOfLayers(const Model& model, Products products);

// What that may be: three to four times the largest that was seen over all models and targets.
double MostError(Precision precision);

bool AllFinite(ConstView y);

}  // namespace encore::bench

#endif  // ENCORE_BENCH_MEASURE_CHECK_H_
