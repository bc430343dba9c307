// SPDX-License-Identifier: Apache-2.0
//
// A report as a page: machine, noise, roofline, speeds, scaling, latencies, and all rows. Not here:
// several reports (compare_page.h).

#ifndef ENCORE_TOOLS_ENCORE_REPORT_PAGE_H_
#define ENCORE_TOOLS_ENCORE_REPORT_PAGE_H_

#include <string>

#include "tools/encore/report_data.h"

namespace encore::tool {

// One HTML document that needs no other file, no script and no network.
std::string ReportPage(const Report& report);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_REPORT_PAGE_H_
