// SPDX-License-Identifier: Apache-2.0
//
// Jina v2 (Guenther et al. 2023, arXiv:2310.19923): BERT with ALiBi on both sides and gated
// networks. Its folders say model_type "bert" and position_embedding_type "alibi".

#include <iterator>
#include <string>

#include "engine/base/quoted.h"
#include "engine/models/bert_like.h"
#include "engine/models/families.h"

namespace encore::inline v0_1::internal {
namespace {

using W = EncoderLayerWeights;

constexpr std::string_view kTypes[] = {"bert"};
constexpr std::string_view kPrefixes[] = {"", "bert.", "model."};

constexpr LayerModule kModules[] = {
    {"encoder.layer.{N}.attention.self.query", &W::q_proj},
    {"encoder.layer.{N}.attention.self.key", &W::k_proj},
    {"encoder.layer.{N}.attention.self.value", &W::v_proj},
    {"encoder.layer.{N}.attention.output.dense", &W::out_proj},
    {"encoder.layer.{N}.attention.output.LayerNorm", &W::norm1},
    {"encoder.layer.{N}.mlp.gated_layers", &W::linear1, false},
    {"encoder.layer.{N}.mlp.wo", &W::linear2},
    {"encoder.layer.{N}.mlp.layernorm", &W::norm2},
};

// Of v2-base-code and its like, which normalize q and k over all heads at once.
constexpr std::string_view kForeignTensors[] = {"layer_norm_q", "layer_norm_k", "up_gated_layer"};

Status Read(JsonMembers* config, ModelPlan* plan) {
  for (const auto* key :
       {"auto_map", "emb_pooler", "model_max_length", "pad_token_id", "position_embedding_type"}) {
    config->Ignore(key);
  }
  plan->prefixes = kPrefixes;
  plan->foreign_tensors = kForeignTensors;
  plan->head = {.dense = "pooler.dense",
                .dense_in_base = true,
                .activation = HeadPlan::Activation::kTanh,
                .out = "classifier"};
  const std::string network = config->String("feed_forward_type", "original");
  if (!config->ok()) return config->status();
  if (network != "geglu" && network != "reglu") {
    return Status(ErrorCode::kUnsupported, config->where() + ": feed_forward_type is " +
                                               Quoted(network) +
                                               "; encore computes geglu and reglu only with ALiBi");
  }
  if (Status s = ReadBertLike(config, plan); !s.ok()) return s;
  for (LayerConfig& layer : plan->encoder.layers) {
    layer.alibi.emplace();
    layer.gate = Gate::kFirstHalf;
    layer.activation = network == "geglu" ? Activation::kGelu : Activation::kRelu;
  }
  plan->layer_modules.assign(std::begin(kModules), std::end(kModules));
  plan->embeddings.position_rule = PositionRule::kNone;
  return config->status();
}

}  // namespace

constinit const Family kJinaBert = {kTypes, &Read, "alibi"};

}  // namespace encore::internal
