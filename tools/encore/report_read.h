// SPDX-License-Identifier: Apache-2.0
//
// Reads the report of `encore bench --json` or `encore report` from a file and trusts nothing in
// it. Not here: writing one (report_data.h).

#ifndef ENCORE_TOOLS_ENCORE_REPORT_READ_H_
#define ENCORE_TOOLS_ENCORE_REPORT_READ_H_

#include <string>
#include <string_view>

#include "tools/encore/report_data.h"

namespace encore::tool {

// Throws Failure with one sentence: file, member, what was found, what was wanted. Members that
// this version does not know are passed over. A report of a newer version is refused by its number.
Report ReadReport(const std::string& path);

// The same of a text; `name` stands for the file in sentences.
Report ParseReport(std::string_view text, const std::string& name);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_REPORT_READ_H_
