// SPDX-License-Identifier: Apache-2.0
//
// A copy of a folder of tests/data/models.

#include "tests/support/model_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <utility>

namespace encore {

using nlohmann::json;

ModelFolder::ModelFolder(const std::string& path) {
  std::filesystem::copy(path, folder_.path(), std::filesystem::copy_options::recursive);
  Remove("expected.safetensors");
}

void ModelFolder::Write(const std::string& name, const std::string& text) const {
  std::ofstream(File(name), std::ios::binary) << text;
}

void ModelFolder::Remove(const std::string& name) const { std::filesystem::remove(File(name)); }

json ModelFolder::Config() const {
  std::ifstream file(File("config.json"));
  return json::parse(file);
}

void ModelFolder::SetConfig(const json& config) const { Write("config.json", config.dump(2)); }

void ModelFolder::SetKey(const std::string& key, const json& value) const {
  json config = Config();
  config[key] = value;
  SetConfig(config);
}

void ModelFolder::RemoveKey(const std::string& key) const {
  json config = Config();
  config.erase(key);
  SetConfig(config);
}

void ModelFolder::ChangeWeights(const std::function<bool(SafetensorsEntry&)>& change,
                                const std::vector<SafetensorsEntry>& more) const {
  const std::string path = File("model.safetensors");
  const Result<SafetensorsFile> file = SafetensorsFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  std::vector<SafetensorsEntry> entries;
  for (SafetensorsEntry entry : file->tensors()) {
    if (change(entry)) entries.push_back(std::move(entry));
  }
  entries.insert(entries.end(), more.begin(), more.end());
  const Status written = WriteSafetensors(path, entries);
  ASSERT_TRUE(written.ok()) << written.message();
}

Result<internal::TextModel> ModelFolder::Open(bool ignore_unknown_keys) {
  decisions_.clear();
  const Result<internal::Folder> folder = internal::Folder::Open(folder_.path().string());
  if (!folder.ok()) return folder.status();
  return internal::TextModel::Open(*folder, {.ignore_unknown_keys = ignore_unknown_keys},
                                   &decisions_);
}

std::string ModelFolder::Decided(const std::string& what) const {
  std::string values;
  for (const Decision& decision : decisions_) {
    if (decision.what == what) values += (values.empty() ? "" : "; ") + decision.value;
  }
  return values;
}

}  // namespace encore
