// SPDX-License-Identifier: Apache-2.0
//
// The table of docs/families.md: it names every model_type that encore opens and no other, each row
// has a folder that opens, and what a row says is refused is refused by name. And the short table
// of README.md, which names the same.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "engine/io/folder.h"
#include "engine/models/family.h"
#include "tests/support/model_folder.h"

namespace encore {
namespace {

using internal::TextModel;
using nlohmann::json;

struct Row {
  std::string family;
  json config;        // members that make a folder one of this family
  bool head = false;  // of sequences
  bool of_tokens = false;
  bool of_masks = false;
  std::vector<json> refused;  // an object of one member each
};

// The members between backticks: `"key": value`.
std::vector<json> MembersOf(const std::string& cell) {
  std::vector<json> members;
  for (size_t begin = cell.find('`'); begin != std::string::npos; begin = cell.find('`', begin)) {
    const size_t end = cell.find('`', begin + 1);
    members.push_back(json::parse("{" + cell.substr(begin + 1, end - begin - 1) + "}"));
    begin = end + 1;
  }
  return members;
}

internal::ModelSpec PlanOf(const std::string& name) {
  std::vector<Decision> decisions;
  return *internal::ReadModelConfig(*internal::Folder::Open(kModels + name), false, &decisions);
}

// The rows that begin with "| " and have a model_type.
std::vector<Row> ReadTable() {
  std::ifstream file(ENCORE_SOURCE_DIR "/docs/families.md");
  std::vector<Row> rows;
  std::string line;
  while (std::getline(file, line)) {
    if (!line.starts_with("| ") || line.find("`\"model_type\": ") == std::string::npos) continue;
    std::vector<std::string> cells;
    std::istringstream parts(line.substr(1));
    for (std::string cell; std::getline(parts, cell, '|');) cells.push_back(cell);
    if (cells.size() != 6) {
      ADD_FAILURE() << "wanted six cells: " << line;
      continue;
    }
    Row row;
    row.family = cells[0];
    for (const json& member : MembersOf(cells[1])) row.config.update(member);
    bool* const heads[] = {&row.head, &row.of_tokens, &row.of_masks};
    for (size_t i = 0; i < 3; ++i) {
      *heads[i] = cells[2 + i] == " yes ";
      EXPECT_TRUE(*heads[i] || cells[2 + i] == " no ") << line;
    }
    row.refused = MembersOf(cells[5]);
    rows.push_back(row);
  }
  return rows;
}

json ConfigOf(const std::string& name) {
  std::ifstream file(kModels + name + "/config.json");
  return json::parse(file);
}

// Folders whose config.json has the row's members, those with a head last. A row without a
// position_embedding_type is not for folders that have a family of their own by it.
std::vector<std::string> FoldersOf(const Row& row) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kModels)) {
    if (!entry.is_directory()) continue;
    const std::string name = entry.path().filename().string();
    const json config = ConfigOf(name);
    const bool all =
        std::all_of(row.config.items().begin(), row.config.items().end(), [&](const auto& member) {
          return config.contains(member.key()) && config[member.key()] == member.value();
        });
    // The first published Jina v3 says that it is XLM-R.
    if (config.contains("lora_adaptations")) continue;
    const bool alibi = config.value("position_embedding_type", "") == "alibi";
    if (all && alibi == row.config.contains("position_embedding_type")) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

TEST(FamiliesPage, TheTableNamesEveryModelType) {
  std::set<std::string> types;
  for (const Row& row : ReadTable()) types.insert(row.config.at("model_type").get<std::string>());
  std::set<std::string> known;
  std::istringstream all(internal::AllModelTypes());
  for (std::string type; std::getline(all >> std::ws, type, ',');) known.insert(type);
  EXPECT_EQ(types, known);
}

// README.md's rows are `| family | `type`, `type` | yes or no |`.
TEST(FamiliesPage, TheShortTableSaysTheSame) {
  std::map<std::string, bool> heads;
  for (const Row& row : ReadTable())
    heads[row.config.at("model_type").get<std::string>()] = row.head;
  std::ifstream file(ENCORE_SOURCE_DIR "/README.md");
  std::string line;
  while (std::getline(file, line) &&
         line != "| Family | `model_type` | Rerankers and classifiers |") {
  }
  std::getline(file, line);  // |---|---|---|
  std::map<std::string, bool> named;
  while (std::getline(file, line) && line.starts_with("| ")) {
    const bool head = line.ends_with("| yes |");
    EXPECT_TRUE(head || line.ends_with("| no |")) << line;
    std::istringstream parts(line);
    std::getline(parts, line, '`');
    for (std::string type; std::getline(parts, type, '`'); std::getline(parts, line, '`')) {
      named[type] = head;
    }
  }
  EXPECT_EQ(named, heads);
}

TEST(FamiliesPage, EachRowHasAFolderThatOpens) {
  for (const Row& row : ReadTable()) {
    SCOPED_TRACE(row.family);
    const std::vector<std::string> names = FoldersOf(row);
    EXPECT_FALSE(names.empty());
    bool head = false;
    bool of_tokens = false;
    bool of_masks = false;
    for (const std::string& name : names) {
      ModelFolder folder(kModels + name);
      const Result<TextModel> model = folder.Open();
      ASSERT_TRUE(model.ok()) << name << ": " << model.status().message();
      const internal::ModelSpec plan = PlanOf(name);
      head = head || !plan.head.out.empty();
      of_tokens = of_tokens || !plan.token_head.out.empty();
      of_masks = of_masks || !plan.language.decoder.empty();
    }
    EXPECT_EQ(head, row.head);
    EXPECT_EQ(of_tokens, row.of_tokens);
    EXPECT_EQ(of_masks, row.of_masks);
    if (row.head || names.empty()) continue;
    ModelFolder folder(kModels + names.front());
    folder.SetKey("architectures", {"ModelForSequenceClassification"});
    EXPECT_EQ(folder.Open().status().code(), ErrorCode::kUnsupported);
  }
}

TEST(FamiliesPage, WhatARowRefusesIsRefusedByName) {
  for (const Row& row : ReadTable()) {
    EXPECT_FALSE(row.refused.empty()) << row.family;
    const std::vector<std::string> names = FoldersOf(row);
    if (names.empty()) continue;
    for (const json& member : row.refused) {
      SCOPED_TRACE(row.family + member.dump());
      const std::string key = member.items().begin().key();
      ModelFolder folder(kModels + names.front());
      folder.SetKey(key, member[key]);
      EXPECT_TRUE(FailsWith(folder.Open(), {"config.json: " + key}, ErrorCode::kUnsupported));
    }
  }
}

}  // namespace
}  // namespace encore
