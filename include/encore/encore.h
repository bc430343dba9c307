// SPDX-License-Identifier: Apache-2.0
//
// All public headers of encore::encore, and the numeric contract that they keep. `encore verify`
// checks on your machine what one machine can show; the tests check the rest. encore::text has
// headers of its own, such as text_encoder.h.
//
// ---- What is promised bit for bit ----------------------------------------------------------
//
// What a call writes depends on its inputs and options alone. A sequence's output and taps in
// Encoder::Forward depend on that sequence's rows, the weights, the configuration and the mask. It
// has the same bits alone and in any batch, at any place in it, beside any other sequences (NaN and
// infinity in them included), packed or padded, with taps or without, in place or not. No bit
// depends on
//   - the executor, the number of its threads, which thread did what, or who else uses them;
//   - the SIMD target, if it has FMA (AVX2, every AVX-512, NEON), and so the machine;
//   - cache sizes, and the tiles and cache blocks that follow from them;
//   - the compiler (GCC, Clang) and how far it optimises;
//   - strides and alignment of views, and an element's place in them;
//   - the floating-point modes of the calling thread and of a host's pool (rounding, FTZ, DAZ).
// The order of operations is fixed. An element of a matrix product is one chain of fused
// multiply-adds over k = 0, 1, 2 ... that begins at the bias. Sums over a row add element i to
// virtual lane i mod 16, then combine virtual lanes l and l + 8, l + 4, l + 2, l + 1. Attention
// takes a sequence's queries 64 at a time and its keys 512 at a time, from key 0 on or, under a
// sliding window, from the last multiple of 64 that no query of the 64 sees behind. The sums of a
// row's tiles are joined in the order of the keys: l = fma(l, factor, sum of the tile), where
// factor scales what came before to the new maximum. Elementwise steps are IEEE 754 operations,
// each rounded once, and nothing approximate. Rotary angles are computed in double precision by
// encore's own sine and cosine. reference/golden_hashes.h publishes what some fixed inputs give.
//
// All of it holds in bf16, int8 and int4 too, with sums of products as precision.h has them, but
// for two things: numbers in bf16 that are subnormal are 0 to the instructions of some targets, and
// an encoder with EncoderOptions::amx_bf16 has bits of its own where it takes AMX.
//
// ---- What is promised within bounds --------------------------------------------------------
//
//   - How far a result is from the exact one: ops.h states it for each operation, encoder.h for a
//     block.
//   - Targets without FMA (SSE2, SSE4, and EMU128, which has no SIMD) have other bits, and where
//     they differ bounds of their own.
//   - Two ways to compute the same mathematics may differ by roundings: a layer and the operations
//     of ops.h one after another (a layer's activation is a cheaper form), a mask that hides
//     nothing and no mask, weights that were scaled beforehand and LayerScale.
//   - Another release may have other bits; it then publishes other hashes and says so.
//   - A NaN stays a NaN; its sign and payload are not promised.
//
// ---- Floating-point modes ------------------------------------------------------------------
//
// Threads may have any rounding mode, flush-to-zero, denormals-are-zero and unmasked traps set. A
// call computes under the default modes (to nearest even, subnormal numbers kept, no traps) and
// leaves the modes of every thread as it found them. It leaves the sticky flags too, except that
// OpenMP's runtime or a host's pool may raise some. While a call runs, nobody may change the modes
// of its threads (a signal handler that does must restore them), the inputs, or what views point
// to. Code that uses encore may be compiled and linked with -ffast-math. encore itself must not be,
// nor with other rules of contraction than its own build sets.

#ifndef ENCORE_ENCORE_H_
#define ENCORE_ENCORE_H_

#include "encore/cpu.h"            // IWYU pragma: export
#include "encore/encoder.h"        // IWYU pragma: export
#include "encore/executor.h"       // IWYU pragma: export
#include "encore/layer.h"          // IWYU pragma: export
#include "encore/max_sim.h"        // IWYU pragma: export
#include "encore/ops.h"            // IWYU pragma: export
#include "encore/precision.h"      // IWYU pragma: export
#include "encore/resize.h"         // IWYU pragma: export
#include "encore/safetensors.h"    // IWYU pragma: export
#include "encore/status.h"         // IWYU pragma: export
#include "encore/tensor.h"         // IWYU pragma: export
#include "encore/thread_pool.h"    // IWYU pragma: export
#include "encore/torch_weights.h"  // IWYU pragma: export
#include "encore/version.h"        // IWYU pragma: export
#include "encore/workspace.h"      // IWYU pragma: export

#endif  // ENCORE_ENCORE_H_
