// SPDX-License-Identifier: Apache-2.0
//
// The classes of transformers 5.23 by name, and the types of models that have one.

#include "engine/tokenizer/tokenizer_class.h"

#include <algorithm>

#include "engine/base/status_macros.h"
#include "engine/io/json_members.h"

namespace encore::inline v0_1::internal {
namespace {

using Kind = TokenizerKind;

struct ClassRow {
  std::string_view name;
  Kind kind;
  bool type_ids = false;      // token_type_ids is one of model_input_names
  bool old_type_ids = false;  // in transformers 4
};

constexpr ClassRow kClasses[] = {
    {"TokenizersBackend", Kind::kAsWritten, false, true},
    {"PreTrainedTokenizer", Kind::kAsWritten, false, true},
    {"BertTokenizer", Kind::kBert, true, true},
    {"ElectraTokenizer", Kind::kBert, true, true},
    {"LayoutLMTokenizer", Kind::kBert, true, true},
    {"LxmertTokenizer", Kind::kBert, true, true},
    {"MobileBertTokenizer", Kind::kBert, true, true},
    {"SqueezeBertTokenizer", Kind::kBert, true, true},
    {"DistilBertTokenizer", Kind::kBert},
    {"ConvBertTokenizer", Kind::kConvBert, true, true},
    {"MPNetTokenizer", Kind::kMpnet},
    {"FunnelTokenizer", Kind::kFunnel, false, true},
    {"RobertaTokenizer", Kind::kRoberta},
    {"BartTokenizer", Kind::kRoberta},
    {"LEDTokenizer", Kind::kRoberta},
    {"LongformerTokenizer", Kind::kRoberta},
    {"MvpTokenizer", Kind::kRoberta},
    {"GPT2Tokenizer", Kind::kGpt2},
    {"Qwen2Tokenizer", Kind::kQwen2},
    {"XLMRobertaTokenizer", Kind::kXlmRoberta},
    {"CamembertTokenizer", Kind::kCamembert},
    {"AlbertTokenizer", Kind::kAlbert, false, true},
    {"DebertaV2Tokenizer", Kind::kDebertaV2, true, true},
    {"T5Tokenizer", Kind::kT5},
    {"LlamaTokenizer", Kind::kLlama},
    {"GemmaTokenizer", Kind::kGemma},
    {"Siglip2Tokenizer", Kind::kSiglip2},
    {"HerbertTokenizer", Kind::kHerbert, false, true},
    {"CLIPTokenizer", Kind::kClip},
    {"EsmTokenizer", Kind::kEsm},
    {"SiglipTokenizer", Kind::kSiglip},
    {"DPRContextEncoderTokenizer", Kind::kOther, true, true},
    {"DPRQuestionEncoderTokenizer", Kind::kOther, true, true},
    {"DebertaTokenizer", Kind::kOther, true, true},
    {"FNetTokenizer", Kind::kOther, true, true},
    {"LayoutLMv2Tokenizer", Kind::kOther, true, true},
    {"MarkupLMTokenizer", Kind::kOther, true, true},
};

// Classes whose code is Python, or sentencepiece's.
constexpr std::string_view kPython[] = {"BartphoTokenizer",
                                        "BertGenerationTokenizer",
                                        "BertJapaneseTokenizer",
                                        "BertweetTokenizer",
                                        "BioGptTokenizer",
                                        "BlenderbotSmallTokenizer",
                                        "ByT5Tokenizer",
                                        "CTRLTokenizer",
                                        "CanineTokenizer",
                                        "ClvpTokenizer",
                                        "CpmAntTokenizer",
                                        "CpmTokenizer",
                                        "DiaTokenizer",
                                        "ErnieMTokenizer",
                                        "FSMTTokenizer",
                                        "FlaubertTokenizer",
                                        "GPTNeoXJapaneseTokenizer",
                                        "MgpstrTokenizer",
                                        "MyT5Tokenizer",
                                        "PLBartTokenizer",
                                        "PerceiverTokenizer",
                                        "PhobertTokenizer",
                                        "ProphetNetTokenizer",
                                        "RoCBertTokenizer",
                                        "Speech2TextTokenizer",
                                        "SpeechT5Tokenizer",
                                        "TapasTokenizer",
                                        "VitsTokenizer",
                                        "Wav2Vec2CTCTokenizer",
                                        "XLMProphetNetTokenizer",
                                        "XLMTokenizer"};

struct TypeRow {
  std::string_view model_type;
  std::string_view name;
  bool always = false;  // whatever class the files name
};

// Of the families that encore has, and their next of kin. TokenizersBackend always stays one.
constexpr TypeRow kTypes[] = {
    {"albert", "AlbertTokenizer"},
    {"bart", "RobertaTokenizer"},
    {"bert", "BertTokenizer"},
    {"camembert", "CamembertTokenizer"},
    {"clip", "CLIPTokenizer"},
    {"convbert", "BertTokenizer"},
    {"data2vec-text", "RobertaTokenizer"},
    {"deberta-v2", "DebertaV2Tokenizer"},
    {"distilbert", "BertTokenizer"},
    {"electra", "BertTokenizer"},
    {"ernie", "BertTokenizer"},
    {"esm", "EsmTokenizer"},
    {"gemma3", "GemmaTokenizer"},
    {"gemma3_text", "GemmaTokenizer"},
    {"gpt2", "GPT2Tokenizer"},
    {"gte", "XLMRobertaTokenizer"},
    {"jina_embeddings_v3", "XLMRobertaTokenizer"},
    {"mistral", "TokenizersBackend", true},
    {"mobilebert", "MobileBertTokenizer"},
    {"modernbert", "TokenizersBackend", true},
    {"mpnet", "MPNetTokenizer"},
    {"mt5", "T5Tokenizer"},
    {"nomic_bert", "BertTokenizer"},
    {"qwen2", "Qwen2Tokenizer", true},
    {"qwen3", "Qwen2Tokenizer"},
    {"roberta", "RobertaTokenizer"},
    {"siglip", "SiglipTokenizer"},
    {"siglip2", "Siglip2Tokenizer", true},
    {"squeezebert", "BertTokenizer"},
    {"t5", "T5Tokenizer"},
    {"umt5", "TokenizersBackend", true},
    {"xlm-roberta", "XLMRobertaTokenizer"},
    {"xlm-roberta-xl", "TokenizersBackend", true},
};

std::string_view WithoutFast(std::string_view name) {
  constexpr std::string_view kFast = "Fast";
  if (name == "PreTrainedTokenizerFast") return "TokenizersBackend";
  if (name.ends_with(kFast)) name.remove_suffix(kFast.size());
  return name;
}

TokenizerClass FindClass(std::string_view name) {
  TokenizerClass found;
  found.name = std::string(name);
  found.kind = std::find(std::begin(kPython), std::end(kPython), name) != std::end(kPython)
                   ? Kind::kPython
                   : Kind::kOther;
  for (const ClassRow& row : kClasses) {
    if (row.name != name) continue;
    found.kind = row.kind;
    found.type_ids = row.type_ids;
    found.old_type_ids = row.old_type_ids;
    found.pads_left =
        row.kind == Kind::kLlama || row.kind == Kind::kGemma || row.kind == Kind::kSiglip2;
  }
  return found;
}

Result<std::string> StringOf(const std::optional<JsonValue>& json, const char* file,
                             const char* key) {
  if (!json) return std::string();
  JsonMembers members(*json, file);
  std::string text = members.String(key, "");
  if (!members.ok()) return members.status();
  return text;
}

}  // namespace

Result<TokenizerClass> ChooseTokenizerClass(const std::optional<JsonValue>& tokenizer_config,
                                            const std::optional<JsonValue>& config,
                                            std::string_view tokenizer_json) {
  constexpr const char* kTokenizerFile = "tokenizer_config.json";
  constexpr const char* kModelFile = "config.json";
  ENCORE_ASSIGN_OR_RETURN(std::string named,
                          StringOf(tokenizer_config, kTokenizerFile, "tokenizer_class"));
  std::string source = std::string(kTokenizerFile) + ": tokenizer_class";
  if (named.empty()) {
    ENCORE_ASSIGN_OR_RETURN(named, StringOf(config, kModelFile, "tokenizer_class"));
    source = std::string(kModelFile) + ": tokenizer_class";
  }
  ENCORE_ASSIGN_OR_RETURN(const std::string model_type, StringOf(config, kModelFile, "model_type"));
  const auto* const type = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& row) {
    return row.model_type == model_type;
  });
  const bool has_type = type != std::end(kTypes);

  std::string_view name = WithoutFast(named);
  const bool by_type = has_type && (name.empty() || (type->always && name != type->name));
  if (by_type) {
    name = type->name;
    source = std::string(kModelFile) + ": model_type " + model_type;
  }
  const bool is_named = !name.empty();
  if (!is_named) {
    name = "TokenizersBackend";
    source = "default";
  }
  if (name == "LlamaTokenizer" && tokenizer_json.find("\"ByteLevel\"") != std::string_view::npos) {
    name = "TokenizersBackend";
    source += " is LlamaTokenizer, and tokenizer.json has ByteLevel";
  }
  TokenizerClass found = FindClass(name);
  found.is_named = is_named;
  found.source = std::move(source);
  return found;
}

Result<TokenizerClass> ChooseTokenizerClass(const Folder& folder) {
  ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> tokenizer_config,
                          folder.ReadJson("tokenizer_config.json"));
  ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> config, folder.ReadJson("config.json"));
  Result<TokenizerClass> found = ChooseTokenizerClass(tokenizer_config, config, {});
  if (!found.ok() || found->kind != Kind::kLlama) return found;
  ENCORE_ASSIGN_OR_RETURN(const std::optional<MappedFile> tokenizer, folder.Read("tokenizer.json"));
  if (!tokenizer.has_value()) return found;
  return ChooseTokenizerClass(tokenizer_config, config, TextOf(*tokenizer));
}

}  // namespace encore::internal
