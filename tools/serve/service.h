// SPDX-License-Identifier: Apache-2.0
//
// The service without its HTTP: routes, from a request to work, and from work to an answer.

#ifndef ENCORE_TOOLS_SERVE_SERVICE_H_
#define ENCORE_TOOLS_SERVE_SERVICE_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/serve/api_error.h"
#include "tools/serve/json.h"
#include "tools/serve/lane.h"
#include "tools/serve/memory.h"
#include "tools/serve/metrics.h"
#include "tools/serve/models.h"
#include "tools/serve/scheduler.h"
#include "tools/serve/settings.h"
#include "tools/serve/work.h"

namespace encore::serve {

class Service;
struct Route;

// A request and what is known of it until it is answered.
struct Call {
  const Route* route = nullptr;
  std::string path = {};  // without the query
  std::string body = {};
  Clock::time_point received = {};
  Clock::time_point deadline = Clock::time_point::max();
  std::function<void(Response)> reply = {};  // called once, on any thread
  RequestRecord record = {};

  // Only the first counts.
  void Reply(Response response) {
    const MemoryScope scope(NoMemory::kWait);
    const std::function<void(Response)> to = std::move(reply);
    reply = nullptr;
    if (to) to(std::move(response));
  }

  std::mutex mutex = {};  // of these two
  bool gone = false;
  std::shared_ptr<Work> work = {};
};
using CallPtr = std::shared_ptr<Call>;

struct Route {
  const char* method;
  const char* path;  // "/v1/models/*" also has what follows
  Interface interface;
  bool open;  // needs no key
  void (*handle)(Service& service, const CallPtr& call);
};

class Service {
 public:
  // All outlive this object.
  Service(const Settings& settings, std::vector<Model> models, const Executor& executor,
          Metrics* metrics);

  // The route, or null with the response that says why there is none.
  static const Route* Find(std::string_view method, std::string_view path, Response* error);

  // Answers, now or later. Short requests are read on this thread, long ones on one of their own.
  void Handle(const CallPtr& call);
  // Its client has gone: nobody waits for the answer, which may be given all the same.
  void Cancel(const CallPtr& call);

  // Tokenizes the work's texts and submits it; `answer` makes the answer of what came out. Throws
  // ApiError.
  void Compute(const CallPtr& call, const std::shared_ptr<Work>& work,
               const std::function<Response(const Work&)>& answer);

  // The model that a request names, or the first that can do it. Throws ApiError.
  const Model& ModelFor(const Json& body, Ability ability, bool name_wanted = false) const;

  void set_draining() { draining_ = true; }
  bool draining() const { return draining_; }
  const Settings& settings() const { return settings_; }
  const std::vector<Model>& models() const { return models_; }
  const Metrics& metrics() const { return *metrics_; }

 private:
  void HandleCaught(const CallPtr& call);
  void Tokenize(Work* work) const;
  void Answer(const CallPtr& call, const std::function<Response(const Work&)>& answer);

  const Settings& settings_;
  const std::vector<Model> models_;
  Metrics* metrics_;
  std::atomic<bool> draining_ = false;
  Lane lane_;  // reads and writes what is long
  Scheduler scheduler_;
};

// A work's options that all interfaces have in common.
std::shared_ptr<Work> NewWork(const Model& model, WorkKind kind, OnLong on_long);

// Routes, by interface.
std::span<const Route> OpenAiRoutes();
std::span<const Route> TeiRoutes();
std::span<const Route> CohereRoutes();
std::span<const Route> StatusRoutes();

// The first numbers of a vector that are wanted: 0 for all.
size_t DimensionsMember(const Json& body, const char* name, const Model& model);

// A row of a work's values, as a list of numbers or a string in base64; and a list of rows.
enum class Encoding : uint8_t { kFloat, kBase64 };
void AppendRow(const Work& work, size_t row, Encoding encoding, std::string* out);
void AppendRows(const Work& work, size_t begin, size_t end, Encoding encoding, std::string* out);

// Texts in the order of their scores, the best first; of equals the earlier first.
std::vector<size_t> BestFirst(std::span<const float> scores);

}  // namespace encore::serve

#endif  // ENCORE_TOOLS_SERVE_SERVICE_H_
