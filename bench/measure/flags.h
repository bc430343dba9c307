// SPDX-License-Identifier: Apache-2.0
//
// Values of flags: lists and numbers. Not here: which flags there are, and what is said of a bad
// one.

#ifndef ENCORE_BENCH_MEASURE_FLAGS_H_
#define ENCORE_BENCH_MEASURE_FLAGS_H_

#include <optional>
#include <string>
#include <vector>

namespace encore::bench {

// "a,b" is a and b; "" is one empty item.
std::vector<std::string> SplitAtCommas(const std::string& text);

// A whole decimal number within [low, high], or nothing.
std::optional<long> ParseInt(const std::string& text, long low, long high);

}  // namespace encore::bench

#endif  // ENCORE_BENCH_MEASURE_FLAGS_H_
