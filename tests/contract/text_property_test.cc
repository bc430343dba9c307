// SPDX-License-Identifier: Apache-2.0
//
// The bits of a text's vector on random batches of every kind of folder: rotary, ALiBi, T5's and
// MPNet's buckets, windows, causal ones, Gemma's norms, each pooling, dense layers; in f32, bf16
// and int8, on every executor and any SIMD target with FMA. Each text has the bits that it has
// alone. Every run has the same rounds, tools/soak.sh draws others:
//
//   ENCORE_PROPERTY_SEED=N    rounds from this one on (a failing round prints its N)
//   ENCORE_PROPERTY_ROUNDS=N  so many rounds

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "encore/cpu.h"
#include "encore/text_encoder.h"
#include "reference/accuracy.h"
#include "tests/support/compare.h"
#include "tests/support/drawn_config.h"
#include "tests/support/environment.h"
#include "tests/support/executors.h"
#include "tests/support/precisions.h"
#include "tests/support/sanitizers.h"
#include "tests/support/text_case.h"

namespace encore {
namespace {

constexpr uint32_t kTextRounds = kSlow ? 40 : 400;

constexpr const char* kFolders[] = {
    "bert",           "distilbert", "electra",     "albert",   "ernie",        "roberta",
    "mpnet",          "gte",        "gte_new",     "eurobert", "modernbert",   "nomic_bert",
    "nomic_bert_old", "jina_bert",  "jina_bert_1", "qwen3",    "qwen3_window", "gemma3",
    "gemma3_old",     "t5",         "t5_v1_1",     "mt5"};
constexpr const char* kPoolings[] = {"cls_token", "mean_tokens", "max_tokens", "lasttoken",
                                     "weightedmean_tokens"};

const float* TextRow(const Tensor& vectors, size_t row) {
  return static_cast<const float*>(vectors.data()) + row * vectors.shape()[1];
}

testing::AssertionResult TextRound(uint32_t seed, const Executors& executors, size_t* compared) {
  Draw draw(seed);
  const std::string name = kFolders[draw.Between(0, std::size(kFolders) - 1)];
  const TextFolder folder("../models/" + name);
  const nlohmann::json config = folder.ReadJson("config.json");
  const size_t d_model = config.value("hidden_size", config.value("d_model", size_t{0}));
  const bool dense = d_model == 32 && draw.Chance(3);  // as wide as the dense module of the tests
  folder.WriteModules(
      dense ? std::vector<std::string>{"Dense", "Normalize"}
            : std::vector<std::string>{"Normalize"},
      {{std::string("pooling_mode_") + kPoolings[draw.Between(0, std::size(kPoolings) - 1)],
        true}});
  if (dense) {
    folder.AddDense("2_Dense", "2_Dense");
    folder.WriteJson("2_Dense/config.json", {{"in_features", 32}, {"out_features", 20}});
  }
  OpenOptions open{.precision = kPrecisions[draw.Between(0, 3)]};
  const std::vector<std::string> targets = SupportedTargets();
  std::string target = targets[draw.Between(0, targets.size() - 1)];
  std::string alone_target = targets[draw.Between(0, targets.size() - 1)];
  if (!reference::TargetHasFma(target) || !reference::TargetHasFma(alone_target)) {
    alone_target = target;
  }
  const auto& named =
      *(executors.begin() + static_cast<ptrdiff_t>(draw.Between(
                                0, static_cast<size_t>(executors.end() - executors.begin()) - 1)));
  const auto failure = [&](const std::string& why) {
    return testing::AssertionFailure()
           << why << "; " << name << ", " << PrecisionName(*open.precision) << ", " << named.name
           << " on " << target << ", alone on " << alone_target << (dense ? ", dense" : "");
  };
  if (!SetTarget(alone_target).ok()) return failure("no target");
  const Result<TextEncoder> alone = TextEncoder::Open(folder.path(), open);
  if (!alone.ok()) return failure(alone.status().message());
  if (!SetTarget(target).ok()) return failure("no target");
  const Result<TextEncoder> model = TextEncoder::Open(folder.path(), open);
  if (!model.ok()) return failure(model.status().message());

  const size_t vocabulary = config.at("vocab_size");
  const size_t longest = std::min<size_t>(model->max_length(), 200);
  std::vector<std::vector<int32_t>> ids(draw.Between(1, draw.Chance(3) ? 60 : 9));
  for (std::vector<int32_t>& text : ids) {
    text.resize(draw.Between(1, draw.Chance(2) ? longest : std::min<size_t>(longest, 16)));
    for (int32_t& id : text) id = static_cast<int32_t>(draw.Between(0, vocabulary - 1));
  }
  const EncodeOptions options{.executor = named.executor,
                              .batch_tokens = draw.Chance(2) ? draw.Between(1, 700) : 0};
  const Result<Embeddings> all = model->EncodeIds(ids, options);
  if (!all.ok()) return failure(all.status().message());
  const size_t width = all->vectors.shape()[1];
  for (size_t i = 0; i < ids.size(); ++i) {
    if (!SetTarget(alone_target).ok()) return failure("no target");
    const Result<Embeddings> one = alone->EncodeIds({&ids[i], 1});
    if (!one.ok()) return failure(one.status().message());
    ++*compared;
    const testing::AssertionResult same =
        SameBits({TextRow(all->vectors, i), width}, {TextRow(one->vectors, 0), width});
    if (same) continue;
    return failure(same.message() + std::string("; text ") + std::to_string(i) + " of " +
                   std::to_string(ids.size()) + ", " + std::to_string(ids[i].size()) + " tokens");
  }
  return testing::AssertionSuccess();
}

TEST(TextProperty, ATextInAnyBatchHasTheBitsThatItHasAlone) {
  struct Restore {
    ~Restore() { (void)SetTarget(""); }
  } restore;
  const Executors executors;
  const uint32_t first = FromEnvironment("ENCORE_PROPERTY_SEED", 1);
  const uint32_t rounds = FromEnvironment("ENCORE_PROPERTY_ROUNDS", kTextRounds);
  std::printf("%u rounds, seeds from %u\n", rounds, first);
  size_t compared = 0;
  for (uint32_t round = 0; round < rounds; ++round) {
    ASSERT_TRUE(TextRound(first + round, executors, &compared))
        << "round " << round
        << "; to repeat it: ENCORE_PROPERTY_ROUNDS=1 ENCORE_PROPERTY_SEED=" << first + round;
  }
  std::printf("%zu texts compared\n", compared);
  EXPECT_GE(compared, rounds);
}

}  // namespace
}  // namespace encore
