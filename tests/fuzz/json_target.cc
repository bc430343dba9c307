// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a JSON text: an error with a sentence, or a tree whose values are what they say.

#include <cmath>
#include <string>

#include "engine/io/json_members.h"
#include "engine/io/json_value.h"
#include "tests/fuzz/target.h"

namespace encore::fuzz {
namespace {

using internal::JsonMembers;
using internal::JsonValue;

void Walk(const JsonValue& value, size_t depth);

// Reads a member in every way; the first error stays.
void ReadMember(const JsonValue& object, const std::string& key) {
  JsonMembers members(object, "fuzz.json");
  ENCORE_FUZZ_CHECK(members.ok());
  ENCORE_FUZZ_CHECK(members.Unread().size() == object.members().size());
  const JsonValue* const found = members.Find(key);
  ENCORE_FUZZ_CHECK(found != nullptr);
  ENCORE_FUZZ_CHECK(members.Has(key) == !found->is_null());
  ENCORE_FUZZ_CHECK(members.Unread().size() + 1 == object.members().size());
  JsonMembers sizes(object, "fuzz.json");
  JsonMembers strings(object, "fuzz.json");
  const size_t size = sizes.RequiredSize(key);
  const std::string text = strings.RequiredString(key);
  if (!sizes.ok()) CheckError(sizes.status());
  if (!strings.ok()) CheckError(strings.status());
  uint64_t whole = 0;
  ENCORE_FUZZ_CHECK(sizes.ok() == found->AsUnsigned(&whole));
  if (sizes.ok()) ENCORE_FUZZ_CHECK(size == whole);
  ENCORE_FUZZ_CHECK(strings.ok() == found->is_string());
  if (strings.ok()) ENCORE_FUZZ_CHECK(text == found->text());
}

void WalkObject(const JsonValue& value, size_t depth) {
  for (const auto& [key, member] : value.members()) {
    ENCORE_FUZZ_CHECK(value.Find(key) == &member, "an object has a key twice");
    Walk(member, depth + 1);
  }
  // Only encore's own source asks for members, by names without control characters.
  if (value.Find("a") != nullptr) ReadMember(value, "a");
}

void Walk(const JsonValue& value, size_t depth) {
  ENCORE_FUZZ_CHECK(depth <= JsonValue::kMaxDepth);
  ENCORE_FUZZ_CHECK(!value.Described().empty());
  uint64_t whole = 0;
  if (value.AsUnsigned(&whole)) {
    ENCORE_FUZZ_CHECK(value.is_number());
    ENCORE_FUZZ_CHECK(value.number() == static_cast<double>(whole));
  }
  if (value.is_number()) ENCORE_FUZZ_CHECK(!std::isnan(value.number()));
  for (const JsonValue& item : value.items()) Walk(item, depth + 1);
  if (value.is_object()) WalkObject(value, depth);
}

}  // namespace

void RunJson(std::string_view input) {
  const Result<JsonValue> value = JsonValue::Parse(input);
  if (!value.ok()) {
    CheckError(value.status());
    return;
  }
  Walk(*value, 0);
}

}  // namespace encore::fuzz
