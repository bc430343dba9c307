// SPDX-License-Identifier: Apache-2.0
//
// Reads the components in the order in which they need each other.

#include "engine/tokenizer/tokenizer_json.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "engine/tokenizer/component_json.h"

namespace encore::inline v0_1::internal {
namespace {

// Steps that each make a text a few times as long would make it as long as memory is large. The
// largest factor among published tokenizers is in the hundreds.
constexpr unsigned kMaxGrowth = 65536;

Status CheckGrowth(const std::string& file, const TokenizerParts& parts) {
  const double growth = parts.normalizer.Growth() * parts.pre_tokenizer.Growth();
  if (growth <= kMaxGrowth) return {};
  const auto times = static_cast<uint64_t>(std::min(growth, 1e18));
  return Status(ErrorCode::kUnsupported,
                file + ": normalizer and pre_tokenizer can make a text " + std::to_string(times) +
                    " times as long; wanted at most " + std::to_string(kMaxGrowth) + " times");
}

}  // namespace

Result<TokenizerParts> ReadTokenizerJson(const JsonValue& json, const std::string& file,
                                         const TokenizerOptions& options) {
  const JsonValue null;
  JsonMembers members(json, file);
  TokenizerParts parts;
  parts.decisions.push_back({"tokenizer", "as written", file});
  if (members.String("version", "1.0") != "1.0") members.Refuse("version", "'1.0'");
  const JsonValue& model = members.RequiredObject("model");
  if (!members.ok()) return members.status();
  // The member, or null.
  const auto find = [&](std::string_view key) -> const JsonValue& {
    const JsonValue* value = members.Find(key);
    return value == nullptr ? null : *value;
  };
  Status status = ReadNormalizer(find("normalizer"), file, options.lowercase, &parts);
  if (status.ok()) status = ReadPreTokenizer(find("pre_tokenizer"), file, &parts);
  if (status.ok()) status = CheckGrowth(file, parts);
  if (status.ok()) status = ReadModel(model, file, &parts);
  if (status.ok()) status = ReadAddedTokens(find("added_tokens"), file, &parts);
  if (status.ok()) status = ReadPostProcessor(find("post_processor"), file, &parts);
  for (const char* const key : {"truncation", "padding"}) {
    if (members.Has(key)) parts.decisions.push_back({key, "ignored", file + ": " + key});
  }
  members.Ignore("decoder");  // the way back, from tokens to text
  if (status.ok()) status = RefuseUnread(members);
  if (!status.ok()) return status;
  return parts;
}

}  // namespace encore::internal
