// SPDX-License-Identifier: Apache-2.0
//
// A JSON text as a tree of values, for files whose parts refer to each other. Not here: the parser
// (json.h), typed members with error sentences (json_members.h).

#ifndef ENCORE_ENGINE_IO_JSON_VALUE_H_
#define ENCORE_ENGINE_IO_JSON_VALUE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "encore/status.h"

namespace encore::inline v0_1::internal {

// One value; immutable once parsed.
class JsonValue {
 public:
  enum class Kind : uint8_t { kNull, kBool, kNumber, kString, kArray, kObject };
  using Member = std::pair<std::string, JsonValue>;

  // Values may be nested this deep.
  static constexpr size_t kMaxDepth = 64;

  // kCorruptData says where the text breaks, that it is nested deeper than kMaxDepth, or which key
  // an object has twice; kOutOfMemory.
  static Result<JsonValue> Parse(std::string_view text);

  JsonValue() = default;  // null

  Kind kind() const { return kind_; }
  bool is_null() const { return kind_ == Kind::kNull; }
  bool is_object() const { return kind_ == Kind::kObject; }
  bool is_array() const { return kind_ == Kind::kArray; }
  bool is_string() const { return kind_ == Kind::kString; }
  bool is_bool() const { return kind_ == Kind::kBool; }
  bool is_number() const { return kind_ == Kind::kNumber; }

  bool boolean() const { return boolean_; }  // kBool
  // kString: the text in UTF-8. kNumber: as it is written in the file.
  const std::string& text() const { return text_; }
  double number() const { return number_; }                       // kNumber: rounded to nearest
  const std::vector<JsonValue>& items() const { return items_; }  // kArray
  // kObject, in the order of the file.
  const std::vector<Member>& members() const { return *members_; }
  // kObject: the member of this name, or null.
  const JsonValue* Find(std::string_view key) const;

  // kNumber that is a whole number in 0 .. 2^64 - 1: true, and *value is it. 3.0 is not.
  bool AsUnsigned(uint64_t* value) const;

  // The value as a person would name it in an error sentence, shortened: "'abc'", "3.5", "null",
  // "an object", "an array of 3".
  std::string Described() const;

 private:
  friend class JsonTreeBuilder;

  Kind kind_ = Kind::kNull;
  bool boolean_ = false;
  double number_ = 0;
  std::string text_;
  std::vector<JsonValue> items_;
  std::shared_ptr<const std::vector<Member>> members_;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_IO_JSON_VALUE_H_
