// SPDX-License-Identifier: Apache-2.0
//
// The parts of a server, in the order in which they begin and end.

#include "tools/serve/serve.h"

#include <utility>
#include <vector>

#include "encore/thread_pool.h"
#include "tools/serve/api_keys.h"
#include "tools/serve/http_server.h"
#include "tools/serve/memory.h"
#include "tools/serve/metrics.h"
#include "tools/serve/models.h"
#include "tools/serve/service.h"

namespace encore::serve {

Result<bool> Serve(const Settings& settings,
                   const std::function<void(const std::string&)>& listening) {
  const Result<ApiKeys> keys = ApiKeys::Read(settings.api_key_file);
  if (!keys.ok()) return keys.status();
  Result<ThreadPool> pool = ThreadPool::Create({.threads = settings.threads});
  if (!pool.ok()) return pool.status();
  const Executor executor = pool->executor();
  Metrics metrics;
  HttpServer server(settings, *keys, &metrics);
  Result<std::vector<Model>> models = OpenModels(settings, executor);
  if (!models.ok()) return models.status();
  std::string line;
  for (const Model& model : *models) line += (line.empty() ? "" : ", ") + model.name;
  Service service(settings, *std::move(models), executor, &metrics);
  InstallNoMemoryHandler();
  const MemoryScope scope(NoMemory::kWait);
  if (Status status = server.Listen(); !status.ok()) return status;
  const bool v6 = settings.host.find(':') != std::string::npos;
  const std::string host = v6 ? "[" + settings.host + "]" : settings.host;
  listening(line + " at http://" + host + ":" + std::to_string(server.port()));
  return server.Run(&service);
}

}  // namespace encore::serve
