// SPDX-License-Identifier: Apache-2.0
//
// `encore demo --model`: three sentences, their vectors, which two are closest. Not here: the demo
// without a model (demo.cc).

#ifndef ENCORE_TOOLS_ENCORE_DEMO_TEXT_H_
#define ENCORE_TOOLS_ENCORE_DEMO_TEXT_H_

#include <string>

#include "encore/text_encoder.h"

namespace encore::tool {

// Opens the folder with the precision of `open`. Prints for about `seconds` longer than the vectors
// take; 0: no speed. Returns the exit status.
int RunTextDemo(const std::string& folder, OpenOptions open, double seconds);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_DEMO_TEXT_H_
