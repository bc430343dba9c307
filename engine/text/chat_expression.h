// SPDX-License-Identifier: Apache-2.0
//
// Expressions of chat templates: their words and values.

#ifndef ENCORE_ENGINE_TEXT_CHAT_EXPRESSION_H_
#define ENCORE_ENGINE_TEXT_CHAT_EXPRESSION_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "encore/status.h"
#include "engine/text/chat_template.h"

namespace encore::inline v0_1::internal {

struct ChatValue {
  enum class Kind : uint8_t { kUndefined, kNone, kBool, kInteger, kText, kList, kObject };
  Kind kind = Kind::kUndefined;
  int64_t integer = 0;  // of kInteger; of kBool 0 or 1
  ChatParts text = {};  // of kText; without a part it is empty
  std::vector<ChatValue> items = {};
  // Of kList: Python has a generator, which has neither places nor a truth of its own, and items
  // but once.
  bool lazy = false;
  std::vector<std::pair<std::string, ChatValue>> members = {};  // of kObject
  bool closed = false;  // of kObject: Jinja has members beside these; a name of one is refused

  static ChatValue Bool(bool value);
  static ChatValue Integer(int64_t value);
  static ChatValue Text(std::string_view text);
  bool is(Kind other) const { return kind == other; }
  const ChatValue* Find(std::string_view name) const;  // of kObject, or null
};

// Adds a part to a text; literal text goes into the last part where that is one too.
void AddPart(const ChatPart& part, ChatParts* text);

// White space in ASCII, as Python has it.
inline constexpr std::string_view kChatBlanks = " \t\n\r\f\v\x1c\x1d\x1e\x1f";

// The variables of a template; later ones hide earlier ones of the same name.
using ChatScope = std::vector<std::pair<std::string, ChatValue>>;

struct ChatWord {
  enum class Kind : uint8_t { kName, kString, kInteger, kSign, kEnd };
  Kind kind = Kind::kEnd;
  std::string text = {};  // of a string, what it means
};

// The words of the tag that begins at source[*at], up to its end, `close` ("}}" or "%}") without a
// "-" before it; *at is behind them.
Result<std::vector<ChatWord>> ReadChatWords(std::string_view source, std::string_view close,
                                            size_t* at);

// The value of all the words from *at on that belong to one expression; *at is behind them.
Result<ChatValue> EvaluateChat(const std::vector<ChatWord>& words, const ChatScope& scope,
                               size_t* at);
// Whether a condition with this value holds. kUnsupported where a query or document decides.
Result<bool> IsTrue(const ChatValue& value);

// The error for what encore does not support.
Status NotInTemplates(const std::string& what);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TEXT_CHAT_EXPRESSION_H_
