// SPDX-License-Identifier: Apache-2.0
//
// tokenizer.json: "normalizer".

#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/tokenizer/base64.h"
#include "engine/tokenizer/component_json.h"

namespace encore::inline v0_1::internal {
namespace {

constexpr std::string_view kKnown =
    "BertNormalizer, Lowercase, NFC, NFD, NFKC, NFKD, Precompiled, Prepend, Replace, Strip, "
    "StripAccents and a Sequence of these";

const char* YesNo(bool value) { return value ? "yes" : "no"; }

Status ReadOne(const JsonValue& json, const std::string& where, TokenizerParts* parts);

void AddLowercaseBefore(TokenizerParts* parts) {
  if (parts->facts.has_lowercase_step) return;
  parts->normalizer.Prepend(MakeLowercase());
  parts->facts.lowercase = true;
  parts->facts.has_lowercase_step = true;
  parts->Tell("lower case", "yes, before the normalizer", "option");
}

Status ReadBert(JsonMembers* members, TokenizerParts* parts) {
  NormalizerFacts& facts = parts->facts;
  const std::string& source = members->where();
  const bool clean_text = RequiredBool(members, "clean_text");
  facts.is_bert = true;
  facts.handle_chinese_chars = RequiredBool(members, "handle_chinese_chars");
  facts.strip_accents = members->OptionalBool("strip_accents");
  facts.bert_lowercase = RequiredBool(members, "lowercase");
  facts.lowercase |= facts.bert_lowercase;
  if (!members->ok()) return members->status();
  const bool strip_accents = facts.strip_accents.value_or(facts.bert_lowercase);
  parts->normalizer.Append(MakeBertNormalizer({.clean_text = clean_text,
                                               .handle_chinese_chars = facts.handle_chinese_chars,
                                               .strip_accents = strip_accents,
                                               .lowercase = facts.bert_lowercase}));
  parts->Tell("normalizer", "BertNormalizer", source);
  parts->Tell("control characters removed", YesNo(clean_text), source + ": clean_text");
  parts->Tell("Chinese characters apart", YesNo(facts.handle_chinese_chars),
              source + ": handle_chinese_chars");
  parts->Tell(
      "accents removed", YesNo(strip_accents),
      source + (facts.strip_accents ? ": strip_accents" : ": lowercase, as strip_accents is null"));
  parts->Tell("lower case", YesNo(facts.bert_lowercase), source + ": lowercase");
  return {};
}

Status ReadSequence(JsonMembers* members, TokenizerParts* parts) {
  const JsonValue& list = members->RequiredArray("normalizers");
  if (!members->ok()) return members->status();
  for (size_t i = 0; i < list.items().size(); ++i) {
    ENCORE_RETURN_IF_ERROR(ReadOne(
        list.items()[i], members->where() + ": normalizers[" + std::to_string(i) + "]", parts));
  }
  return {};
}

Status ReadReplace(JsonMembers* members, TokenizerParts* parts) {
  std::string content = members->RequiredString("content");
  Status status;
  std::optional<Pattern> pattern = ReadPattern(members, "pattern", &status);
  if (!members->ok()) return members->status();
  if (!pattern) return status;
  parts->normalizer.Append(MakeReplace(*std::move(pattern), std::move(content)));
  parts->Tell("normalizer", "Replace", members->where());
  return {};
}

Status ReadPrecompiled(JsonMembers* members, TokenizerParts* parts) {
  const std::string text = members->RequiredString("precompiled_charsmap");
  if (!members->ok()) return members->status();
  const std::string where = members->where() + ": precompiled_charsmap";
  const std::optional<std::string> charsmap = FromBase64(text);
  if (!charsmap) {
    return Status(ErrorCode::kCorruptData, where + " is " + Quoted(text) + "; wanted base64");
  }
  ENCORE_ASSIGN_OR_RETURN(std::unique_ptr<const NormalizerStep> step,
                          MakePrecompiled(*charsmap, where));
  parts->normalizer.Append(std::move(step));
  parts->Tell("normalizer", "Precompiled", members->where());
  return {};
}

// Normalizers that are steps with few settings; false if `type` is none of them.
bool ReadStep(const std::string& type, JsonMembers* members, TokenizerParts* parts) {
  Normalizer* const normalizer = &parts->normalizer;
  if (type == "Prepend") {
    normalizer->Append(MakePrepend(members->RequiredString("prepend")));
    parts->Tell("normalizer", type, members->where());
  } else if (type == "Strip") {
    const bool left = RequiredBool(members, "strip_left");
    normalizer->Append(MakeStrip(left, RequiredBool(members, "strip_right")));
    parts->Tell("normalizer", type, members->where());
  } else if (type == "NFC" || type == "NFKC" || type == "NFKD") {
    normalizer->Append(
        MakeUnicodeForm({.compatibility = type != "NFC", .compose = type != "NFKD"}));
    parts->Tell("Unicode normalization", type, members->where());
  } else {
    return false;
  }
  return true;
}

Status ReadOne(const JsonValue& json, const std::string& where, TokenizerParts* parts) {
  JsonMembers members(json, where);
  const std::string type = members.RequiredString("type");
  if (!members.ok()) return members.status();
  Status status;
  if (type == "BertNormalizer") {
    status = ReadBert(&members, parts);
  } else if (type == "Sequence") {
    status = ReadSequence(&members, parts);
  } else if (type == "Lowercase") {
    parts->normalizer.Append(MakeLowercase());
    parts->facts.lowercase = true;
    parts->facts.has_lowercase_step = true;
    parts->Tell("lower case", "yes", where + " (Lowercase)");
  } else if (type == "StripAccents") {
    parts->normalizer.Append(MakeStripAccents());
    parts->Tell("accents", "marks removed", where + " (StripAccents)");
  } else if (type == "NFD") {
    parts->normalizer.Append(MakeNfd());
    parts->Tell("Unicode normalization", "NFD", where);
  } else if (type == "Replace") {
    status = ReadReplace(&members, parts);
  } else if (type == "Precompiled") {
    status = ReadPrecompiled(&members, parts);
  } else if (ReadStep(type, &members, parts)) {
    status = members.status();
  } else {
    return UnknownType(where, type, kKnown);
  }
  if (!status.ok()) return status;
  return RefuseUnread(members);
}

}  // namespace

Status ReadNormalizer(const JsonValue& json, const std::string& file, bool lowercase,
                      TokenizerParts* parts) {
  const std::string where = file + ": normalizer";
  if (json.is_null()) {
    parts->Tell("normalizer", "none", where);
  } else {
    ENCORE_RETURN_IF_ERROR(ReadOne(json, where, parts));
  }
  if (lowercase) AddLowercaseBefore(parts);
  return {};
}

}  // namespace encore::internal
