// SPDX-License-Identifier: Apache-2.0
//
// Cohere's and Jina's interface: POST /v1/rerank and /v2/rerank, /v1/embed and /v2/embed.

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/serve/service.h"

namespace encore::serve {
namespace {

std::string MetaOf(const Work& work) {
  return R"("meta":{"api_version":{"version":"1"},"billed_units":{"input_tokens":)" +
         std::to_string(work.computed_tokens) + R"(,"search_units":1}})";
}

// ---- Rerank ------------------------------------------------------------------------------------

// Texts, or objects with a member "text".
void UnwrapDocuments(Json* body) {
  const auto documents = body->find("documents");
  if (documents == body->end() || !documents->is_array()) return;
  for (Json& document : *documents) {
    if (!document.is_object()) continue;
    const auto text = document.find("text");
    if (text == document.end()) {
      throw ApiError(400, "documents: found an object without a member text", "documents");
    }
    Json taken = std::move(*text);
    document = std::move(taken);
  }
}

Response RerankAnswer(const Work& work, size_t top, bool with_documents) {
  Response response;
  std::string& out = response.body;
  out = R"({"object":"list","model":)" + Quoted(work.model->name) + R"(,"results":[)";
  std::vector<size_t> order = BestFirst(work.values);
  if (top > 0 && top < order.size()) order.resize(top);
  for (const size_t i : order) {
    out += out.back() == '[' ? "" : ",";
    out += R"({"index":)" + std::to_string(i) + R"(,"relevance_score":)";
    AppendNumber(work.values[i], &out);
    if (with_documents) out += R"(,"document":{"text":)" + Quoted(work.texts[i]) + "}";
    out += '}';
  }
  const std::string tokens = std::to_string(work.computed_tokens);
  out += R"(],"usage":{"prompt_tokens":)" + tokens + R"(,"total_tokens":)" + tokens + "}," +
         MetaOf(work) + "}";
  return response;
}

void PostCohereRerank(Service& service, const CallPtr& call) {
  const Limits& limits = service.settings().limits;
  Json body = ParseBody(call->body, limits.json_depth);
  const Model& model = service.ModelFor(body, Ability::kScore);
  auto work = NewWork(model, WorkKind::kScore, service.settings().on_long);
  work->query = TakeText(&Member(&body, "query"), "query", limits.text_bytes);
  UnwrapDocuments(&body);
  work->texts = TakeTexts(&body, "documents", limits.texts, limits.text_bytes);
  work->options.activation = ScoreActivation::kSigmoid;
  const size_t top = SizeMember(body, "top_n", 1).value_or(0);
  const bool with_documents = BoolMember(body, "return_documents").value_or(false);
  service.Compute(call, work, [top, with_documents](const Work& done) {
    return RerankAnswer(done, top, with_documents);
  });
}

// ---- Embed -------------------------------------------------------------------------------------

// The members of "embeddings" that are wanted. Both false: /v1/embed's list of vectors.
struct Types {
  bool floats = false;
  bool base64 = false;
};

Types TypesOf(const Json& body, bool v2) {
  Types types = {};
  const auto found = body.find("embedding_types");
  if (found == body.end() || found->is_null() || found->empty()) return {.floats = v2};
  for (const Json& type : *found) {
    if (type == "float") {
      types.floats = true;
    } else if (type == "base64") {
      types.base64 = true;
    } else {
      throw ApiError(400, "embedding_types: wanted float or base64", "embedding_types");
    }
  }
  return types;
}

// The folder's prompt for what Cohere calls search_query or search_document, where there is one.
std::optional<std::string> PromptFor(const Model& model, const std::string& input_type) {
  if (!input_type.starts_with("search_")) return std::nullopt;
  std::string name = input_type.substr(sizeof("search_") - 1);
  const auto& prompts = model.encoder.prompts();
  const bool there = std::any_of(prompts.begin(), prompts.end(),
                                 [&](const auto& prompt) { return prompt.first == name; });
  return there ? std::optional(std::move(name)) : std::nullopt;
}

Response EmbedAnswer(const Work& work, Types types) {
  const bool by_type = types.floats || types.base64;
  Response response = {.body = R"({"id":"encore","response_type":"embeddings_)"};
  std::string& out = response.body;
  out += by_type ? R"(by_type","embeddings":{)" : R"(floats","embeddings":)";
  if (types.floats) out += R"("float":)";
  if (types.floats || !by_type) AppendRows(work, 0, work.size(), Encoding::kFloat, &out);
  if (types.base64) {
    out += types.floats ? R"(,"base64":)" : R"("base64":)";
    AppendRows(work, 0, work.size(), Encoding::kBase64, &out);
  }
  if (by_type) out += '}';
  out += R"(,"texts":[)";
  for (const std::string& text : work.texts) out += (out.back() == '[' ? "" : ",") + Quoted(text);
  out += "]," + MetaOf(work) + "}";
  return response;
}

void PostCohereEmbed(Service& service, const CallPtr& call) {
  const Limits& limits = service.settings().limits;
  Json body = ParseBody(call->body, limits.json_depth);
  const Model& model = service.ModelFor(body, Ability::kEmbed);
  const std::string truncate = StringMember(body, "truncate").value_or("");
  if (truncate == "START") throw ApiError(400, "truncate: wanted END or NONE", "truncate");
  auto work = NewWork(model, WorkKind::kEmbed,
                      truncate == "END"    ? OnLong::kCut
                      : truncate == "NONE" ? OnLong::kError
                                           : service.settings().on_long);
  const Types types = TypesOf(body, call->path == "/v2/embed");
  work->options.prompt_name = PromptFor(model, StringMember(body, "input_type").value_or(""));
  work->options.dimensions = DimensionsMember(body, "output_dimension", model);
  work->texts = TakeTexts(&body, "texts", limits.texts, limits.text_bytes);
  service.Compute(call, work, [types](const Work& done) { return EmbedAnswer(done, types); });
}

}  // namespace

std::span<const Route> CohereRoutes() {
  static constexpr std::array kRoutes = {
      Route{"POST", "/v1/rerank", Interface::kCohere, false, PostCohereRerank},
      Route{"POST", "/v2/rerank", Interface::kCohere, false, PostCohereRerank},
      Route{"POST", "/v1/embed", Interface::kCohere, false, PostCohereEmbed},
      Route{"POST", "/v2/embed", Interface::kCohere, false, PostCohereEmbed},
  };
  return kRoutes;
}

}  // namespace encore::serve
