// SPDX-License-Identifier: Apache-2.0
//
// ERNIE 1 to 3 (Sun et al. 2019, arXiv:1907.12412, and 2021, arXiv:2107.02137): BERT whose
// embeddings may have a part for the task, which is the first one's for whoever names none.

#include <string>

#include "engine/base/quoted.h"
#include "engine/models/bert_like.h"
#include "engine/models/config_keys.h"
#include "engine/models/families.h"

namespace encore::inline v0_1::internal {
namespace {

constexpr std::string_view kTypes[] = {"ernie"};
constexpr std::string_view kPrefixes[] = {"", "ernie.", "model."};

// Of the framework that the models were trained in.
constexpr std::string_view kIgnored[] = {"enable_recompute", "fuse", "pad_token_id",
                                         "paddlenlp_version"};

// What the published folders say of the pooler and of the task, though transformers reads neither.
Status CheckUnread(JsonMembers* config) {
  const std::string activation = config->String("pool_act", "tanh");
  const size_t task = config->Size("task_id", 0);
  if (!config->ok() || (activation == "tanh" && task == 0)) return config->status();
  const bool pools = activation == "tanh";
  return Status(
      ErrorCode::kUnsupported,
      config->where() +
          (pools ? ": task_id is " + std::to_string(task) + "; encore computes task 0 only"
                 : ": pool_act is " + Quoted(activation) + "; encore computes tanh only"));
}

Status Read(JsonMembers* config, ModelPlan* plan) {
  IgnoreKeys(config, kIgnored);
  plan->prefixes = kPrefixes;
  plan->head = {.dense = "pooler.dense",
                .dense_in_base = true,
                .activation = HeadPlan::Activation::kTanh,
                .out = "classifier"};
  if (Status s = ReadBertLike(config, plan); !s.ok()) return s;
  const size_t tasks = ReadExtent(config, "task_type_vocab_size", 3);
  if (config->Bool("use_task_id", false)) {
    plan->embeddings.task = "embeddings.task_type_embeddings";
    plan->embeddings.task_vocab_size = tasks;
  }
  return CheckUnread(config);
}

}  // namespace

constinit const Family kErnie = {kTypes, &Read};

}  // namespace encore::internal
