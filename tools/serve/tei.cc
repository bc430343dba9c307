// SPDX-License-Identifier: Apache-2.0
//
// The interface of text-embeddings-inference: POST /embed, /embed_sparse, /embed_all, /rerank,
// /predict and /tokenize, GET /info. A member "model" may name one of several models.

#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "encore/version.h"
#include "tools/serve/service.h"

namespace encore::serve {
namespace {

OnLong OnLongOf(const Service& service, const Json& body) {
  const std::string side = StringMember(body, "truncation_direction").value_or("Right");
  if (side != "Right" && side != "right") {
    throw ApiError(400,
                   "truncation_direction: wanted Right; the folder's tokenizer says which "
                   "end of a text is kept",
                   "truncation_direction");
  }
  const std::optional<bool> cut = BoolMember(body, "truncate");
  if (!cut) return service.settings().on_long;
  return *cut ? OnLong::kCut : OnLong::kError;
}

// Vectors of texts, of any kind, from "inputs".
std::shared_ptr<Work> InputsWork(Service& service, const Call& call, Ability ability, WorkKind kind,
                                 Json* body) {
  const Limits& limits = service.settings().limits;
  *body = ParseBody(call.body, limits.json_depth);
  auto work = NewWork(service.ModelFor(*body, ability), kind, OnLongOf(service, *body));
  work->texts = TakeTexts(body, "inputs", limits.texts, limits.text_bytes);
  work->options.prompt_name = StringMember(*body, "prompt_name");
  return work;
}

void PostEmbed(Service& service, const CallPtr& call) {
  Json body;
  auto work = InputsWork(service, *call, Ability::kEmbed, WorkKind::kEmbed, &body);
  work->options.normalize = BoolMember(body, "normalize").value_or(true);
  work->options.dimensions = DimensionsMember(body, "dimensions", *work->model);
  service.Compute(call, work, [](const Work& done) {
    Response response;
    AppendRows(done, 0, done.size(), Encoding::kFloat, &response.body);
    return response;
  });
}

void PostEmbedAll(Service& service, const CallPtr& call) {
  Json body;
  auto work = InputsWork(service, *call, Ability::kEmbed, WorkKind::kTokens, &body);
  service.Compute(call, work, [](const Work& done) {
    Response response = {.body = "["};
    for (size_t i = 0; i < done.size(); ++i) {
      if (i > 0) response.body += ',';
      AppendRows(done, done.row_starts[i], done.row_starts[i + 1], Encoding::kFloat,
                 &response.body);
    }
    response.body += ']';
    return response;
  });
}

void PostEmbedSparse(Service& service, const CallPtr& call) {
  Json body;
  auto work = InputsWork(service, *call, Ability::kSparse, WorkKind::kSparse, &body);
  service.Compute(call, work, [](const Work& done) {
    Response response = {.body = "["};
    std::string& out = response.body;
    for (const auto& row : done.sparse) {
      out += out.size() > 1 ? ",[" : "[";
      for (const auto& [index, value] : row) {
        out += (out.back() == '[' ? R"({"index":)" : R"(,{"index":)") + std::to_string(index) +
               R"(,"value":)";
        AppendNumber(value, &out);
        out += '}';
      }
      out += ']';
    }
    out += ']';
    return response;
  });
}

void PostTeiRerank(Service& service, const CallPtr& call) {
  const Limits& limits = service.settings().limits;
  Json body = ParseBody(call->body, limits.json_depth);
  auto work =
      NewWork(service.ModelFor(body, Ability::kScore), WorkKind::kScore, OnLongOf(service, body));
  work->query = TakeText(&Member(&body, "query"), "query", limits.text_bytes);
  work->texts = TakeTexts(&body, "texts", limits.texts, limits.text_bytes);
  const bool raw = BoolMember(body, "raw_scores").value_or(false);
  work->options.activation = raw ? ScoreActivation::kIdentity : ScoreActivation::kSigmoid;
  const bool with_text = BoolMember(body, "return_text").value_or(false);
  service.Compute(call, work, [with_text](const Work& done) {
    Response response = {.body = "["};
    std::string& out = response.body;
    for (const size_t i : BestFirst(done.values)) {
      out +=
          (out.size() > 1 ? R"(,{"index":)" : R"({"index":)") + std::to_string(i) + R"(,"score":)";
      AppendNumber(done.values[i], &out);
      if (with_text) out += R"(,"text":)" + Quoted(done.texts[i]);
      out += '}';
    }
    out += ']';
    return response;
  });
}

// A text, ["a text"] or ["a pair", "of texts"] into the work.
void TakePair(Json* value, const Limits& limits, Work* work) {
  const bool wrong =
      !value->is_string() && (!value->is_array() || value->empty() || value->size() > 2);
  if (wrong) throw ApiError(400, "inputs: wanted a text, or a list of a text or two", "inputs");
  if (value->is_string()) {
    work->texts.push_back(TakeText(value, "inputs", limits.text_bytes));
    return;
  }
  work->texts.push_back(TakeText(&value->front(), "inputs", limits.text_bytes));
  if (value->size() == 2) {
    work->seconds.push_back(TakeText(&value->back(), "inputs", limits.text_bytes));
  }
}

std::string LabelsOf(const Work& work, size_t text) {
  const std::span<const float> row = std::span(work.values).subspan(text * work.width, work.width);
  std::string out = "[";
  for (const size_t label : BestFirst(row)) {
    out += out.size() > 1 ? R"(,{"score":)" : R"({"score":)";
    AppendNumber(row[label], &out);
    out += R"(,"label":)" + Quoted(work.model->encoder.labels()[label]) + "}";
  }
  return out + "]";
}

void PostPredict(Service& service, const CallPtr& call) {
  const Limits& limits = service.settings().limits;
  Json body = ParseBody(call->body, limits.json_depth);
  const Model& model = service.ModelFor(body, Ability::kClassify);
  auto work = NewWork(model, WorkKind::kClassify, OnLongOf(service, body));
  Json& inputs = Member(&body, "inputs");
  const bool many = inputs.is_array() && !inputs.empty() && inputs.front().is_array();
  if (many) {
    CheckCount(inputs, "inputs", limits.texts);
    for (Json& value : inputs) TakePair(&value, limits, work.get());
  } else {
    TakePair(&inputs, limits, work.get());
  }
  if (!work->seconds.empty() && work->seconds.size() != work->texts.size()) {
    throw ApiError(400, "inputs: found texts and pairs, wanted one of the two", "inputs");
  }
  const bool raw = BoolMember(body, "raw_scores").value_or(false);
  work->options.activation = raw                                  ? ScoreActivation::kIdentity
                             : model.encoder.labels().size() == 1 ? ScoreActivation::kSigmoid
                                                                  : ScoreActivation::kSoftmax;
  service.Compute(call, work, [many](const Work& done) {
    if (!many) return Response{.body = LabelsOf(done, 0)};
    Response response = {.body = "["};
    for (size_t i = 0; i < done.size(); ++i) {
      response.body += (i > 0 ? "," : "") + LabelsOf(done, i);
    }
    response.body += ']';
    return response;
  });
}

// Characters before each byte of a text, and of the whole.
std::vector<size_t> CharactersOf(std::string_view text) {
  std::vector<size_t> characters = {0};
  for (const char c : text) {
    const bool continues = (static_cast<unsigned char>(c) & 0xC0) == 0x80;
    if (continues) --characters.back();
    characters.push_back(characters.back() + 1);
  }
  return characters;
}

// Tokens that an answer may have: 30 MiB of objects.
constexpr size_t kMostTokens = size_t{1} << 16;

// Places count characters, as those of text-embeddings-inference.
Json TokensOf(const Tokenizer& tokenizer, const std::string& text, bool special, size_t* left) {
  Tokens tokens;
  const Status status =
      tokenizer.Encode(text, &tokens, {.add_special_tokens = special, .offsets = true});
  if (!status.ok()) throw ErrorOf(status);
  if (tokens.ids.size() > *left) {
    throw ApiError(413, "inputs: found more than " + std::to_string(kMostTokens) + " tokens",
                   "inputs");
  }
  *left -= tokens.ids.size();
  const std::vector<size_t> characters = CharactersOf(text);
  Json list = Json::array();
  for (size_t i = 0; i < tokens.ids.size(); ++i) {
    const ByteRange place = tokens.offsets[i];
    const bool added = place.begin == place.end;
    Json token = {{"id", tokens.ids[i]}, {"special", added}, {"start", nullptr}, {"stop", nullptr}};
    if (added) {
      token["text"] = tokenizer.IdToToken(tokens.ids[i]);
    } else {
      token["text"] = text.substr(place.begin, place.end - place.begin);
      token["start"] = characters[place.begin];
      token["stop"] = characters[place.end];
    }
    list.push_back(std::move(token));
  }
  return list;
}

void PostTokenize(Service& service, const CallPtr& call) {
  const Limits& limits = service.settings().limits;
  Json body = ParseBody(call->body, limits.json_depth);
  const Model& model = service.ModelFor(body, Ability::kTokenize);
  const bool special = BoolMember(body, "add_special_tokens").value_or(true);
  Json lists = Json::array();
  size_t left = kMostTokens;
  for (const std::string& text : TakeTexts(&body, "inputs", limits.texts, limits.text_bytes)) {
    lists.push_back(TokensOf(model.encoder.tokenizer(), text, special, &left));
  }
  call->Reply({.body = Dump(lists)});
}

Json ModelType(const Model& model) {
  Json labels = Json::object();
  Json ids = Json::object();
  const std::vector<std::string>& names = model.encoder.labels();
  for (size_t i = 0; i < names.size(); ++i) {
    labels[std::to_string(i)] = names[i];
    ids[names[i]] = std::to_string(i);
  }
  const Json both = {{"id2label", labels}, {"label2id", ids}};
  if (model.Can(Ability::kScore)) return {{"reranker", both}};
  if (model.Can(Ability::kClassify)) return {{"classifier", both}};
  std::string pooling = "splade";
  for (const Decision& decision : model.encoder.Describe()) {
    if (decision.what == "pooling") pooling = decision.value;
  }
  return {{"embedding", {{"pooling", pooling}}}};
}

Json InfoOf(const Service& service, const Model& model) {
  const Limits& limits = service.settings().limits;
  const char* type = "float32";
  if (model.encoder.has_encoder()) {
    switch (model.encoder.encoder().precision()) {
      case Precision::kF32:
        break;
      case Precision::kBF16:
        type = "bfloat16";
        break;
      case Precision::kInt8:
        type = "int8";
        break;
      case Precision::kInt4:
        type = "int4";
        break;
    }
  }
  return {{"model_id", model.name},
          {"model_sha", nullptr},
          {"model_dtype", type},
          {"model_type", ModelType(model)},
          {"max_concurrent_requests", limits.connections},
          {"max_input_length", model.encoder.max_length()},
          {"max_batch_tokens", model.slice_tokens},
          {"max_batch_requests", nullptr},
          {"max_client_batch_size", limits.texts},
          {"auto_truncate", service.settings().on_long == OnLong::kCut},
          {"version", ENCORE_VERSION_STRING}};
}

// Of the first model, and of all of them under "models".
void GetInfo(Service& service, const CallPtr& call) {
  Json info = InfoOf(service, service.models().front());
  Json all = Json::array();
  for (const Model& model : service.models()) all.push_back(InfoOf(service, model));
  info["models"] = std::move(all);
  call->Reply({.body = Dump(info)});
}

}  // namespace

std::span<const Route> TeiRoutes() {
  static constexpr std::array kRoutes = {
      Route{"POST", "/", Interface::kTei, false, PostEmbed},
      Route{"POST", "/embed", Interface::kTei, false, PostEmbed},
      Route{"POST", "/embed_sparse", Interface::kTei, false, PostEmbedSparse},
      Route{"POST", "/embed_all", Interface::kTei, false, PostEmbedAll},
      Route{"POST", "/rerank", Interface::kTei, false, PostTeiRerank},
      Route{"POST", "/predict", Interface::kTei, false, PostPredict},
      Route{"POST", "/tokenize", Interface::kTei, false, PostTokenize},
      Route{"GET", "/info", Interface::kTei, false, GetInfo},
  };
  return kRoutes;
}

}  // namespace encore::serve
