// SPDX-License-Identifier: Apache-2.0
//
// Checks of the C interface's arguments, and their sentences.

#include "engine/c_api/arguments.h"
#include "engine/base/status_macros.h"

namespace encore::inline v0_1::internal {

Status NullArgument(const char* name) {
  return InvalidArgument(std::string(name) + " is NULL, wanted a pointer");
}

Status CheckChoice(const char* field, int32_t value, int32_t largest) {
  if (value >= 0 && value <= largest) return {};
  return InvalidArgument("options." + std::string(field) + " is " + std::to_string(value) +
                         ", wanted 0 to " + std::to_string(largest));
}

Status CheckCount(size_t count, size_t most) {
  if (count <= most) return {};
  return InvalidArgument("count is " + std::to_string(count) + ", wanted at most " +
                         std::to_string(most));
}

Status ReadText(const encore_text& text, const std::string& name, std::string_view* view) {
  if (text.data == nullptr && text.size > 0) {
    return InvalidArgument(name + " has " + std::to_string(text.size) + " bytes, but data is NULL");
  }
  *view = text.data == nullptr ? std::string_view() : std::string_view(text.data, text.size);
  return {};
}

Status ReadTexts(const encore_text* texts, const char* name, size_t count,
                 std::vector<std::string_view>* views) {
  if (texts == nullptr && count > 0) return NullArgument(name);
  ENCORE_RETURN_IF_ERROR(CheckCount(count, views->max_size()));
  views->resize(count);
  for (size_t i = 0; i < count; ++i) {
    ENCORE_RETURN_IF_ERROR(
        ReadText(texts[i], std::string(name) + "[" + std::to_string(i) + "]", &(*views)[i]));
  }
  return {};
}

Status CheckOutput(const char* name, const float* data, size_t capacity, size_t rows,
                   size_t columns) {
  if (data == nullptr && rows > 0) return NullArgument(name);
  if (columns == 0 || rows <= capacity / columns) return {};
  return InvalidArgument("capacity is " + std::to_string(capacity) + " floats, wanted " +
                         std::to_string(rows) + " x " + std::to_string(columns) + " for " + name);
}

void CopyCounts(const TextCounts& counts, size_t* tokens, size_t* cut) {
  for (size_t i = 0; tokens != nullptr && i < counts.tokens.size(); ++i) {
    tokens[i] = counts.tokens[i];
  }
  for (size_t i = 0; cut != nullptr && i < counts.cut.size(); ++i) cut[i] = counts.cut[i];
}

}  // namespace encore::internal
