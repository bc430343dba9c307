// SPDX-License-Identifier: Apache-2.0
//
// A server of embeddings and scores over HTTP, from its settings to its end.

#ifndef ENCORE_TOOLS_SERVE_SERVE_H_
#define ENCORE_TOOLS_SERVE_SERVE_H_

#include <functional>
#include <string>

#include "encore/status.h"
#include "tools/serve/settings.h"

namespace encore::serve {

// Opens the models, listens, calls listening() with a line that says where, and serves until
// SIGTERM or SIGINT. True: every request that came was answered.
Result<bool> Serve(const Settings& settings,
                   const std::function<void(const std::string&)>& listening);

}  // namespace encore::serve

#endif  // ENCORE_TOOLS_SERVE_SERVE_H_
