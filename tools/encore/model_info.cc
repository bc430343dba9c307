// SPDX-License-Identifier: Apache-2.0
//
// `encore info FOLDER`: sizes and decisions of a model's folder, as a table or as JSON.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <system_error>

#include "encore/safetensors.h"
#include "encore/text_encoder.h"
#include "engine/platform/path.h"
#include "tools/encore/failure.h"
#include "tools/encore/info_parts.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

using Json = nlohmann::ordered_json;

// What the folder's weight files hold, those of its modules too.
Json WeightsJson(const std::string& folder) {
  size_t files = 0;
  uintmax_t bytes = 0;
  size_t values = 0;
  std::map<std::string, size_t> values_of;  // by type
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(
           internal::ToPath(folder), std::filesystem::directory_options::skip_permission_denied,
           error)) {
    if (entry.path().extension() != ".safetensors" || !entry.is_regular_file(error)) continue;
    const Result<SafetensorsFile> file = SafetensorsFile::Open(internal::PathText(entry.path()));
    if (!file.ok()) continue;  // another model's, in a format that encore has not
    ++files;
    bytes += std::filesystem::file_size(entry.path(), error);
    for (const SafetensorsEntry& tensor : file->tensors()) {
      const size_t count = tensor.bytes.size() / DTypeSize(tensor.dtype);
      values += count;
      values_of[std::string(DTypeName(tensor.dtype))] += count;
    }
  }
  return {{"files", files}, {"bytes", bytes}, {"values", values}, {"types", values_of}};
}

std::vector<std::string> KeysOf(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& member : object.items()) keys.push_back(member.key());
  return keys;
}

std::string Listed(std::vector<std::string> names) {
  constexpr size_t kMost = 8;
  const size_t count = names.size();
  if (count > kMost) names.resize(kMost);
  for (std::string& name : names) name = Printable(name);
  return Joined(names) + (count > kMost ? ", ... " + std::to_string(count) + " in all" : "");
}

Json ModelJson(const TextEncoder& model, const std::string& folder) {
  Json json;
  json["weights"] = WeightsJson(folder);
  const bool layers = model.has_encoder();
  json["precision"] = PrecisionName(layers ? model.encoder().precision() : Precision::kF32);
  json["layers"] = layers ? model.encoder().config().num_layers() : 0;
  json["d_model"] = model.d_model();
  json["dimensions"] = model.dimensions();
  json["max_length"] = model.max_length();
  json["vocabulary"] = model.has_tokenizer() ? model.tokenizer().vocab_size() : 0;
  json["labels"] = model.labels();
  json["prompts"] = Json::object();
  for (const auto& [name, text] : model.prompts()) json["prompts"][name] = text;
  json["decisions"] = Json::array();
  for (const Decision& d : model.Describe()) {
    json["decisions"].push_back({{"what", d.what}, {"value", d.value}, {"source", d.source}});
  }
  return json;
}

// Values that are wider than this have their source on a line of its own.
constexpr size_t kValueColumns = 44;

void PrintDecisions(std::ostream& out, const Json& decisions) {
  const auto text = [](const Json& member) { return Printable(member.get<std::string>()); };
  size_t what = 0;
  for (const Json& d : decisions) what = std::max(what, DisplayWidth(text(d["what"])));
  for (const Json& d : decisions) {
    const std::string value = text(d["value"]);
    out << "  " << PadRight(text(d["what"]), what) << "  ";
    if (DisplayWidth(value) > kValueColumns) {
      out << value << "\n" << std::string(what + 4 + kValueColumns, ' ');
    } else {
      out << PadRight(value, kValueColumns);
    }
    out << "  " << text(d["source"]) << "\n";
  }
}

void PrintText(std::ostream& out, const std::string& folder, const Json& model) {
  const Json& weights = model["weights"];
  const auto line = [&](const std::string& name, const std::string& text) {
    out << "  " << PadRight(name, 12) << text << "\n";
  };
  out << "Model " << Printable(folder) << "\n";
  line("weights", Grouped(weights["values"]) + " values of " + Joined(KeysOf(weights["types"])) +
                      ", " + Number(weights["bytes"].get<double>() / 1e6, 1) + " MB in " +
                      Counted(weights["files"], "file"));
  line("layers", model["layers"].dump() + " of width " + model["d_model"].dump());
  if (model["vocabulary"] != 0) line("vocabulary", Counted(model["vocabulary"], "token"));
  line("texts", model["max_length"] == 0 ? "of any length"
                                         : "up to " + Counted(model["max_length"], "token"));
  if (model["dimensions"] != 0) line("vectors", "of " + Counted(model["dimensions"], "column"));
  if (!model["labels"].empty()) line("labels", Listed(model["labels"]));
  if (!model["prompts"].empty()) line("prompts", Listed(KeysOf(model["prompts"])));
  out << "Decisions, and where each comes from\n";
  PrintDecisions(out, model["decisions"]);
}

}  // namespace

void PrintModelInfo(std::ostream& out, const ModelInfoOptions& options) {
  const TextEncoder model =
      Take(TextEncoder::Open(options.folder, {.ignore_unknown_keys = options.ignore_unknown_keys,
                                              .precision = options.precision,
                                              .keep = options.keep}));
  const Json json = ModelJson(model, options.folder);
  if (options.json) {
    out << json.dump(1, ' ', false, Json::error_handler_t::replace) << "\n";
  } else {
    PrintText(out, options.folder, json);
  }
}

}  // namespace encore::tool
