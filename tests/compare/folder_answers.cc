// SPDX-License-Identifier: Apache-2.0
//
// What the text library makes of folders, for check_folders.py, check_classes.py and
// check_tokenizer_classes.py: a JSON object a line in, one out. In: folder, texts, where they are
// pairs seconds, classifies, and a prompt_name, or where it classifies an activation
// (ScoreActivationName; without it as CrossEncoder); or in place of texts ids and type_ids, or ids
// and batch: all of them in one call. With a precision in that, else in the folder's. Out: error,
// or describe (what, value, source), labels, and for each of texts its row and ids, or error. In:
// folder, queries and documents. Out: error, or of late interaction query, document and none (of
// the first two documents), a list each of rows and ids of the text's own tokens, and scores. In:
// tokenizer, a folder that needs no model. Out: error or describe. In: folder, texts, and head
// (check_heads.py): "static", "tokens" with an aggregation, "sparse" with a task or null, "token
// logits" or "masked logits". Out: error, or rows of all texts at once.

#include <iostream>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "encore/multi_vector_encoder.h"
#include "encore/text_encoder.h"
#include "nlohmann/json.hpp"

namespace encore {
namespace {

using nlohmann::json;

json Row(const Tensor& tensor, size_t r = 0) {
  const ConstView view = tensor.View<float>();
  json row = json::array();
  for (size_t c = 0; c < view.dim(1); ++c) row.push_back(static_cast<double>(view(r, c)));
  return row;
}

json Failed(const Status& status) { return {{"error", status.message()}}; }

ScoreOptions ScoresOf(const json& request) {
  const std::string name = request.value("activation", "as cross-encoder");
  return {.activation = ScoreActivationFromName(name).value()};
}

Result<Predictions> Classify(const TextEncoder& model, const json& request, size_t i,
                             const std::string& text) {
  const ScoreOptions options = ScoresOf(request);
  if (!request.contains("seconds")) return model.Classify({text}, options);
  const std::string second = request["seconds"][i];
  return model.Classify({text}, {second}, options);
}

// What the model is given of one text.
json Ids(const TextEncoder& model, const json& request, size_t i) {
  const std::string text = request["texts"][i];
  const TokenizeOptions cut = {.max_length = model.max_length()};
  Tokens tokens;
  Status status;
  if (request.contains("seconds")) {
    status = model.tokenizer().EncodePair(text, std::string(request["seconds"][i]), &tokens, cut);
  } else if (request["classifies"]) {
    status = model.tokenizer().Encode(text, &tokens, cut);
  } else {
    EncodeOptions options;
    if (request.contains("prompt_name")) options.prompt_name = request["prompt_name"];
    Result<TokenVectors> vectors = model.EncodeTokens(text, options);
    status = vectors.status();
    if (vectors.ok()) tokens = std::move(vectors->tokens);
  }
  return status.ok() ? json(tokens.ids) : json(status.message());
}

// One text, as a text's numbers depend on no other: a text that is refused has an error.
json AnswerOne(const TextEncoder& model, const json& request, size_t i) {
  const std::string text = request["texts"][i];
  if (request["classifies"]) {
    const Result<Predictions> predictions = Classify(model, request, i, text);
    if (!predictions.ok()) return Failed(predictions.status());
    return {{"row", Row(predictions->values)}, {"ids", Ids(model, request, i)}};
  }
  EncodeOptions options;
  if (request.contains("prompt_name")) options.prompt_name = request["prompt_name"];
  const Result<Embeddings> embeddings = model.Encode({text}, options);
  if (!embeddings.ok()) return Failed(embeddings.status());
  return {{"row", Row(embeddings->vectors)}, {"ids", Ids(model, request, i)}};
}

// The same of token ids.
json AnswerIds(const TextEncoder& model, const json& request, size_t i) {
  const std::vector<std::vector<int32_t>> ids = {request["ids"][i]};
  if (!request["classifies"]) {
    const Result<Embeddings> embeddings = model.EncodeIds(ids);
    if (!embeddings.ok()) return Failed(embeddings.status());
    return {{"row", Row(embeddings->vectors)}};
  }
  const std::vector<std::vector<uint8_t>> types = {request["type_ids"][i]};
  const Result<Predictions> predictions = model.ClassifyIds(ids, types, ScoresOf(request));
  if (!predictions.ok()) return Failed(predictions.status());
  return {{"row", Row(predictions->values)}};
}

// And of all lists in one call, as a ragged batch.
json AnswerBatch(const TextEncoder& model, const json& request) {
  const std::vector<std::vector<int32_t>> ids = request["ids"];
  Result<Tensor> rows = Tensor();
  if (request["classifies"]) {
    Result<Predictions> found = model.ClassifyIds(ids, {}, ScoresOf(request));
    rows = found.ok() ? Result<Tensor>(std::move(found->values)) : found.status();
  } else {
    Result<Embeddings> found = model.EncodeIds(ids);
    rows = found.ok() ? Result<Tensor>(std::move(found->vectors)) : found.status();
  }
  if (!rows.ok()) return Failed(rows.status());
  json answers = json::array();
  for (size_t i = 0; i < ids.size(); ++i) answers.push_back({{"row", Row(*rows, i)}});
  return {{"texts", answers}};
}

json Described(const std::vector<Decision>& decisions) {
  json described = json::array();
  for (const Decision& decision : decisions) {
    described.push_back({decision.what, decision.value, decision.source});
  }
  return described;
}

json HeadRow(const SparseVectors& vectors, size_t i) {
  const auto begin = static_cast<ptrdiff_t>(vectors.row_starts[i]);
  const auto end = static_cast<ptrdiff_t>(vectors.row_starts[i + 1]);
  const auto& [indices, values] = std::tie(vectors.indices, vectors.values);
  return {{"indices", std::vector(indices.begin() + begin, indices.begin() + end)},
          {"values", std::vector(values.begin() + begin, values.begin() + end)}};
}

json HeadRow(const std::vector<Entity>& entities) {
  json row = json::array();
  for (const Entity& entity : entities) {
    row.push_back({{"label", entity.label},
                   {"score", entity.score},
                   {"start", entity.place.begin},
                   {"end", entity.place.end}});
  }
  return row;
}

// Of each token of a text.
Result<TokenLogits> MaskedLogits(const TextEncoder& model, const std::string& text) {
  Tokens tokens;
  const TokenizeOptions cut = {.max_length = model.max_length()};
  const Status status = model.tokenizer().Encode(text, &tokens, cut);
  if (!status.ok()) return status;
  std::vector<size_t> positions(tokens.ids.size());
  std::iota(positions.begin(), positions.end(), size_t{0});
  return model.PredictTokens(text, positions);
}

json AnswerHead(const TextEncoder& model, const json& request) {
  const std::string head = request["head"];
  const std::vector<std::string> texts = request["texts"];
  json rows = json::array();
  if (head == "static") {
    const Result<Embeddings> found = model.Encode(texts);
    if (!found.ok()) return Failed(found.status());
    for (size_t i = 0; i < texts.size(); ++i) {
      const ConstView row = found->vectors.View<float>()[i];
      rows.push_back(std::vector<float>(row.data(), row.data() + row.dim(0)));
    }
  } else if (head == "tokens") {
    LabelOptions options;
    options.ignore_labels = {};
    for (const Aggregation known : {Aggregation::kNone, Aggregation::kSimple, Aggregation::kFirst,
                                    Aggregation::kAverage, Aggregation::kMax}) {
      if (AggregationName(known) == request["aggregation"]) options.aggregation = known;
    }
    const Result<Entities> found = model.FindEntities(texts, options);
    if (!found.ok()) return Failed(found.status());
    for (const std::vector<Entity>& entities : found->of_texts) rows.push_back(HeadRow(entities));
  } else if (head.ends_with("logits")) {
    for (const std::string& text : texts) {
      const Result<TokenLogits> found =
          head == "masked logits" ? MaskedLogits(model, text) : model.LabelTokens(text);
      if (!found.ok()) return Failed(found.status());
      rows.push_back(json::array());
      for (size_t i = 0; i < found->logits.shape()[0]; ++i) {
        rows.back().push_back(Row(found->logits, i));
      }
    }
  } else {
    SparseOptions options;
    if (request["task"].is_string()) options.task = request["task"].get<std::string>();
    const Result<SparseVectors> found = model.EncodeSparse(texts, options);
    if (!found.ok()) return Failed(found.status());
    for (size_t i = 0; i < texts.size(); ++i) rows.push_back(HeadRow(*found, i));
  }
  return {{"rows", std::move(rows)}};
}

// Of texts with a task: rows, and the ids of the text's own tokens.
json LateTexts(const MultiVectorEncoder& model, TextTask task, const MultiVectors& vectors,
               const std::vector<std::string>& texts) {
  const ConstView all = vectors.vectors.View<float>();
  json answers = json::array();
  for (size_t i = 0; i < texts.size(); ++i) {
    json rows = json::array();
    for (size_t r = vectors.row_starts[i]; r < vectors.row_starts[i + 1]; ++r) {
      const float* const row = &all(r, 0);
      rows.push_back(std::vector<double>(row, row + all.dim(1)));
    }
    std::string prompt;
    const auto find = [&](const std::string& name) {
      for (const auto& [known, text] : model.prompts()) {
        if (known != name) continue;
        prompt = text;
        return true;
      }
      return false;
    };
    if (task == TextTask::kQuery) find("query");
    if (task == TextTask::kDocument) find("document");
    Tokens tokens;
    const Status status = model.tokenizer().Encode(prompt + texts[i], &tokens,
                                                   {.max_length = model.max_length(task)});
    answers.push_back({{"rows", rows}, {"ids", tokens.ids}});
    if (!status.ok()) answers.back()["ids"] = status.message();
  }
  return answers;
}

// "precision": of the products; without it as the folder says.
Result<OpenOptions> OptionsOf(const json& request) {
  OpenOptions options;
  options.language_head = request.value("head", "") == "masked logits";
  if (!request.contains("precision")) return options;
  const Result<Precision> precision = PrecisionFromName(request["precision"].get<std::string>());
  if (!precision.ok()) return precision.status();
  options.precision = *precision;
  return options;
}

json AnswerLate(const json& request) {
  const Result<OpenOptions> options = OptionsOf(request);
  if (!options.ok()) return Failed(options.status());
  const Result<MultiVectorEncoder> model = MultiVectorEncoder::Open(request["folder"], *options);
  if (!model.ok()) return Failed(model.status());
  const std::vector<std::string> queries = request["queries"];
  const std::vector<std::string> documents = request["documents"];
  const std::vector<std::string> first(documents.begin(), documents.begin() + 2);
  const Result<MultiVectors> query = model->EncodeQueries(queries);
  const Result<MultiVectors> document = model->EncodeDocuments(documents);
  const Result<MultiVectors> none = model->Encode(first);
  for (const Result<MultiVectors>* result : {&query, &document, &none}) {
    if (!result->ok()) return Failed(result->status());
  }
  std::vector<float> scores(queries.size() * documents.size());
  const Status status =
      model->Similarity(query->rows(), document->rows(),
                        MutableView(scores.data(), Shape(queries.size(), documents.size())));
  if (!status.ok()) return Failed(status);
  json lists = json::array();
  for (size_t q = 0; q < queries.size(); ++q) {
    const float* const row = scores.data() + q * documents.size();
    lists.push_back(std::vector<double>(row, row + documents.size()));
  }
  return {{"query", LateTexts(*model, TextTask::kQuery, *query, queries)},
          {"document", LateTexts(*model, TextTask::kDocument, *document, documents)},
          {"none", LateTexts(*model, TextTask::kNone, *none, first)},
          {"scores", lists}};
}

json Answer(const json& request) {
  if (request.contains("queries")) return AnswerLate(request);
  if (request.contains("tokenizer")) {
    const Result<Tokenizer> tokenizer = Tokenizer::Open(request["tokenizer"].get<std::string>());
    if (!tokenizer.ok()) return Failed(tokenizer.status());
    return {{"describe", Described(tokenizer->Describe())}};
  }
  const Result<OpenOptions> options = OptionsOf(request);
  if (!options.ok()) return Failed(options.status());
  const Result<TextEncoder> model =
      TextEncoder::Open(request["folder"].get<std::string>(), *options);
  if (!model.ok()) return Failed(model.status());
  if (request.contains("batch")) return AnswerBatch(*model, request);
  if (request.contains("head")) return AnswerHead(*model, request);
  json answer = {{"describe", Described(model->Describe())},
                 {"labels", model->labels()},
                 {"texts", json::array()}};
  const bool from_ids = request.contains("ids");
  const size_t count = request[from_ids ? "ids" : "texts"].size();
  for (size_t i = 0; i < count; ++i) {
    answer["texts"].push_back((from_ids ? AnswerIds : AnswerOne)(*model, request, i));
  }
  return answer;
}

}  // namespace
}  // namespace encore

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    std::cout << encore::Answer(nlohmann::json::parse(line)).dump() << std::endl;
  }
}
