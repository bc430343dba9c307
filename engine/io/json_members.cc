// SPDX-License-Identifier: Apache-2.0
//
// Typed members of a JSON object.

#include "engine/io/json_members.h"

#include <cstdint>
#include <type_traits>
#include <utility>

namespace encore::inline v0_1::internal {
namespace {

// Whole numbers as size_t.
template <typename T>
std::optional<T> Typed(const JsonValue& value) {
  if constexpr (std::is_same_v<T, bool>) {
    if (value.is_bool()) return value.boolean();
  } else if constexpr (std::is_same_v<T, double>) {
    if (value.is_number()) return value.number();
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (value.is_string()) return value.text();
  } else {
    uint64_t number = 0;
    if (value.AsUnsigned(&number) && std::in_range<T>(number)) return static_cast<T>(number);
  }
  return {};
}
template <typename T>
constexpr const char* kWanted = "a whole number of at least 0";
template <>
constexpr const char* kWanted<bool> = "true or false";
template <>
constexpr const char* kWanted<double> = "a number";
template <>
constexpr const char* kWanted<std::string> = "a string";

}  // namespace

JsonMembers::JsonMembers(const JsonValue& object, std::string where, const JsonValue* over)
    : object_(&object), over_(over), where_(std::move(where)) {
  if (!object.is_object()) {
    status_ = Status(ErrorCode::kCorruptData,
                     where_ + ": found " + object.Described() + "; wanted an object");
  }
}

const JsonValue* JsonMembers::Value(std::string_view key) const {
  const JsonValue* const value = over_ == nullptr ? nullptr : over_->Find(key);
  return value == nullptr ? object_->Find(key) : value;
}

const JsonValue* JsonMembers::Find(std::string_view key) {
  read_.emplace(key);
  return Value(key);
}

bool JsonMembers::Has(std::string_view key) {
  const JsonValue* value = Find(key);
  return value != nullptr && !value->is_null();
}

void JsonMembers::Refuse(std::string_view key, std::string_view wanted) {
  if (!status_.ok()) return;
  const JsonValue* value = Value(key);
  status_ = InvalidArgument(where_ + ": " + std::string(key) + " is " +
                            (value == nullptr ? "absent" : value->Described()) + "; wanted " +
                            std::string(wanted));
}

template <typename T>
std::optional<T> JsonMembers::Read(std::string_view key, bool required) {
  if (!Has(key) && !required) return {};
  const JsonValue* const value = Value(key);
  std::optional<T> typed = value == nullptr ? std::optional<T>() : Typed<T>(*value);
  if (!typed) Refuse(key, kWanted<T>);
  return typed;
}
template std::optional<bool> JsonMembers::Read(std::string_view, bool);
template std::optional<size_t> JsonMembers::Read(std::string_view, bool);
template std::optional<double> JsonMembers::Read(std::string_view, bool);
template std::optional<std::string> JsonMembers::Read(std::string_view, bool);

const JsonValue& JsonMembers::Require(std::string_view key, JsonValue::Kind kind,
                                      std::string_view wanted) {
  const JsonValue* value = Find(key);
  if (value != nullptr && value->kind() == kind) return *value;
  Refuse(key, wanted);
  return JsonValue::Null();
}

const JsonValue& JsonMembers::RequiredObject(std::string_view key) {
  return Require(key, JsonValue::Kind::kObject, "an object");
}
const JsonValue& JsonMembers::RequiredArray(std::string_view key) {
  return Require(key, JsonValue::Kind::kArray, "an array");
}

void JsonMembers::Ignore(std::string_view key) { read_.emplace(key); }

std::vector<std::string> JsonMembers::Unread() const {
  std::vector<std::string> keys;
  if (!object_->is_object()) return keys;
  for (const JsonValue::Member& member : object_->members()) {
    if (!read_.contains(member.first)) keys.push_back(member.first);
  }
  return keys;
}

}  // namespace encore::internal
