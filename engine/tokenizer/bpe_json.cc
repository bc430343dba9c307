// SPDX-License-Identifier: Apache-2.0
//
// tokenizer.json: a "model" of type BPE. Merges are written as "a b", or as ["a", "b"].

#include "engine/base/quoted.h"
#include "engine/tokenizer/bpe.h"
#include "engine/tokenizer/component_json.h"

namespace encore::inline v0_1::internal {
namespace {

Status ReadMerges(const JsonValue& json, const std::string& where, Merges* merges) {
  merges->reserve(json.items().size());
  for (size_t i = 0; i < json.items().size(); ++i) {
    const JsonValue& item = json.items()[i];
    const bool two_strings = item.is_array() && item.items().size() == 2 &&
                             item.items()[0].is_string() && item.items()[1].is_string();
    if (two_strings) {
      merges->emplace_back(item.items()[0].text(), item.items()[1].text());
      continue;
    }
    const std::string_view text = item.is_string() ? std::string_view(item.text()) : "";
    if (text.starts_with("#version")) continue;  // the first line of merges.txt
    const size_t space = text.find(' ');
    if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos) {
      return InvalidArgument(where + ": merges[" + std::to_string(i) + "] is " + item.Described() +
                             "; wanted two tokens, as 'a b' or as an array");
    }
    merges->emplace_back(text.substr(0, space), text.substr(space + 1));
  }
  return {};
}

}  // namespace

Status ReadBpe(JsonMembers* members, TokenizerParts* parts) {
  const std::string& where = members->where();
  const BpeSettings settings = {
      .unk_token = members->OptionalString("unk_token"),
      .continuing_subword_prefix = members->String("continuing_subword_prefix", ""),
      .end_of_word_suffix = members->String("end_of_word_suffix", ""),
      .fuse_unk = members->Bool("fuse_unk", false),
      .byte_fallback = members->Bool("byte_fallback", false),
      .ignore_merges = members->Bool("ignore_merges", false),
      .bytes = parts->byte_level};
  const double dropout = members->Number("dropout", 0);
  const JsonValue& vocab = members->RequiredObject("vocab");
  const JsonValue& list = members->RequiredArray("merges");
  if (!members->ok()) return members->status();
  if (dropout != 0) {
    return Status(ErrorCode::kUnsupported,
                  where + ": dropout is " + members->Find("dropout")->Described() +
                      "; encore has none: the same text gives the same tokens");
  }
  Vocabulary vocabulary;
  Merges merges;
  Status status = ReadVocabulary(vocab, where, &vocabulary);
  if (status.ok()) status = ReadMerges(list, where, &merges);
  if (status.ok()) status = RefuseUnread(*members);
  if (!status.ok()) return status;
  Result<std::unique_ptr<const Model>> model = Bpe::Create(vocabulary, merges, settings, where);
  if (!model.ok()) return model.status();
  parts->model = *std::move(model);
  parts->unk_token = settings.unk_token.value_or("");
  std::vector<Decision>& decisions = parts->decisions;
  decisions.push_back({"merges", std::to_string(merges.size()), where + ": merges"});
  decisions.push_back({"unknown token",
                       settings.byte_fallback ? "bytes, else " + settings.unk_token.value_or("none")
                                              : settings.unk_token.value_or("none"),
                       where + ": unk_token"});
  if (settings.ignore_merges) {
    decisions.push_back({"words that are tokens", "not merged", where + ": ignore_merges"});
  }
  return {};
}

}  // namespace encore::internal
