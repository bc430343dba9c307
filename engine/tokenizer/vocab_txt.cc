// SPDX-License-Identifier: Apache-2.0
//
// Builds BERT's tokenizer from a list of tokens.

#include "engine/tokenizer/vocab_txt.h"

#include <algorithm>
#include <unordered_map>

#include "engine/base/quoted.h"
#include "engine/tokenizer/component_json.h"
#include "engine/tokenizer/unicode.h"
#include "engine/tokenizer/utf8.h"
#include "engine/tokenizer/word_piece.h"

namespace encore::inline v0_1::internal {
namespace {

constexpr const char* kFile = "vocab.txt";

// Classes whose tokenizer is BERT's.
constexpr std::string_view kClasses[] = {"BertTokenizer",     "DistilBertTokenizer",
                                         "ElectraTokenizer",  "MobileBertTokenizer",
                                         "ConvBertTokenizer", "SqueezeBertTokenizer"};
constexpr std::string_view kFast = "Fast";

// BERT's special tokens where tokenizer_config.json names no others.
constexpr std::pair<const char*, const char*> kSpecialTokens[] = {{"unk_token", "[UNK]"},
                                                                  {"sep_token", "[SEP]"},
                                                                  {"pad_token", "[PAD]"},
                                                                  {"cls_token", "[CLS]"},
                                                                  {"mask_token", "[MASK]"}};
enum : size_t { kUnk = 0, kSep = 1, kCls = 3 };

std::string_view WithoutWhiteEnd(std::string_view line) {
  while (!line.empty()) {
    const char32_t c = LastCodePoint(line.data(), line.data() + line.size());
    if ((Unicode::Get().Properties(c) & kWhite) == 0) break;
    char bytes[4];
    line.remove_suffix(static_cast<size_t>(PutCodePoint(c, bytes) - bytes));
  }
  return line;
}

Result<Vocabulary> ReadLines(std::string_view text) {
  const size_t valid = ValidUtf8Length(text);
  if (valid < text.size()) {
    return Status(ErrorCode::kCorruptData,
                  std::string(kFile) + ": byte " + std::to_string(valid) + " is not UTF-8");
  }
  Vocabulary vocabulary;
  std::unordered_map<std::string_view, size_t> places;
  for (uint32_t id = 0; !text.empty(); ++id) {
    const size_t size = std::min(text.find('\n'), text.size());
    const std::string_view token = WithoutWhiteEnd(text.substr(0, size));
    text.remove_prefix(std::min(size + 1, text.size()));
    const auto [at, is_new] = places.emplace(token, vocabulary.size());
    if (is_new) {
      vocabulary.emplace_back(token, id);
    } else {
      vocabulary[at->second].second = id;
    }
  }
  return vocabulary;
}

Status CheckClass(const TokenizerConfig& config) {
  std::string_view name = config.tokenizer_class;
  if (name.empty()) return {};
  if (name.ends_with(kFast)) name.remove_suffix(kFast.size());
  if (std::find(std::begin(kClasses), std::end(kClasses), name) != std::end(kClasses)) return {};
  return Status(ErrorCode::kUnsupported,
                config.file + ": tokenizer_class is " + Quoted(config.tokenizer_class) +
                    "; encore reads a vocab.txt of BertTokenizer and its kin, others from "
                    "tokenizer.json");
}

// added_tokens_decoder, then the special tokens that it has not.
Status AddTokens(const TokenizerConfig& config,
                 const std::vector<std::pair<std::string, std::string>>& special,
                 TokenizerParts* parts) {
  std::vector<AddedToken> tokens = config.added_tokens;
  size_t next_id = parts->model->token_count();
  for (const AddedToken& token : tokens) {
    const std::optional<int32_t> known = parts->model->TokenToId(token.content);
    const int64_t wanted = known ? *known : static_cast<int64_t>(next_id++);
    if (token.id != wanted || (!known && !parts->model->IdToToken(token.id).empty())) {
      return InvalidArgument(config.file + ": added_tokens_decoder gives " + Quoted(token.content) +
                             " the id " + std::to_string(token.id) + "; wanted " +
                             std::to_string(wanted) + ", as " + kFile + " has it");
    }
  }
  for (const auto& [key, text] : special) {
    const auto same = [&text = text](const AddedToken& token) { return token.content == text; };
    if (std::any_of(tokens.begin(), tokens.end(), same)) continue;
    const std::optional<int32_t> id = parts->model->TokenToId(text);
    if (!id) {
      parts->decisions.push_back({key, "left out: it is not in the vocabulary", kFile});
      continue;
    }
    tokens.push_back({.content = text, .id = *id, .special = true, .normalized = false});
  }
  parts->decisions.push_back({"added tokens", std::to_string(tokens.size()), config.file});
  Result<AddedTokens> added =
      AddedTokens::Create(std::move(tokens), parts->normalizer, config.file);
  if (!added.ok()) return added.status();
  parts->added_tokens = *std::move(added);
  return {};
}

}  // namespace

Result<TokenizerParts> ReadVocabTxt(std::string_view vocab, const TokenizerConfig& config,
                                    const TokenizerOptions& options) {
  Status known_class = CheckClass(config);
  if (!known_class.ok()) return known_class;
  TokenizerParts parts;
  parts.decisions.push_back({"tokenizer", "BERT's WordPiece", "vocab.txt, without tokenizer.json"});
  const bool lowercase = config.do_lower_case.value_or(true);
  AddBertNormalizer(true, config.tokenize_chinese_chars.value_or(true), config.strip_accents,
                    lowercase, config.file + " or its defaults", &parts);
  if (options.lowercase) AddLowercaseBefore(&parts);
  parts.pre_tokenizer.Append(PreTokenizerStep::kBert);
  parts.decisions.push_back({"pre-tokenizer", "BertPreTokenizer", "default of BERT"});

  const Result<Vocabulary> vocabulary = ReadLines(vocab);
  if (!vocabulary.ok()) return vocabulary.status();
  std::vector<std::pair<std::string, std::string>> special;
  for (const auto& [key, token] : kSpecialTokens) {
    const std::string* const named = config.SpecialToken(key);
    special.emplace_back(key, named != nullptr ? *named : token);
  }
  WordPieceSettings settings;
  settings.unk_token = special[kUnk].second;
  Result<std::unique_ptr<const Model>> model = WordPiece::Create(*vocabulary, settings, kFile);
  if (!model.ok()) return model.status();
  parts.model = *std::move(model);
  parts.unk_token = settings.unk_token;
  parts.decisions.push_back(
      {"model", "WordPiece, " + std::to_string(parts.model->token_count()) + " tokens", kFile});
  parts.decisions.push_back({"unknown token", settings.unk_token, config.file + " or its default"});

  Status added = AddTokens(config, special, &parts);
  if (!added.ok()) return added;
  const auto in_template = [&](size_t i) -> Result<int32_t> {
    const auto& [key, token] = special[i];
    const AddedToken* const found = parts.added_tokens.Find(token);
    if (found != nullptr) return found->id;
    return InvalidArgument(std::string(kFile) + ": the " + key + " " + Quoted(token) +
                           " is not in the vocabulary");
  };
  const Result<int32_t> cls = in_template(kCls), sep = in_template(kSep);
  if (!cls.ok()) return cls.status();
  if (!sep.ok()) return sep.status();
  SetBertTemplate(*cls, *sep, &parts.post_template);
  DescribeTemplate("default of BERT", &parts);
  parts.model_max_length = config.model_max_length;
  return parts;
}

}  // namespace encore::internal
