// SPDX-License-Identifier: Apache-2.0
//
// `encore demo --model`: three sentences, their vectors, which two are closest. Not here: the demo
// without a model (demo.cc).

#ifndef ENCORE_TOOLS_ENCORE_DEMO_TEXT_H_
#define ENCORE_TOOLS_ENCORE_DEMO_TEXT_H_

#include <string>

namespace encore::tool {

// Prints for about `seconds` longer than the vectors take; 0: no speed. Returns the exit status.
int RunTextDemo(const std::string& folder, double seconds);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_DEMO_TEXT_H_
