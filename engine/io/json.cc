// SPDX-License-Identifier: Apache-2.0
//
// The JSON wrapper over nlohmann/json's event parser, which keeps its own stack on the heap.
// Nothing else includes that library.

#include "engine/io/json.h"

#include <charconv>
#include <cstddef>
#include <exception>
#include <new>
#include <nlohmann/json.hpp>
#include <system_error>

#include "engine/base/guarded.h"
#include "engine/base/quoted.h"
#include "engine/platform/c_locale.h"
#include "engine/platform/fp_env.h"

namespace encore::inline v0_1::internal {
namespace {

using Json = nlohmann::json;

// Hands nlohmann's events to a JsonVisitor and remembers where the text broke.
class Events : public nlohmann::json_sax<Json> {
 public:
  explicit Events(JsonVisitor& visitor) : visitor_(visitor) {}

  bool null() override { return visitor_.Null(); }
  bool boolean(bool value) override { return visitor_.Bool(value); }
  bool number_integer(number_integer_t value) override { return visitor_.Negative(value); }
  bool number_unsigned(number_unsigned_t value) override { return visitor_.Unsigned(value); }
  bool number_float(number_float_t value, const string_t& token) override {
    // All threads share what localeconv() returns, by which the library spells the token for
    // strtod. Under a thread with another locale that may have gone wrong: the token is read again
    // as the file has it. What is too small for that is `value`, 0.
    std::string text = token;
    const size_t point = text.find_first_not_of("+-0123456789eE");
    if (point != std::string::npos) text[point] = '.';
    double number = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    return visitor_.Fraction(read.ec == std::errc() ? number : value, text);
  }
  bool string(string_t& value) override { return visitor_.String(value); }
  bool binary(binary_t&) override { return false; }  // JSON has none
  bool start_object(size_t) override { return visitor_.BeginObject(); }
  bool key(string_t& value) override { return visitor_.Key(value); }
  bool end_object() override { return visitor_.EndObject(); }
  bool start_array(size_t) override { return visitor_.BeginArray(); }
  bool end_array() override { return visitor_.EndArray(); }
  bool parse_error(size_t position, const std::string& last_token,
                   const Json::exception&) override {
    error_ = Status(ErrorCode::kCorruptData, "JSON breaks at byte " + std::to_string(position) +
                                                 ", near " + Quoted(last_token));
    return false;
  }

  const Status& error() const { return error_; }

 private:
  JsonVisitor& visitor_;
  Status error_;
};

}  // namespace

Status ParseJson(std::string_view text, JsonVisitor& visitor) try {
  // The library takes a NUL byte for the end of the text and would ignore what follows.
  const size_t nul = text.find('\0');
  if (nul != std::string_view::npos) {
    return Status(ErrorCode::kCorruptData,
                  "JSON breaks at byte " + std::to_string(nul + 1) + ": a NUL byte");
  }
  const CLocaleScope locale;
  const FpEnvScope modes;
  Events events(visitor);
  Json::sax_parse(text.begin(), text.end(), &events);
  return events.error();
} catch (const std::bad_alloc&) {
  return OutOfMemory();
} catch (const std::exception& e) {
  return Status(ErrorCode::kCorruptData, e.what());
}

Result<std::string> JsonString(std::string_view text) try {
  return Json(text).dump();
} catch (const Json::exception&) {
  return InvalidArgument(Quoted(text) + " is not UTF-8");
} catch (const std::bad_alloc&) {
  return OutOfMemory();
}

}  // namespace encore::internal
