// SPDX-License-Identifier: Apache-2.0
//
// Rerankers that are causal language models: LogitScore's file, the tokens without one, and the
// chat template around a pair of texts.

#include <algorithm>
#include <utility>

#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/text/text_encoder_impl.h"
#include "engine/tokenizer/tokenizer_factory.h"

namespace encore::inline v0_1::internal {
namespace {

struct TemplateSource {
  std::string text;
  std::string file;
};

// The file of its own, else the key of tokenizer_config.json, as transformers has it. Nothing:
// there is none.
Result<std::optional<TemplateSource>> FindChatTemplate(const Folder& folder) {
  constexpr std::string_view kFile = "chat_template.jinja";
  constexpr std::string_view kConfig = "tokenizer_config.json";
  ENCORE_ASSIGN_OR_RETURN(const std::optional<MappedFile> file, folder.Read(kFile));
  if (file) {
    return std::optional(TemplateSource{std::string(TextOf(*file)), std::string(kFile)});
  }
  ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> json, folder.ReadJson(kConfig));
  if (!json) return std::optional<TemplateSource>();
  JsonMembers members(*json, std::string(kConfig));
  if (!members.Has("chat_template")) return std::optional<TemplateSource>();
  const JsonValue& value = *members.Find("chat_template");
  const std::string where = std::string(kConfig) + ": chat_template";
  if (!value.is_string()) {
    return Status(ErrorCode::kUnsupported,
                  where + " is " + value.Described() + "; wanted a string");
  }
  return std::optional(TemplateSource{value.text(), where});
}

// The tokens that end every text made of the parts, as sentence-transformers finds them: those that
// two texts with other contents have in common.
Result<std::vector<int32_t>> FindSuffix(const ChatParts& parts, const Tokenizer& tokenizer) {
  const TokenizeOptions options{.add_special_tokens = false};
  std::string joined;
  Tokens first;
  Tokens second;
  JoinParts(parts, "0", "0", &joined);
  ENCORE_RETURN_IF_ERROR(tokenizer.Encode(joined, &first, options));
  JoinParts(parts, "1 2 3 4", "1 2 3 4", &joined);
  ENCORE_RETURN_IF_ERROR(tokenizer.Encode(joined, &second, options));
  const auto [left, right] =
      std::mismatch(first.ids.rbegin(), first.ids.rend(), second.ids.rbegin(), second.ids.rend());
  if (left == first.ids.rend() || right == second.ids.rend()) return std::vector<int32_t>();
  return std::vector<int32_t>(left.base(), first.ids.end());
}

}  // namespace

Result<LogitScore> ReadLogitScore(const std::string& path, const FolderReading& reading) {
  const std::string file = Within(path, "config.json");
  ENCORE_ASSIGN_OR_RETURN(const JsonValue json, ReadModuleFile("LogitScore", file, reading));
  JsonMembers members(json, file);
  const LogitScore score{members.RequiredSize("true_token_id"),
                         members.OptionalSize("false_token_id")};
  if (members.String("module_input_name", "causal_logits") != "causal_logits") {
    members.Refuse("module_input_name", "'causal_logits'");
  }
  ENCORE_RETURN_IF_ERROR(CheckUnreadKeys(members, reading));
  return score;
}

Result<std::optional<LogitScore>> DefaultLogitScore(const Folder& folder,
                                                    const Tokenizer& tokenizer) {
  ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> json, folder.ReadJson("config.json"));
  const JsonValue* names = json && json->is_object() ? json->Find("architectures") : nullptr;
  const bool generates = names != nullptr && names->is_array() && !names->items().empty() &&
                         names->items()[0].is_string() &&
                         names->items()[0].text().ends_with("ForCausalLM");
  const std::optional<int32_t> yes = TokenizerFactory::TokenId(tokenizer, "yes");
  const std::optional<int32_t> no = TokenizerFactory::TokenId(tokenizer, "no");
  if (!generates || !yes || !no) return std::optional<LogitScore>();
  return std::optional(LogitScore{static_cast<size_t>(*yes), static_cast<size_t>(*no)});
}

Result<PairChatTemplate> RenderPairs(PairChatTemplate pairs, std::string_view prompt,
                                     const Tokenizer& tokenizer) {
  Result<ChatParts> parts = RenderChatTemplate(pairs.source, prompt, pairs.structured);
  if (!parts.ok()) {
    return Status(parts.status().code(), pairs.file + ": " + parts.status().message());
  }
  pairs.parts = *std::move(parts);
  ENCORE_ASSIGN_OR_RETURN(pairs.suffix, FindSuffix(pairs.parts, tokenizer));
  return pairs;
}

Result<std::optional<PairChatTemplate>> ReadPairChatTemplate(const ModelFolder& found,
                                                             std::string_view prompt,
                                                             const Tokenizer& tokenizer,
                                                             const FolderReading& reading) {
  // With modules.json the settings say whether there are messages, else the template is enough.
  const std::optional<MessageFormat>& wanted = found.settings.messages;
  if (found.has_modules() && !wanted) return std::optional<PairChatTemplate>();
  ENCORE_ASSIGN_OR_RETURN(const std::optional<TemplateSource> source,
                          FindChatTemplate(found.folder));
  if (!source) {
    if (!wanted) return std::optional<PairChatTemplate>();
    return Status(ErrorCode::kUnsupported,
                  found.settings.file +
                      ": modality_config has 'message', but the folder has no chat template");
  }
  const MessageFormat format = wanted.value_or(MessageFormat::kAuto);
  const bool structured = format == MessageFormat::kStructured ||
                          (format == MessageFormat::kAuto && WantsStructuredContent(source->text));
  ENCORE_ASSIGN_OR_RETURN(
      PairChatTemplate made,
      RenderPairs({.source = source->text, .file = source->file, .structured = structured}, prompt,
                  tokenizer));
  reading.Note("pairs",
               "by the chat template; " + std::to_string(made.suffix.size()) +
                   " tokens of its end stay in texts that are cut",
               source->file);
  return std::optional(std::move(made));
}

}  // namespace encore::internal
