// SPDX-License-Identifier: Apache-2.0
//
// One slice: texts of one or several pieces of work, by one call of encore::text.

#ifndef ENCORE_TOOLS_SERVE_COMPUTE_H_
#define ENCORE_TOOLS_SERVE_COMPUTE_H_

#include "encore/status.h"
#include "tools/serve/scheduler.h"

namespace encore::serve {

// Computes the batch's parts, which are all of one kind, model and options, and adds the results to
// their work. On an error nothing is added where there are several parts.
Status ComputeBatch(const Batch& batch);

}  // namespace encore::serve

#endif  // ENCORE_TOOLS_SERVE_COMPUTE_H_
