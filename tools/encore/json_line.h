// SPDX-License-Identifier: Apache-2.0
//
// A text out of a line of JSON, and what is wrong with a line that has none.

#ifndef ENCORE_TOOLS_ENCORE_JSON_LINE_H_
#define ENCORE_TOOLS_ENCORE_JSON_LINE_H_

#include <optional>
#include <string>
#include <string_view>

namespace encore::tool {

struct TextInput {
  std::string text;
  std::optional<std::string> pair;  // the second text: member "pair" of a JSON object
  std::string id;                   // member or column "id" as JSON: 7 or "a7"; empty: none
};

struct JsonLineRules {
  std::string field;             // the member that is the text, unless the line is a string
  bool replace_invalid = false;  // bytes that are not UTF-8, and halves of surrogate pairs
};

// The text of a line without its end. Returns "", or a sentence: what was found and what was
// wanted.
std::string ReadJsonLine(std::string_view line, const JsonLineRules& rules, TextInput* input);

// "the byte 0xFF at byte 7, which is not UTF-8" of the first such byte, counted from 1; empty if
// there is none.
std::string FoundInvalidUtf8(std::string_view text);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_JSON_LINE_H_
