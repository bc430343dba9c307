// SPDX-License-Identifier: Apache-2.0
//
// tokenizer.json: "pre_tokenizer".

#include "engine/tokenizer/component_json.h"

namespace encore::internal {
namespace {

constexpr std::string_view kKnown =
    "BertPreTokenizer, WhitespaceSplit, Whitespace and a Sequence of these";

Status ReadOne(const JsonValue& json, const std::string& where, TokenizerParts* parts) {
  JsonMembers members(json, where);
  const std::string type = members.RequiredString("type");
  if (!members.ok()) return members.status();
  if (type == "Sequence") {
    const JsonValue& list = members.RequiredArray("pretokenizers");
    if (!members.ok()) return members.status();
    for (size_t i = 0; i < list.items().size(); ++i) {
      Status status =
          ReadOne(list.items()[i], where + ": pretokenizers[" + std::to_string(i) + "]", parts);
      if (!status.ok()) return status;
    }
    return RefuseUnread(members);
  }
  if (type == "BertPreTokenizer") {
    parts->pre_tokenizer.Append(PreTokenizerStep::kBert);
  } else if (type == "WhitespaceSplit") {
    parts->pre_tokenizer.Append(PreTokenizerStep::kWhitespaceSplit);
  } else if (type == "Whitespace") {
    parts->pre_tokenizer.Append(PreTokenizerStep::kWhitespace);
  } else {
    return UnknownType(where, type, kKnown);
  }
  parts->decisions.push_back({"pre-tokenizer", type, where});
  return RefuseUnread(members);
}

}  // namespace

Status ReadPreTokenizer(const JsonValue& json, const std::string& file, TokenizerParts* parts) {
  const std::string where = file + ": pre_tokenizer";
  if (!json.is_null()) return ReadOne(json, where, parts);
  parts->decisions.push_back({"pre-tokenizer", "none: a text is one word", where});
  return {};
}

}  // namespace encore::internal
