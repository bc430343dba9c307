// SPDX-License-Identifier: Apache-2.0
//
// Reading requests and writing answers. What is wrong with a request is an ApiError that names the
// member, what was found and what was wanted, and never has a part of a text.

#ifndef ENCORE_TOOLS_SERVE_JSON_H_
#define ENCORE_TOOLS_SERVE_JSON_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nlohmann/json.hpp"

namespace encore::serve {

using Json = nlohmann::json;

// ---- Reading -----------------------------------------------------------------------------------

// The object that a body is; lists and objects at most `depth` deep.
Json ParseBody(std::string_view body, size_t depth);

// Members that need not be there, or may be null: nothing, then.
std::optional<std::string> StringMember(const Json& object, const char* name);
std::optional<bool> BoolMember(const Json& object, const char* name);
std::optional<size_t> SizeMember(const Json& object, const char* name, size_t least);

// A member that must be there.
Json& Member(Json* object, const char* name);

// "a string", "a list", for sentences.
const char* TypeOf(const Json& value);

// A string, taken out of the request.
std::string TakeText(Json* value, const char* name, size_t most_bytes);
void CheckCount(const Json& list, const char* name, size_t most);
// A string or a list of strings.
std::vector<std::string> TakeTexts(Json* object, const char* name, size_t most_texts,
                                   size_t most_bytes);

// ---- Writing -----------------------------------------------------------------------------------

// Any string is written: bytes that are not UTF-8 become U+FFFD.
std::string Dump(const Json& value);
// The same as a JSON string.
std::string Quoted(std::string_view text);

// Nine digits, from which whoever reads a double and rounds that to f32 has the same bits. Throws
// ApiError for what JSON cannot hold.
void AppendNumber(float value, std::string* out);
// [0.5,1.25]
void AppendNumbers(std::span<const float> values, std::string* out);
// Bytes of the floats, lowest first, in base64.
void AppendBase64(std::span<const float> values, std::string* out);

}  // namespace encore::serve

#endif  // ENCORE_TOOLS_SERVE_JSON_H_
