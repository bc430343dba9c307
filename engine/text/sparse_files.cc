// SPDX-License-Identifier: Apache-2.0
//
// The files of a SparseEncoder's modules: SpladePooling, Router, SparseStaticEmbedding.

#include <utility>

#include "encore/safetensors.h"
#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/text/folder_files.h"
#include "engine/text/sparse_vectors.h"

namespace encore::inline v0_1::internal {
namespace {

Result<JsonValue> RequireJson(const std::string& file, const FolderReading& reading) {
  ENCORE_ASSIGN_OR_RETURN(std::optional<JsonValue> json, reading.folder.ReadJson(file));
  if (json.has_value()) return *std::move(json);
  return Status(ErrorCode::kNotFound, "there is no " + Quoted(reading.folder.PathOf(file)) +
                                          "; wanted it, as a module says");
}

constexpr std::string_view kWantedRoutes =
    "the routes 'query', a SparseStaticEmbedding, and 'document', a Transformer and SpladePooling";

// The modules of one route, whose ids are folders.
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

}  // namespace

Result<std::vector<ModuleEntry>> ReadRouter(const std::string& path, SparseRoutes* routes,
                                            const FolderReading& reading) {
  std::string file = Within(path, "router_config.json");
  ENCORE_ASSIGN_OR_RETURN(const bool is_new, reading.folder.Has(file));
  if (!is_new) file = Within(path, "config.json");
  ENCORE_ASSIGN_OR_RETURN(const JsonValue json, RequireJson(file, reading));
  JsonMembers members(json, file);
  const JsonValue& types = members.RequiredObject("types");
  const JsonValue& structure = members.RequiredObject("structure");
  const JsonValue& parameters = members.RequiredObject("parameters");
  ENCORE_RETURN_IF_ERROR(Finish(members, reading));
  JsonMembers settings(parameters, file + ": parameters");
  routes->by_default = settings.String("default_route", "");
  settings.Ignore("allow_empty_key");  // of a default route by training
  WantEmpty(settings, "route_mappings");
  ENCORE_RETURN_IF_ERROR(Finish(settings, reading));

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
                  file + ": found another Router; encore has " + std::string(kWantedRoutes));
  }
  if (!routes->by_default.empty() && structure.Find(routes->by_default) == nullptr) {
    return InvalidArgument(file + ": parameters: default_route is " + Quoted(routes->by_default) +
                           "; wanted 'query' or 'document'");
  }
  routes->query_path = query[0].path;
  reading.Tell("routes",
               "query by static weights, document by the model" +
                   (routes->by_default.empty() ? "" : ", by default " + routes->by_default),
               file);
  return document;
}

Result<SpladePooling> ReadSpladePooling(const std::string& path, size_t vocab_size,
                                        const FolderReading& reading) {
  const std::string file = Within(path, "config.json");
  ENCORE_ASSIGN_OR_RETURN(const JsonValue json, RequireJson(file, reading));
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
  ENCORE_RETURN_IF_ERROR(Finish(members, reading));
  reading.Tell("sparse vectors",
               strategy + " of " + (activation == "relu" ? "log1p(relu)" : "log1p(log1p(relu))"),
               file);
  return SpladePooling{.sum = strategy == "sum", .twice = activation == "log1p_relu"};
}

Result<SparseStatic> ReadSparseStatic(const std::string& path, size_t vocab_size,
                                      const FolderReading& reading) {
  const std::string config_file = Within(path, "config.json");
  ENCORE_ASSIGN_OR_RETURN(const JsonValue json, RequireJson(config_file, reading));
  JsonMembers members(json, config_file);
  members.Ignore("frozen");  // of training
  if (members.Has("path")) members.Refuse("path", "null, and the weights in model.safetensors");
  ENCORE_RETURN_IF_ERROR(Finish(members, reading));
  const std::string file = reading.folder.PathOf(Within(path, "model.safetensors"));
  ENCORE_ASSIGN_OR_RETURN(const SafetensorsFile weights, SafetensorsFile::Open(file));
  const SafetensorsEntry* entry = weights.Find("weight");
  if (entry == nullptr || !(entry->shape == Shape(vocab_size))) {
    return InvalidArgument(Quoted(file) + ": tensor 'weight': found " +
                           (entry == nullptr ? "none" : "shape " + entry->shape.ToString()) +
                           "; wanted [" + std::to_string(vocab_size) + "], one a token");
  }
  ENCORE_ASSIGN_OR_RETURN(Tensor values, weights.ReadAsF32("weight"));
  ENCORE_ASSIGN_OR_RETURN(Tokenizer tokenizer, Tokenizer::Open(reading.folder.PathOf(path)));
  return SparseStatic{tokenizer, std::move(values)};
}

}  // namespace encore::internal
