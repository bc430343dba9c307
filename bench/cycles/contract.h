// SPDX-License-Identifier: Apache-2.0
//
// What the numeric contract costs: the library beside the fastest of many ways that keep it and of
// many that do not. Not here: those ways (free_product.h, wide_product.h, free_rows.h).

#ifndef ENCORE_BENCH_CYCLES_CONTRACT_H_
#define ENCORE_BENCH_CYCLES_CONTRACT_H_

#include <string>
#include <utility>
#include <vector>

#include "nlohmann/json.hpp"

namespace encore::bench {

// Each prints a table for the active SIMD target, takes so many seconds for each way, and appends
// its figures to json. A way counts as keeping the contract only if it gives the library's bits;
// where a product of one chain does not, the process ends.
void CompareProducts(const std::string& target, double seconds, nlohmann::ordered_json* json);
void CompareRows(const std::string& target, double seconds, nlohmann::ordered_json* json);

// How much longer than the other, in percent.
inline double PercentMore(double cycles, double other) { return 100 * (cycles / other - 1); }

// Appends a row of figures to json: what is given, how much longer the library and the fastest way
// with the contract take than the fastest without it, and what each way takes.
template <typename Way>
void AppendFigures(nlohmann::ordered_json entry, double library_cost, double contract_cost,
                   const std::vector<Way>& ways, nlohmann::ordered_json* json) {
  entry["library_percent"] = library_cost;
  entry["contract_percent"] = contract_cost;
  for (const Way& way : ways) entry["ways"][way.name] = way.cycles;
  json->push_back(std::move(entry));
}

}  // namespace encore::bench

#endif  // ENCORE_BENCH_CYCLES_CONTRACT_H_
