// SPDX-License-Identifier: Apache-2.0
//
// A report as a page, several side by side as a page, and the pictures in them. Each page is one
// HTML document that needs no other file, no script and no network; each picture is markup of
// Canvas::Svg, or "" where the report has nothing for it.

#ifndef ENCORE_TOOLS_ENCORE_REPORT_PAGES_H_
#define ENCORE_TOOLS_ENCORE_REPORT_PAGES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "tools/encore/comparison.h"
#include "tools/encore/report_data.h"

namespace encore::tool {

std::string ReportPage(const Report& report);
std::string ComparePage(const std::vector<NamedReport>& reports,
                        const std::vector<Pairing>& pairings);

// Workloads in a picture; the table has the others.
inline constexpr size_t kMostPanels = 12;

// The roofline of the machine (Williams, Waterman & Patterson 2009) with the rows of so many
// threads on the best target: operations a second over operations for each byte of weights, both
// axes logarithmic. Workloads are numbers, in the order of WorkloadNames.
std::string RooflinePicture(const Report& report, int threads);

// One panel a workload: tokens a second of each precision and target, and of peers, warm.
std::string SpeedPicture(const Report& report, int threads);

// Speed over that of one thread (or the fewest), best target, warm; one line a workload, at most
// kColours, in f32, or in the precision of the most such rows if none is in f32.
std::string ScalingPicture(const Report& report);

// One panel a workload: seconds at each percentile of the calls, best target, warm, with p50 and
// p99 marked. The axis ends a little above p99; what is beyond is told in words.
std::string LatencyPicture(const Report& report, int threads);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_REPORT_PAGES_H_
