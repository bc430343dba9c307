// SPDX-License-Identifier: Apache-2.0
//
// Typed reading of an object's members. Every read names its key once; errors name the file, the
// key, what was found and what was wanted; members that nobody read can be listed.

#ifndef ENCORE_ENGINE_IO_JSON_MEMBERS_H_
#define ENCORE_ENGINE_IO_JSON_MEMBERS_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "encore/status.h"
#include "engine/io/json_value.h"

namespace encore::inline v0_1::internal {

// Reads one object. Keeps the first error, after which reads return defaults: ask status() once, at
// the end. Not thread-safe; the value must outlive it.
class JsonMembers {
 public:
  // Errors start with `where`: "config.json", "tokenizer.json: model". The value must be an object.
  // Members of `over`, an object or null, replace its own.
  JsonMembers(const JsonValue& object, std::string where, const JsonValue* over = nullptr);

  const Status& status() const { return status_; }
  bool ok() const { return status_.ok(); }
  const std::string& where() const { return where_; }

  // Whether the member is there and not null. Counts as read.
  bool Has(std::string_view key);
  // The member, or null where it is absent. Counts as read.
  const JsonValue* Find(std::string_view key);

  // The member's value; nothing, or `absent`, where it is absent or null. Another type is an error.
  std::optional<bool> OptionalBool(std::string_view key) { return Read<bool>(key, false); }
  std::optional<size_t> OptionalSize(std::string_view key) { return Read<size_t>(key, false); }
  std::optional<double> OptionalNumber(std::string_view key) { return Read<double>(key, false); }
  std::optional<std::string> OptionalString(std::string_view key) {
    return Read<std::string>(key, false);
  }
  bool Bool(std::string_view key, bool absent) { return OptionalBool(key).value_or(absent); }
  size_t Size(std::string_view key, size_t absent) { return OptionalSize(key).value_or(absent); }
  double Number(std::string_view key, double absent) {
    return OptionalNumber(key).value_or(absent);
  }
  std::string String(std::string_view key, std::string_view absent) {
    return OptionalString(key).value_or(std::string(absent));
  }
  // An error where it is absent or null.
  bool RequiredBool(std::string_view key) { return Read<bool>(key, true).value_or(false); }
  size_t RequiredSize(std::string_view key) { return Read<size_t>(key, true).value_or(0); }
  std::string RequiredString(std::string_view key) {
    return Read<std::string>(key, true).value_or(std::string());
  }
  const JsonValue& RequiredObject(std::string_view key);
  const JsonValue& RequiredArray(std::string_view key);

  // The error "WHERE: KEY is FOUND; wanted WANTED", unless there is one already.
  void Refuse(std::string_view key, std::string_view wanted);
  // A member without effect: counts as read.
  void Ignore(std::string_view key);
  // Keys that were neither read nor ignored, in the file's order.
  std::vector<std::string> Unread() const;

 private:
  template <typename T>
  std::optional<T> Read(std::string_view key, bool required);
  const JsonValue& Require(std::string_view key, JsonValue::Kind kind, std::string_view wanted);
  const JsonValue* Value(std::string_view key) const;

  const JsonValue* object_;
  const JsonValue* over_;
  std::string where_;
  Status status_;
  std::set<std::string, std::less<>> read_;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_IO_JSON_MEMBERS_H_
