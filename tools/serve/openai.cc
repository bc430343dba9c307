// SPDX-License-Identifier: Apache-2.0
//
// OpenAI's interface: POST /v1/embeddings, GET /v1/models and GET /v1/models/NAME.

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/serve/service.h"

namespace encore::serve {
namespace {

std::vector<int32_t> TakeIds(const Json& list) {
  std::vector<int32_t> ids;
  ids.reserve(list.size());
  for (const Json& id : list) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > std::numeric_limits<int32_t>::max()) {
      throw ApiError(400, "input: found a list of numbers that are no token ids", "input");
    }
    ids.push_back(id.get<int32_t>());
  }
  return ids;
}

// [101, 7592] or [[101, 7592], [101]]; nothing of texts.
std::vector<std::vector<int32_t>> TakeLists(const Json& body, const Limits& limits) {
  std::vector<std::vector<int32_t>> lists;
  const auto input = body.find("input");
  if (input == body.end() || !input->is_array() || input->empty()) return lists;
  if (input->front().is_number()) {
    lists.push_back(TakeIds(*input));
  } else if (input->front().is_array()) {
    CheckCount(*input, "input", limits.texts);
    for (const Json& list : *input) {
      if (!list.is_array() || list.empty()) {
        throw ApiError(400, "input: wanted lists of token ids that are not empty", "input");
      }
      lists.push_back(TakeIds(list));
    }
  }
  return lists;
}

Response EmbeddingsAnswer(const Work& work, Encoding encoding) {
  Response response;
  std::string& out = response.body;
  out = R"({"object":"list","data":[)";
  for (size_t i = 0; i < work.size(); ++i) {
    out += i > 0 ? "," : "";
    out += R"({"object":"embedding","index":)" + std::to_string(i) + R"(,"embedding":)";
    AppendRow(work, i, encoding, &out);
    out += '}';
  }
  const std::string tokens = std::to_string(work.computed_tokens);
  out += R"(],"model":)" + Quoted(work.model->name) + R"(,"usage":{"prompt_tokens":)" + tokens +
         R"(,"total_tokens":)" + tokens + "}}";
  return response;
}

void PostEmbeddings(Service& service, const CallPtr& call) {
  const Limits& limits = service.settings().limits;
  Json body = ParseBody(call->body, limits.json_depth);
  const Model& model = service.ModelFor(body, Ability::kEmbed, true);
  const std::string encoding = StringMember(body, "encoding_format").value_or("float");
  if (encoding != "float" && encoding != "base64") {
    throw ApiError(400, "encoding_format: wanted float or base64", "encoding_format");
  }
  auto work = NewWork(model, WorkKind::kEmbed, service.settings().on_long);
  work->ids = TakeLists(body, limits);
  if (work->ids.empty()) {
    work->texts = TakeTexts(&body, "input", limits.texts, limits.text_bytes);
  } else {
    work->kind = WorkKind::kEmbedIds;
  }
  work->options.dimensions = DimensionsMember(body, "dimensions", model);
  const Encoding kind = encoding == "base64" ? Encoding::kBase64 : Encoding::kFloat;
  service.Compute(call, work, [kind](const Work& done) { return EmbeddingsAnswer(done, kind); });
}

Json ModelObject(const Model& model) {
  return {
      {"id", model.name}, {"object", "model"}, {"created", model.opened}, {"owned_by", "encore"}};
}

void GetModels(Service& service, const CallPtr& call) {
  Json list = Json::array();
  for (const Model& model : service.models()) list.push_back(ModelObject(model));
  call->Reply({.body = Dump({{"object", "list"}, {"data", std::move(list)}})});
}

void GetModel(Service& service, const CallPtr& call) {
  const std::string_view name = std::string_view(call->path).substr(sizeof("/v1/models/") - 1);
  for (const Model& model : service.models()) {
    if (model.name == name) {
      call->Reply({.body = Dump(ModelObject(model))});
      return;
    }
  }
  throw ApiError(404, "there is no model of this name; /v1/models has them all", "model");
}

}  // namespace

std::span<const Route> OpenAiRoutes() {
  static constexpr std::array kRoutes = {
      Route{"POST", "/v1/embeddings", Interface::kOpenAi, false, PostEmbeddings},
      Route{"GET", "/v1/models", Interface::kOpenAi, false, GetModels},
      Route{"GET", "/v1/models/*", Interface::kOpenAi, false, GetModel},
  };
  return kRoutes;
}

}  // namespace encore::serve
