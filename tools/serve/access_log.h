// SPDX-License-Identifier: Apache-2.0
//
// A line of JSON on stderr for each request: sizes, codes and times, never a text.

#ifndef ENCORE_TOOLS_SERVE_ACCESS_LOG_H_
#define ENCORE_TOOLS_SERVE_ACCESS_LOG_H_

#include "tools/serve/metrics.h"
#include "tools/serve/settings.h"

namespace encore::serve {

// Writes the line, unless `lines` leaves it out, or whoever reads stderr is behind: a server does
// not wait for its log.
void LogRequest(LogLines lines, const RequestRecord& request);

}  // namespace encore::serve

#endif  // ENCORE_TOOLS_SERVE_ACCESS_LOG_H_
