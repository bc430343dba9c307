// SPDX-License-Identifier: Apache-2.0
//
// Reads lists and numbers.

#include "bench/measure/flags.h"

#include <algorithm>
#include <cstdlib>

namespace encore::bench {

std::vector<std::string> SplitAtCommas(const std::string& text) {
  std::vector<std::string> items;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    items.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return items;
}

std::optional<long> ParseInt(const std::string& text, long low, long high) {
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || value < low || value > high) return std::nullopt;
  return value;
}

}  // namespace encore::bench
