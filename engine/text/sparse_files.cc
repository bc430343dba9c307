// SPDX-License-Identifier: Apache-2.0
//
// The files of a SparseEncoder's modules: SpladePooling, Router, SparseStaticEmbedding.

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "encore/safetensors.h"
#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/text/folder_files.h"
#include "engine/text/sparse_vectors.h"
#include "engine/tokenizer/tokenizer_factory.h"

namespace encore::inline v0_1::internal {
namespace {

constexpr std::string_view kWantedRoutes =
    "the routes 'query', a SparseStaticEmbedding, and 'document', a Transformer and SpladePooling";

// The modules of one route of a Router. `ids` names them: keys of `types`, and their folders.
Result<std::vector<ModuleEntry>> ReadRoute(const std::string& path, const JsonValue& ids,
                                           const JsonValue& types, const std::string& where) {
  std::vector<ModuleEntry> modules;
  for (const JsonValue& id : ids.is_array() ? ids.items() : std::vector<JsonValue>()) {
    const JsonValue* type = id.is_string() ? types.Find(id.text()) : nullptr;
    if (type == nullptr || !type->is_string()) {
      return InvalidArgument(where + ": structure has " + id.Described() +
                             "; wanted a key of types, whose value is a class");
    }
    ENCORE_ASSIGN_OR_RETURN(ModuleEntry entry, MakeModule(type->text(), id.text(), where));
    entry.path = Within(path, entry.path);
    if (id.text().empty()) entry.path = path;
    modules.push_back(std::move(entry));
  }
  return modules;
}

// Weights by token: {"harbour": 4.2, ...}. Other tokens have 0. A token that is none of the
// tokenizer's sets the weight of the unknown token; the last one counts.
Result<Tensor> ReadIdf(const std::string& path, const std::string& name, const Tokenizer& tokenizer,
                       const FolderReading& reading) {
  const std::string file = Within(path, name);
  if (name.find('/') != std::string::npos || name.find('\\') != std::string::npos) {
    return Status(ErrorCode::kUnsupported, Within(path, "config.json") + ": path is " +
                                               Quoted(name) +
                                               "; wanted that of a file beside config.json");
  }
  ENCORE_ASSIGN_OR_RETURN(const JsonValue json,
                          ReadModuleFile("SparseStaticEmbedding", file, reading));
  if (!json.is_object()) {
    return InvalidArgument(file + ": found " + json.Described() +
                           "; wanted an object of numbers by token");
  }
  const size_t size = tokenizer.vocab_size();
  ENCORE_ASSIGN_OR_RETURN(Tensor weights, Tensor::Create(DType::kF32, {size}));
  auto* const values = static_cast<float*>(weights.data());
  std::fill_n(values, size, 0.0f);
  const std::optional<int32_t> unknown = TokenizerFactory::SpecialTokenId(tokenizer, "unk_token");
  for (const JsonValue::Member& member : json.members()) {
    if (!member.second.is_number() ||
        !(std::fabs(member.second.number()) <= std::numeric_limits<float>::max())) {
      return InvalidArgument(file + ": " + Quoted(member.first) + " is " +
                             member.second.Described() + "; wanted a number in the range of f32");
    }
    std::optional<int32_t> id = TokenizerFactory::TokenId(tokenizer, member.first);
    if (!id) id = unknown;
    if (!id || static_cast<size_t>(*id) >= size) {
      return InvalidArgument(file + ": " + Quoted(member.first) +
                             " is no token; wanted tokens alone, as the tokenizer names no unknown "
                             "one");
    }
    values[*id] = static_cast<float>(member.second.number());
  }
  reading.Note("weights of tokens", std::to_string(json.members().size()) + ", by token", file);
  return weights;
}

}  // namespace

Result<std::vector<ModuleEntry>> ReadRouter(const std::string& path, SparseRoutes* routes,
                                            const FolderReading& reading) {
  std::string file = Within(path, "router_config.json");
  ENCORE_ASSIGN_OR_RETURN(const bool is_new, reading.folder.Has(file));
  if (!is_new) file = Within(path, "config.json");
  ENCORE_ASSIGN_OR_RETURN(const JsonValue json, ReadModuleFile("Router", file, reading));
  JsonMembers members(json, file);
  const JsonValue& types = members.RequiredObject("types");
  const JsonValue& structure = members.RequiredObject("structure");
  const JsonValue& parameters = members.RequiredObject("parameters");
  ENCORE_RETURN_IF_ERROR(CheckUnreadKeys(members, reading));
  JsonMembers settings(parameters, file + ": parameters");
  routes->by_default = settings.String("default_route", "");
  settings.Ignore("allow_empty_key");  // of a default route by training
  WantEmpty(settings, "route_mappings");
  ENCORE_RETURN_IF_ERROR(CheckUnreadKeys(settings, reading));

  std::vector<ModuleEntry> query;
  std::vector<ModuleEntry> document;
  size_t others = 0;
  for (const JsonValue::Member& route : structure.members()) {
    ENCORE_ASSIGN_OR_RETURN(std::vector<ModuleEntry> modules,
                            ReadRoute(path, route.second, types, file));
    if (route.first == "query") {
      query = std::move(modules);
    } else if (route.first == "document") {
      document = std::move(modules);
    } else {
      ++others;
    }
  }
  const bool fits = others == 0 && query.size() == 1 && document.size() == 2 &&
                    query[0].kind == ModuleKind::kSparseStatic &&
                    (document[0].kind == ModuleKind::kTransformer ||
                     document[0].kind == ModuleKind::kMlmTransformer) &&
                    document[1].kind == ModuleKind::kSpladePooling;
  if (!fits) {
    return Status(ErrorCode::kUnsupported,
                  file + ": found another Router; wanted " + std::string(kWantedRoutes));
  }
  if (!routes->by_default.empty() && structure.Find(routes->by_default) == nullptr) {
    return InvalidArgument(file + ": parameters: default_route is " + Quoted(routes->by_default) +
                           "; wanted 'query' or 'document'");
  }
  routes->query_path = query[0].path;
  reading.Note("routes",
               "query by static weights, document by the model" +
                   (routes->by_default.empty() ? "" : ", by default " + routes->by_default),
               file);
  return document;
}

Result<SpladePooling> ReadSpladePooling(const std::string& path, size_t vocab_size,
                                        const FolderReading& reading) {
  const std::string file = Within(path, "config.json");
  ENCORE_ASSIGN_OR_RETURN(const JsonValue json, ReadModuleFile("SpladePooling", file, reading));
  JsonMembers members(json, file);
  const std::string strategy = members.String("pooling_strategy", "max");
  const std::string activation = members.String("activation_function", "relu");
  if (strategy != "max" && strategy != "sum") members.Refuse("pooling_strategy", "'max' or 'sum'");
  if (activation != "relu" && activation != "log1p_relu") {
    members.Refuse("activation_function", "'relu' or 'log1p_relu'");
  }
  for (const std::string_view key : {"embedding_dimension", "word_embedding_dimension"}) {
    const std::optional<size_t> width = members.OptionalSize(key);
    if (width && *width != vocab_size) {
      members.Refuse(key, std::to_string(vocab_size) + ", the model's vocabulary");
    }
  }
  members.Ignore("chunk_size");  // how, not what
  ENCORE_RETURN_IF_ERROR(CheckUnreadKeys(members, reading));
  reading.Note("sparse vectors",
               strategy + " of " + (activation == "relu" ? "log1p(relu)" : "log1p(log1p(relu))"),
               file);
  return SpladePooling{.sum = strategy == "sum", .twice = activation == "log1p_relu"};
}

Result<SparseStatic> ReadSparseStatic(const std::string& path, std::optional<size_t> vocab_size,
                                      const FolderReading& reading) {
  const std::string config_file = Within(path, "config.json");
  ENCORE_ASSIGN_OR_RETURN(const JsonValue json,
                          ReadModuleFile("SparseStaticEmbedding", config_file, reading));
  JsonMembers members(json, config_file);
  members.Ignore("frozen");  // of training
  const std::string idf = members.String("path", "");
  ENCORE_RETURN_IF_ERROR(CheckUnreadKeys(members, reading));
  ENCORE_ASSIGN_OR_RETURN(Tokenizer tokenizer, Tokenizer::Open(reading.folder.PathOf(path)));
  if (idf.ends_with(".json")) {
    ENCORE_ASSIGN_OR_RETURN(Tensor values, ReadIdf(path, idf, tokenizer, reading));
    if (vocab_size && values.shape()[0] != *vocab_size) {
      return InvalidArgument(config_file + ": the tokenizer has " +
                             std::to_string(values.shape()[0]) + " tokens; wanted " +
                             std::to_string(*vocab_size) + ", the model's vocabulary");
    }
    return SparseStatic{tokenizer, std::move(values)};
  }
  const std::string file = reading.folder.PathOf(Within(path, "model.safetensors"));
  ENCORE_ASSIGN_OR_RETURN(const SafetensorsFile weights, SafetensorsFile::Open(file));
  const SafetensorsEntry* entry = weights.Find("weight");
  const size_t wanted = vocab_size.value_or(tokenizer.vocab_size());
  if (entry == nullptr || !(entry->shape == Shape(wanted))) {
    return InvalidArgument(Quoted(file) + ": tensor 'weight': found " +
                           (entry == nullptr ? "none" : "shape " + entry->shape.ToString()) +
                           "; wanted [" + std::to_string(wanted) + "], one a token");
  }
  ENCORE_ASSIGN_OR_RETURN(Tensor values, weights.ReadAsF32("weight"));
  return SparseStatic{tokenizer, std::move(values)};
}

}  // namespace encore::internal
