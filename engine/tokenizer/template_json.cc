// SPDX-License-Identifier: Apache-2.0
//
// tokenizer.json: "post_processor".

#include <algorithm>
#include <limits>
#include <map>

#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/tokenizer/component_json.h"

namespace encore::inline v0_1::internal {
namespace {

constexpr std::string_view kKnown =
    "TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel and a Sequence of these";
constexpr size_t kMaxTypeId = std::numeric_limits<uint8_t>::max();

using Kind = TemplatePiece::Kind;

// Ids of a special token by its name in the template.
using SpecialTokens = std::map<std::string, std::vector<int32_t>, std::less<>>;

Status CheckId(const TokenizerParts& parts, const std::string& where, const JsonValue& json,
               const std::string& token, int32_t* id) {
  uint64_t number = 0;
  const bool fits = json.AsUnsigned(&number) && number <= std::numeric_limits<int32_t>::max();
  *id = fits ? static_cast<int32_t>(number) : -1;
  if (fits && !token.empty() && parts.TokenOf(*id) == token) return {};
  return InvalidArgument(where + ": token " + Quoted(token) + " has id " + json.Described() +
                         "; wanted the id that the vocabulary gives it");
}

Status ReadSpecialTokens(const JsonValue& json, const std::string& where,
                         const TokenizerParts& parts, SpecialTokens* special) {
  for (const auto& [name, value] : json.members()) {
    const std::string here = where + ": special_tokens: " + Quoted(name);
    JsonMembers members(value, here);
    const std::string id = members.RequiredString("id");
    const JsonValue& ids = members.RequiredArray("ids");
    const JsonValue& tokens = members.RequiredArray("tokens");
    if (members.ok() && id != name) members.Refuse("id", Quoted(name));
    if (!members.ok()) return members.status();
    if (ids.items().size() != tokens.items().size()) {
      return InvalidArgument(here + ": ids is " + ids.Described() + " and tokens " +
                             tokens.Described() + "; wanted as many");
    }
    std::vector<int32_t>& list = (*special)[name];
    for (size_t i = 0; i < ids.items().size(); ++i) {
      const JsonValue& token = tokens.items()[i];
      if (!token.is_string()) {
        return InvalidArgument(here + ": tokens has " + token.Described() + "; wanted a string");
      }
      ENCORE_RETURN_IF_ERROR(
          CheckId(parts, here, ids.items()[i], token.text(), &list.emplace_back()));
    }
    ENCORE_RETURN_IF_ERROR(RefuseUnread(members));
  }
  return {};
}

// One piece of a template, which may be several tokens.
Status ReadPiece(const JsonValue& json, const std::string& where, const SpecialTokens& special,
                 std::vector<TemplatePiece>* pieces) {
  JsonMembers outer(json, where);
  const bool is_text = outer.Has("Sequence");
  const JsonValue& inner = outer.RequiredObject(is_text ? "Sequence" : "SpecialToken");
  if (!outer.ok()) return outer.status();
  JsonMembers members(inner, where);
  const std::string id = members.RequiredString("id");
  const size_t type_id = members.RequiredSize("type_id");
  if (type_id > kMaxTypeId) members.Refuse("type_id", "at most " + std::to_string(kMaxTypeId));
  if (is_text && id != "A" && id != "B") members.Refuse("id", "'A' or 'B'");
  const auto ids = special.find(id);
  if (!is_text && ids == special.end()) members.Refuse("id", "one of special_tokens");
  if (!members.ok()) return members.status();
  TemplatePiece piece = {Kind::kToken, 0, static_cast<uint8_t>(type_id)};
  if (is_text) {
    piece.kind = id == "A" ? Kind::kFirst : Kind::kSecond;
    pieces->push_back(piece);
  } else {
    for (const int32_t token : ids->second) {
      piece.id = token;
      pieces->push_back(piece);
    }
  }
  Status unread = RefuseUnread(members);
  return unread.ok() ? RefuseUnread(outer) : unread;
}

// `texts`: how many the template is for.
Status ReadPieces(const JsonValue& json, const std::string& where, const SpecialTokens& special,
                  std::ptrdiff_t texts, std::vector<TemplatePiece>* pieces) {
  pieces->clear();
  for (size_t i = 0; i < json.items().size(); ++i) {
    ENCORE_RETURN_IF_ERROR(
        ReadPiece(json.items()[i], where + "[" + std::to_string(i) + "]", special, pieces));
  }
  const auto count = [&](Kind kind) {
    return std::count_if(pieces->begin(), pieces->end(),
                         [kind](const TemplatePiece& piece) { return piece.kind == kind; });
  };
  if (count(Kind::kFirst) == 1 && count(Kind::kSecond) == texts - 1) return {};
  return Status(ErrorCode::kUnsupported,
                where + " has " + std::to_string(count(Kind::kFirst)) + " times A and " +
                    std::to_string(count(Kind::kSecond)) + " times B; wanted " +
                    (texts == 1 ? "A once" : "A and B once each"));
}

Status ReadTemplate(JsonMembers* members, TokenizerParts* parts) {
  const JsonValue& special_tokens = members->RequiredObject("special_tokens");
  const JsonValue& single = members->RequiredArray("single");
  const JsonValue& pair = members->RequiredArray("pair");
  if (!members->ok()) return members->status();
  SpecialTokens special;
  ENCORE_RETURN_IF_ERROR(ReadSpecialTokens(special_tokens, members->where(), *parts, &special));
  PostTemplate& post = parts->post_template;
  ENCORE_RETURN_IF_ERROR(
      ReadPieces(single, members->where() + ": single", special, 1, &post.single));
  return ReadPieces(pair, members->where() + ": pair", special, 2, &post.pair);
}

// A member like ["[SEP]", 102].
Status ReadTokenAndId(JsonMembers* members, std::string_view key, const TokenizerParts& parts,
                      int32_t* id) {
  const JsonValue& json = members->RequiredArray(key);
  if (!members->ok()) return members->status();
  if (json.items().size() != 2 || !json.items()[0].is_string()) {
    members->Refuse(key, "a token and its id");
    return members->status();
  }
  return CheckId(parts, members->where() + ": " + std::string(key), json.items()[1],
                 json.items()[0].text(), id);
}

// Where tokens of bytes begin and end: ByteLevel's, and RobertaProcessing's.
void ReadTrimming(JsonMembers* members, PostTemplate* post) {
  const bool trim = members->RequiredBool("trim_offsets");
  const bool space_before = members->RequiredBool("add_prefix_space");
  if (trim) post->trim = space_before ? OffsetTrim::kKeepFirstSpace : OffsetTrim::kAllSpaces;
}

// BertProcessing and RobertaProcessing name the same two tokens.
Status ReadClsAndSep(bool is_roberta, JsonMembers* members, TokenizerParts* parts) {
  int32_t sep = 0, cls = 0;
  ENCORE_RETURN_IF_ERROR(ReadTokenAndId(members, "sep", *parts, &sep));
  ENCORE_RETURN_IF_ERROR(ReadTokenAndId(members, "cls", *parts, &cls));
  if (is_roberta) {
    SetTemplate(cls, sep, sep, 0, &parts->post_template);
    ReadTrimming(members, &parts->post_template);
  } else {
    SetTemplate(cls, {}, sep, 1, &parts->post_template);
  }
  return {};
}

// `has_template`: a part before this one has placed tokens.
Status ReadOne(const std::string& type, JsonMembers* members, bool* has_template,
               TokenizerParts* parts) {
  if (*has_template) {
    return Status(ErrorCode::kUnsupported,
                  members->where() + ": type is " + Quoted(type) +
                      " behind a template; encore has a template as the last one");
  }
  if (type == "ByteLevel") {
    members->Ignore("use_regex");
    ReadTrimming(members, &parts->post_template);
    return {};
  }
  *has_template = true;
  if (type == "TemplateProcessing") return ReadTemplate(members, parts);
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    return ReadClsAndSep(type == "RobertaProcessing", members, parts);
  }
  return UnknownType(members->where(), type, kKnown);
}

std::string Spelled(const std::vector<TemplatePiece>& pieces, const TokenizerParts& parts) {
  std::string text;
  for (const TemplatePiece& piece : pieces) {
    if (!text.empty()) text += ' ';
    if (piece.kind == Kind::kToken) text += parts.TokenOf(piece.id);
    if (piece.kind == Kind::kFirst) text += 'A';
    if (piece.kind == Kind::kSecond) text += 'B';
    text += ':' + std::to_string(piece.type_id);
  }
  return text;
}

}  // namespace

void DescribeTemplate(const std::string& source, TokenizerParts* parts) {
  parts->Note("template", Spelled(parts->post_template.single, *parts), source);
  parts->Note("template of pairs", Spelled(parts->post_template.pair, *parts), source);
}

Status ReadPostProcessor(const JsonValue& json, const std::string& file, TokenizerParts* parts) {
  const std::string where = file + ": post_processor";
  if (!json.is_null()) {
    bool has_template = false;
    ENCORE_RETURN_IF_ERROR(ReadComponent(json, where, "processors",
                                         [&](const std::string& type, JsonMembers* members) {
                                           return ReadOne(type, members, &has_template, parts);
                                         }));
  }
  DescribeTemplate(where, parts);
  return {};
}

}  // namespace encore::internal
