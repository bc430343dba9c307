// SPDX-License-Identifier: Apache-2.0
//
// Words and numbers as text that is safe to show anywhere.

#ifndef ENCORE_TOOLS_ENCORE_TEXT_H_
#define ENCORE_TOOLS_ENCORE_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace encore::tool {

// Valid UTF-8 without control characters, C1 and bidirectional ones included: whatever is not so
// becomes U+FFFD. Such text is harmless in a terminal and in JSON.
std::string Printable(std::string_view text);

// A folder's own name, printable: "all-MiniLM-L6-v2" of "models/all-MiniLM-L6-v2/", and of "."
// where that is the present folder.
std::string FolderName(const std::string& folder);

// text as a string of JSON, bytes that are not UTF-8 replaced.
std::string AsJson(const std::string& text);

// Columns that printable text takes; East Asian wide characters and emoji take two.
size_t DisplayWidth(std::string_view printable);

// text, with blanks behind (or before) it up to this many columns.
std::string PadRight(const std::string& text, size_t width);
std::string PadLeft(const std::string& text, size_t width);

// text, with "..." for its end if it takes more than this many columns (at least 3).
std::string Shortened(const std::string& printable, size_t columns);

// The words of a text, split at white space and made printable.
std::vector<std::string> SplitWords(std::string_view text);

// value with this many digits after the point: "0.5274"; exponents from 10^6 on; never "-0.0000".
std::string Number(double value, int precision);

// value as printf's format has it: "%.1e".
std::string Formatted(const char* format, double value);

// The shortest number that reads back as the same f32.
std::string ShortestText(float value);

// 12345678 as "12 345 678"; what is behind the point is rounded away.
std::string Grouped(double value);

// "48 KiB", "1.5 MiB"; "unknown" of 0.
std::string BytesText(size_t bytes);

// "12 s", "5 min", "2 h 40 min", of a number of seconds.
std::string DurationText(double seconds);

// "a, b, c".
std::string Joined(const std::vector<std::string>& texts, const std::string& separator = ", ");

// Columns of the widest; 0 of none.
size_t WidestOf(const std::vector<std::string>& texts);

// "1 token", "2 000 tokens".
std::string Counted(size_t count, const std::string& noun);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_TEXT_H_
