// SPDX-License-Identifier: Apache-2.0
//
// Reads sentence_bert_config.json and its namesakes, in the spellings of sentence-transformers 0.2
// to 6.

#include "engine/text/transformer_settings.h"

#include <algorithm>
#include <array>

#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"

namespace encore::inline v0_1::internal {
namespace {

constexpr std::array<std::string_view, 7> kFiles = {
    "sentence_bert_config.json",       "sentence_roberta_config.json",
    "sentence_distilbert_config.json", "sentence_camembert_config.json",
    "sentence_albert_config.json",     "sentence_xlm-roberta_config.json",
    "sentence_xlnet_config.json",
};

// Arguments that sentence-transformers hands to transformers when it loads the folder. These say
// how something is computed there, and where its code lies; the rest may change the result. The
// type of the weights in memory is one of them: encore computes in f32 unless it is told otherwise.
void ReadArguments(JsonMembers& members, std::string_view key) {
  constexpr std::array<std::string_view, 9> kHarmless = {
      "add_pooling_layer", "attn_implementation", "dtype",
      "low_cpu_mem_usage", "padding_side",        "torch_dtype",
      "trust_remote_code", "unpad_inputs",        "use_memory_efficient_attention",
  };
  if (!members.Has(key)) return;
  const JsonValue& arguments = *members.Find(key);
  if (!arguments.is_object()) return WantEmpty(members, key);
  for (const JsonValue::Member& argument : arguments.members()) {
    if (std::find(kHarmless.begin(), kHarmless.end(), argument.first) != kHarmless.end()) continue;
    members.Refuse(key, "no " + Quoted(argument.first) + " in it, which may change the result");
  }
}

// What the model is called with and which of its outputs is taken: texts and the usual one only.
void ReadModalities(JsonMembers& members, bool classifies, const FolderReading& reading) {
  const std::string_view output = classifies ? "scores" : "token_embeddings";
  if (members.String("module_output_name", output) != output) {
    members.Refuse("module_output_name", "'" + std::string(output) + "'");
  }
  if (!members.Has("modality_config")) return;
  const JsonValue& modalities = members.RequiredObject("modality_config");
  if (!members.ok()) return;
  const JsonValue* text = modalities.Find("text");
  if (text == nullptr || modalities.members().size() != 1) {
    members.Refuse("modality_config", "an object with the one member 'text'");
    return;
  }
  JsonMembers inner(*text, members.where() + ": modality_config: text");
  if (inner.RequiredString("method") != "forward") inner.Refuse("method", "'forward'");
  const std::string_view wanted = classifies ? "logits" : "last_hidden_state";
  if (inner.RequiredString("method_output_name") != wanted) {
    inner.Refuse("method_output_name", "'" + std::string(wanted) + "'");
  }
  if (!Finish(inner, reading).ok()) {
    members.Refuse("modality_config", "the text modality with method 'forward' and output '" +
                                          std::string(wanted) + "'");
  }
}

}  // namespace

std::span<const std::string_view> TransformerSettingsFiles() { return kFiles; }

Result<TransformerSettings> ReadTransformerSettings(const std::string& path,
                                                    const FolderReading& reading) {
  TransformerSettings settings;
  for (const std::string_view name : kFiles) {
    const std::string file = Within(path, name);
    ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> json, reading.folder.ReadJson(file));
    if (!json.has_value()) continue;
    if (json->is_object() && json->members().empty()) continue;  // as if it were not there
    settings.file = file;
    JsonMembers members(*json, file);
    settings.max_seq_length = members.OptionalSize("max_seq_length");
    settings.lower_case = members.Bool("do_lower_case", false);
    const std::string task = members.String("transformer_task", "feature-extraction");
    settings.classifies = task == "sequence-classification";
    if (!settings.classifies && task != "feature-extraction") {
      members.Refuse("transformer_task", "'feature-extraction' or 'sequence-classification'");
    }
    ReadModalities(members, settings.classifies, reading);
    WantEmpty(members, "processing_kwargs");
    for (const std::string_view key : {"model_args", "tokenizer_args", "config_args",
                                       "model_kwargs", "processor_kwargs", "config_kwargs"}) {
      ReadArguments(members, key);
    }
    for (const std::string_view key :
         {"query_length", "document_length", "query_expansion", "tokenizer_name_or_path"}) {
      if (members.Has(key)) members.Refuse(key, "null");
    }
    members.Ignore("unpad_inputs");  // how, not what: encore never pads
    ENCORE_RETURN_IF_ERROR(Finish(members, reading));
    return settings;
  }
  return settings;
}

}  // namespace encore::internal
