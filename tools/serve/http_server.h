// SPDX-License-Identifier: Apache-2.0
//
// HTTP/1.1 by Boost.Beast: one thread reads requests and writes answers of all connections.

#ifndef ENCORE_TOOLS_SERVE_HTTP_SERVER_H_
#define ENCORE_TOOLS_SERVE_HTTP_SERVER_H_

#include <cstdint>
#include <memory>

#include "encore/status.h"
#include "tools/serve/api_keys.h"
#include "tools/serve/metrics.h"
#include "tools/serve/service.h"
#include "tools/serve/settings.h"

namespace encore::serve {

class HttpServer {
 public:
  // All outlive this object.
  HttpServer(const Settings& settings, const ApiKeys& keys, Metrics* metrics);
  ~HttpServer();

  // Begins to listen. kInvalidArgument for a host that is no address, kIo.
  Status Listen();
  uint16_t port() const;

  // Serves until SIGTERM or SIGINT: then it accepts no more connections, answers the requests that
  // came, and returns true. False: the grace period, or a second signal, ended some of them.
  bool Run(Service* service);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace encore::serve

#endif  // ENCORE_TOOLS_SERVE_HTTP_SERVER_H_
