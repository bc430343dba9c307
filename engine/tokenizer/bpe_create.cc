// SPDX-License-Identifier: Apache-2.0
//
// tokenizer.json: a "model" of type BPE. Makes it of a vocabulary and a list of merges.

#include <algorithm>

#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/tokenizer/bpe.h"
#include "engine/tokenizer/component_json.h"

namespace encore::inline v0_1::internal {
namespace {

uint32_t OrNone(const std::optional<int32_t>& id) {
  return id ? static_cast<uint32_t>(*id) : MergeTable::kNone;
}

// Merges are written as "a b", or as ["a", "b"].
Status ReadMergeList(const JsonValue& json, const std::string& where, Merges* merges) {
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

Result<std::unique_ptr<const Bpe>> Bpe::Create(const Vocabulary& vocabulary, const Merges& merges,
                                               const BpeSettings& settings,
                                               const std::string& where) {
  if (vocabulary.empty()) {
    return InvalidArgument(where + ": vocab is empty; wanted at least one token");
  }
  std::unique_ptr<Bpe> model(new Bpe(settings));
  ENCORE_ASSIGN_OR_RETURN(model->tokens_, TokenTable::Create(vocabulary, where));
  ENCORE_RETURN_IF_ERROR(model->FindUnknown(where));
  ENCORE_RETURN_IF_ERROR(model->ReadMerges(merges, where));
  ENCORE_RETURN_IF_ERROR(model->FindSymbols(where));
  model->FindWholeWords(vocabulary);
  return std::unique_ptr<const Bpe>(std::move(model));
}

Result<std::unique_ptr<const Bpe>> Bpe::Take(TableReader* packed, const BpeSettings& settings,
                                             const std::string& where) {
  std::unique_ptr<Bpe> model(new Bpe(settings));
  uint64_t mark_starts_words = 0;
  if (!model->tokens_.Take(packed) || !model->merges_.Take(packed, model->tokens_.id_limit()) ||
      !model->words_.Take(packed, model->tokens_.id_limit()) || !packed->Take(&mark_starts_words)) {
    return DamagedTables(where);
  }
  model->mark_starts_words_ = mark_starts_words != 0;
  ENCORE_RETURN_IF_ERROR(model->FindUnknown(where));
  ENCORE_RETURN_IF_ERROR(model->FindSymbols(where));
  return std::unique_ptr<const Bpe>(std::move(model));
}

bool Bpe::Put(TableWriter* out) const {
  tokens_.Put(out);
  merges_.Put(out);
  words_.Put(out);
  out->Put(uint64_t{mark_starts_words_});
  return true;
}

bool MergeTable::Take(TableReader* in, size_t limit) {
  if (!in->Take(&slots_) || !in->Take(&results_)) return false;
  if (!std::has_single_bit(slots_.size()) || slots_.size() < kMinSize ||
      slots_.size() < 2 * results_.size()) {
    return false;
  }
  SetShift();
  const auto is_full = [](const Slot& slot) { return slot.rank != kNone; };
  const auto count = std::count_if(slots_.begin(), slots_.end(), is_full);
  return static_cast<size_t>(count) == results_.size() &&
         std::all_of(
             slots_.begin(), slots_.end(),
             [&](const Slot& slot) { return !is_full(slot) || slot.rank < results_.size(); }) &&
         std::all_of(results_.begin(), results_.end(), [&](uint32_t id) { return id < limit; });
}

Status Bpe::FindUnknown(const std::string& where) {
  if (!settings_.unk_token) return {};
  ENCORE_ASSIGN_OR_RETURN(const int32_t id, UnknownId(tokens_, *settings_.unk_token, where));
  unk_id_ = static_cast<uint32_t>(id);
  return {};
}

Status Bpe::ReadMerges(const Merges& merges, const std::string& where) {
  if (merges.size() >= MergeTable::kNone) {
    return InvalidArgument(where + ": merges is an array of " + std::to_string(merges.size()) +
                           "; wanted fewer than " + std::to_string(MergeTable::kNone));
  }
  merges_ = MergeTable(merges.size());
  const size_t prefix = settings_.continuing_subword_prefix.size();
  // Unknown characters that are left out would bring marks on both sides of them together.
  mark_starts_words_ = unk_id_ != MergeTable::kNone && !settings_.bytes && prefix == 0 &&
                       settings_.end_of_word_suffix.empty() && !settings_.ignore_merges &&
                       tokens_.Id(kBpeMark).has_value();
  std::string both;
  for (size_t i = 0; i < merges.size(); ++i) {
    const auto& left = merges[i].first;  // clang 14 captures no structured bindings
    const auto& right = merges[i].second;
    const auto here = [&] {
      return where + ": merges[" + std::to_string(i) + "], of " + Quoted(left) + " and " +
             Quoted(right) + ",";
    };
    if (left.empty() || right.size() <= prefix) {
      return InvalidArgument(here() + " makes nothing longer; wanted two tokens with text");
    }
    both.assign(left);
    both += right.substr(prefix);
    uint32_t ids[3];
    const std::string_view tokens[3] = {left, right, both};
    for (size_t part = 0; part < 3; ++part) {
      ids[part] = OrNone(tokens_.Id(tokens[part]));
      if (ids[part] != MergeTable::kNone) continue;
      return InvalidArgument(here() + " needs " + Quoted(tokens[part]) +
                             ", which is not in the vocabulary");
    }
    if (!merges_.Add(ids[0], ids[1], ids[2])) {
      return InvalidArgument(here() + " is there twice; wanted each pair once");
    }
    mark_starts_words_ = mark_starts_words_ && InnerMark(both) == both.size();
  }
  return {};
}

Status Bpe::FindSymbols(const std::string& where) {
  fallback_ = tokens_.OfBytes();
  if (!settings_.bytes) return {};
  const std::string& prefix = settings_.continuing_subword_prefix;
  const std::string& suffix = settings_.end_of_word_suffix;
  if (settings_.byte_fallback) {
    return Status(ErrorCode::kUnsupported,
                  where +
                      ": byte_fallback is true, and the pre-tokenizer is ByteLevel; encore "
                      "supports either of them alone");
  }
  for (auto& symbols : byte_symbols_) symbols.fill(MergeTable::kNone);
  const std::array<int16_t, 0x144>& alphabet = kBytesOfAlphabet;
  for (char32_t c = 0; c < alphabet.size(); ++c) {
    if (alphabet[c] < 0) continue;
    char bytes[4];
    const std::string character(bytes, PutCodePoint(c, bytes));
    for (size_t way = 0; way < byte_symbols_.size(); ++way) {
      byte_symbols_[way][static_cast<size_t>(alphabet[c])] = OrNone(
          tokens_.Id(((way & 1) != 0 ? "" : prefix) + character + ((way & 2) != 0 ? suffix : "")));
    }
  }
  return {};
}

// Merges what tokens spell: those that become themselves need no merging later.
void Bpe::FindWholeWords(const Vocabulary& vocabulary) {
  const std::string& suffix = settings_.end_of_word_suffix;
  std::vector<std::pair<std::string, uint32_t>> found;
  ModelScratch scratch;
  TokenList tokens;
  for (const auto& [token, id] : vocabulary) {
    std::string text(token);
    if (!settings_.ignore_merges && text.ends_with(suffix)) {
      text.resize(text.size() - suffix.size());
    }
    if (settings_.bytes) text = BytesSpelledBy(text).value_or("");
    if (text.empty()) continue;
    if (settings_.ignore_merges) {
      found.emplace_back(std::move(text), id);
      continue;
    }
    // Words are cut before that.
    if (CutSize(text) != text.size()) continue;
    tokens.Clear();
    TokenizeWord({text.data(), text.size()}, {0, text.size()}, &scratch, &tokens);
    if (tokens.ids.size() == 1 && static_cast<uint32_t>(tokens.ids[0]) == id) {
      found.emplace_back(std::move(text), id);
    }
  }
  std::vector<ByteTrie::Entry> entries(found.begin(), found.end());
  words_ = ByteTrie(std::move(entries));
}

Status ReadBpe(JsonMembers* members, TokenizerParts* parts, TableReader* packed) {
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
                      "; encore does not support it: the same text gives the same tokens");
  }
  ENCORE_RETURN_IF_ERROR(RefuseUnread(*members));
  std::unique_ptr<const Bpe> model;
  if (packed != nullptr) {
    ENCORE_ASSIGN_OR_RETURN(model, Bpe::Take(packed, settings, where));
  } else {
    Vocabulary vocabulary;
    Merges merges;
    ENCORE_RETURN_IF_ERROR(ReadVocabulary(vocab, where, &vocabulary));
    ENCORE_RETURN_IF_ERROR(ReadMergeList(list, where, &merges));
    ENCORE_ASSIGN_OR_RETURN(model, Bpe::Create(vocabulary, merges, settings, where));
  }
  parts->unk_token = settings.unk_token.value_or("");
  parts->Note("merges", std::to_string(model->merge_count()), where + ": merges");
  parts->Note("unknown token",
              settings.byte_fallback ? "bytes, else " + settings.unk_token.value_or("none")
                                     : settings.unk_token.value_or("none"),
              where + ": unk_token");
  if (settings.ignore_merges) {
    parts->Note("words that are tokens", "not merged", where + ": ignore_merges");
  }
  parts->model = std::move(model);
  return {};
}

}  // namespace encore::internal
