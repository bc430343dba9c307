// SPDX-License-Identifier: Apache-2.0
//
// tokenizer.json: "normalizer".

#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/tokenizer/component_json.h"

namespace encore::inline v0_1::internal {
namespace {

// Base64 (RFC 4648, section 4); nothing for text that is none, or has another padding.
std::optional<std::string> FromBase64(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  if (text.size() % 4 != 0) return {};
  size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  uint32_t bits = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool padded = i >= text.size() - padding;
    const size_t digit = padded ? 0 : kDigits.find(text[i]);
    if (digit == std::string_view::npos) return {};
    bits = bits << 6 | static_cast<uint32_t>(digit);
    if (i % 4 != 3) continue;
    for (const unsigned shift : {16u, 8u, 0u}) bytes += static_cast<char>(bits >> shift & 0xFF);
    bits = 0;
  }
  bytes.resize(bytes.size() - padding);
  return bytes;
}

constexpr std::string_view kKnown =
    "BertNormalizer, Lowercase, NFC, NFD, NFKC, NFKD, Precompiled, Prepend, Replace, Strip, "
    "StripAccents and a Sequence of these";

const char* YesNo(bool value) { return value ? "yes" : "no"; }

void ReadBert(JsonMembers* members, TokenizerParts* parts) {
  NormalizerFacts& facts = parts->facts;
  const std::string& source = members->where();
  const bool clean_text = members->RequiredBool("clean_text");
  facts.is_bert = true;
  facts.handle_chinese_chars = members->RequiredBool("handle_chinese_chars");
  facts.strip_accents = members->OptionalBool("strip_accents");
  facts.bert_lowercase = members->RequiredBool("lowercase");
  const bool strip_accents = facts.strip_accents.value_or(facts.bert_lowercase);
  parts->normalizer.Append(MakeBertNormalizer({.clean_text = clean_text,
                                               .handle_chinese_chars = facts.handle_chinese_chars,
                                               .strip_accents = strip_accents,
                                               .lowercase = facts.bert_lowercase}));
  parts->Note("normalizer", "BertNormalizer", source);
  parts->Note("control characters removed", YesNo(clean_text), source + ": clean_text");
  parts->Note("Chinese characters apart", YesNo(facts.handle_chinese_chars),
              source + ": handle_chinese_chars");
  parts->Note(
      "accents removed", YesNo(strip_accents),
      source + (facts.strip_accents ? ": strip_accents" : ": lowercase, as strip_accents is null"));
  parts->Note("lower case", YesNo(facts.bert_lowercase), source + ": lowercase");
}

using Step = std::unique_ptr<const NormalizerStep>;

Result<Step> ReadPrecompiled(JsonMembers* members) {
  const std::string text = members->RequiredString("precompiled_charsmap");
  if (!members->ok()) return members->status();
  const std::string where = members->where() + ": precompiled_charsmap";
  const std::optional<std::string> charsmap = FromBase64(text);
  if (charsmap) return MakePrecompiled(*charsmap, where);
  return Status(ErrorCode::kCorruptData, where + " is " + Quoted(text) + "; wanted base64");
}

Status ReadOne(const std::string& type, JsonMembers* members, TokenizerParts* parts) {
  const std::string& where = members->where();
  Step step;
  Decision decision = {"normalizer", type, where};
  if (type == "BertNormalizer") {
    ReadBert(members, parts);
    return {};
  } else if (type == "Lowercase") {
    step = MakeLowercase();
    parts->facts.has_lowercase_step = true;
    decision = {"lower case", "yes", where + " (Lowercase)"};
  } else if (type == "StripAccents") {
    step = MakeStripAccents();
    decision = {"accents", "marks removed", where + " (StripAccents)"};
  } else if (type == "NFC" || type == "NFD" || type == "NFKC" || type == "NFKD") {
    step = MakeUnicodeForm({.compatibility = type[2] == 'K', .compose = type.ends_with('C')});
    decision.what = "Unicode normalization";
  } else if (type == "Replace") {
    std::string content = members->RequiredString("content");
    ENCORE_ASSIGN_OR_RETURN(Pattern pattern, ReadPattern(members));
    step = MakeReplace(std::move(pattern), std::move(content));
  } else if (type == "Precompiled") {
    ENCORE_ASSIGN_OR_RETURN(step, ReadPrecompiled(members));
  } else if (type == "Prepend") {
    step = MakePrepend(members->RequiredString("prepend"));
  } else if (type == "Strip") {
    const bool left = members->RequiredBool("strip_left");
    step = MakeStrip(left, members->RequiredBool("strip_right"));
  } else {
    return UnknownType(where, type, kKnown);
  }
  parts->normalizer.Append(std::move(step));
  parts->decisions.push_back(std::move(decision));
  return {};
}

}  // namespace

Status ReadNormalizer(const JsonValue& json, const std::string& file, bool lowercase,
                      TokenizerParts* parts) {
  const std::string where = file + ": normalizer";
  if (json.is_null()) {
    parts->Note("normalizer", "none", where);
  } else {
    ENCORE_RETURN_IF_ERROR(ReadComponent(json, where, "normalizers",
                                         [parts](const std::string& type, JsonMembers* members) {
                                           return ReadOne(type, members, parts);
                                         }));
  }
  if (lowercase && !parts->facts.has_lowercase_step) {
    parts->normalizer.Prepend(MakeLowercase());
    parts->facts.has_lowercase_step = true;
    parts->Note("lower case", "yes, before the normalizer", "option");
  }
  return {};
}

}  // namespace encore::internal
