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
#include "tools/encore/failure.h"
#include "tools/encore/info_parts.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

// What the folder's weight files hold, those of its modules too.
struct Weights {
  size_t files = 0;
  uintmax_t bytes = 0;
  size_t values = 0;
  std::map<std::string, size_t> values_of;  // by type
};

Weights ReadWeights(const std::string& folder) {
  Weights weights;
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(
           folder, std::filesystem::directory_options::skip_permission_denied, error)) {
    if (entry.path().extension() != ".safetensors" || !entry.is_regular_file(error)) continue;
    const Result<SafetensorsFile> file = SafetensorsFile::Open(entry.path().string());
    if (!file.ok()) continue;  // another model's, in a format that encore has not
    ++weights.files;
    weights.bytes += std::filesystem::file_size(entry.path(), error);
    for (const SafetensorsEntry& tensor : file->tensors()) {
      const size_t values = tensor.bytes.size() / DTypeSize(tensor.dtype);
      weights.values += values;
      weights.values_of[std::string(DTypeName(tensor.dtype))] += values;
    }
  }
  return weights;
}

std::string Described(const Weights& weights) {
  std::vector<std::string> types;
  for (const auto& [type, values] : weights.values_of) types.push_back(type);
  return Grouped(static_cast<double>(weights.values)) + " values of " + Joined(types) + ", " +
         Number(static_cast<double>(weights.bytes) / 1e6, 1) + " MB in " +
         Counted(weights.files, "file");
}

std::string Listed(std::vector<std::string> names) {
  constexpr size_t kMost = 8;
  const size_t count = names.size();
  if (count > kMost) names.resize(kMost);
  for (std::string& name : names) name = Printable(name);
  return Joined(names) + (count > kMost ? ", ... " + std::to_string(count) + " in all" : "");
}

nlohmann::ordered_json ModelJson(const TextEncoder& model, const Weights& weights) {
  nlohmann::ordered_json json;
  json["weights"] = {{"files", weights.files},
                     {"bytes", weights.bytes},
                     {"values", weights.values},
                     {"types", weights.values_of}};
  json["precision"] = PrecisionName(model.encoder().precision());
  json["layers"] = model.encoder().config().num_layers();
  json["d_model"] = model.d_model();
  json["dimensions"] = model.dimensions();
  json["max_length"] = model.max_length();
  json["vocabulary"] = model.has_tokenizer() ? model.tokenizer().vocab_size() : 0;
  json["labels"] = model.labels();
  json["prompts"] = nlohmann::ordered_json::object();
  for (const auto& [name, text] : model.prompts()) json["prompts"][name] = text;
  json["decisions"] = nlohmann::ordered_json::array();
  for (const Decision& d : model.Describe()) {
    json["decisions"].push_back({{"what", d.what}, {"value", d.value}, {"source", d.source}});
  }
  return json;
}

// Values that are wider than this have their source on a line of its own.
constexpr size_t kValueColumns = 44;

void PrintDecisions(std::ostream& out, const std::vector<Decision>& decisions) {
  size_t what = 0;
  for (const Decision& d : decisions) what = std::max(what, DisplayWidth(Printable(d.what)));
  for (const Decision& d : decisions) {
    const std::string value = Printable(d.value);
    out << "  " << PadRight(Printable(d.what), what) << "  ";
    if (DisplayWidth(value) > kValueColumns) {
      out << value << "\n" << std::string(what + 4 + kValueColumns, ' ');
    } else {
      out << PadRight(value, kValueColumns);
    }
    out << "  " << Printable(d.source) << "\n";
  }
}

void PrintText(std::ostream& out, const std::string& folder, const TextEncoder& model,
               const Weights& weights) {
  out << "Model " << Printable(folder) << "\n"
      << "  weights     " << Described(weights) << "\n"
      << "  layers      " << model.encoder().config().num_layers() << " of width "
      << model.d_model() << "\n";
  if (model.has_tokenizer()) {
    out << "  vocabulary  " << Counted(model.tokenizer().vocab_size(), "token") << "\n";
  }
  out << "  texts       up to " << Counted(model.max_length(), "token") << "\n";
  if (model.dimensions() > 0) {
    out << "  vectors     of " << Counted(model.dimensions(), "column") << "\n";
  }
  if (!model.labels().empty()) out << "  labels      " << Listed(model.labels()) << "\n";
  if (!model.prompts().empty()) {
    std::vector<std::string> names;
    for (const auto& prompt : model.prompts()) names.push_back(prompt.first);
    out << "  prompts     " << Listed(names) << "\n";
  }
  out << "Decisions, and where each comes from\n";
  PrintDecisions(out, model.Describe());
}

}  // namespace

void PrintModelInfo(std::ostream& out, const ModelInfoOptions& options) {
  const TextEncoder model =
      Take(TextEncoder::Open(options.folder, {.ignore_unknown_keys = options.ignore_unknown_keys,
                                              .precision = options.precision,
                                              .keep = options.keep}));
  const Weights weights = ReadWeights(options.folder);
  if (options.json) {
    out << ModelJson(model, weights)
               .dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)
        << "\n";
  } else {
    PrintText(out, options.folder, model, weights);
  }
}

}  // namespace encore::tool
