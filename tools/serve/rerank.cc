// SPDX-License-Identifier: Apache-2.0
//
// Cohere's and Jina's interface: POST /v1/rerank, and /v2/rerank, which is the same.

#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/serve/service.h"

namespace encore::serve {
namespace {

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
  out += R"(],"usage":{"prompt_tokens":)" + tokens + R"(,"total_tokens":)" + tokens +
         R"(},"meta":{"api_version":{"version":"1"},"billed_units":{"search_units":1}}})";
  return response;
}

void PostRerank(Service& service, const CallPtr& call) {
  const Limits& limits = service.settings().limits;
  Json body = ParseBody(call->body, limits.json_depth);
  const Model& model = service.ModelFor(body, Ability::kScore);
  auto work = NewWork(model, WorkKind::kScore, service.settings().on_long);
  const auto query = body.find("query");
  if (query == body.end()) throw ApiError(400, "query: found nothing, wanted a text", "query");
  work->query = TakeText(&*query, "query", limits.text_bytes);
  UnwrapDocuments(&body);
  work->texts = TakeTexts(&body, "documents", limits.texts, limits.text_bytes);
  work->options.activation = ScoreActivation::kSigmoid;
  const size_t top = SizeMember(body, "top_n", 1).value_or(0);
  const bool with_documents = BoolMember(body, "return_documents").value_or(false);
  service.Compute(call, work, [top, with_documents](const Work& done) {
    return RerankAnswer(done, top, with_documents);
  });
}

}  // namespace

std::span<const Route> RerankRoutes() {
  static constexpr std::array kRoutes = {
      Route{"POST", "/v1/rerank", Interface::kRerank, false, PostRerank},
      Route{"POST", "/v2/rerank", Interface::kRerank, false, PostRerank},
  };
  return kRoutes;
}

}  // namespace encore::serve
