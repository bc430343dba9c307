// SPDX-License-Identifier: Apache-2.0
//
// The roofline of a machine with the workloads of a report on it (Williams, Waterman & Patterson
// 2009). Not here: other pictures of a report (report_pictures.h).

#ifndef ENCORE_TOOLS_ENCORE_ROOFLINE_PICTURE_H_
#define ENCORE_TOOLS_ENCORE_ROOFLINE_PICTURE_H_

#include <string>

#include "tools/encore/report_data.h"

namespace encore::tool {

// For rows with so many threads, on the best target: operations a second over operations for each
// byte of weights, both axes logarithmic. Workloads are numbers, in the order of WorkloadNames. ""
// if there is no such row.
std::string RooflinePicture(const Report& report, int threads);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_ROOFLINE_PICTURE_H_
