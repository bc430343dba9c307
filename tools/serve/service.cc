// SPDX-License-Identifier: Apache-2.0
//
// Routing, tokenizing and answering.

#include "tools/serve/service.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <new>
#include <numeric>
#include <utility>

namespace encore::serve {
namespace {

// Bytes of a body that is read where it came in: some 1 ms of tokenizing.
constexpr size_t kShortBody = size_t{8} << 10;
// Numbers of an answer that is written where it was computed: some 1 ms.
constexpr size_t kShortAnswer = 16384;

double SecondsBetween(Clock::time_point start, Clock::time_point end) {
  return std::chrono::duration<double>(end - start).count();
}

bool Matches(std::string_view pattern, std::string_view path) {
  if (!pattern.ends_with('*')) return pattern == path;
  return path.starts_with(pattern.substr(0, pattern.size() - 1));
}

// Runs what makes an answer; whatever it throws becomes one.
template <typename F>
void ReplyWhereWrong(const CallPtr& call, F&& run) {
  const Interface interface = call->route->interface;
  const MemoryScope scope(NoMemory::kWait);
  try {
    run();
  } catch (const ApiError& error) {
    call->Reply(ErrorResponse(interface, error));
  } catch (const std::bad_alloc&) {
    call->Reply(ErrorResponse(interface, ApiError(503, "out of memory")));
  } catch (const std::exception&) {
    call->Reply(ErrorResponse(interface, ApiError(500, "unexpected error")));
  }
}

}  // namespace

Service::Service(const Settings& settings, std::vector<Model> models, const Executor& executor,
                 Metrics* metrics)
    : settings_(settings),
      models_(std::move(models)),
      metrics_(metrics),
      scheduler_(executor, settings.limits.queue_tokens, metrics) {}

const Route* Service::Find(std::string_view method, std::string_view path, Response* error) {
  const std::array<std::span<const Route>, 4> all = {OpenAiRoutes(), TeiRoutes(), CohereRoutes(),
                                                     StatusRoutes()};
  const Route* other = nullptr;
  for (const std::span<const Route> routes : all) {
    for (const Route& route : routes) {
      if (!Matches(route.path, path)) continue;
      if (method == route.method) return &route;
      other = &route;
    }
  }
  if (other != nullptr) {
    *error = ErrorResponse(other->interface,
                           ApiError(405, std::string(other->path) + ": wanted " + other->method));
    error->allow = other->method;
  } else {
    *error = ErrorResponse(Interface::kOpenAi,
                           ApiError(404, "there is no such path; /openapi.json has them all"));
  }
  return nullptr;
}

void Service::Handle(const CallPtr& call) {
  if (call->body.size() <= kShortBody) {
    HandleCaught(call);
  } else {
    lane_.Post([this, call] { HandleCaught(call); });
  }
}

void Service::HandleCaught(const CallPtr& call) {
  ReplyWhereWrong(call, [&] { call->route->handle(*this, call); });
}

void Service::Cancel(const CallPtr& call) {
  std::shared_ptr<Work> work;
  {
    const std::lock_guard lock(call->mutex);
    if (call->gone) return;
    call->gone = true;
    work = call->work;
  }
  metrics_->CountVanished();
  if (work != nullptr) scheduler_.Cancel(work);
}

const Model& Service::ModelFor(const Json& body, Ability ability, bool name_wanted) const {
  const std::optional<std::string> name = StringMember(body, "model");
  if (!name && name_wanted && models_.size() > 1) {
    throw ApiError(400, "model: found nothing, wanted a name, as several models are served",
                   "model");
  }
  const Model* const model = FindModel(models_, name.value_or(""), ability);
  if (model == nullptr && name) {
    throw ApiError(404, "model: there is no model of this name; /v1/models has them all", "model");
  }
  if (model == nullptr) throw ApiError(400, "no model that is served can do this");
  if (!model->Can(ability)) {
    throw ApiError(400, "model: " + model->name + " cannot do this: its folder has no part for it",
                   "model");
  }
  return *model;
}

std::shared_ptr<Work> NewWork(const Model& model, WorkKind kind, OnLong on_long) {
  auto work = std::make_shared<Work>();
  work->model = &model;
  work->kind = kind;
  work->options.on_long = on_long;
  return work;
}

void Service::Tokenize(Work* work) const {
  const MemoryScope scope(NoMemory::kThrow);
  const TextEncoder& model = work->model->encoder;
  const size_t limit = model.max_length() == 0 ? SIZE_MAX : model.max_length();
  if (work->kind == WorkKind::kEmbedIds) {
    for (const auto& ids : work->ids) work->tokens.push_back(ids.size());
  } else {
    if (!model.has_tokenizer()) {
      throw ApiError(400, "the model's tokenizer is not supported: token ids are");
    }
    const TokenizeOptions options = {.max_length = model.max_length(),
                                     .on_long = work->options.on_long};
    Tokens tokens;
    for (size_t i = 0; i < work->texts.size(); ++i) {
      const bool pair = work->kind == WorkKind::kScore || !work->seconds.empty();
      const std::string& first = work->kind == WorkKind::kScore ? work->query : work->texts[i];
      const std::string& second = work->seconds.empty() ? work->texts[i] : work->seconds[i];
      const Status status = pair ? model.tokenizer().EncodePair(first, second, &tokens, options)
                                 : model.tokenizer().Encode(first, &tokens, options);
      if (!status.ok()) {
        throw ApiError(ErrorOf(status).status(),
                       "text " + std::to_string(i) + ": " + status.message());
      }
      work->tokens.push_back(std::clamp<size_t>(tokens.ids.size(), 1, limit));
    }
  }
  work->all_tokens = std::accumulate(work->tokens.begin(), work->tokens.end(), size_t{0});
}

void Service::Compute(const CallPtr& call, const std::shared_ptr<Work>& work,
                      const std::function<Response(const Work&)>& answer) {
  // Floats that an answer of vectors of tokens may have: 16 MiB of them.
  constexpr size_t kMostTokenFloats = size_t{4} << 20;
  Tokenize(work.get());
  const Clock::time_point now = Clock::now();
  call->record.tokenize_seconds = SecondsBetween(call->received, now);
  call->record.texts = work->size();
  if (work->kind == WorkKind::kTokens &&
      work->all_tokens > kMostTokenFloats / work->model->encoder.d_model()) {
    throw ApiError(413, "found " + std::to_string(work->all_tokens) + " tokens, wanted at most " +
                            std::to_string(kMostTokenFloats / work->model->encoder.d_model()));
  }
  if (work->all_tokens > settings_.limits.queue_tokens) {
    throw ApiError(413, "found " + std::to_string(work->all_tokens) + " tokens, wanted at most " +
                            std::to_string(settings_.limits.queue_tokens));
  }
  work->deadline = call->deadline;
  work->finished = [this, call, answer] {
    if (call->work->values.size() <= kShortAnswer) {
      Answer(call, answer);
    } else {
      lane_.Post([this, call, answer] { Answer(call, answer); });
    }
  };
  {
    const std::lock_guard lock(call->mutex);
    if (call->gone) throw ApiError(503, "the client has gone");
    call->work = work;
  }
  if (scheduler_.Submit(work)) {
    // It may have gone meanwhile, and then Cancel has found work that was not submitted.
    std::unique_lock lock(call->mutex);
    const bool gone = call->gone;
    lock.unlock();
    if (gone) scheduler_.Cancel(work);
    return;
  }
  work->finished = nullptr;
  Response response = ErrorResponse(
      call->route->interface,
      ApiError(429, "the queue of " + std::to_string(settings_.limits.queue_tokens) +
                        " tokens has no room for " + std::to_string(work->all_tokens)));
  response.retry_after =
      std::clamp(static_cast<int>(std::ceil(scheduler_.SecondsOfQueue())), 1, 60);
  call->Reply(std::move(response));
}

void Service::Answer(const CallPtr& call, const std::function<Response(const Work&)>& answer) {
  const Work& work = *call->work;
  call->record.tokens = work.computed_tokens;
  call->record.queue_seconds = work.queue_seconds;
  call->record.compute_seconds = work.compute_seconds;
  ReplyWhereWrong(call, [&] {
    if (!work.status.ok()) throw ErrorOf(work.status);
    const MemoryScope scope(NoMemory::kThrow);
    call->Reply(answer(work));
  });
}

size_t DimensionsMember(const Json& body, const char* name, const Model& model) {
  const size_t found = SizeMember(body, name, 1).value_or(0);
  const size_t most = model.encoder.max_dimensions();
  if (found <= most) return found;
  throw ApiError(400,
                 std::string(name) + ": found " + std::to_string(found) + ", wanted at most " +
                     std::to_string(most),
                 name);
}

void AppendRow(const Work& work, size_t row, Encoding encoding, std::string* out) {
  const std::span<const float> values =
      std::span(work.values).subspan(row * work.width, work.width);
  if (encoding == Encoding::kFloat) {
    AppendNumbers(values, out);
    return;
  }
  *out += '"';
  AppendBase64(values, out);
  *out += '"';
}

void AppendRows(const Work& work, size_t begin, size_t end, Encoding encoding, std::string* out) {
  *out += '[';
  for (size_t row = begin; row < end; ++row) {
    if (row > begin) *out += ',';
    AppendRow(work, row, encoding, out);
  }
  *out += ']';
}

std::vector<size_t> BestFirst(std::span<const float> scores) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (std::isnan(scores[a]) || std::isnan(scores[b]))
      return std::isnan(scores[b]) && !std::isnan(scores[a]);
    return scores[a] > scores[b];
  });
  return order;
}

}  // namespace encore::serve
