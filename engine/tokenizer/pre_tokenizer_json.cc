// SPDX-License-Identifier: Apache-2.0
//
// tokenizer.json: "pre_tokenizer".

#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/tokenizer/component_json.h"

namespace encore::inline v0_1::internal {
namespace {

constexpr std::string_view kKnown =
    "BertPreTokenizer, ByteLevel, Digits, Metaspace, Punctuation, Split, Whitespace, "
    "WhitespaceSplit and a Sequence of these";

struct NamedBehavior {
  std::string_view name;
  SplitBehavior behavior;
};
constexpr NamedBehavior kBehaviors[] = {{"Removed", SplitBehavior::kRemoved},
                                        {"Isolated", SplitBehavior::kIsolated},
                                        {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
                                        {"MergedWithNext", SplitBehavior::kMergedWithNext},
                                        {"Contiguous", SplitBehavior::kContiguous}};

SplitBehavior ReadBehavior(JsonMembers* members, std::string_view absent) {
  const std::string name = members->String("behavior", absent);
  for (const NamedBehavior& known : kBehaviors) {
    if (known.name == name) return known.behavior;
  }
  members->Refuse("behavior",
                  "Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
  return SplitBehavior::kIsolated;
}

Status ReadSplit(JsonMembers* members, TokenizerParts* parts) {
  const SplitBehavior behavior = ReadBehavior(members, "");
  const bool invert = members->Bool("invert", false);
  ENCORE_ASSIGN_OR_RETURN(Pattern pattern, ReadPattern(members));
  parts->pre_tokenizer.Append(MakeSplit(std::move(pattern), behavior, invert));
  return {};
}

void ReadByteLevel(JsonMembers* members, TokenizerParts* parts) {
  const bool space_before = members->RequiredBool("add_prefix_space");
  const bool use_regex = members->Bool("use_regex", true);
  members->RequiredBool("trim_offsets");  // counts in the post-processor alone
  parts->byte_level = true;
  if (space_before) parts->pre_tokenizer.Append(MakeSpaceBefore());
  if (use_regex) {
    parts->pre_tokenizer.Append(MakeSplit(Pattern::Gpt2(), SplitBehavior::kIsolated, false));
  }
  parts->Tell("a space before the text", space_before ? "yes" : "no",
              members->where() + ": add_prefix_space");
}

void ReadMetaspace(JsonMembers* members, TokenizerParts* parts) {
  MetaspaceSettings settings = {.replacement = members->RequiredString("replacement")};
  if (settings.replacement.empty() ||
      settings.replacement.size() != Utf8Length(settings.replacement[0])) {
    members->Refuse("replacement", "one character");
  }
  settings.split = members->Bool("split", true);
  const std::optional<bool> space_before = members->OptionalBool("add_prefix_space");
  std::string scheme =
      members->String("prepend_scheme", space_before == false ? "never" : "always");
  members->Ignore("str_rep");  // the replacement once more, in files of old
  if (scheme == "first") {
    settings.prepend_scheme = PrependScheme::kFirst;
    parts->needs_origins = true;
  } else if (scheme == "never") {
    settings.prepend_scheme = PrependScheme::kNever;
  } else if (scheme != "always") {
    members->Refuse("prepend_scheme", "always, first or never");
  }
  if (space_before == false && scheme != "never") {
    members->Refuse("prepend_scheme", "never, as add_prefix_space is false");
  }
  parts->pre_tokenizer.Append(MakeMetaspace(settings));
  parts->Tell("a space before the text", scheme, members->where() + ": prepend_scheme");
}

Status ReadOne(const std::string& type, JsonMembers* members, TokenizerParts* parts) {
  const std::string& where = members->where();
  if (parts->byte_level) {
    return Status(
        ErrorCode::kUnsupported,
        where + ": type is " + Quoted(type) + " behind ByteLevel; encore has that as the last one");
  }
  if (type == "BertPreTokenizer") {
    parts->pre_tokenizer.Append(PreTokenizerStep::kBert);
  } else if (type == "WhitespaceSplit") {
    parts->pre_tokenizer.Append(PreTokenizerStep::kWhitespaceSplit);
  } else if (type == "Whitespace") {
    parts->pre_tokenizer.Append(PreTokenizerStep::kWhitespace);
  } else if (type == "Digits") {
    parts->pre_tokenizer.Append(members->Bool("individual_digits", false)
                                    ? PreTokenizerStep::kIndividualDigits
                                    : PreTokenizerStep::kDigits);
  } else if (type == "Punctuation") {
    parts->pre_tokenizer.Append(
        MakeSplit(Pattern::Punctuation(), ReadBehavior(members, "Isolated"), false));
  } else if (type == "Split") {
    ENCORE_RETURN_IF_ERROR(ReadSplit(members, parts));
  } else if (type == "ByteLevel") {
    ReadByteLevel(members, parts);
  } else if (type == "Metaspace") {
    ReadMetaspace(members, parts);
  } else {
    return UnknownType(where, type, kKnown);
  }
  parts->Tell("pre-tokenizer", type, where);
  return {};
}

}  // namespace

Status ReadPreTokenizer(const JsonValue& json, const std::string& file, TokenizerParts* parts) {
  const std::string where = file + ": pre_tokenizer";
  if (json.is_null()) {
    parts->Tell("pre-tokenizer", "none: a text is one word", where);
    return {};
  }
  return ReadComponent(json, where, "pretokenizers",
                       [parts](const std::string& type, JsonMembers* members) {
                         return ReadOne(type, members, parts);
                       });
}

}  // namespace encore::internal
