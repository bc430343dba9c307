// SPDX-License-Identifier: Apache-2.0
//
// Typed members of a JSON object.

#include "engine/io/json_members.h"

#include <cstdint>
#include <limits>

#include "engine/base/quoted.h"

namespace encore::inline v0_1::internal {
namespace {

const JsonValue& Null() {
  static const JsonValue null;
  return null;
}

bool AsSize(const JsonValue& value, size_t* size) {
  uint64_t number = 0;
  if (!value.AsUnsigned(&number) || number > std::numeric_limits<size_t>::max()) return false;
  *size = static_cast<size_t>(number);
  return true;
}

constexpr std::string_view kWhole = "a whole number of at least 0";

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

std::optional<bool> JsonMembers::OptionalBool(std::string_view key) {
  if (!Has(key)) return {};
  const JsonValue* value = Find(key);
  if (value->is_bool()) return value->boolean();
  Refuse(key, "true or false");
  return {};
}

std::optional<size_t> JsonMembers::OptionalSize(std::string_view key) {
  if (!Has(key)) return {};
  size_t size = 0;
  if (AsSize(*Find(key), &size)) return size;
  Refuse(key, kWhole);
  return {};
}

std::optional<double> JsonMembers::OptionalNumber(std::string_view key) {
  if (!Has(key)) return {};
  const JsonValue* value = Find(key);
  if (value->is_number()) return value->number();
  Refuse(key, "a number");
  return {};
}

std::optional<std::string> JsonMembers::OptionalString(std::string_view key) {
  if (!Has(key)) return {};
  const JsonValue* value = Find(key);
  if (value->is_string()) return value->text();
  Refuse(key, "a string");
  return {};
}

bool JsonMembers::Bool(std::string_view key, bool absent) {
  return OptionalBool(key).value_or(absent);
}
size_t JsonMembers::Size(std::string_view key, size_t absent) {
  return OptionalSize(key).value_or(absent);
}
double JsonMembers::Number(std::string_view key, double absent) {
  return OptionalNumber(key).value_or(absent);
}
std::string JsonMembers::String(std::string_view key, std::string_view absent) {
  return OptionalString(key).value_or(std::string(absent));
}

size_t JsonMembers::RequiredSize(std::string_view key) {
  const std::optional<size_t> size = OptionalSize(key);
  if (!size) Refuse(key, kWhole);
  return size.value_or(0);
}

std::string JsonMembers::RequiredString(std::string_view key) {
  std::optional<std::string> text = OptionalString(key);
  if (!text) Refuse(key, "a string");
  return std::move(text).value_or(std::string());
}

const JsonValue& JsonMembers::Require(std::string_view key, JsonValue::Kind kind,
                                      std::string_view wanted) {
  const JsonValue* value = Find(key);
  if (value != nullptr && value->kind() == kind) return *value;
  Refuse(key, wanted);
  return Null();
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
