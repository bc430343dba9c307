// SPDX-License-Identifier: Apache-2.0
//
// A comparison of reports as a page. Not here: the comparison (comparison.h) and its text
// (compare_text.h).

#ifndef ENCORE_TOOLS_ENCORE_COMPARE_PAGE_H_
#define ENCORE_TOOLS_ENCORE_COMPARE_PAGE_H_

#include <string>
#include <vector>

#include "tools/encore/comparison.h"

namespace encore::tool {

// One HTML document that needs no other file, no script and no network.
std::string ComparePage(const std::vector<NamedReport>& reports,
                        const std::vector<Pairing>& pairings);

// Ratios with intervals on their noise bands, one line a row: markup of Canvas::Svg.
std::string RatioPicture(const Pairing& pairing);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_COMPARE_PAGE_H_
