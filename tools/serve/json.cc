// SPDX-License-Identifier: Apache-2.0
//
// JSON by nlohmann's parser; numbers and base64 by hand, as answers are mostly these.

#include "tools/serve/json.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <utility>

#include "tools/serve/api_error.h"

namespace encore::serve {
namespace {

// Of a text that may be no JSON. Brackets in strings do not count.
size_t DepthOf(std::string_view text) {
  size_t depth = 0;
  size_t deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return deepest;
}

// Null where it is not there, or null.
const Json* Find(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

[[noreturn]] void Unwanted(const char* name, const std::string& found, const char* wanted) {
  throw ApiError(400, std::string(name) + ": found " + found + ", wanted " + wanted, name);
}

}  // namespace

const char* TypeOf(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::object:
      return "an object";
    case Json::value_t::array:
      return "a list";
    case Json::value_t::string:
      return "a string";
    case Json::value_t::boolean:
      return "true or false";
    default:
      return "a number";
  }
}

Json ParseBody(std::string_view body, size_t depth) {
  if (const size_t found = DepthOf(body); found > depth) {
    throw ApiError(400, "the body's lists and objects are " + std::to_string(found) +
                            " deep, wanted at most " + std::to_string(depth));
  }
  Json value;
  try {
    value = Json::parse(body);
  } catch (const Json::parse_error& error) {
    throw ApiError(
        400, "the body is no JSON in UTF-8: byte " + std::to_string(error.byte) + " is wrong");
  } catch (const Json::exception&) {  // a number that no double is
    throw ApiError(400, "the body has a number that is too large");
  }
  if (!value.is_object()) {
    throw ApiError(400, std::string("the body: found ") + TypeOf(value) + ", wanted an object");
  }
  return value;
}

Json& Member(Json* object, const char* name) {
  const auto found = object->find(name);
  if (found == object->end()) Unwanted(name, "nothing", "it: it is required");
  return *found;
}

std::optional<std::string> StringMember(const Json& object, const char* name) {
  const Json* const value = Find(object, name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) Unwanted(name, TypeOf(*value), "a string");
  return value->get<std::string>();
}

std::optional<bool> BoolMember(const Json& object, const char* name) {
  const Json* const value = Find(object, name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) Unwanted(name, TypeOf(*value), "true or false");
  return value->get<bool>();
}

std::optional<size_t> SizeMember(const Json& object, const char* name, size_t least) {
  const Json* const value = Find(object, name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number_unsigned() || value->get<size_t>() < least) {
    const bool number = value->is_number();
    throw ApiError(400,
                   std::string(name) + ": found " + (number ? value->dump() : TypeOf(*value)) +
                       ", wanted a whole number from " + std::to_string(least) + " on",
                   name);
  }
  return value->get<size_t>();
}

std::string TakeText(Json* value, const char* name, size_t most_bytes) {
  if (!value->is_string()) Unwanted(name, TypeOf(*value), "a string");
  auto& text = value->get_ref<std::string&>();
  if (text.size() > most_bytes) {
    throw ApiError(413,
                   std::string(name) + ": found a text of " + std::to_string(text.size()) +
                       " bytes, wanted at most " + std::to_string(most_bytes),
                   name);
  }
  return std::move(text);
}

void CheckCount(const Json& list, const char* name, size_t most) {
  if (list.size() <= most) return;
  throw ApiError(413,
                 std::string(name) + ": found " + std::to_string(list.size()) +
                     " texts, wanted at most " + std::to_string(most),
                 name);
}

std::vector<std::string> TakeTexts(Json* object, const char* name, size_t most_texts,
                                   size_t most_bytes) {
  Json& list = Member(object, name);
  std::vector<std::string> texts;
  if (list.is_string()) {
    texts.push_back(TakeText(&list, name, most_bytes));
    return texts;
  }
  if (!list.is_array()) Unwanted(name, TypeOf(list), "a text or a list of texts");
  if (list.empty()) Unwanted(name, "an empty list", "at least one text");
  CheckCount(list, name, most_texts);
  texts.reserve(list.size());
  for (Json& value : list) texts.push_back(TakeText(&value, name, most_bytes));
  return texts;
}

std::string Dump(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string Quoted(std::string_view text) { return Dump(Json(std::string(text))); }

void AppendNumber(float value, std::string* out) {
  if (!std::isfinite(value)) {
    throw ApiError(500, "the answer has nan or inf, which JSON cannot hold; base64 can");
  }
  char text[32];
  const auto end = std::to_chars(text, text + sizeof(text), value, std::chars_format::general, 9);
  out->append(text, end.ptr);
}

void AppendNumbers(std::span<const float> values, std::string* out) {
  *out += '[';
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) *out += ',';
    AppendNumber(values[i], out);
  }
  *out += ']';
}

void AppendBase64(std::span<const float> values, std::string* out) {
  static constexpr char kDigits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  uint32_t bits = 0;
  int bytes = 0;  // in `bits`
  const auto put = [&](int digits) {
    for (int i = 0; i < 4; ++i) *out += i < digits ? kDigits[bits >> (18 - 6 * i) & 63] : '=';
    bits = 0;
    bytes = 0;
  };
  for (const float value : values) {
    const auto word = std::bit_cast<uint32_t>(value);
    for (int i = 0; i < 4; ++i) {
      bits |= (word >> (8 * i) & 255) << (16 - 8 * bytes);
      if (++bytes == 3) put(4);
    }
  }
  if (bytes > 0) put(bytes + 1);
}

}  // namespace encore::serve
