// SPDX-License-Identifier: Apache-2.0
//
// A tokenizer's model from vocab.txt, or from vocab.json and merges.txt, as the readers of
// tokenizer.json take it.

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/tokenizer/tokenizer_json.h"
#include "engine/tokenizer/unicode.h"
#include "engine/tokenizer/utf8.h"

namespace encore::inline v0_1::internal {
namespace {

// Takes the first line off a text, without its end.
std::string_view TakeLine(std::string_view* text) {
  const size_t size = std::min(text->find('\n'), text->size());
  const std::string_view line = text->substr(0, size);
  text->remove_prefix(std::min(size + 1, text->size()));
  return line;
}

Status CheckUtf8(const char* file, std::string_view text) {
  const size_t valid = ValidUtf8Length(text);
  if (valid == text.size()) return {};
  return Status(ErrorCode::kCorruptData,
                std::string(file) + ": byte " + std::to_string(valid) + " is not UTF-8");
}

Status TooMany(const char* file) {
  return Status(ErrorCode::kCorruptData, std::string(file) + " has more than " +
                                             std::to_string(JsonValue::kMaxValues) +
                                             " lines; wanted at most that");
}

JsonValue WithModel(std::vector<JsonValue::Member> members) {
  return JsonValue::Object({{"model", JsonValue::Object(std::move(members))}});
}

}  // namespace

Result<JsonValue> ModelOfVocabTxt(std::string_view vocab_txt) {
  ENCORE_RETURN_IF_ERROR(CheckUtf8("vocab.txt", vocab_txt));
  std::vector<JsonValue::Member> tokens;
  std::unordered_map<std::string_view, size_t> places;
  for (uint64_t id = 0; !vocab_txt.empty(); ++id) {
    const std::string_view token = WithoutWhiteEnd(TakeLine(&vocab_txt));
    const auto [at, is_new] = places.emplace(token, tokens.size());
    if (tokens.size() == JsonValue::kMaxValues) return TooMany("vocab.txt");
    if (is_new) {
      tokens.emplace_back(token, id);
    } else {
      tokens[at->second].second = id;
    }
  }
  return WithModel({{"type", "WordPiece"}, {"vocab", JsonValue::Object(std::move(tokens))}});
}

Result<JsonValue> ModelOfVocabJson(std::string_view vocab_json, std::string_view merges_txt) {
  Result<JsonValue> vocab = JsonValue::Parse(vocab_json);
  if (!vocab.ok()) {
    return Prefixed("vocab.json", vocab.status());
  }
  ENCORE_RETURN_IF_ERROR(CheckUtf8("merges.txt", merges_txt));
  std::vector<JsonValue> merges;
  while (!merges_txt.empty()) {
    std::string_view line = TakeLine(&merges_txt);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (merges.size() == JsonValue::kMaxValues) return TooMany("merges.txt");
    merges.emplace_back(std::string(line));
  }
  return WithModel({{"type", "BPE"},
                    {"merges", JsonValue::Array(std::move(merges))},
                    {"vocab", *std::move(vocab)}});
}

}  // namespace encore::internal
