// SPDX-License-Identifier: Apache-2.0
//
// Everything a user of encore sees; and the numeric contract, which all of it keeps. `encore
// verify` tries what of it one machine can show, the tests the rest.
//
// ---- What is promised bit for bit ----------------------------------------------------------
//
// What a call writes follows from its inputs and options alone. A sequence's output and taps in
// Encoder::Forward follow from that sequence's rows, the weights, the configuration and the mask:
// it has the same bits alone, in any batch, at any place in it, beside any mates (NaN and infinity
// in them included), packed or padded, with taps or without, in place or not. No bit depends on
//   - the executor, the number of its threads, which of them did what, or who else uses them;
//   - the SIMD target, as long as it has FMA (AVX2, every AVX-512, NEON), so on the machine;
//   - cache sizes, and the tiles and blocks that follow from them;
//   - the compiler (GCC, Clang) and how far it optimises;
//   - strides and alignment of views, and an element's place in them;
//   - the floating-point modes of the calling thread and of a host's pool (rounding, FTZ, DAZ).
// It rests on fixed orders. An element of a matrix product is one chain of fused multiply-adds over
// k = 0, 1, 2 ..., begun at the bias. Sums over a row take element i into lane i mod 16, and
// combine the lanes l + 8, l + 4, l + 2, l + 1. Attention takes a sequence's queries 64 at a time
// and its keys 512 at a time. Elementwise steps are IEEE 754 operations rounded once, and nothing
// approximate. tests/reference/golden_hashes.h publishes what some fixed inputs give.
//
// ---- What is promised within bounds --------------------------------------------------------
//
//   - How far a result is from the exact one: ops.h states it for each operation, encoder.h for a
//     block.
//   - Targets without FMA (SSE2, SSE4, and EMU128, which has no SIMD) have other bits, and where
//     they differ bounds of their own.
//   - Two ways to the same mathematics may differ by roundings: a block from the operations of
//     ops.h one after another (its activation is a cheaper form), a mask that hides nothing from no
//     mask.
//   - Another release may have other bits; it then publishes other hashes and says so.
//   - Which NaN a NaN is (sign and payload) is not promised; that it is one is.
//
// ---- What the caller must leave alone, and what not ----------------------------------------
//
// Any rounding mode, flush-to-zero, denormals-are-zero and unmasked traps may be set in any thread:
// a call computes under the default modes (to nearest even, subnormal numbers kept, nothing traps),
// and leaves the modes of every thread as it found them; and the sticky flags too, except that
// OpenMP's runtime or a host's pool may raise some. Only while a call runs must nobody change the
// modes of its threads (a signal handler that does so has to put them back),
// the inputs, or what views point to. Code that uses encore may be compiled and linked with
// -ffast-math; encore itself must not be, nor with other rules of contraction than its own build
// sets.

#ifndef ENCORE_ENCORE_H_
#define ENCORE_ENCORE_H_

#include "encore/cpu.h"            // IWYU pragma: export
#include "encore/encoder.h"        // IWYU pragma: export
#include "encore/executor.h"       // IWYU pragma: export
#include "encore/layer.h"          // IWYU pragma: export
#include "encore/ops.h"            // IWYU pragma: export
#include "encore/safetensors.h"    // IWYU pragma: export
#include "encore/status.h"         // IWYU pragma: export
#include "encore/tensor.h"         // IWYU pragma: export
#include "encore/thread_pool.h"    // IWYU pragma: export
#include "encore/torch_weights.h"  // IWYU pragma: export
#include "encore/version.h"        // IWYU pragma: export
#include "encore/workspace.h"      // IWYU pragma: export

#endif  // ENCORE_ENCORE_H_
