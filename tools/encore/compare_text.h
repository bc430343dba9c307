// SPDX-License-Identifier: Apache-2.0
//
// A comparison of reports as text. Not here: the page (compare_page.h).

#ifndef ENCORE_TOOLS_ENCORE_COMPARE_TEXT_H_
#define ENCORE_TOOLS_ENCORE_COMPARE_TEXT_H_

#include <ostream>
#include <string>
#include <vector>

#include "tools/encore/comparison.h"

namespace encore::tool {

// The reports with what disturbed them, then a table for each but the first.
void PrintComparison(std::ostream& out, const std::vector<NamedReport>& reports,
                     const std::vector<Pairing>& pairings);

// "AMD EPYC, 2 cores, Linux 6.1, g++ 12.2.0, encore 0.1.0".
std::string MachineText(const Report& report);

// A time with its unit: "812 us", "3.41 ms", "1.20 s".
std::string TimeText(double seconds);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_COMPARE_TEXT_H_
