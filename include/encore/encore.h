// SPDX-License-Identifier: Apache-2.0
//
// Everything a user of encore sees.

#ifndef ENCORE_ENCORE_H_
#define ENCORE_ENCORE_H_

#include "encore/cpu.h"            // IWYU pragma: export
#include "encore/encoder.h"        // IWYU pragma: export
#include "encore/executor.h"       // IWYU pragma: export
#include "encore/ops.h"            // IWYU pragma: export
#include "encore/safetensors.h"    // IWYU pragma: export
#include "encore/status.h"         // IWYU pragma: export
#include "encore/tensor.h"         // IWYU pragma: export
#include "encore/thread_pool.h"    // IWYU pragma: export
#include "encore/torch_weights.h"  // IWYU pragma: export
#include "encore/version.h"        // IWYU pragma: export
#include "encore/workspace.h"      // IWYU pragma: export

#endif  // ENCORE_ENCORE_H_
