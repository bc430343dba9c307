// SPDX-License-Identifier: Apache-2.0
//
// A folder's chat template around a query and a document, as sentence-transformers' CrossEncoder
// renders it. Templates are programs in Jinja. encore has the part of it in which templates of
// rerankers are written: text, contents of messages chosen by role or place, loops over messages,
// conditions on roles. Everything else is refused by name.

#ifndef ENCORE_ENGINE_TEXT_CHAT_TEMPLATE_H_
#define ENCORE_ENGINE_TEXT_CHAT_TEMPLATE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "encore/status.h"

namespace encore::inline v0_1::internal {

struct ChatPart {
  enum class Kind : uint8_t { kText, kQuery, kDocument };
  Kind kind = Kind::kText;
  std::string text = {};  // of kText
  friend bool operator==(const ChatPart&, const ChatPart&) = default;
};
using ChatParts = std::vector<ChatPart>;

// Renders the template for the messages "system" (unless the prompt is empty), "query" and
// "document". `structured`: contents are lists of {"type": "text", "text": ...}, else strings.
// kUnsupported names what encore does not support. Also where a query's or document's text is
// missing from the result, or decides what is in it.
Result<ChatParts> RenderChatTemplate(std::string_view source, std::string_view prompt,
                                     bool structured);

// Whether sentence-transformers gives this template contents as lists.
bool WantsStructuredContent(std::string_view source);

// The parts with these texts in them.
void JoinParts(const ChatParts& parts, std::string_view query, std::string_view document,
               std::string* joined);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TEXT_CHAT_TEMPLATE_H_
