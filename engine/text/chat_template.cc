// SPDX-License-Identifier: Apache-2.0
//
// Chat templates: their tags, and rendering, which knows all messages but the texts of query and
// document.

#include "engine/text/chat_template.h"

#include <algorithm>
#include <array>
#include <utility>

#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/text/chat_expression.h"

namespace encore::inline v0_1::internal {
namespace {

using PartKind = ChatPart::Kind;

constexpr size_t kMostNesting = 32;
constexpr size_t kLongestTemplate = size_t{1} << 16;  // of it, of the prompt, of what it renders
constexpr size_t kMostSteps = 100000;                 // nodes, and words of their expressions
constexpr size_t kMostVariables = 256;

struct ChatNode {
  enum class Kind : uint8_t { kText, kOutput, kFor, kIf, kSet };
  Kind kind = Kind::kText;
  std::string text = {};              // of kText; the variable of kFor and kSet
  std::vector<ChatWord> words = {};   // the expression
  std::vector<ChatNode> body = {};    // of kFor; of kIf where the condition holds
  std::vector<ChatNode> orelse = {};  // of kIf; an elif is a kIf in there
};

// Newlines as Jinja has them, without the one at the end.
std::string Normalized(std::string_view source) {
  std::string text;
  for (size_t i = 0; i < source.size(); ++i) {
    const bool pair = source[i] == '\r' && i + 1 < source.size() && source[i + 1] == '\n';
    if (!pair) text += source[i] == '\r' ? '\n' : source[i];
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

// Reads a template's tags under trim_blocks and lstrip_blocks, which transformers sets: a newline
// behind a block belongs to it, and so do blanks before it on its line.
class TemplateReader {
 public:
  explicit TemplateReader(std::string_view source) : source_(source) {}

  Result<std::vector<ChatNode>> All() {
    ENCORE_ASSIGN_OR_RETURN(std::vector<ChatNode> nodes, Nodes());
    if (!ended_by_.empty()) return NotInTemplates(Quoted(ended_by_) + " without a beginning");
    return nodes;
  }

 private:
  // Up to the template's end or to a block that ends or divides another, whose name is ended_by_
  // then.
  Result<std::vector<ChatNode>> Nodes() {
    if (++depth_ > kMostNesting) return NotInTemplates("blocks in blocks");
    std::vector<ChatNode> nodes;
    ended_by_.clear();
    while (ended_by_.empty() && at_ < source_.size()) {
      const size_t tag = FindTag();
      ENCORE_RETURN_IF_ERROR(AddText(tag, &nodes));
      if (at_ == source_.size()) break;
      const char type = source_[at_ + 1];
      at_ += 2;
      if (at_ < source_.size() && (source_[at_] == '-' || source_[at_] == '+')) {
        if (source_[at_] == '+') return NotInTemplates("'+' at a tag's edge");
        ++at_;
      }
      if (type == '#') {
        const size_t end = source_.find("#}", at_);
        if (end == std::string_view::npos) return NotInTemplates("a comment without an end");
        at_ = end - (end > at_ && source_[end - 1] == '-' ? 1 : 0);
        ENCORE_RETURN_IF_ERROR(EndTag(true));
      } else if (type == '{') {
        ChatNode node{ChatNode::Kind::kOutput};
        ENCORE_ASSIGN_OR_RETURN(node.words, ReadChatWords(source_, "}}", &at_));
        ENCORE_RETURN_IF_ERROR(EndTag(false));
        nodes.push_back(std::move(node));
      } else {
        ENCORE_ASSIGN_OR_RETURN(std::vector<ChatWord> words, ReadChatWords(source_, "%}", &at_));
        ENCORE_RETURN_IF_ERROR(EndTag(true));
        ENCORE_RETURN_IF_ERROR(Block(std::move(words), &nodes));
      }
    }
    --depth_;
    return nodes;
  }

  // Where the next tag begins, or the template's end.
  size_t FindTag() const {
    for (size_t i = at_; i + 1 < source_.size(); ++i) {
      const char next = source_[i + 1];
      if (source_[i] == '{' && (next == '{' || next == '%' || next == '#')) return i;
    }
    return source_.size();
  }

  // The text up to `tag`, without what the tag takes of it.
  Status AddText(size_t tag, std::vector<ChatNode>* nodes) {
    std::string_view text = source_.substr(at_, tag - at_);
    const bool first_of_line = at_ == 0 || source_[at_ - 1] == '\n';
    if (tag + 2 < source_.size() && source_[tag + 2] == '-') {
      while (!text.empty() && kChatBlanks.find(text.back()) != std::string_view::npos) {
        text.remove_suffix(1);
      }
      ENCORE_RETURN_IF_ERROR(WantAscii(text.empty() ? ' ' : text.back()));
    } else if (tag < source_.size() && source_[tag + 1] != '{') {
      const size_t line = text.rfind('\n') + 1;  // 0 where there is no newline
      if (line > 0 || first_of_line) {
        const std::string_view before = text.substr(line);
        const bool may_be_blank = std::all_of(before.begin(), before.end(), [](char c) {
          return kChatBlanks.find(c) != std::string_view::npos || !IsAscii(c);
        });
        if (may_be_blank) {
          if (!std::all_of(before.begin(), before.end(), IsAscii)) {
            return NotInTemplates("letters outside ASCII alone on a line before a block");
          }
          text = text.substr(0, line);
        }
      }
    }
    if (!text.empty()) nodes->push_back({ChatNode::Kind::kText, std::string(text)});
    at_ = tag;
    return {};
  }

  // Behind a tag's "-}}", "%}" and the like.
  Status EndTag(bool takes_newline) {
    const bool strips = source_[at_] == '-';
    if (!strips && source_[at_ - 1] == '+') return NotInTemplates("'+' at a tag's edge");
    at_ += strips ? 3 : 2;
    if (strips) {
      at_ = std::min(source_.find_first_not_of(kChatBlanks, at_), source_.size());
      return WantAscii(at_ < source_.size() ? source_[at_] : ' ');
    }
    if (takes_newline && at_ < source_.size() && source_[at_] == '\n') ++at_;
    return {};
  }

  static bool IsAscii(char c) { return static_cast<unsigned char>(c) < 0x80; }

  // Python strips blanks of other scripts too.
  static Status WantAscii(char c) {
    if (IsAscii(c)) return {};
    return NotInTemplates("'-' beside a letter outside ASCII");
  }

  Status Block(std::vector<ChatWord> words, std::vector<ChatNode>* nodes) {
    const std::string name = words[0].kind == ChatWord::Kind::kName ? words[0].text : "";
    words.erase(words.begin(), words.begin() + (words.size() > 1 ? 1 : 0));
    constexpr std::array<std::string_view, 4> kEnds = {"endfor", "endif", "else", "elif"};
    if (std::find(kEnds.begin(), kEnds.end(), name) != kEnds.end()) {
      if (name != "elif" && words.size() > 1) {
        return NotInTemplates(Quoted(words[0].text) + " after " + Quoted(name));
      }
      ended_by_ = name;
      end_words_ = std::move(words);
      return {};
    }
    ChatNode node;
    if (name == "if") return If(std::move(words), nodes);
    const bool loops = name == "for";
    if (!loops && name != "set") return NotInTemplates("the block " + Quoted(name));
    const std::string_view sign = loops ? "in" : "=";
    if (words.size() < 4 || words[0].kind != ChatWord::Kind::kName || words[1].text != sign) {
      return NotInTemplates("another form of " + Quoted(name));
    }
    node.kind = loops ? ChatNode::Kind::kFor : ChatNode::Kind::kSet;
    node.text = words[0].text;
    node.words.assign(words.begin() + 2, words.end());
    if (loops) {
      ENCORE_RETURN_IF_ERROR(CheckHead(node.words));
      ENCORE_ASSIGN_OR_RETURN(node.body, Nodes());
      ENCORE_RETURN_IF_ERROR(WantEnd("endfor"));
    }
    nodes->push_back(std::move(node));
    return {};
  }

  // `for m in messages if m.role` has a condition on m; within brackets it belongs to the list.
  static Status CheckHead(const std::vector<ChatWord>& words) {
    ptrdiff_t brackets = 0;
    for (const ChatWord& word : words) {
      if (word.kind == ChatWord::Kind::kSign && (word.text == "(" || word.text == "[")) ++brackets;
      if (word.kind == ChatWord::Kind::kSign && (word.text == ")" || word.text == "]")) --brackets;
      if (brackets == 0 && word.kind == ChatWord::Kind::kName &&
          (word.text == "if" || word.text == "recursive")) {
        return NotInTemplates("a loop with " + Quoted(word.text));
      }
    }
    return {};
  }

  Status If(std::vector<ChatWord> words, std::vector<ChatNode>* nodes) {
    ChatNode node{ChatNode::Kind::kIf};
    node.words = std::move(words);
    ENCORE_ASSIGN_OR_RETURN(node.body, Nodes());
    if (ended_by_ == "elif") {
      if (++depth_ > kMostNesting) return NotInTemplates("many elif");
      ENCORE_RETURN_IF_ERROR(If(std::move(end_words_), &node.orelse));
      --depth_;
    } else {
      if (ended_by_ == "else") {
        ENCORE_ASSIGN_OR_RETURN(node.orelse, Nodes());
      }
      ENCORE_RETURN_IF_ERROR(WantEnd("endif"));
    }
    nodes->push_back(std::move(node));
    return {};
  }

  Status WantEnd(std::string_view name) {
    if (ended_by_ != name) return NotInTemplates("a block without " + Quoted(name));
    ended_by_.clear();
    return {};
  }

  std::string_view source_;
  size_t at_ = 0;
  size_t depth_ = 0;
  std::string ended_by_;
  std::vector<ChatWord> end_words_;
};

// The value of a whole tag.
Result<ChatValue> Evaluate(const std::vector<ChatWord>& words, const ChatScope& scope) {
  size_t at = 0;
  ENCORE_ASSIGN_OR_RETURN(ChatValue value, EvaluateChat(words, scope, &at));
  if (words[at].kind == ChatWord::Kind::kEnd) return value;
  return NotInTemplates(Quoted(words[at].text));
}

// Renders nodes, within bounds of work and of output.
class TemplateRenderer {
 public:
  Status Render(const std::vector<ChatNode>& nodes, ChatScope* scope) {
    for (const ChatNode& node : nodes) {
      steps_ += 1 + node.words.size();
      if (steps_ > kMostSteps) return NotInTemplates("too many steps");
      ENCORE_RETURN_IF_ERROR(RenderOne(node, scope));
    }
    return {};
  }
  ChatParts TakeParts() { return std::move(parts_); }

 private:
  Status RenderOne(const ChatNode& node, ChatScope* scope) {
    if (node.kind == ChatNode::Kind::kText) return Output(ChatValue::Text(node.text));
    ENCORE_ASSIGN_OR_RETURN(ChatValue value, Evaluate(node.words, *scope));
    switch (node.kind) {
      case ChatNode::Kind::kFor:
        return Loop(node, value, scope);
      case ChatNode::Kind::kSet:
        if (scope->size() >= kMostVariables) return NotInTemplates("many variables");
        if (value.lazy) return NotInTemplates("a variable of a filter's items, without list");
        scope->emplace_back(node.text, std::move(value));
        return {};
      case ChatNode::Kind::kOutput:
        return Output(value);
      default: {
        ENCORE_ASSIGN_OR_RETURN(const bool holds, IsTrue(value));
        return Render(holds ? node.body : node.orelse, scope);
      }
    }
  }

  Status Output(const ChatValue& value) {
    if (value.is(ChatValue::Kind::kUndefined)) return {};
    if (!value.is(ChatValue::Kind::kText)) return NotInTemplates("output of what is no text");
    for (const ChatPart& part : value.text) {
      bytes_ += part.text.size() + 1;
      if (bytes_ > kLongestTemplate) return NotInTemplates("more than 64 KiB of output");
      AddPart(part, &parts_);
    }
    return {};
  }

  // A loop's variables are its own.
  Status Loop(const ChatNode& node, const ChatValue& list, ChatScope* scope) {
    if (!list.is(ChatValue::Kind::kList)) return NotInTemplates("a loop over what is no list");
    const size_t count = list.items.size();
    for (size_t i = 0; i < count; ++i) {
      ChatValue loop{.kind = ChatValue::Kind::kObject};
      loop.members = {{"first", ChatValue::Bool(i == 0)},
                      {"last", ChatValue::Bool(i + 1 == count)},
                      {"index0", ChatValue::Integer(static_cast<int64_t>(i))},
                      {"index", ChatValue::Integer(static_cast<int64_t>(i) + 1)},
                      {"length", ChatValue::Integer(static_cast<int64_t>(count))},
                      {"revindex0", ChatValue::Integer(static_cast<int64_t>(count - i) - 1)},
                      {"revindex", ChatValue::Integer(static_cast<int64_t>(count - i))}};
      loop.closed = true;
      const auto outer = static_cast<ptrdiff_t>(scope->size());
      scope->emplace_back("loop", std::move(loop));
      scope->emplace_back(node.text, list.items[i]);
      ENCORE_RETURN_IF_ERROR(Render(node.body, scope));
      scope->erase(scope->begin() + outer, scope->end());
    }
    return {};
  }

  ChatParts parts_;
  size_t bytes_ = 0;
  size_t steps_ = 0;
};

ChatValue Message(std::string_view role, ChatPart content, bool structured) {
  ChatValue text{.kind = ChatValue::Kind::kText};
  text.text.push_back(std::move(content));
  if (structured) {
    ChatValue item{.kind = ChatValue::Kind::kObject};
    item.members = {{"type", ChatValue::Text("text")}, {"text", std::move(text)}};
    text = ChatValue{.kind = ChatValue::Kind::kList};
    text.items.push_back(std::move(item));
  }
  ChatValue message{.kind = ChatValue::Kind::kObject};
  message.members = {{"role", ChatValue::Text(role)}, {"content", std::move(text)}};
  return message;
}

}  // namespace

Result<ChatParts> RenderChatTemplate(std::string_view source, std::string_view prompt,
                                     bool structured) {
  if (source.size() > kLongestTemplate || prompt.size() > kLongestTemplate) {
    return NotInTemplates("more than 64 KiB");
  }
  const std::string text = Normalized(source);
  ENCORE_ASSIGN_OR_RETURN(const std::vector<ChatNode> nodes, TemplateReader(text).All());
  ChatValue messages{.kind = ChatValue::Kind::kList};
  if (!prompt.empty()) {
    messages.items.push_back(Message("system", {PartKind::kText, std::string(prompt)}, structured));
  }
  messages.items.push_back(Message("query", {PartKind::kQuery}, structured));
  messages.items.push_back(Message("document", {PartKind::kDocument}, structured));
  ChatScope scope = {{"messages", std::move(messages)},
                     {"add_generation_prompt", ChatValue::Bool(false)},
                     {"tools", ChatValue{ChatValue::Kind::kNone}},
                     {"documents", ChatValue{ChatValue::Kind::kNone}}};
  TemplateRenderer renderer;
  ENCORE_RETURN_IF_ERROR(renderer.Render(nodes, &scope));
  ChatParts parts = renderer.TakeParts();
  std::array<bool, 3> has = {};
  for (const ChatPart& part : parts) has[static_cast<size_t>(part.kind)] = true;
  if (!has[1] || !has[2]) {
    return Status(ErrorCode::kUnsupported,
                  "the messages 'query' and 'document' do not both get into the text; wanted a "
                  "template that has them");
  }
  return parts;
}

bool WantsStructuredContent(std::string_view source) {
  constexpr std::array<std::string_view, 6> kPatterns = {
      "content[0]", ".type", "'type'", "\"type\"", "item.type", "message.content["};
  return source.empty() || std::any_of(kPatterns.begin(), kPatterns.end(), [&](auto pattern) {
           return source.find(pattern) != std::string_view::npos;
         });
}

void JoinParts(const ChatParts& parts, std::string_view query, std::string_view document,
               std::string* joined) {
  joined->clear();
  for (const ChatPart& part : parts) {
    joined->append(part.kind == PartKind::kText    ? std::string_view(part.text)
                   : part.kind == PartKind::kQuery ? query
                                                   : document);
  }
}

}  // namespace encore::internal
