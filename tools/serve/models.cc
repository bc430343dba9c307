// SPDX-License-Identifier: Apache-2.0
//
// Opening models, and how long they take for a token.

#include "tools/serve/models.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace encore::serve {
namespace {

// A slice is the longest that a short request waits for: long enough that weights are read from
// memory once for many tokens.
constexpr double kSliceNs = 10e6;
constexpr size_t kLeastSlice = 128;
constexpr size_t kMostSlice = 8192;
constexpr size_t kTimedTokens = 128;
constexpr double kUnknownTokenNs = 20e3;  // of a model that cannot be timed

// The best of three runs: the first also touches memory for the first time.
double TokenNs(const TextEncoder& model, const Executor& executor) {
  constexpr size_t kRows = 4;
  const size_t limit = model.max_length() == 0 ? kTimedTokens : model.max_length();
  const size_t length = std::min(kTimedTokens / kRows, limit);
  const std::vector<std::vector<int32_t>> ids(kRows, std::vector<int32_t>(length, 1));
  double best = 0;
  for (int run = 0; run < 3; ++run) {
    const auto start = std::chrono::steady_clock::now();
    const Status status = model.labels().empty()
                              ? model.EncodeIds(ids, {.executor = executor}).status()
                              : model.ClassifyIds(ids, {}, {.executor = executor}).status();
    if (!status.ok()) return kUnknownTokenNs;
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    const double ns = took.count() / static_cast<double>(kRows * length);
    if (run == 0 || ns < best) best = ns;
  }
  return std::max(best, 1.0);
}

}  // namespace

bool Model::Can(Ability ability) const {
  switch (ability) {
    case Ability::kEmbed:
      return encoder.dimensions() > 0;
    case Ability::kSparse:
      return encoder.sparse_dimensions() > 0;
    case Ability::kScore:
      return encoder.labels().size() == 1 && !encoder.labels_tokens();
    case Ability::kClassify:
      return !encoder.labels().empty() && !encoder.labels_tokens();
    case Ability::kTokenize:
      return encoder.has_tokenizer();
  }
  return false;
}

Result<std::vector<Model>> OpenModels(const Settings& settings, const Executor& executor) {
  std::vector<Model> models;
  for (const NamedFolder& named : settings.models) {
    Result<TextEncoder> opened = TextEncoder::Open(
        named.folder,
        {.executor = executor, .precision = settings.precision, .cache = settings.cache});
    if (!opened.ok()) {
      return Status(opened.status().code(),
                    "--model " + named.folder + ": " + opened.status().message());
    }
    if (FindModel(models, named.name, Ability::kTokenize) != nullptr) {
      return InvalidArgument("--model: found two models of the name '" + named.name +
                             "', wanted one: NAME=FOLDER gives it another");
    }
    Model model = {named.name, *std::move(opened)};
    model.token_ns = TokenNs(model.encoder, executor);
    model.slice_tokens =
        static_cast<size_t>(std::clamp(kSliceNs / model.token_ns, static_cast<double>(kLeastSlice),
                                       static_cast<double>(kMostSlice)));
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    model.opened = std::chrono::duration_cast<std::chrono::seconds>(now).count();
    models.push_back(std::move(model));
  }
  return models;
}

const Model* FindModel(const std::vector<Model>& models, std::string_view name, Ability ability) {
  for (const Model& model : models) {
    if (name.empty() ? model.Can(ability) : model.name == name) return &model;
  }
  return nullptr;
}

}  // namespace encore::serve
