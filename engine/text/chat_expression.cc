// SPDX-License-Identifier: Apache-2.0
//
// Expressions of chat templates.

#include "engine/text/chat_expression.h"

#include <algorithm>
#include <array>
#include <optional>

#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"

namespace encore::inline v0_1::internal {
namespace {

using ValueKind = ChatValue::Kind;
using WordKind = ChatWord::Kind;

constexpr size_t kMostDepth = 32;                 // of parentheses and the like
constexpr size_t kLongestText = size_t{1} << 16;  // of a text
constexpr size_t kMostParts = 256;                // of a text

// Variables of Jinja and of transformers that every template has.
constexpr std::array<std::string_view, 9> kGlobals = {
    "range",           "dict",         "lipsum", "cycler", "joiner", "namespace",
    "raise_exception", "strftime_now", "self"};
// What a message has as Python's dict. The sandbox hides the methods that change one.
constexpr std::array<std::string_view, 6> kDictMethods = {"copy",  "fromkeys", "get",
                                                          "items", "keys",     "values"};

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// A string in quotes, with the escapes that templates use.
Result<ChatWord> ReadChatString(std::string_view source, size_t* at) {
  const char quote = source[(*at)++];
  ChatWord word{WordKind::kString, {}};
  while (*at < source.size() && source[*at] != quote) {
    char c = source[(*at)++];
    if (c == '\\') {
      const char escaped = *at < source.size() ? source[(*at)++] : ' ';
      if (escaped == 'n') {
        c = '\n';
      } else if (escaped == 't') {
        c = '\t';
      } else if (escaped == '\\' || escaped == '\'' || escaped == '"') {
        c = escaped;
      } else {
        return NotInTemplates("the escape \\" + std::string(1, escaped));
      }
    }
    word.text += c;
  }
  if (*at >= source.size()) return NotInTemplates("a string without an end");
  ++*at;
  return word;
}

// The literal text of a value, or nothing where a query or document is in it.
std::optional<std::string> KnownText(const ChatValue& value) {
  if (!value.is(ValueKind::kText)) return {};
  std::string text;
  for (const ChatPart& part : value.text) {
    if (part.kind != ChatPart::Kind::kText) return {};
    text += part.text;
  }
  return text;
}

// a == b, as Python has it for these kinds.
Result<bool> AreEqual(const ChatValue& a, const ChatValue& b) {
  if (a.is(ValueKind::kList) || a.is(ValueKind::kObject) || b.is(ValueKind::kList) ||
      b.is(ValueKind::kObject)) {
    return NotInTemplates("a comparison of lists or messages");
  }
  if (a.is(ValueKind::kText) && b.is(ValueKind::kText)) {
    const std::optional<std::string> left = KnownText(a);
    const std::optional<std::string> right = KnownText(b);
    if (!left || !right) return NotInTemplates("a comparison of a query's or document's text");
    return *left == *right;
  }
  const auto is_number = [](const ChatValue& value) {
    return value.is(ValueKind::kInteger) || value.is(ValueKind::kBool);
  };
  if (is_number(a) && is_number(b)) return a.integer == b.integer;
  return a.kind == b.kind;
}

// Reads one expression after the rules of Jinja's precedence.
class ChatReader {
 public:
  ChatReader(const std::vector<ChatWord>& words, const ChatScope& scope, size_t* at)
      : words_(words), scope_(scope), at_(*at) {}

  // `a if c else b`. Sides that do not count are computed too, and may be refused.
  Result<ChatValue> Conditional() {
    if (++depth_ > kMostDepth) return NotInTemplates("a nested expression");
    ENCORE_ASSIGN_OR_RETURN(ChatValue value, Or());
    while (TakeName("if")) {
      ENCORE_ASSIGN_OR_RETURN(const ChatValue condition, Or());
      ENCORE_ASSIGN_OR_RETURN(const bool holds, IsTrue(condition));
      ChatValue other;
      if (TakeName("else")) {
        ENCORE_ASSIGN_OR_RETURN(other, Conditional());
      }
      if (!holds) value = std::move(other);
    }
    --depth_;
    return value;
  }

 private:
  const ChatWord& Next() const { return words_[at_]; }
  bool Take(WordKind kind, std::string_view text) {
    if (Next().kind != kind || Next().text != text) return false;
    ++at_;
    return true;
  }
  bool TakeName(std::string_view name) { return Take(WordKind::kName, name); }
  bool TakeSign(std::string_view sign) { return Take(WordKind::kSign, sign); }
  Status Want(std::string_view sign) {
    if (TakeSign(sign)) return {};
    return NotInTemplates(Next().kind == WordKind::kEnd ? "an expression without " + Quoted(sign)
                                                        : Quoted(Next().text));
  }

  Result<ChatValue> Or() {
    ENCORE_ASSIGN_OR_RETURN(ChatValue value, And());
    while (TakeName("or")) {
      ENCORE_ASSIGN_OR_RETURN(ChatValue other, And());
      ENCORE_ASSIGN_OR_RETURN(const bool holds, IsTrue(value));
      if (!holds) value = std::move(other);
    }
    return value;
  }

  Result<ChatValue> And() {
    ENCORE_ASSIGN_OR_RETURN(ChatValue value, Not());
    while (TakeName("and")) {
      ENCORE_ASSIGN_OR_RETURN(ChatValue other, Not());
      ENCORE_ASSIGN_OR_RETURN(const bool holds, IsTrue(value));
      if (holds) value = std::move(other);
    }
    return value;
  }

  Result<ChatValue> Not() {
    bool negated = false;
    bool any = false;
    while (TakeName("not")) {
      negated = !negated;
      any = true;
    }
    ENCORE_ASSIGN_OR_RETURN(ChatValue value, Comparison());
    if (!any) return value;
    ENCORE_ASSIGN_OR_RETURN(const bool holds, IsTrue(value));
    return ChatValue::Bool(holds != negated);
  }

  Result<ChatValue> Comparison() {
    ENCORE_ASSIGN_OR_RETURN(ChatValue value, Concatenation());
    for (;;) {
      const bool equal = TakeSign("==");
      if (!equal && !TakeSign("!=")) return value;
      ENCORE_ASSIGN_OR_RETURN(const ChatValue other, Concatenation());
      ENCORE_ASSIGN_OR_RETURN(const bool same, AreEqual(value, other));
      value = ChatValue::Bool(same == equal);
      if (Next().text == "==" || Next().text == "!=") return NotInTemplates("a chain of ==");
    }
  }

  Result<ChatValue> Concatenation() {
    ENCORE_ASSIGN_OR_RETURN(ChatValue value, Filtered());
    for (;;) {
      if (!TakeSign("+") && !TakeSign("~")) return value;
      ENCORE_ASSIGN_OR_RETURN(const ChatValue other, Filtered());
      if (!value.is(ValueKind::kText) || !other.is(ValueKind::kText)) {
        return NotInTemplates("a sum of what is no text");
      }
      for (const ChatPart& part : other.text) AddPart(part, &value.text);
      size_t bytes = 0;
      for (const ChatPart& part : value.text) bytes += part.text.size() + 1;
      if (bytes > kLongestText || value.text.size() > kMostParts) {
        return NotInTemplates("a long sum");
      }
    }
  }

  Result<ChatValue> Filtered() {
    ENCORE_ASSIGN_OR_RETURN(ChatValue value, Postfixed());
    for (;;) {
      if (TakeSign("|")) {
        ENCORE_ASSIGN_OR_RETURN(value, Filter(std::move(value)));
      } else if (TakeName("is")) {
        ENCORE_ASSIGN_OR_RETURN(value, Test(value));
      } else {
        return value;
      }
    }
  }

  Result<ChatValue> Test(const ChatValue& value) {
    const bool negated = TakeName("not");
    bool holds = false;
    if (TakeName("defined")) {
      holds = !value.is(ValueKind::kUndefined);
    } else if (TakeName("none")) {
      holds = value.is(ValueKind::kNone);
    } else if (TakeName("string")) {
      holds = value.is(ValueKind::kText);
    } else {
      return NotInTemplates("the test " + Quoted(Next().text));
    }
    return ChatValue::Bool(holds != negated);
  }

  Result<ChatValue> Postfixed() {
    ENCORE_ASSIGN_OR_RETURN(ChatValue value, Primary());
    for (;;) {
      ChatValue key;
      if (TakeSign(".")) {
        key = ChatValue::Text(Next().text);
        if (Next().kind != WordKind::kName) return NotInTemplates("'.' before no name");
        ++at_;
      } else if (TakeSign("[")) {
        ENCORE_ASSIGN_OR_RETURN(key, Conditional());
        ENCORE_RETURN_IF_ERROR(Want("]"));
      } else if (TakeSign("(")) {
        return NotInTemplates("a call of a function");
      } else {
        return value;
      }
      ENCORE_ASSIGN_OR_RETURN(value, Member(value, key));
    }
  }

  static Result<ChatValue> Member(const ChatValue& value, const ChatValue& key) {
    const std::optional<std::string> name = KnownText(key);
    if (value.is(ValueKind::kObject) && name) {
      const ChatValue* found = value.Find(*name);
      if (found != nullptr) return *found;
      if (value.closed) return NotInTemplates(Quoted("loop." + *name));
      if (std::find(kDictMethods.begin(), kDictMethods.end(), *name) != kDictMethods.end()) {
        return NotInTemplates("the method " + Quoted(*name));
      }
      return ChatValue();
    }
    if (value.is(ValueKind::kList) && !value.lazy && key.is(ValueKind::kInteger)) {
      const auto size = static_cast<int64_t>(value.items.size());
      const int64_t place = key.integer < 0 ? size + key.integer : key.integer;
      if (place < 0 || place >= size) return ChatValue();
      return value.items[static_cast<size_t>(place)];
    }
    return NotInTemplates("a member " + (name ? Quoted(*name) + " " : std::string()) +
                          "of what has none");
  }

  Result<ChatValue> Primary() {
    const ChatWord word = Next();
    if (word.kind == WordKind::kEnd) return NotInTemplates("a tag that ends too early");
    ++at_;
    if (word.kind == WordKind::kString) return ChatValue::Text(word.text);
    if (word.kind == WordKind::kInteger) return ChatValue::Integer(std::stoll(word.text));
    if (word.kind == WordKind::kSign) {
      if (word.text == "-" && Next().kind == WordKind::kInteger) {
        return ChatValue::Integer(-std::stoll(words_[at_++].text));
      }
      if (word.text != "(") return NotInTemplates(Quoted(word.text));
      ENCORE_ASSIGN_OR_RETURN(ChatValue value, Conditional());
      ENCORE_RETURN_IF_ERROR(Want(")"));
      return value;
    }
    if (word.text == "true" || word.text == "True") return ChatValue::Bool(true);
    if (word.text == "false" || word.text == "False") return ChatValue::Bool(false);
    if (word.text == "none" || word.text == "None") return ChatValue{ValueKind::kNone};
    for (auto known = scope_.rbegin(); known != scope_.rend(); ++known) {
      if (known->first == word.text) return known->second;
    }
    // Variables of the tokenizer, and globals of Jinja and transformers.
    if (word.text.ends_with("_token") || word.text.ends_with("_tokens") ||
        std::find(kGlobals.begin(), kGlobals.end(), word.text) != kGlobals.end()) {
      return NotInTemplates("the variable " + Quoted(word.text));
    }
    return ChatValue();
  }

  // Arguments of a filter in parentheses; of "map" the first is attribute=..., as Jinja takes one
  // without a name for a filter.
  Result<std::vector<ChatValue>> Arguments(bool of_map) {
    std::vector<ChatValue> arguments;
    if (!TakeSign("(")) return arguments;
    while (!TakeSign(")")) {
      if (!arguments.empty()) ENCORE_RETURN_IF_ERROR(Want(","));
      if (of_map && arguments.empty()) {
        if (!TakeName("attribute")) return NotInTemplates("map of a filter");
        ENCORE_RETURN_IF_ERROR(Want("="));
      }
      ENCORE_ASSIGN_OR_RETURN(ChatValue argument, Conditional());
      arguments.push_back(std::move(argument));
    }
    return arguments;
  }

  Result<ChatValue> Filter(ChatValue value) {
    const std::string name = Next().kind == WordKind::kName ? Next().text : "";
    if (name.empty()) return NotInTemplates("'|' before no name");
    ++at_;
    const bool maps = name == "map";
    ENCORE_ASSIGN_OR_RETURN(const std::vector<ChatValue> arguments, Arguments(maps));
    const size_t count = arguments.size();
    const bool is_list = value.is(ValueKind::kList);
    if ((name == "default" || name == "d") && count == 1) {
      return value.is(ValueKind::kUndefined) ? arguments[0] : value;
    }
    if (name == "list" && count == 0 && is_list) {
      value.lazy = false;
      return value;
    }
    if (name == "first" && count == 0 && is_list) {
      return value.items.empty() ? ChatValue() : value.items.front();
    }
    if (name == "last" && count == 0 && is_list && !value.lazy) {
      return value.items.empty() ? ChatValue() : value.items.back();
    }
    if (name == "trim" && count == 0) return Trimmed(value);
    if (maps && count == 1 && is_list) {
      for (ChatValue& item : value.items) {
        ENCORE_ASSIGN_OR_RETURN(item, Attribute(item, arguments[0]));
      }
      value.lazy = true;
      return value;
    }
    if ((name == "selectattr" || name == "rejectattr") && count == 3 && is_list) {
      return Selected(std::move(value), arguments, name == "selectattr");
    }
    return NotInTemplates("the filter " + Quoted(name) + " with these arguments");
  }

  // An item's attribute, as filters have it. Jinja takes "a.b" and "0" for a path and a place.
  static Result<ChatValue> Attribute(const ChatValue& item, const ChatValue& attribute) {
    const std::string name = KnownText(attribute).value_or("");
    if (name.empty() || IsDigit(name[0]) || name.find('.') != std::string::npos) {
      return NotInTemplates("the attribute " + Quoted(name));
    }
    return Member(item, attribute);
  }

  // items | selectattr("role", "eq", "query")
  static Result<ChatValue> Selected(ChatValue value, const std::vector<ChatValue>& arguments,
                                    bool selects) {
    const std::string test = KnownText(arguments[1]).value_or("");
    const bool equal = test == "eq" || test == "equalto" || test == "==";
    if (!equal && test != "ne" && test != "!=") return NotInTemplates("the test " + Quoted(test));
    std::vector<ChatValue> kept;
    for (ChatValue& item : value.items) {
      ENCORE_ASSIGN_OR_RETURN(const ChatValue member, Attribute(item, arguments[0]));
      ENCORE_ASSIGN_OR_RETURN(const bool same, AreEqual(member, arguments[2]));
      if ((same == equal) == selects) kept.push_back(std::move(item));
    }
    value.items = std::move(kept);
    value.lazy = true;
    return value;
  }

  static Result<ChatValue> Trimmed(const ChatValue& value) {
    const std::optional<std::string> text = KnownText(value);
    if (!text) return NotInTemplates("trim of a query's or document's text");
    const bool ascii = std::all_of(text->begin(), text->end(),
                                   [](char c) { return static_cast<unsigned char>(c) < 0x80; });
    if (!ascii) return NotInTemplates("trim of letters outside ASCII");
    const size_t begin = text->find_first_not_of(kChatBlanks);
    if (begin == std::string::npos) return ChatValue::Text("");
    return ChatValue::Text(
        std::string_view(*text).substr(begin, text->find_last_not_of(kChatBlanks) + 1 - begin));
  }

  const std::vector<ChatWord>& words_;
  const ChatScope& scope_;
  size_t& at_;
  size_t depth_ = 0;
};

}  // namespace

ChatValue ChatValue::Bool(bool value) { return {.kind = Kind::kBool, .integer = value ? 1 : 0}; }
ChatValue ChatValue::Integer(int64_t value) { return {.kind = Kind::kInteger, .integer = value}; }
ChatValue ChatValue::Text(std::string_view text) {
  ChatValue value{.kind = Kind::kText};
  if (!text.empty()) value.text.push_back({ChatPart::Kind::kText, std::string(text)});
  return value;
}

const ChatValue* ChatValue::Find(std::string_view name) const {
  for (const auto& [key, value] : members) {
    if (key == name) return &value;
  }
  return nullptr;
}

void AddPart(const ChatPart& part, ChatParts* text) {
  constexpr ChatPart::Kind kLiteral = ChatPart::Kind::kText;
  if (part.kind == kLiteral && !text->empty() && text->back().kind == kLiteral) {
    text->back().text += part.text;
  } else {
    text->push_back(part);
  }
}

Status NotInTemplates(const std::string& what) {
  return Status(ErrorCode::kUnsupported,
                "found " + what +
                    "; of chat templates encore has text, contents of messages by role or place, "
                    "loops over messages and conditions on roles");
}

Result<bool> IsTrue(const ChatValue& value) {
  switch (value.kind) {
    case ValueKind::kUndefined:
    case ValueKind::kNone:
      return false;
    case ValueKind::kText: {
      const std::optional<std::string> text = KnownText(value);
      if (!text) return NotInTemplates("a condition on a query's or document's text");
      return !text->empty();
    }
    case ValueKind::kList:
      if (value.lazy) return NotInTemplates("a condition on a filter's items");
      return !value.items.empty();
    case ValueKind::kObject:
      return !value.members.empty();
    default:
      return value.integer != 0;
  }
}

Result<std::vector<ChatWord>> ReadChatWords(std::string_view source, std::string_view close,
                                            size_t* at) {
  constexpr std::string_view kSigns = "()[]{}.,|+~=-<>*/%:";
  std::vector<ChatWord> words;
  for (;;) {
    while (*at < source.size() &&
           (source[*at] == ' ' || source[*at] == '\n' || source[*at] == '\t'))
      ++*at;
    const std::string_view rest = source.substr(std::min(*at, source.size()));
    if (rest.empty()) return NotInTemplates("a tag without an end");
    if (rest.starts_with(close) || (rest[0] == '-' && rest.substr(1).starts_with(close))) {
      words.push_back({});
      return words;
    }
    const char c = rest[0];
    size_t length = 1;
    if (c == '\'' || c == '"') {
      ENCORE_ASSIGN_OR_RETURN(ChatWord word, ReadChatString(source, at));
      words.push_back(std::move(word));
      continue;
    }
    WordKind kind = WordKind::kSign;
    if (IsLetter(c) || IsDigit(c)) {
      kind = IsLetter(c) ? WordKind::kName : WordKind::kInteger;
      while (length < rest.size() &&
             (IsDigit(rest[length]) || (kind == WordKind::kName && IsLetter(rest[length]))))
        ++length;
      if (kind == WordKind::kInteger && length > 9) return NotInTemplates("a large number");
    } else if (rest.starts_with("==") || rest.starts_with("!=")) {
      length = 2;
    } else if (kSigns.find(c) == std::string_view::npos) {
      return NotInTemplates("the character " + Quoted(rest.substr(0, 1)));
    }
    words.push_back({kind, std::string(rest.substr(0, length))});
    *at += length;
  }
}

Result<ChatValue> EvaluateChat(const std::vector<ChatWord>& words, const ChatScope& scope,
                               size_t* at) {
  return ChatReader(words, scope, at).Conditional();
}

}  // namespace encore::internal
