// SPDX-License-Identifier: Apache-2.0
//
// Reads the components in the order in which they need each other.

#include "engine/tokenizer/tokenizer_json.h"

#include <algorithm>
#include <cstdint>

#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/tokenizer/class_recipe.h"
#include "engine/tokenizer/component_json.h"

namespace encore::inline v0_1::internal {
namespace {

// Steps that each make a text a few times as long would make it as long as memory is large. The
// largest factor among published tokenizers is in the hundreds.
constexpr unsigned kMaxGrowth = 65536;

Status CheckGrowth(const std::string& file, const TokenizerParts& parts) {
  const double growth = parts.normalizer.Growth() * parts.pre_tokenizer.Growth();
  if (growth <= kMaxGrowth) return {};
  const auto times = static_cast<uint64_t>(std::min(growth, 1e18));
  return Status(ErrorCode::kUnsupported,
                file + ": normalizer and pre_tokenizer can make a text " + std::to_string(times) +
                    " times as long; wanted at most " + std::to_string(kMaxGrowth) + " times");
}

// The Precompiled normalizer of the file, in the order of a list or alone; null if there is none.
JsonValue FindCharsmap(const JsonValue& normalizer) {
  const auto is_precompiled = [](const JsonValue& json) {
    return json["type"].text() == "Precompiled" && json["precompiled_charsmap"].is_string();
  };
  const JsonValue* found = &normalizer;
  if (!is_precompiled(normalizer)) {
    const std::vector<JsonValue>& list = normalizer["normalizers"].items();
    const auto at = std::find_if(list.begin(), list.end(), is_precompiled);
    if (at == list.end()) return {};
    found = &*at;
  }
  return JsonValue::Object(
      {{"type", "Precompiled"}, {"precompiled_charsmap", (*found)["precompiled_charsmap"]}});
}

// Which end of a text that is too long is kept.
Status ReadTruncation(const JsonValue& json, const std::string& file, const TokenizerConfig& config,
                      TokenizerParts* parts) {
  std::string source = config.file + ": truncation_side";
  if (config.cut_start) {
    parts->cut_start = *config.cut_start;
  } else if (!json.is_null()) {
    JsonMembers members(json, file + ": truncation");
    const std::string direction = members.String("direction", "Right");
    if (direction != "Left" && direction != "Right") members.Refuse("direction", "Left or Right");
    if (!members.ok()) return members.status();
    parts->cut_start = direction == "Left";
    source = file + ": truncation: direction";
  }
  if (parts->cut_start) {
    parts->Note("texts that are too long", "lose their first tokens", source);
  }
  return {};
}

// bos_token and eos_token where no tokenizer.json has a template: GPT-2's way.
void SetBosEosTemplate(const TokenizerConfig& config, const std::vector<SpecialToken>& named,
                       TokenizerParts* parts) {
  const auto id = [&](const std::optional<bool>& wanted, const char* key) {
    const AddedToken* const token = parts->added_tokens.Find(ContentOf(named, key));
    return token == nullptr || !wanted.value_or(false) ? std::optional<int32_t>() : token->id;
  };
  const std::optional<int32_t> bos = id(config.add_bos_token, "bos_token");
  SetTemplate(bos, bos, id(config.add_eos_token, "eos_token"), 1, &parts->post_template);
  DescribeTemplate(config.file, parts);
}

// What would have other ids in transformers: its code finds every token of the file in the raw
// text, splits what it finds at white space once more, and looks for none under
// split_special_tokens.
Status CheckEsm(const JsonValue& vocab, const TokenizerClass& which, const TokenizerConfig& config,
                const TokenizerOptions& options) {
  const auto refused = [&](const std::string& what) {
    return Status(ErrorCode::kUnsupported, which.source + " is EsmTokenizer, " + what);
  };
  if (config.split_special_tokens) return refused("and split_special_tokens is true; wanted false");
  if (options.lowercase) return refused("and texts are made lower case; wanted them as they are");
  for (const auto& [token, id] : vocab.members()) {
    const auto is_white = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
    if (std::none_of(token.begin(), token.end(), is_white)) continue;
    return refused("and a token is " + Quoted(token) + "; wanted none with white space");
  }
  return {};
}

// What would have other ids in transformers, whose code in Python gives tokens that are no pieces
// the ids of the files, and goes by spaces and U+2581 where it finds tokens.
Status CheckSiglip(const TokenizerParts& parts, const TokenizerConfig& config,
                   const std::string& source) {
  const auto refused = [&](const AddedToken& token, const std::string& what) {
    return Status(ErrorCode::kUnsupported, source + " is SiglipTokenizer, and the token " +
                                               Quoted(token.content) + " " + what);
  };
  for (const AddedToken& token : parts.added_tokens.tokens()) {
    if (token.single_word) return refused(token, "has single_word true; wanted false");
    if (token.content.find("\u2581") != std::string::npos) {
      return refused(token, "has U+2581, which is a space; wanted none");
    }
    if (!parts.model->TokenToId(token.content)) {
      return refused(token, "is no piece of spiece.model; wanted one");
    }
  }
  std::vector<AddedToken> given = config.added_tokens.value_or(config.old_added_tokens);
  for (const AddedToken& token : given) {
    const int32_t id = parts.model->TokenToId(token.content).value_or(-1);
    if (id == token.id) continue;
    return refused(token, "has id " + std::to_string(token.id) + "; wanted the model's, " +
                              std::to_string(id));
  }
  return {};
}

// Whether a class has its model from the older files. LLaMA's, Gemma's and most of those with
// Unigram are sentencepiece's, in an order of their own.
bool ReadsVocabulary(TokenizerKind kind, std::string_view model) {
  if (model == "Unigram") {
    return kind == TokenizerKind::kDebertaV2 || kind == TokenizerKind::kSiglip;
  }
  return ModelOf(kind) == model && kind != TokenizerKind::kLlama && kind != TokenizerKind::kGemma &&
         kind != TokenizerKind::kSiglip2;
}

void NoteClass(const TokenizerClass& which, const std::string& file, bool by_class,
               const std::string& found_model, TokenizerParts* parts) {
  if (by_class) {
    parts->Note("tokenizer", "vocabulary as written, the rest as " + which.name + " makes it",
                file + "; " + which.source);
    return;
  }
  parts->Note("tokenizer", "as written", file);
  if (which.kind == TokenizerKind::kOther || !ModelOf(which.kind).empty()) {
    parts->Note("ignored",
                "what transformers makes of " + which.name +
                    (which.kind == TokenizerKind::kOther ? " itself"
                                                         : ", whose model is not " + found_model) +
                    "; sentence-transformers may have other ids",
                which.source);
  }
}

}  // namespace

Result<TokenizerParts> ReadTokenizerJson(const TokenizerFile& file, TokenizerClass which,
                                         const TokenizerConfig& config,
                                         const TokenizerOptions& options) {
  if (which.kind == TokenizerKind::kPython) {
    return Status(ErrorCode::kUnsupported,
                  which.source + " is " + Quoted(which.name) +
                      ", whose code is Python; encore supports those of `tokenizers`");
  }
  if (which.kind == TokenizerKind::kEsm) {
    ENCORE_RETURN_IF_ERROR(CheckEsm(file.json["model"]["vocab"], which, config, options));
  }
  JsonMembers members(file.json, file.name);
  TokenizerParts parts;
  if (which.kind == TokenizerKind::kEsm) {
    parts.Note("pairs that are too long",
               "cut as `tokenizers` does; sentence-transformers may keep one token more of the "
               "first text and one less of the second",
               which.source);
  }
  if (members.String("version", "1.0") != "1.0") members.Refuse("version", "'1.0'");
  const JsonValue& model = members.RequiredObject("model");
  if (!members.ok()) return members.status();
  const std::string found = ModelType(model);
  // A vocab.txt whose class no file names is BERT's, and ConvBERT's is as well.
  if (file.is_vocabulary && found == "WordPiece" &&
      (!which.is_named || which.kind == TokenizerKind::kConvBert)) {
    which.name = "BertTokenizer";
    which.kind = TokenizerKind::kBert;
  }
  const std::string_view wanted = ModelOf(which.kind);
  if (file.is_vocabulary && !ReadsVocabulary(which.kind, found)) {
    return Status(ErrorCode::kUnsupported,
                  which.source + ": the tokenizer's class is " + Quoted(which.name) +
                      "; encore reads " + file.name + " of " +
                      (found == "BPE" ? "RobertaTokenizer, GPT2Tokenizer, Qwen2Tokenizer, "
                                        "HerbertTokenizer, CLIPTokenizer"
                                      : "BertTokenizer, MPNetTokenizer, FunnelTokenizer, "
                                        "EsmTokenizer") +
                      " and their kin, others from tokenizer.json");
  }
  std::vector<SpecialToken> named = NamedTokens(which.kind, config);
  const bool by_class = !wanted.empty() && wanted == found;
  JsonValue own_normalizer, own_pre_tokenizer, own_model;
  if (by_class) {
    own_normalizer = NormalizerJson(which.kind, config, FindCharsmap(file.json["normalizer"]));
    own_pre_tokenizer = PreTokenizerJson(which.kind, config);
    own_model = ModelJson(which.kind, config, named, model["vocab"]);
  }
  NoteClass(which, file.name, by_class, found, &parts);
  if (!by_class && !wanted.empty()) named = NamedTokens(TokenizerKind::kAsWritten, config);
  const JsonValue& normalizer = file.json["normalizer"];
  const JsonValue& pre_tokenizer = file.json["pre_tokenizer"];
  const JsonValue& post_processor = file.json["post_processor"];
  const std::string& source = by_class ? which.name : file.name;
  ENCORE_RETURN_IF_ERROR(
      ReadNormalizer(by_class ? own_normalizer : normalizer, source, options.lowercase, &parts));
  ENCORE_RETURN_IF_ERROR(
      ReadPreTokenizer(by_class ? own_pre_tokenizer : pre_tokenizer, source, &parts));
  ENCORE_RETURN_IF_ERROR(CheckGrowth(file.name, parts));
  if (file.sentence_piece != nullptr) {
    parts.marks_start = true;
    ENCORE_RETURN_IF_ERROR(SetSentencePiece(
        *file.sentence_piece, file.name, ContentOf(named, "unk_token"),
        file.sentence_piece->add_dummy_prefix && config.legacy.value_or(true), &parts));
  } else {
    ENCORE_RETURN_IF_ERROR(
        ReadModel(model, file.name, &parts, by_class ? &own_model : nullptr, file.packed));
  }
  ENCORE_RETURN_IF_ERROR(
      AddTokens(file.json["added_tokens"], file.name, which, config, by_class, &named, &parts));
  if (which.kind == TokenizerKind::kSiglip) {
    ENCORE_RETURN_IF_ERROR(CheckSiglip(parts, config, which.source));
  }
  for (const SpecialToken& token : named) {
    const std::optional<int32_t> id = parts.IdOf(token.token.content);
    if (id && !token.token.content.empty()) parts.special_ids.emplace_back(token.key, *id);
  }
  const bool keeps_class = by_class || which.kind == TokenizerKind::kConvBert;
  const bool file_counts = which.kind == TokenizerKind::kAlbert && !post_processor.is_null();
  if (keeps_class && HasTemplate(which.kind) && !file_counts) {
    ENCORE_RETURN_IF_ERROR(SetClassTemplate(which, config, named, &parts));
  } else if (file.is_vocabulary) {
    SetBosEosTemplate(config, named, &parts);
  } else {
    ENCORE_RETURN_IF_ERROR(ReadPostProcessor(post_processor, file.name, &parts));
  }
  ENCORE_RETURN_IF_ERROR(ReadTruncation(file.json["truncation"], file.name, config, &parts));
  for (const char* const key : {"truncation", "padding"}) {
    if (members.Has(key)) parts.Note(key, "ignored", file.name + ": " + key);
  }
  for (const char* const key :
       {"normalizer", "pre_tokenizer", "added_tokens", "post_processor", "decoder"}) {
    members.Ignore(key);  // read above; the decoder is the way back, from tokens to text
  }
  ENCORE_RETURN_IF_ERROR(RefuseUnread(members));
  parts.model_max_length = config.model_max_length;
  parts.plain_text = config.split_special_tokens;
  if (parts.plain_text) {
    parts.Note("special tokens in texts", "ordinary text", config.file + ": split_special_tokens");
  }
  if (!by_class) CompareWithConfig(config, file.name, &parts);
  return parts;
}

}  // namespace encore::internal
