// SPDX-License-Identifier: Apache-2.0
//
// What the numeric contract costs on one thread: the library's matrix product, softmax and
// LayerNorm beside the fastest of many ways that keep the contract and of many that do not
// (cycles/contract.h). Two tables for each SIMD target, and JSON. Not here: what the library
// reaches of the machine's peak (bench_matmul.cc).

#include <string>

#include "bench/cycles/contract.h"
#include "bench/cycles/options.h"

namespace encore::bench {
namespace {

constexpr char kWhat[] =
    "bench_contract: what the numeric contract costs the matrix product, softmax and LayerNorm.";

constexpr char kLegend[] =
    "\nThe contract: an element of a product is one chain of multiply-adds; a sum over a row runs\n"
    "over 16 lanes, whatever the vectors' width.\n"
    "  one chain, 16 lanes   the fastest way that keeps it: tiles of other widths (in vectors; 4 x "
    "2:\n"
    "                        four panels of two side by side), other numbers of rows at a time\n"
    "  free                  the fastest way without it: 2, 4 or 8 chains an element, other sums\n"
    "  library, contract     how much longer the library takes than \"free\", and how much longer "
    "the\n"
    "                        fastest way with the contract does; below 0 it costs nothing\n"
    "Cycles of one core, the least of many samples, with warm caches.\n\n";

void Compare(const std::string& target, double seconds, nlohmann::ordered_json* json) {
  CompareProducts(target, seconds, json);
  CompareRows(target, seconds, json);
}

constexpr CycleBenchmark kBenchmark{"bench_contract", kWhat, kLegend, Compare};

}  // namespace
}  // namespace encore::bench

int main(int argc, char** argv) {
  return encore::bench::RunCycleBenchmark(argc, argv, encore::bench::kBenchmark);
}
