// SPDX-License-Identifier: Apache-2.0
//
// What the command takes of reference/, the definitions in double precision that share no
// arithmetic with the engine: `encore verify` compares the engine with them, `attend` and the demo
// show their numbers beside it. No other file of the command includes reference/.

#ifndef ENCORE_TOOLS_ENCORE_DEFINITIONS_H_
#define ENCORE_TOOLS_ENCORE_DEFINITIONS_H_

#include "reference/accuracy.h"                   // IWYU pragma: export
#include "reference/all_taps.h"                   // IWYU pragma: export
#include "reference/attention.h"                  // IWYU pragma: export
#include "reference/bounded.h"                    // IWYU pragma: export
#include "reference/caller_modes.h"               // IWYU pragma: export
#include "reference/drawn.h"                      // IWYU pragma: export
#include "reference/encoder.h"                    // IWYU pragma: export
#include "reference/encoder_model.h"              // IWYU pragma: export
#include "reference/exhaustive/conversions.h"     // IWYU pragma: export
#include "reference/exhaustive/fast_reference.h"  // IWYU pragma: export
#include "reference/exhaustive/search.h"          // IWYU pragma: export
#include "reference/golden_hashes.h"              // IWYU pragma: export
#include "reference/host_pool.h"                  // IWYU pragma: export
#include "reference/matmul.h"                     // IWYU pragma: export
#include "reference/multi_head_attention.h"       // IWYU pragma: export
#include "reference/softmax.h"                    // IWYU pragma: export
#include "reference/switched.h"                   // IWYU pragma: export
#include "reference/torch_stack.h"                // IWYU pragma: export

#endif  // ENCORE_TOOLS_ENCORE_DEFINITIONS_H_
