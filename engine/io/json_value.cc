// SPDX-License-Identifier: Apache-2.0
//
// Builds the tree from the events of nlohmann/json's parser, which keeps its own stack on the heap,
// as the builder does. Nothing else in the library includes that one.

#include "engine/io/json_value.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/base/guarded.h"
#include "engine/base/quoted.h"
#include "engine/platform/c_locale.h"
#include "engine/platform/fp_env.h"
#include "engine/platform/once.h"
#include "engine/platform/parse_double.h"

namespace encore::inline v0_1::internal {

using Json = nlohmann::json;

namespace {

std::optional<std::string_view> KeyThereTwiceBySorting(
    const std::vector<JsonValue::Member>& members) {
  std::vector<std::string_view> keys(members.size());
  std::transform(members.begin(), members.end(), keys.begin(),
                 [](const JsonValue::Member& m) { return std::string_view(m.first); });
  std::sort(keys.begin(), keys.end());
  const auto twice = std::adjacent_find(keys.begin(), keys.end());
  return twice == keys.end() ? std::nullopt : std::optional(*twice);
}

// A hash table, which takes a vocabulary a tenth of the time of sorting. Keys that were made to
// have one hash would take a table forever, so then they are sorted.
std::optional<std::string_view> KeyThereTwice(const std::vector<JsonValue::Member>& members) {
  constexpr size_t kProbes = 64;  // a table that is half full needs a few
  constexpr uint32_t kFree = UINT32_MAX;
  if (members.size() < 2) return {};
  if (members.size() >= kFree) return KeyThereTwiceBySorting(members);
  std::vector<uint32_t> table(2 * std::bit_ceil(members.size()), kFree);  // of indices
  for (size_t i = 0; i < members.size(); ++i) {
    const std::string_view key = members[i].first;
    const size_t hash = std::hash<std::string_view>()(key);
    size_t probe = 0;
    for (; probe < kProbes; ++probe) {
      uint32_t& place = table[(hash + probe) % table.size()];
      if (place == kFree) {
        place = static_cast<uint32_t>(i);
        break;
      }
      if (members[place].first == key) return key;
    }
    if (probe == kProbes) return KeyThereTwiceBySorting(members);
  }
  return {};
}

}  // namespace

class JsonTreeBuilder : public nlohmann::json_sax<Json> {
 public:
  explicit JsonTreeBuilder(size_t max_values) : max_values_(max_values) {}

  bool null() override { return Put(std::monostate()); }
  bool boolean(bool value) override { return Put(value); }
  bool number_integer(number_integer_t value) override { return Put(int64_t{value}); }
  bool number_unsigned(number_unsigned_t value) override { return Put(uint64_t{value}); }
  bool number_float(number_float_t value, const string_t& token) override {
    // All threads share what localeconv() returns, by which the library spells the token for
    // strtod. Under a thread with another locale that may have gone wrong: the token is read again
    // as the file has it. What is too small for that is `value`, 0.
    std::string text = token;
    const size_t point = text.find_first_not_of("+-0123456789eE");
    if (point != std::string::npos) text[point] = '.';
    return Put(ParseDouble(text).value_or(value));
  }
  bool string(string_t& value) override { return Put(std::as_const(value)); }
  bool binary(binary_t&) override { return false; }  // JSON has none
  bool start_object(size_t) override { return Open(true); }
  bool key(string_t& value) override {
    open_.back().key = value;
    return true;
  }
  bool end_object() override {
    const std::optional<std::string_view> twice = KeyThereTwice(open_.back().members);
    if (twice) return Fail("JSON has an object with two keys " + Quoted(*twice));
    Unfinished done = Close();
    return Put(std::make_shared<const std::vector<JsonValue::Member>>(std::move(done.members)));
  }
  bool start_array(size_t) override { return Open(false); }
  bool end_array() override { return Put(Close().items); }
  bool parse_error(size_t position, const std::string& last_token,
                   const Json::exception&) override {
    return Fail("JSON breaks at byte " + std::to_string(position) + ", near " + Quoted(last_token));
  }

  const Status& error() const { return error_; }
  JsonValue Take() { return std::move(root_); }

 private:
  // An array or object whose end has not been seen.
  struct Unfinished {
    bool is_object = false;
    std::vector<JsonValue> items;
    std::vector<JsonValue::Member> members;
    std::string key;  // of the member that comes next
  };

  bool Fail(std::string message) {
    error_ = Status(ErrorCode::kCorruptData, std::move(message));
    return false;
  }
  bool Open(bool is_object) {
    if (open_.size() == JsonValue::kMaxDepth) {
      return Fail("JSON is nested deeper than " + std::to_string(JsonValue::kMaxDepth) + " levels");
    }
    open_.emplace_back().is_object = is_object;
    return true;
  }
  Unfinished Close() {
    Unfinished done = std::move(open_.back());
    open_.pop_back();
    return done;
  }
  template <typename T>
  bool Put(T&& of_value) {
    if (values_++ == max_values_) {
      return Fail("JSON has more than " + std::to_string(max_values_) +
                  " values; wanted at most that");
    }
    JsonValue value;
    value.value_ = std::forward<T>(of_value);
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (open_.back().is_object) {
      MakeRoom(&open_.back().members);
      open_.back().members.emplace_back(std::move(open_.back().key), std::move(value));
    } else {
      MakeRoom(&open_.back().items);
      open_.back().items.push_back(std::move(value));
    }
    return true;
  }
  // A vocabulary grows in larger steps than by two: each moves all that is there into memory that
  // was never touched. What is reserved and not used takes addresses, but no memory where the
  // system gives pages when they are touched; in all of a text no more than kMaxReserved.
  template <typename T>
  void MakeRoom(std::vector<T>* values) {
    constexpr size_t kLarge = 4096;
    constexpr size_t kMaxReserved = size_t{1} << 20;
    const size_t size = values->size();
    if (size != values->capacity() || size < kLarge || 8 * size > kMaxReserved - reserved_) return;
    reserved_ += 8 * size;
    values->reserve(8 * size);
  }

  const size_t max_values_;
  size_t values_ = 0;
  size_t reserved_ = 0;  // of values, by MakeRoom
  JsonValue root_;
  std::vector<Unfinished> open_;
  Status error_;
};

namespace {

// What a value of another kind has.
template <typename T>
const T& Empty() {
  static constinit Once<T> empty;
  return empty.Get([] { return T(); });
}

// A whole number is one without point and exponent; 3.0 is none, and its text keeps it apart.
std::string FractionText(double number) {
  char text[32];
  std::string digits(text, std::to_chars(text, text + sizeof(text), number).ptr);
  const bool looks_whole = digits.find_first_not_of("-0123456789") == std::string::npos;
  return looks_whole ? digits + ".0" : digits;
}

}  // namespace

Result<JsonValue> JsonValue::Parse(std::string_view text, size_t max_values) {
  return Guarded("the JSON", [&]() -> Result<JsonValue> {
    // The library takes a NUL byte for the end of the text and would ignore what follows.
    const size_t nul = text.find('\0');
    if (nul != std::string_view::npos) {
      return Status(ErrorCode::kCorruptData,
                    "JSON breaks at byte " + std::to_string(nul + 1) + ": a NUL byte");
    }
    const CLocaleScope locale;
    const FpEnvScope modes;
    JsonTreeBuilder builder(max_values);
    Json::sax_parse(text.begin(), text.end(), &builder);
    if (!builder.error().ok()) return builder.error();
    return builder.Take();
  });
}

const JsonValue& JsonValue::Null() { return Empty<JsonValue>(); }

JsonValue JsonValue::Array(std::vector<JsonValue> items) {
  JsonValue value;
  value.value_ = std::move(items);
  return value;
}

JsonValue JsonValue::Object(std::vector<Member> members) {
  JsonValue value;
  value.value_ = std::make_shared<const std::vector<Member>>(std::move(members));
  return value;
}

JsonValue::Kind JsonValue::kind() const {
  // In the order of value_'s types.
  constexpr Kind kKinds[] = {Kind::kNull,   Kind::kBool,   Kind::kNumber, Kind::kNumber,
                             Kind::kNumber, Kind::kString, Kind::kArray,  Kind::kObject};
  static_assert(std::size(kKinds) == std::variant_size_v<decltype(value_)>);
  return kKinds[value_.index()];
}

bool JsonValue::boolean() const {
  const bool* value = std::get_if<bool>(&value_);
  return value != nullptr && *value;
}

const std::string& JsonValue::text() const {
  const auto* value = std::get_if<std::string>(&value_);
  return value != nullptr ? *value : Empty<std::string>();
}

double JsonValue::number() const {
  if (const auto* whole = std::get_if<uint64_t>(&value_)) return static_cast<double>(*whole);
  if (const auto* negative = std::get_if<int64_t>(&value_)) return static_cast<double>(*negative);
  const double* fraction = std::get_if<double>(&value_);
  return fraction != nullptr ? *fraction : 0;
}

const std::vector<JsonValue>& JsonValue::items() const {
  const auto* value = std::get_if<Items>(&value_);
  return value != nullptr ? *value : Empty<Items>();
}

const std::vector<JsonValue::Member>& JsonValue::members() const {
  const auto* value = std::get_if<Members>(&value_);
  return value != nullptr ? **value : Empty<std::vector<Member>>();
}

const JsonValue* JsonValue::Find(std::string_view key) const {
  for (const Member& member : members()) {
    if (member.first == key) return &member.second;
  }
  return nullptr;
}

const JsonValue& JsonValue::operator[](std::string_view key) const {
  const JsonValue* const value = Find(key);
  return value == nullptr ? Null() : *value;
}

bool JsonValue::AsUnsigned(uint64_t* value) const {
  const auto* whole = std::get_if<uint64_t>(&value_);
  if (whole == nullptr) return false;
  *value = *whole;
  return true;
}

std::string JsonValue::Described() const {
  switch (kind()) {
    case Kind::kNull:
      return "null";
    case Kind::kBool:
      return boolean() ? "true" : "false";
    case Kind::kNumber:
      if (const auto* whole = std::get_if<uint64_t>(&value_)) return std::to_string(*whole);
      if (const auto* negative = std::get_if<int64_t>(&value_)) return std::to_string(*negative);
      return FractionText(number());
    case Kind::kString:
      return Quoted(text());
    case Kind::kArray:
      return "an array of " + std::to_string(items().size());
    case Kind::kObject:
      return "an object";
  }
  return "?";
}

Result<std::string> JsonString(std::string_view text) try {
  return Json(text).dump();
} catch (const Json::exception&) {
  return InvalidArgument(Quoted(text) + " is not UTF-8");
}

}  // namespace encore::internal
