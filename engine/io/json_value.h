// SPDX-License-Identifier: Apache-2.0
//
// A JSON text as a tree of values, and JSON strings. Hides the JSON library from the rest of
// encore.

#ifndef ENCORE_ENGINE_IO_JSON_VALUE_H_
#define ENCORE_ENGINE_IO_JSON_VALUE_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
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
  // At most 1 GB of memory. A tokenizer.json of a million tokens and two million merges has 7
  // million values.
  static constexpr size_t kMaxValues = size_t{8} << 20;

  // Parses one value in strict UTF-8 (no comments, no NUL bytes) and white space, in any locale and
  // rounding mode. kCorruptData for bad syntax (with its place), deeper nesting than kMaxDepth,
  // more values than max_values, or a duplicate key (with its name); kOutOfMemory.
  static Result<JsonValue> Parse(std::string_view text, size_t max_values = kMaxValues);

  JsonValue() = default;  // null
  static const JsonValue& Null();
  // Values that are made instead of read. Keys of Object must differ.
  // NOLINTBEGIN(google-explicit-constructor)
  JsonValue(std::same_as<bool> auto value) : value_(value) {}  // a pointer would become a bool
  JsonValue(std::same_as<double> auto value) : value_(value) {}
  JsonValue(uint64_t value) : value_(value) {}
  JsonValue(std::string value) : value_(std::move(value)) {}
  JsonValue(const char* value) : value_(std::string(value)) {}
  // NOLINTEND(google-explicit-constructor)
  static JsonValue Array(std::vector<JsonValue> items);
  static JsonValue Object(std::vector<Member> members);

  Kind kind() const;
  bool is_null() const { return kind() == Kind::kNull; }
  bool is_object() const { return kind() == Kind::kObject; }
  bool is_array() const { return kind() == Kind::kArray; }
  bool is_string() const { return kind() == Kind::kString; }
  bool is_bool() const { return kind() == Kind::kBool; }
  bool is_number() const { return kind() == Kind::kNumber; }

  // false, "", 0 or nothing where the kind is another.
  bool boolean() const;                         // kBool
  const std::string& text() const;              // kString, in UTF-8
  double number() const;                        // kNumber, rounded to nearest
  const std::vector<JsonValue>& items() const;  // kArray
  const std::vector<Member>& members() const;   // kObject, in the order of the file
  // kObject: the member of this name, or null.
  const JsonValue* Find(std::string_view key) const;
  // The same; a value that is null where there is none.
  const JsonValue& operator[](std::string_view key) const;

  // kNumber that is a whole number in 0 .. 2^64 - 1: true, and *value is it. 3.0 is not.
  bool AsUnsigned(uint64_t* value) const;

  // The value as error texts name it, shortened: "'abc'", "3.5", "null",
  // "an object", "an array of 3".
  std::string Described() const;

 private:
  friend class JsonTreeBuilder;
  using Items = std::vector<JsonValue>;
  using Members = std::shared_ptr<const std::vector<Member>>;

  // Numbers as the parser typed them: whole ones of at least 0, those below, all others.
  std::variant<std::monostate, bool, uint64_t, int64_t, double, std::string, Items, Members> value_;
};

// text with quotes and escapes as JSON wants it; kInvalidArgument if it is not UTF-8. Throws
// std::bad_alloc.
Result<std::string> JsonString(std::string_view text);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_IO_JSON_VALUE_H_
