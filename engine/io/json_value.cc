// SPDX-License-Identifier: Apache-2.0
//
// Builds the tree from the parser's events, with a stack of its own.

#include "engine/io/json_value.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <new>

#include "engine/base/out_of_memory.h"
#include "engine/base/quoted.h"
#include "engine/io/json.h"

namespace encore::inline v0_1::internal {

class JsonTreeBuilder : public JsonVisitor {
 public:
  bool BeginObject() override { return Open(JsonValue::Kind::kObject); }
  bool Key(const std::string& key) override {
    open_.back().key = key;
    return true;
  }
  bool EndObject() override {
    // Sorted by name to find two of one name in one pass; the members keep the file's order.
    const std::vector<JsonValue::Member>& members = open_.back().members;
    std::vector<std::string_view> keys(members.size());
    std::transform(members.begin(), members.end(), keys.begin(),
                   [](const JsonValue::Member& m) { return std::string_view(m.first); });
    std::sort(keys.begin(), keys.end());
    const auto twice = std::adjacent_find(keys.begin(), keys.end());
    if (twice != keys.end()) {
      error_ =
          Status(ErrorCode::kCorruptData, "JSON has an object with two keys " + Quoted(*twice));
      return false;
    }
    return Close();
  }
  bool BeginArray() override { return Open(JsonValue::Kind::kArray); }
  bool EndArray() override { return Close(); }
  bool String(const std::string& value) override {
    JsonValue v;
    v.kind_ = JsonValue::Kind::kString;
    v.text_ = value;
    return Put(std::move(v));
  }
  bool Unsigned(uint64_t value) override { return Number(std::to_string(value)); }
  bool Other(std::string_view description) override {
    JsonValue v;
    if (description == "null") return Put(std::move(v));
    if (description == "true" || description == "false") {
      v.kind_ = JsonValue::Kind::kBool;
      v.boolean_ = description == "true";
      return Put(std::move(v));
    }
    return Number(description);
  }

  const Status& error() const { return error_; }
  JsonValue Take() { return std::move(root_); }

 private:
  // An array or object whose end has not been seen.
  struct Unfinished {
    JsonValue value;
    std::vector<JsonValue::Member> members;
    std::string key;  // of the member that comes next
  };

  bool Open(JsonValue::Kind kind) {
    if (open_.size() == JsonValue::kMaxDepth) {
      error_ =
          Status(ErrorCode::kCorruptData,
                 "JSON is nested deeper than " + std::to_string(JsonValue::kMaxDepth) + " levels");
      return false;
    }
    open_.emplace_back().value.kind_ = kind;
    return true;
  }
  bool Close() {
    Unfinished done = std::move(open_.back());
    open_.pop_back();
    if (done.value.kind_ == JsonValue::Kind::kObject) {
      done.value.members_ =
          std::make_shared<const std::vector<JsonValue::Member>>(std::move(done.members));
    }
    return Put(std::move(done.value));
  }
  bool Number(std::string_view text) {
    JsonValue v;
    v.kind_ = JsonValue::Kind::kNumber;
    v.text_ = text;
    // Independent of the locale; out of range gives infinity or 0 as strtod does.
    const auto read = std::from_chars(text.data(), text.data() + text.size(), v.number_);
    if (read.ec == std::errc::result_out_of_range)
      v.number_ = std::strtod(v.text_.c_str(), nullptr);
    return Put(std::move(v));
  }
  bool Put(JsonValue value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (open_.back().value.kind_ == JsonValue::Kind::kObject) {
      open_.back().members.emplace_back(std::move(open_.back().key), std::move(value));
    } else {
      open_.back().value.items_.push_back(std::move(value));
    }
    return true;
  }

  JsonValue root_;
  std::vector<Unfinished> open_;
  Status error_;
};

Result<JsonValue> JsonValue::Parse(std::string_view text) try {
  JsonTreeBuilder builder;
  const Status parsed = ParseJson(text, builder);
  if (!builder.error().ok()) return builder.error();
  if (!parsed.ok()) return parsed;
  return builder.Take();
} catch (const std::bad_alloc&) {
  return OutOfMemory();
}

const JsonValue* JsonValue::Find(std::string_view key) const {
  if (kind_ != Kind::kObject) return nullptr;
  for (const Member& member : *members_) {
    if (member.first == key) return &member.second;
  }
  return nullptr;
}

bool JsonValue::AsUnsigned(uint64_t* value) const {
  if (kind_ != Kind::kNumber) return false;
  const char* end = text_.data() + text_.size();
  const auto read = std::from_chars(text_.data(), end, *value);
  return read.ec == std::errc() && read.ptr == end;
}

std::string JsonValue::Described() const {
  switch (kind_) {
    case Kind::kNull:
      return "null";
    case Kind::kBool:
      return boolean_ ? "true" : "false";
    case Kind::kNumber:
      return text_.substr(0, 40);
    case Kind::kString:
      return Quoted(text_);
    case Kind::kArray:
      return "an array of " + std::to_string(items_.size());
    case Kind::kObject:
      return "an object";
  }
  return "?";
}

}  // namespace encore::internal
