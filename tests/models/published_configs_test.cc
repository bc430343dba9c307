// SPDX-License-Identifier: Apache-2.0
//
// config.json of published models: each is read with every key used or known to be harmless, and
// means what it should; or it is refused by name. tests/data/README.md says which were at hand; in
// the others the keys are those that their authors' code writes.
// No weights are needed, so sizes are the published ones.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/models/family.h"
#include "nlohmann/json.hpp"
#include "tests/support/safetensors_bytes.h"

namespace encore {
namespace {

using internal::ModelSpec;
using nlohmann::json;

json PublishedConfigs() {
  return json::parse(std::ifstream(ENCORE_TEST_DATA_DIR "/published_configs.json"));
}

Result<ModelSpec> Read(const json& config, std::vector<Decision>* decisions) {
  const TemporaryFolder temporary;
  std::ofstream(temporary.File("config.json")) << config.dump();
  const std::string file = temporary.File("config.json");
  const auto folder = internal::Folder::Open(file.substr(0, file.rfind('/')));
  if (!folder.ok()) return folder.status();
  return internal::ReadModelConfig(*folder, /*ignore_unknown_keys=*/false, decisions);
}

// What encore makes of a configuration, in the members that `wanted` has.
json Summary(const ModelSpec& config, const std::vector<Decision>& decisions, const json& wanted) {
  const std::vector<LayerConfig>& layers = config.encoder.layers;
  json all = {{"d_model", config.encoder.d_model},
              {"layers", layers.size()},
              {"heads", layers.front().num_heads},
              {"max_tokens", config.embeddings.usual_tokens()},
              {"causal", layers.front().causal},
              {"labels", config.labels.ok() ? *config.labels : std::vector<std::string>()}};
  for (const Decision& decision : decisions) all[decision.what] = decision.value;
  size_t windows = 0;
  for (const LayerConfig& layer : layers) {
    if (!layer.window) continue;
    ++windows;
    all["window"] = *layer.window;
  }
  all["windows"] = windows;
  json summary;
  for (const auto& member : wanted.items()) summary[member.key()] = all[member.key()];
  return summary;
}

TEST(PublishedConfigs, AreReadWithEveryKey) {
  size_t read = 0;
  const json all = PublishedConfigs();
  for (const auto& [name, entry] : all.items()) {
    ASSERT_NE(entry.contains("want"), entry.contains("refused")) << entry.dump();
    if (!entry.contains("want")) continue;
    SCOPED_TRACE(name);
    std::vector<Decision> decisions;
    const ModelSpec config = Taken(Read(entry.at("config"), &decisions));
    const json& wanted = entry.at("want");
    EXPECT_EQ(Summary(config, decisions, wanted), wanted);
    for (const Decision& d : decisions) EXPECT_NE(d.what, "ignored") << d.value;
    ++read;
  }
  EXPECT_GE(read, 20u);
}

TEST(PublishedConfigs, OfVariantsThatEncoreHasNotAreRefusedByName) {
  size_t refused = 0;
  const json all = PublishedConfigs();
  for (const auto& [name, entry] : all.items()) {
    if (!entry.contains("refused")) continue;
    SCOPED_TRACE(name);
    std::vector<Decision> decisions;
    EXPECT_TRUE(FailsWith(Read(entry.at("config"), &decisions),
                          entry.at("refused").get<std::vector<std::string>>(), kAnyCode));
    ++refused;
  }
  EXPECT_GE(refused, 2u);
}

// Of folders that were trained with other code: transformers does not look at these keys.
TEST(PublishedConfigs, KeysThatNoFamilyReadsAreTold) {
  const json all = PublishedConfigs();
  const json more = {{"emb_size", 312},
                     {"causal_mask", true},
                     {"transformers.js_config", {{"dtype", "fp32"}}},
                     {"another_key", nullptr}};
  for (const auto& [name, entry] : all.items()) {
    if (!entry.contains("want")) continue;
    SCOPED_TRACE(name);
    json config = entry.at("config");
    config.update(more);
    std::vector<Decision> decisions;
    const ModelSpec read = Taken(Read(config, &decisions));
    const json& wanted = entry.at("want");
    EXPECT_EQ(Summary(read, decisions, wanted), wanted);
    std::set<std::string> told;
    for (const Decision& d : decisions) {
      if (d.what == "ignored") told.insert(d.value + " | " + d.source);
    }
    EXPECT_EQ(told,
              (std::set<std::string>{"key 'another_key', null | config.json",
                                     "key 'causal_mask', true | config.json",
                                     "key 'emb_size', 312 | config.json",
                                     "key 'transformers.js_config', an object | config.json"}));
  }
}

}  // namespace
}  // namespace encore
