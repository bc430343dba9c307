// SPDX-License-Identifier: Apache-2.0
//
// Words and numbers as text; the declarations say what each function does.

#include "tools/encore/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "engine/platform/path.h"
#include "engine/tokenizer/utf8.h"
#include "nlohmann/json.hpp"

namespace encore::tool {
namespace {

struct CodePoints {
  char32_t first;
  char32_t last;
};

template <size_t N>
bool IsIn(const CodePoints (&ranges)[N], char32_t c) {
  for (const CodePoints& range : ranges) {
    if (range.first <= c && c <= range.last) return true;
  }
  return false;
}

// C0 and C1 controls, line and paragraph separators, bidirectional controls, and the characters
// that XML 1.0 excludes.
constexpr CodePoints kUnprintable[] = {{0x00, 0x1F},     {0x7F, 0x9F},     {0x200E, 0x200F},
                                       {0x2028, 0x202E}, {0x2066, 0x2069}, {0xFFFE, 0xFFFF}};
// Unicode's East Asian Width W and F, in coarse blocks, and emoji.
constexpr CodePoints kWide[] = {{0x1100, 0x115F}, {0x2E80, 0xA4CF},   {0xAC00, 0xD7A3},
                                {0xF900, 0xFAFF}, {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},
                                {0xFFE0, 0xFFE6}, {0x1F300, 0x1FAFF}, {0x20000, 0x3FFFD}};
// Combining marks, joiners and variation selectors.
constexpr CodePoints kZeroWidth[] = {{0x0300, 0x036F}, {0x200B, 0x200D}, {0xFE00, 0xFE0F}};

// The character at text[at], which moves behind it; U+FFFD, and one byte, where the bytes are
// no shortest-form UTF-8.
char32_t Decode(std::string_view text, size_t& at) {
  const size_t length = internal::Utf8Length(text[at]);
  if (internal::ValidUtf8Length(text.substr(at, length)) != length) {
    ++at;
    return internal::kReplacementCharacter;
  }
  const char* next = text.data() + at;
  at += length;
  return internal::NextCodePoint(next);
}

}  // namespace

std::string Printable(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    const char32_t c = Decode(text, at);
    if (c == internal::kReplacementCharacter || IsIn(kUnprintable, c)) {
      out += "\xEF\xBF\xBD";
    } else {
      out += text.substr(start, at - start);
    }
  }
  return out;
}

std::string AsJson(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string FolderName(const std::string& folder) {
  std::error_code error;
  std::filesystem::path path = std::filesystem::weakly_canonical(internal::ToPath(folder), error);
  if (!path.has_filename()) path = path.parent_path();
  return Printable(path.has_filename() ? internal::PathText(path.filename()) : folder);
}

size_t DisplayWidth(std::string_view printable) {
  size_t width = 0;
  for (size_t at = 0; at < printable.size();) {
    const char32_t c = Decode(printable, at);
    width += IsIn(kWide, c) ? 2 : IsIn(kZeroWidth, c) ? 0 : 1;
  }
  return width;
}

std::string PadRight(const std::string& text, size_t width) {
  const size_t have = DisplayWidth(text);
  return have < width ? text + std::string(width - have, ' ') : text;
}

std::string PadLeft(const std::string& text, size_t width) {
  const size_t have = DisplayWidth(text);
  return have < width ? std::string(width - have, ' ') + text : text;
}

std::string Shortened(const std::string& printable, size_t columns) {
  if (DisplayWidth(printable) <= columns) return printable;
  size_t end = 0;
  for (size_t next = 0; next < printable.size(); end = next) {
    Decode(printable, next);
    if (DisplayWidth(std::string_view(printable).substr(0, next)) > columns - 3) break;
  }
  return printable.substr(0, end) + "...";
}

std::vector<std::string> SplitWords(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\r\v\f";
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    const size_t start = text.find_first_not_of(kSpace, at);
    if (start == std::string_view::npos) break;
    const size_t end = std::min(text.find_first_of(kSpace, start), text.size());
    words.push_back(Printable(text.substr(start, end - start)));
    at = end;
  }
  return words;
}

std::string Number(double value, int precision) {
  if (std::isnan(value)) return "nan";  // whatever its sign
  char number[64];
  std::snprintf(number, sizeof(number), std::fabs(value) < 1e6 ? "%.*f" : "%.*e", precision, value);
  std::string text = number;
  const bool is_zero = text.find_first_not_of("-0.") == std::string::npos;
  if (is_zero && text[0] == '-') text.erase(0, 1);
  return text;
}

std::string Formatted(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

std::string ShortestText(float value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof(text), value).ptr};
}

std::string Grouped(double value) {
  std::string text = Formatted("%.0f", value);
  for (size_t at = text.size(); at > 3 + (text[0] == '-' ? 1u : 0u);) {
    at -= 3;
    text.insert(at, " ");
  }
  return text;
}

std::string BytesText(size_t bytes) {
  if (bytes == 0) return "unknown";
  const double kibibytes = static_cast<double>(bytes) / 1024;
  if (kibibytes < 1024) return Number(kibibytes, 0) + " KiB";
  return Number(kibibytes / 1024, bytes % (size_t{1} << 20) == 0 ? 0 : 1) + " MiB";
}

std::string DurationText(double seconds) {
  constexpr double kMost = 1e9;  // 30 years
  const auto whole = static_cast<int64_t>(std::llround(std::min(seconds, kMost)));
  if (whole < 100) return std::to_string(whole) + " s";
  const int64_t minutes = (whole + 30) / 60;
  if (minutes < 100) return std::to_string(minutes) + " min";
  return std::to_string(minutes / 60) + " h " + std::to_string(minutes % 60) + " min";
}

std::string Joined(const std::vector<std::string>& texts, const std::string& separator) {
  std::string all;
  for (const std::string& text : texts) all += (&text == texts.data() ? "" : separator) + text;
  return all;
}

size_t WidestOf(const std::vector<std::string>& texts) {
  size_t widest = 0;
  for (const std::string& text : texts) widest = std::max(widest, DisplayWidth(text));
  return widest;
}

std::string Counted(size_t count, const std::string& noun) {
  return Grouped(static_cast<double>(count)) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace encore::tool
