// SPDX-License-Identifier: Apache-2.0
//
// How often a program has allocated.

#ifndef ENCORE_BENCH_MEASURE_ALLOCATIONS_H_
#define ENCORE_BENCH_MEASURE_ALLOCATIONS_H_

#include <atomic>
#include <cstddef>

namespace encore::bench {

// Calls of operator new by all threads since the program began. 0 in programs whose operator new
// does not count: those without tools/encore/allocations.cc.
inline std::atomic<size_t> allocations_made{0};

}  // namespace encore::bench

#endif  // ENCORE_BENCH_MEASURE_ALLOCATIONS_H_
