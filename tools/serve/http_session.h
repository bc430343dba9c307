// SPDX-License-Identifier: Apache-2.0
//
// Connections, and what they have in common. All of it belongs to the thread of `io`.

#ifndef ENCORE_TOOLS_SERVE_HTTP_SESSION_H_
#define ENCORE_TOOLS_SERVE_HTTP_SESSION_H_

#include <cstddef>
#include <memory>
#include <set>
#include <utility>  // asio 1.74 uses it without an #include

#include "boost/asio/io_context.hpp"
#include "boost/asio/ip/tcp.hpp"
#include "tools/serve/api_keys.h"
#include "tools/serve/metrics.h"
#include "tools/serve/service.h"
#include "tools/serve/settings.h"

namespace encore::serve {

using Socket = boost::asio::ip::tcp::socket;
using IoError = boost::system::error_code;

class Session;

struct Shared {
  const Settings& settings;
  const ApiKeys& keys;
  Metrics* metrics;
  Service* service = nullptr;
  boost::asio::io_context io{1};
  std::set<std::shared_ptr<Session>> sessions = {};
  size_t calls = 0;       // requests that the service has not answered
  size_t body_bytes = 0;  // of bodies that are held
  bool draining = false;  // SIGTERM came
  bool may_stop = false;  // and no connection is to begin any more
};

void StartSession(Shared* shared, Socket socket);

// After `draining` was set: ends the connections that no request is on. The last one ends the loop.
void DrainSessions(Shared* shared);

// Ends them all; work that they wait for is cancelled.
void CloseSessions(Shared* shared);

}  // namespace encore::serve

#endif  // ENCORE_TOOLS_SERVE_HTTP_SESSION_H_
