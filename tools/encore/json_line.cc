// SPDX-License-Identifier: Apache-2.0
//
// Members are taken while the line is parsed, without a tree of it.

#include "tools/encore/json_line.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <sstream>
#include <utility>
#include <vector>

#include "engine/tokenizer/utf8.h"
#include "nlohmann/json.hpp"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

using nlohmann::json;

constexpr size_t kShownColumns = 40;

std::string Excerpt(std::string_view text) { return Shortened(Printable(text), kShownColumns); }
std::string InQuotes(std::string_view name) { return "\"" + Excerpt(name) + "\""; }
std::string PartOfLine(std::string_view part) { return "'" + Excerpt(part) + "'"; }

// Takes the text, the pair and the id. What is wrong with them is said at the end: a line that is
// no JSON at all has a sentence of its own.
class LineTaker : public nlohmann::json_sax<json> {
 public:
  LineTaker(const std::string& field, TextInput* input) : field_(field), input_(input) {}

  bool null() override { return Other("null", "null"); }
  bool boolean(bool value) override {
    return Other(value ? "true" : "false", value ? "true" : "false");
  }
  bool number_integer(number_integer_t value) override { return Integer(std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override { return Integer(std::to_string(value)); }
  bool number_float(number_float_t /*value*/, const string_t& text) override {
    return Other("the number " + Excerpt(text), Excerpt(text));
  }
  bool string(string_t& value) override {
    if (depth_ == 0) {
      input_->text = std::move(value);
      has_text_ = true;
    } else if (depth_ == 1 && in_object_) {
      if (key_ == "id") Once(&has_id_, [&] { input_->id = AsJson(value); });
      if (key_ == "pair") Once(&has_pair_, [&] { input_->pair = value; });
      if (key_ == field_) Once(&has_text_, [&] { input_->text = std::move(value); });
    }
    return true;
  }
  bool binary(binary_t& /*value*/) override { return Other("bytes", "bytes"); }
  bool start_object(size_t /*size*/) override { return Start("an object", true); }
  bool start_array(size_t /*size*/) override { return Start("an array", false); }
  bool end_object() override { return End(); }
  bool end_array() override { return End(); }
  bool key(string_t& name) override {
    if (depth_ == 1) {
      if (names_.size() < kMostNames) names_.push_back(name);
      key_ = std::move(name);
    }
    return true;
  }
  bool parse_error(size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& error) override {
    constexpr int kOutOfRange = 406;  // of a number
    error_at_ = position;
    too_large_ = error.id == kOutOfRange;
    return false;
  }

  size_t error_at() const { return error_at_; }  // the byte, counted from 1, where it was noticed
  bool too_large() const { return too_large_; }  // a number
  std::string Wrong() const {
    if (!wrong_.empty()) return wrong_;
    if (has_text_) return "";
    std::vector<std::string> found;
    for (const std::string& name : names_) found.push_back(InQuotes(name));
    return "found an object " + (found.empty() ? "without members" : "with " + Joined(found)) +
           ", wanted a member " + InQuotes(field_) + "; --field NAME takes another one";
  }

 private:
  static constexpr size_t kMostNames = 8;

  template <typename TakeIt>
  void Once(bool* has, const TakeIt& take) {
    if (*has) Refuse("found " + InQuotes(key_) + " twice, wanted it once");
    *has = true;
    take();
  }
  void Refuse(const std::string& sentence) {
    if (wrong_.empty()) wrong_ = sentence;
  }
  bool Integer(const std::string& text) {
    if (depth_ != 1 || !in_object_ || key_ != "id" || key_ == field_) {
      return Other("the number " + text, text);
    }
    Once(&has_id_, [&] { input_->id = text; });
    return true;
  }
  // A value that is neither a string nor an id. `what` says it in a sentence, `shown` is itself.
  bool Other(const std::string& what, const std::string& shown) {
    if (depth_ == 0) {
      Refuse("found " + what + ", wanted a string, or an object with " + InQuotes(field_));
    } else if (depth_ == 1 && in_object_) {
      if (key_ == field_ || key_ == "pair") {
        Refuse(InQuotes(key_) + " is " + what + ", wanted a string");
      } else if (key_ == "id") {
        Refuse("\"id\" is " + shown + ", wanted a string or an integer of 64 bits");
      }
    }
    return true;
  }
  bool Start(const std::string& what, bool object) {
    if (depth_ > 0 || !object) Other(what, what);
    if (depth_ == 0) in_object_ = object;
    ++depth_;
    return true;
  }
  bool End() {
    --depth_;
    return true;
  }

  const std::string& field_;
  TextInput* input_;
  size_t depth_ = 0;
  bool in_object_ = false;  // the outermost one
  std::string key_;         // of it, the last
  std::vector<std::string> names_;
  bool has_text_ = false;
  bool has_pair_ = false;
  bool has_id_ = false;
  size_t error_at_ = 0;
  bool too_large_ = false;
  std::string wrong_;
};

// Four digits of base 16 at `at`; -1 if there are none.
int32_t HexAt(std::string_view text, size_t at) {
  if (at + 4 > text.size()) return -1;
  int32_t value = 0;
  const char* const end = text.data() + at + 4;
  const auto [stop, error] = std::from_chars(text.data() + at, end, value, 16);
  return error == std::errc() && stop == end && value >= 0 ? value : -1;
}

bool IsHigh(int32_t unit) { return unit >= 0xD800 && unit < 0xDC00; }
bool IsLow(int32_t unit) { return unit >= 0xDC00 && unit < 0xE000; }

// The next \uD83D or \uDE00 without its other half, from `at` on; npos if there is none. In JSON a
// backslash is in a string, and each begins an escape.
size_t FindHalf(std::string_view line, size_t at) {
  while ((at = line.find('\\', at)) != std::string_view::npos) {
    const bool unit = at + 1 < line.size() && line[at + 1] == 'u';
    const int32_t value = unit ? HexAt(line, at + 2) : -1;
    if (IsLow(value)) return at;
    if (IsHigh(value)) {
      if (line.substr(at + 6, 2) != "\\u" || !IsLow(HexAt(line, at + 8))) return at;
      at += 6;
    }
    at += value < 0 ? 2 : 6;
  }
  return at;
}

// The line with U+FFFD for what JSON and UTF-8 do not have.
std::string Repaired(std::string_view line) {
  std::string out;
  while (!line.empty()) {
    const size_t valid = internal::ValidUtf8Length(line);
    out += line.substr(0, valid);
    line.remove_prefix(valid);
    if (line.empty()) break;
    out += "\xEF\xBF\xBD";
    line.remove_prefix(internal::InvalidUtf8Length(line));
  }
  for (size_t at = 0; (at = FindHalf(out, at)) != std::string::npos;) {
    out.replace(at, 6, "\\ufffd");
  }
  return out;
}

// Of a line that is no JSON.
std::string WhyNoJson(std::string_view line, size_t error_at) {
  if (line.find_first_not_of(" \t\r") == std::string_view::npos) {
    return "found an empty line, wanted a JSON value";
  }
  const std::string invalid = FoundInvalidUtf8(line);
  if (!invalid.empty()) return "found " + invalid + "; --replace-invalid takes it for U+FFFD";
  const size_t half = FindHalf(line, 0);
  if (half != std::string_view::npos) {
    return "found " + std::string(line.substr(half, 6)) +
           ", half of a surrogate pair, wanted both halves of a character; --replace-invalid takes "
           "it for U+FFFD";
  }
  const size_t zero = line.find('\0');
  if (zero != std::string_view::npos && zero + 1 <= std::max<size_t>(error_at, 1)) {
    return "found a zero byte at byte " + std::to_string(zero + 1) + ", wanted JSON";
  }
  TextInput ignored;
  const std::string no_field;  // outlives `first`
  LineTaker first(no_field, &ignored);
  std::istringstream stream{std::string(line)};
  if (json::sax_parse(stream, &first, json::input_format_t::json, false)) {
    auto end = static_cast<size_t>(std::max<std::streamoff>(stream.tellg(), 0));
    // Behind a number one character more was taken, to see where it ends.
    const char begin = line[line.find_first_not_of(" \t\r")];
    if (begin == '-' || (begin >= '0' && begin <= '9')) --end;
    const size_t more = std::min(line.find_first_not_of(" \t\r", end), line.size());
    return "found " + PartOfLine(line.substr(more)) + " at byte " + std::to_string(more + 1) +
           ", behind a JSON value, wanted one value a line";
  }
  const size_t at = std::min(std::max<size_t>(error_at, 1), line.size()) - 1;
  if (first.too_large()) {
    return "found a number that is too large, which ends at byte " + std::to_string(at + 1);
  }
  if (error_at > line.size()) {
    return "found the start of a JSON value, " + PartOfLine(line) + ", wanted all of it";
  }
  return "found " + PartOfLine(line.substr(at)) + " at byte " + std::to_string(at + 1) +
         ", which is no JSON, wanted a string or an object";
}

}  // namespace

std::string FoundInvalidUtf8(std::string_view text) {
  const size_t valid = internal::ValidUtf8Length(text);
  if (valid == text.size()) return "";
  constexpr char kDigits[] = "0123456789ABCDEF";
  const auto byte = static_cast<unsigned char>(text[valid]);
  return std::string("the byte 0x") + kDigits[byte >> 4] + kDigits[byte & 15] + " at byte " +
         std::to_string(valid + 1) + ", which is not UTF-8";
}

std::string ReadJsonLine(std::string_view line, const JsonLineRules& rules, TextInput* input) {
  const auto parse = [&](std::string_view text, size_t* error_at, std::string* wrong) {
    input->pair.reset();
    input->id.clear();
    LineTaker taker(rules.field, input);
    // The parser takes a zero byte for the end.
    const size_t zero = std::min(text.find('\0'), text.size());
    const bool ok = json::sax_parse(text.substr(0, zero), &taker) && zero == text.size();
    *error_at = taker.error_at() == 0 ? zero + 1 : taker.error_at();
    if (ok) *wrong = taker.Wrong();
    return ok;
  };
  size_t error_at = 0;
  std::string wrong;
  if (parse(line, &error_at, &wrong)) return wrong;
  if (rules.replace_invalid) {
    const std::string repaired = Repaired(line);
    if (repaired != line) {
      if (parse(repaired, &error_at, &wrong)) return wrong;
      return WhyNoJson(repaired, error_at);
    }
  }
  return WhyNoJson(line, error_at);
}

}  // namespace encore::tool
