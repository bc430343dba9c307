// SPDX-License-Identifier: Apache-2.0
//
// The classes of transformers 5.23, a switch for each thing that they make.

#include "engine/tokenizer/class_recipe.h"

#include <algorithm>
#include <array>

#include "engine/platform/once.h"
#include "engine/tokenizer/component_json.h"

namespace encore::inline v0_1::internal {
namespace {

using Kind = TokenizerKind;

// In the order of kSpecialTokenKeys: bos, eos, unk, sep, pad, cls, mask. Null: none.
using Named = std::array<const char*, std::size(kSpecialTokenKeys)>;
struct RecipeRow {
  Kind kind;
  std::string_view model;  // see ModelOf
  bool has_template;
  Named tokens = {};
  bool mask_takes_spaces = false;  // in front of it
};
constexpr const char* kNo = nullptr;
constexpr const char* kEnd = "<|endoftext|>";
constexpr Named kBertNames = {kNo, kNo, "[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"};
constexpr Named kRobertaNames = {"<s>", "</s>", "<unk>", "</s>", "<pad>", "<s>", "<mask>"};
constexpr Named kMpnetNames = {"<s>", "</s>", "[UNK]", "</s>", "<pad>", "<s>", "<mask>"};
constexpr Named kFunnelNames = {"<s>", "</s>", "<unk>", "<sep>", "<pad>", "<cls>", "<mask>"};
constexpr Named kAlbertNames = {"[CLS]", "[SEP]", "<unk>", "[SEP]", "<pad>", "[CLS]", "[MASK]"};
constexpr Named kDebertaNames = {"[CLS]", "[SEP]", "[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"};
constexpr Named kGemmaNames = {"<bos>", "<eos>", "<unk>", kNo, "<pad>", kNo, "<mask>"};
constexpr RecipeRow kRows[] = {
    {Kind::kBert, "WordPiece", true, kBertNames},
    {Kind::kMpnet, "WordPiece", true, kMpnetNames, true},
    {Kind::kFunnel, "WordPiece", true, kFunnelNames},
    {Kind::kRoberta, "BPE", true, kRobertaNames},
    {Kind::kGpt2, "BPE", false, {kEnd, kEnd, kEnd}},
    {Kind::kQwen2, "BPE", false, {kNo, kEnd, kEnd, kNo, kEnd}},
    {Kind::kXlmRoberta, "Unigram", true, kRobertaNames},
    {Kind::kCamembert, "Unigram", true, kRobertaNames, true},
    {Kind::kAlbert, "Unigram", true, kAlbertNames},
    {Kind::kDebertaV2, "Unigram", true, kDebertaNames},
    {Kind::kT5, "Unigram", true, {kNo, "</s>", "<unk>", kNo, "<pad>"}},
    {Kind::kLlama, "BPE", false, {"<s>", "</s>", "<unk>"}},
    {Kind::kGemma, "BPE", false, kGemmaNames},
    {Kind::kSiglip2, "BPE", false, kGemmaNames},
    {Kind::kHerbert, "BPE", true, {kNo, kNo, "<unk>", "</s>", "<pad>", "<s>", "<mask>"}},
    {Kind::kClip, "BPE", true, {"<|startoftext|>", kEnd, kEnd, kNo, kEnd}},
    {Kind::kEsm, "WordPiece", true, {kNo, "<eos>", "<unk>", kNo, "<pad>", "<cls>", "<mask>"}},
    {Kind::kSiglip, "Unigram", true, {kNo, "</s>", "<unk>", kNo, "</s>"}},
    {Kind::kConvBert, "", true, kBertNames},
};

const RecipeRow& RowOf(Kind kind) {
  static constexpr RecipeRow kNone = {Kind::kAsWritten, "", false};
  const auto* const found = std::find_if(std::begin(kRows), std::end(kRows),
                                         [kind](const RecipeRow& row) { return row.kind == kind; });
  return found == std::end(kRows) ? kNone : *found;
}

using Members = std::vector<JsonValue::Member>;

JsonValue Component(const char* type, Members members = {}) {
  members.emplace_back("type", type);
  return JsonValue::Object(std::move(members));
}

JsonValue OrNull(const std::optional<bool>& value) {
  if (!value) return {};
  return *value;
}

JsonValue BertNormalizer(bool clean_text, bool chinese, const std::optional<bool>& accents,
                         bool lowercase) {
  return Component("BertNormalizer", {{"clean_text", clean_text},
                                      {"handle_chinese_chars", chinese},
                                      {"strip_accents", OrNull(accents)},
                                      {"lowercase", lowercase}});
}

JsonValue Regex(const char* text) { return JsonValue::Object({{"Regex", text}}); }
JsonValue Literal(const char* text) { return JsonValue::Object({{"String", text}}); }

JsonValue Replace(JsonValue what, const char* with) {
  return Component("Replace", {{"pattern", std::move(what)}, {"content", with}});
}

JsonValue Steps(std::vector<JsonValue> steps) {
  return Component("Sequence", {{"normalizers", JsonValue::Array(std::move(steps))}});
}

JsonValue AlbertNormalizer(const TokenizerConfig& config, const JsonValue& charsmap) {
  std::vector<JsonValue> steps = {Replace(Literal("``"), "\""), Replace(Literal("''"), "\"")};
  if (!config.keep_accents.value_or(false)) {
    steps.push_back(Component("NFKD"));
    steps.push_back(Component("StripAccents"));
  }
  if (config.do_lower_case.value_or(true)) steps.push_back(Component("Lowercase"));
  if (!charsmap.is_null()) steps.push_back(charsmap);
  return Steps(std::move(steps));
}

// Without the normalization that sentencepiece's model has, which transformers leaves out.
JsonValue DebertaNormalizer(const TokenizerConfig& config) {
  std::vector<JsonValue> steps;
  if (config.do_lower_case.value_or(false)) steps.push_back(Component("Lowercase"));
  steps.push_back(Replace(Regex(R"(\s{2,}|[\n\r\t])"), " "));
  steps.push_back(Component("NFC"));
  steps.push_back(Component("Strip", {{"strip_left", false}, {"strip_right", true}}));
  return Steps(std::move(steps));
}

// Four characters are white space to Python and not to Unicode.
JsonValue EsmNormalizer() {
  std::vector<JsonValue> steps;
  for (const char* const separator : {"\x1C", "\x1D", "\x1E", "\x1F"}) {
    steps.push_back(Replace(Literal(separator), " "));
  }
  return Steps(std::move(steps));
}

// Without punctuation, and with single spaces. What Python takes for white space is white, or one
// of the four separators.
JsonValue SiglipNormalizer(const TokenizerConfig& config) {
  std::vector<JsonValue> steps;
  if (config.do_lower_case.value_or(true)) steps.push_back(Component("Lowercase"));
  steps.push_back(Replace(Regex(R"([!-/:-@\[-`{-~])"), ""));
  steps.push_back(EsmNormalizer());
  steps.push_back(Replace(Regex(R"(\s+)"), " "));
  steps.push_back(Component("Strip", {{"strip_left", true}, {"strip_right", true}}));
  return Steps(std::move(steps));
}

JsonValue Metaspace(const char* scheme, bool split) {
  return Component("Metaspace",
                   {{"replacement", "▁"}, {"prepend_scheme", scheme}, {"split", split}});
}

JsonValue ByteLevel(bool space_before, bool use_regex) {
  return Component(
      "ByteLevel",
      {{"add_prefix_space", space_before}, {"trim_offsets", true}, {"use_regex", use_regex}});
}

JsonValue InOrder(std::vector<JsonValue> pre_tokenizers) {
  return Component("Sequence", {{"pretokenizers", JsonValue::Array(std::move(pre_tokenizers))}});
}

JsonValue Split(JsonValue pattern, const char* behavior, bool invert = false) {
  return Component("Split",
                   {{"pattern", std::move(pattern)}, {"behavior", behavior}, {"invert", invert}});
}

// The place of a token in a Unigram vocabulary, else 0.
size_t PlaceOf(const std::string& token, const JsonValue& vocab) {
  const std::vector<JsonValue>& items = vocab.items();
  const auto found = std::find_if(items.begin(), items.end(), [&](const JsonValue& item) {
    return !item.items().empty() && item.items()[0].is_string() && item.items()[0].text() == token;
  });
  return found == items.end() ? 0 : static_cast<size_t>(found - items.begin());
}

// The place of the unknown token if its score is 0; else what the files say, or 1.
size_t DebertaUnknown(const std::string& token, const TokenizerConfig& config,
                      const JsonValue& vocab) {
  const std::vector<JsonValue>& items = vocab.items();
  const auto found = std::find_if(items.begin(), items.end(), [&](const JsonValue& item) {
    const std::vector<JsonValue>& pair = item.items();
    return pair.size() == 2 && pair[0].text() == token && pair[1].is_number() &&
           pair[1].number() == 0;
  });
  return found == items.end() ? config.unk_id.value_or(1)
                              : static_cast<size_t>(found - items.begin());
}

}  // namespace

std::string_view ModelOf(Kind kind) { return RowOf(kind).model; }
bool HasTemplate(Kind kind) { return RowOf(kind).has_template; }

std::vector<SpecialToken> NamedTokens(Kind kind, const TokenizerConfig& config) {
  std::vector<SpecialToken> named;
  const RecipeRow& row = RowOf(kind);
  for (size_t i = 0; i < row.tokens.size(); ++i) {
    const std::string key = kSpecialTokenKeys[i];
    if (const SpecialToken* const given = FindToken(config.special_tokens, key)) {
      named.push_back(*given);
    } else if (row.tokens[i] != nullptr) {
      SpecialToken& token = named.emplace_back();
      token = {.key = key, .token = AddedToken::Special(row.tokens[i]), .from_class = true};
      token.token.lstrip = key == "mask_token" && row.mask_takes_spaces;
    }
    // As the class makes them of their names.
    if (kind == Kind::kSiglip && !named.empty() && named.back().key == key &&
        !named.back().is_object) {
      named.back().token.lstrip = named.back().token.rstrip = true;
    }
  }
  for (const SpecialToken& given : config.special_tokens) {
    if (!IsSpecialTokenKey(given.key)) named.push_back(given);
  }
  return named;
}

const std::string& ContentOf(const std::vector<SpecialToken>& named, std::string_view key) {
  static constinit Once<std::string> none;
  const SpecialToken* const token = FindToken(named, key);
  return token == nullptr ? none.Get([] { return std::string(); }) : token->token.content;
}

std::vector<AddedToken> ExtraTokens(Kind kind, const TokenizerConfig& config) {
  std::vector<AddedToken> tokens;
  if (kind == Kind::kCamembert) {
    for (const char* const content : {"<s>NOTUSED", "</s>NOTUSED", "<unk>NOTUSED"}) {
      tokens.push_back(AddedToken::Special(content));
    }
  }
  if (kind == Kind::kT5) {
    for (size_t i = 0; i < config.extra_ids; ++i) {
      tokens.push_back(AddedToken::Special("<extra_id_" + std::to_string(i) + ">"));
    }
  }
  return tokens;
}

JsonValue NormalizerJson(Kind kind, const TokenizerConfig& config, const JsonValue& charsmap) {
  switch (kind) {
    case Kind::kBert:
    case Kind::kMpnet:
    case Kind::kFunnel:
      return BertNormalizer(kind != Kind::kFunnel || config.clean_text.value_or(true),
                            config.tokenize_chinese_chars.value_or(true), config.strip_accents,
                            config.do_lower_case.value_or(true));
    case Kind::kHerbert:
      return BertNormalizer(true, true, false, false);
    case Kind::kXlmRoberta:
    case Kind::kCamembert:
    case Kind::kT5:
      return charsmap;
    case Kind::kAlbert:
      return AlbertNormalizer(config, charsmap);
    case Kind::kDebertaV2:
      return DebertaNormalizer(config);
    case Kind::kQwen2:
      return Component("NFC");
    case Kind::kClip:
      return Steps({Component("NFC"), Replace(Regex(R"(\s+)"), " "), Component("Lowercase")});
    case Kind::kGemma:
      return Replace(Literal(" "), "▁");
    case Kind::kSiglip2:
      return Steps({Component("Lowercase"), Replace(Literal(" "), "▁")});
    case Kind::kEsm:
      return EsmNormalizer();
    case Kind::kSiglip:
      return SiglipNormalizer(config);
    default:
      return JsonValue();
  }
}

JsonValue PreTokenizerJson(Kind kind, const TokenizerConfig& config) {
  const bool space_before = config.add_prefix_space.value_or(true);
  switch (kind) {
    case Kind::kBert:
    case Kind::kMpnet:
    case Kind::kFunnel:
    case Kind::kHerbert:
      return Component("BertPreTokenizer");
    case Kind::kRoberta:
    case Kind::kGpt2:
      return ByteLevel(config.add_prefix_space.value_or(false), true);
    case Kind::kQwen2:
      return InOrder({Split(Regex(R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| )"
                                  R"(?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"),
                            "Isolated"),
                      ByteLevel(config.add_prefix_space.value_or(false), false)});
    case Kind::kClip:
      return InOrder({Split(Regex(R"(<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|)"
                                  R"([\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+)"),
                            "Removed", true),
                      ByteLevel(false, true)});
    case Kind::kEsm:
      return Component("WhitespaceSplit");
    case Kind::kXlmRoberta:
    case Kind::kCamembert:
    case Kind::kAlbert:
    case Kind::kT5:
      return InOrder({Component("WhitespaceSplit"),
                      Metaspace(space_before || kind == Kind::kT5 ? "always" : "never", true)});
    case Kind::kDebertaV2: {
      std::vector<JsonValue> steps;
      if (config.split_by_punct.value_or(false)) {
        steps.push_back(Component("Punctuation", {{"behavior", "Isolated"}}));
      }
      steps.push_back(Metaspace(space_before ? "always" : "first", true));
      return InOrder(std::move(steps));
    }
    case Kind::kLlama:
      return Metaspace(!space_before                   ? "never"
                       : config.legacy.value_or(false) ? "always"
                                                       : "first",
                       false);
    case Kind::kGemma:
    case Kind::kSiglip2:
      return Split(Literal(" "), "MergedWithPrevious");
    default:
      return JsonValue();
  }
}

JsonValue ModelJson(Kind kind, const TokenizerConfig& config,
                    const std::vector<SpecialToken>& named, const JsonValue& vocab) {
  const std::string& unknown = ContentOf(named, "unk_token");
  const JsonValue unk_token = unknown.empty() ? JsonValue() : JsonValue(unknown);
  const auto bpe = [](const JsonValue& unk, const char* suffix, bool llama) {
    return Component("BPE", {{"dropout", JsonValue()},
                             {"ignore_merges", false},
                             {"unk_token", unk},
                             {"continuing_subword_prefix", ""},
                             {"end_of_word_suffix", suffix},
                             {"fuse_unk", llama},
                             {"byte_fallback", llama}});
  };
  const auto unigram = [](uint64_t unk_id) {
    return Component("Unigram", {{"byte_fallback", false}, {"unk_id", unk_id}});
  };
  switch (kind) {
    case Kind::kBert:
    case Kind::kMpnet:
    case Kind::kFunnel:
    case Kind::kEsm:
      return Component("WordPiece", {{"continuing_subword_prefix", "##"},
                                     {"unk_token", unk_token},
                                     {"max_input_chars_per_word", uint64_t{100}}});
    case Kind::kRoberta:
    case Kind::kGpt2:
    case Kind::kQwen2:
      return bpe({}, "", false);
    case Kind::kLlama:
      return bpe({}, "", true);
    case Kind::kGemma:
    case Kind::kSiglip2:
      return bpe(unk_token, "", true);
    case Kind::kHerbert:
    case Kind::kClip:
      return bpe(unk_token, "</w>", false);
    case Kind::kXlmRoberta:
      return unigram(3);
    case Kind::kCamembert:
      return unigram(PlaceOf(unknown, vocab));
    case Kind::kAlbert:
      return unigram(1);
    case Kind::kDebertaV2:
      return unigram(DebertaUnknown(unknown, config, vocab));
    case Kind::kT5:
      return unigram(2);
    default:
      return JsonValue::Object({});
  }
}

Status SetClassTemplate(const TokenizerClass& which, const TokenizerConfig& config,
                        const std::vector<SpecialToken>& named, TokenizerParts* parts) {
  Status status;
  const auto id = [&](const char* key) -> int32_t {
    const SpecialToken* const token = FindToken(named, key);
    const std::string content = token == nullptr ? "" : token->token.content;
    const AddedToken* const added = content.empty() ? nullptr : parts->added_tokens.Find(content);
    const bool invented = token != nullptr && token->from_class &&
                          !parts->model->TokenToId(content) && added != nullptr &&
                          added->id >= static_cast<int32_t>(parts->model->token_count());
    if (added != nullptr && !invented) return added->id;
    if (status.ok()) {
      status = InvalidArgument("the " + std::string(key) + " '" + content + "' of " + which.name +
                               " is not in the vocabulary");
    }
    return 0;
  };
  PostTemplate* const post = &parts->post_template;
  const auto bert = [&] {
    const int32_t cls = id("cls_token");
    SetTemplate(cls, {}, id("sep_token"), 1, post);
  };
  const auto roberta = [&](const char* first, const char* last) {
    const int32_t first_id = id(first), last_id = id(last);
    SetTemplate(first_id, last_id, last_id, 0, post);
  };
  switch (which.kind) {
    case Kind::kBert:
    case Kind::kConvBert:
    case Kind::kAlbert:
    case Kind::kDebertaV2:
      bert();
      break;
    case Kind::kFunnel:
      bert();
      post->single[0].type_id = post->pair[0].type_id = 2;
      break;
    case Kind::kHerbert:
      SetTemplate(0, {}, 2, 1, post);
      break;
    case Kind::kMpnet:
      roberta("cls_token", "sep_token");
      post->trim = OffsetTrim::kAllSpaces;
      break;
    case Kind::kRoberta:
      roberta("cls_token", "sep_token");
      if (config.trim_offsets.value_or(true)) {
        post->trim = config.add_prefix_space.value_or(false) ? OffsetTrim::kKeepFirstSpace
                                                             : OffsetTrim::kAllSpaces;
      }
      break;
    case Kind::kXlmRoberta:
    case Kind::kCamembert:
    case Kind::kClip:
      roberta("bos_token", "eos_token");
      break;
    case Kind::kEsm: {
      const int32_t cls = id("cls_token"), eos = id("eos_token");
      SetTemplate(cls, {}, eos, 0, post);
      break;
    }
    case Kind::kT5:
      SetTemplate({}, {}, id("eos_token"), 0, post);
      break;
    case Kind::kSiglip:
      SetTemplate({}, {}, id("eos_token"), 0, post);
      for (auto* pieces : {&post->single, &post->pair}) {
        for (TemplatePiece& piece : *pieces) piece.once = true;
      }
      break;
    default:
      return {};
  }
  if (status.ok()) DescribeTemplate(which.name, parts);
  return status;
}

}  // namespace encore::internal
