// SPDX-License-Identifier: Apache-2.0
//
// Arguments of the C interface: pointers and structs that anybody may have filled in, checked and
// turned into C++.

#ifndef ENCORE_ENGINE_C_API_ARGUMENTS_H_
#define ENCORE_ENGINE_C_API_ARGUMENTS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "encore/c_api.h"
#include "encore/text_encoder.h"

namespace encore::inline v0_1::internal {

Status NullArgument(const char* name);

// More bytes than this behind the fields that are known are taken for a size that nobody has set.
inline constexpr size_t kMostUnknownBytes = 4096;

// The size of a struct in the interface's first version: callers may know no more of it.
template <typename T>
inline constexpr size_t kFirstSize = sizeof(T);
template <>
inline constexpr size_t kFirstSize<encore_open_options> = offsetof(encore_open_options, precision);
template <>
inline constexpr size_t kFirstSize<encore_encode_options> = offsetof(encore_encode_options, task);
template <>
inline constexpr size_t kFirstSize<encore_score_options> = offsetof(encore_score_options, call);
template <>
inline constexpr size_t kFirstSize<encore_label_options> = offsetof(encore_label_options, call);
template <>
inline constexpr size_t kFirstSize<encore_call_options> = offsetof(encore_call_options, stats);

// A struct of the caller's that begins with its size has one that can be.
template <typename T>
Status CheckSize(const T* given, const char* name, const char* type) {
  if (given->size >= kFirstSize<T> && given->size <= sizeof(T) + kMostUnknownBytes) return {};
  return InvalidArgument(std::string(name) + ".size is " + std::to_string(given->size) +
                         ", wanted sizeof(" + type + "), which is " + std::to_string(sizeof(T)));
}

// Fills the caller's struct, which was checked, as far as it goes; what is not known becomes 0.
template <typename T>
void WriteStruct(T found, T* given) {
  found.size = given->size;
  std::memset(static_cast<void*>(given), 0, found.size);
  std::memcpy(static_cast<void*>(given), &found, std::min(found.size, sizeof(T)));
}

// The caller's options, or the defaults for NULL and for fields that the caller does not know. T is
// a struct that begins with its size.
template <typename T>
Status ReadOptions(const T* given, const char* type, T* options) {
  *options = T{};
  if (given == nullptr) return {};
  if (Status s = CheckSize(given, "options", type); !s.ok()) return s;
  const size_t size = given->size;
  const char* bytes = reinterpret_cast<const char*>(given);
  for (size_t i = sizeof(T); i < size; ++i) {
    if (bytes[i] == 0) continue;
    return Status(ErrorCode::kUnsupported,
                  std::string(type) + " has a field at byte " + std::to_string(i) +
                      " that this version of encore does not know; it is not 0");
  }
  std::memcpy(options, given, std::min(size, sizeof(T)));
  return {};
}

// value is in 0 .. largest.
Status CheckChoice(const char* field, int32_t value, int32_t largest);

Status CheckCount(size_t count, size_t most);

// ENCORE_AS_FOLDER, ENCORE_YES or ENCORE_NO; it was checked.
inline std::optional<bool> YesOrNo(int32_t choice) {
  if (choice == ENCORE_AS_FOLDER) return std::nullopt;
  return choice == ENCORE_YES;
}

// What encode, score and tokenize have in common.
template <typename Given, typename Options>
Status ReadTextOptions(const Given& given, Options* options) {
  if (Status s = CheckChoice("on_long", given.on_long, ENCORE_LONG_REFUSE); !s.ok()) return s;
  if (Status s = CheckChoice("on_invalid_utf8", given.on_invalid_utf8, ENCORE_UTF8_REPLACE);
      !s.ok()) {
    return s;
  }
  options->max_length = given.max_length;
  options->on_long = given.on_long == ENCORE_LONG_CUT ? OnLong::kCut : OnLong::kError;
  options->on_invalid_utf8 =
      given.on_invalid_utf8 == ENCORE_UTF8_REFUSE ? OnInvalidUtf8::kError : OnInvalidUtf8::kReplace;
  options->plain_text = given.plain_text != 0;
  return {};
}

// Views of the caller's bytes; an error names the text: "documents[3]".
Status ReadText(const encore_text& text, const std::string& name, std::string_view* view);
Status ReadTexts(const encore_text* texts, const char* name, size_t count,
                 std::vector<std::string_view>* views);

// Rows of `columns` floats fit the caller's array.
Status CheckOutput(const char* name, const float* data, size_t capacity, size_t rows,
                   size_t columns);

// Into the caller's arrays, either of which may be NULL.
void CopyCounts(const TextCounts& counts, size_t* tokens, size_t* cut);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_C_API_ARGUMENTS_H_
