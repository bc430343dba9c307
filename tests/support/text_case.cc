// SPDX-License-Identifier: Apache-2.0
//
// Copies folders of tests/data/text and reads its cases.

#include "tests/support/text_case.h"

#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace encore {
namespace {

std::filesystem::path DataFolder() { return std::filesystem::path(ENCORE_TEST_DATA_DIR) / "text"; }

nlohmann::json ReadJsonFile(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  return nlohmann::json::parse(file);
}

}  // namespace

TextFolder::TextFolder(const std::string& base) {
  std::filesystem::copy(DataFolder() / base, path());
}

void TextFolder::Write(const std::string& name, const std::string& text) const {
  const std::filesystem::path file = File(name);
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

void TextFolder::WriteJson(const std::string& name, const nlohmann::json& json) const {
  Write(name, json.dump(1));
}

nlohmann::json TextFolder::ReadJson(const std::string& name) const {
  return ReadJsonFile(File(name));
}

void TextFolder::PatchJson(const std::string& name, const nlohmann::json& members) const {
  nlohmann::json json = ReadJson(name);
  json.update(members);
  WriteJson(name, json);
}

void TextFolder::AddDense(const std::string& name, const std::string& module) const {
  std::filesystem::create_directories(File(module));
  std::filesystem::copy(DataFolder() / (name + ".safetensors"),
                        File(module + "/model.safetensors"));
}

void TextFolder::WriteModules(const std::vector<std::string>& after,
                              const nlohmann::json& pooling) const {
  const std::string package = "sentence_transformers.models.";
  nlohmann::json modules = {
      {{"idx", 0}, {"name", "0"}, {"path", ""}, {"type", package + "Transformer"}},
      {{"idx", 1}, {"name", "1"}, {"path", "1_Pooling"}, {"type", package + "Pooling"}}};
  for (const std::string& kind : after) {
    const std::string number = std::to_string(modules.size());
    modules.push_back({{"idx", modules.size()},
                       {"name", number},
                       {"path", number + "_" + kind},
                       {"type", package + kind}});
  }
  WriteJson("modules.json", modules);
  WriteJson("1_Pooling/config.json", pooling);
}

TextCases TextCases::Read() {
  const nlohmann::json json = ReadJsonFile(DataFolder() / "cases.json");
  TextCases cases;
  cases.texts = json.at("texts").get<std::vector<std::string>>();
  cases.query = json.at("query").get<std::string>();
  for (const auto& [name, value] : json.at("cases").items()) {
    TextCase text_case;
    text_case.name = name;
    text_case.covers = value.at("covers").get<std::string>();
    text_case.tokens = value.at("tokens").get<std::vector<size_t>>();
    text_case.expected = value.at("expected").get<std::vector<std::vector<double>>>();
    text_case.json = value;
    const nlohmann::json& options = value.at("options");
    text_case.kind = options.value("kind", "");
    if (options.contains("prompt_name")) text_case.options.prompt_name = options["prompt_name"];
    if (options.contains("prompt")) text_case.options.prompt = options["prompt"];
    if (options.contains("normalize")) text_case.options.normalize = options["normalize"];
    text_case.options.dimensions = options.value("dimensions", size_t{0});
    cases.cases.push_back(std::move(text_case));
  }
  return cases;
}

const TextCase& TextCases::Find(const std::string& name) const {
  for (const TextCase& text_case : cases) {
    if (text_case.name == name) return text_case;
  }
  throw std::runtime_error("there is no case " + name);
}

std::unique_ptr<TextFolder> MakeFolder(const TextCase& text_case) {
  const nlohmann::json& json = text_case.json;
  auto folder = std::make_unique<TextFolder>(json.at("base").get<std::string>());
  const nlohmann::json& options = json.at("options");
  if (options.value("cased", false)) {
    folder->PatchJson("tokenizer_config.json", {{"do_lower_case", false}});
    nlohmann::json tokenizer = folder->ReadJson("tokenizer.json");
    tokenizer["normalizer"]["lowercase"] = false;
    folder->WriteJson("tokenizer.json", tokenizer);
  }
  if (options.contains("config")) folder->PatchJson("config.json", options["config"]);
  for (const auto& name : json.at("remove")) {
    std::filesystem::remove(folder->File(name.get<std::string>()));
  }
  for (const auto& [name, value] : json.at("files").items()) folder->WriteJson(name, value);
  for (const auto& module : json.at("dense")) {
    const std::string name = module.get<std::string>();
    const nlohmann::json& config = json["files"][name + "/config.json"];
    folder->AddDense(config.contains("dimension")     ? "LayerNorm"
                     : config.at("in_features") == 32 ? "2_Dense"
                                                      : "3_Dense",
                     name);
  }
  const auto modules = json["files"].find("modules.json");
  if (modules != json["files"].end() && (*modules)[0]["path"] == "0_Transformer") {
    std::filesystem::create_directories(folder->File("0_Transformer"));
    for (const char* name : {"config.json", "model.safetensors", "tokenizer.json",
                             "tokenizer_config.json", "sentence_bert_config.json"}) {
      std::filesystem::rename(folder->File(name), folder->File("0_Transformer/") + name);
    }
  }
  return folder;
}

}  // namespace encore
