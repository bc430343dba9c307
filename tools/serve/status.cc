// SPDX-License-Identifier: Apache-2.0
//
// What watches a server: GET /health, /ready, /metrics and /openapi.json.

#include <array>
#include <span>

#include "tools/serve/openapi.h"
#include "tools/serve/service.h"

namespace encore::serve {
namespace {

void GetHealth(Service& /*service*/, const CallPtr& call) {
  call->Reply({.body = R"({"status":"ok"})"});
}

// A server listens once its models are open, so it is ready until it ends.
void GetReady(Service& service, const CallPtr& call) {
  if (service.draining()) throw ApiError(503, "the server is ending");
  call->Reply({.body = R"({"status":"ready"})"});
}

void GetMetrics(Service& service, const CallPtr& call) {
  call->Reply({.body = service.metrics().Text(service.models()),
               .type = "text/plain; version=0.0.4; charset=utf-8"});
}

void GetOpenApi(Service& /*service*/, const CallPtr& call) { call->Reply({.body = kOpenApi}); }

}  // namespace

std::span<const Route> StatusRoutes() {
  static constexpr std::array kRoutes = {
      Route{"GET", "/health", Interface::kTei, true, GetHealth},
      Route{"GET", "/ready", Interface::kTei, true, GetReady},
      Route{"GET", "/metrics", Interface::kTei, false, GetMetrics},
      Route{"GET", "/openapi.json", Interface::kOpenAi, true, GetOpenApi},
  };
  return kRoutes;
}

}  // namespace encore::serve
