// SPDX-License-Identifier: Apache-2.0
//
// The map as a trie.

#include "engine/tokenizer/charsmap.h"

#include <algorithm>
#include <utility>

#include "engine/tokenizer/utf8.h"

namespace encore::inline v0_1::internal {
namespace {

uint32_t LittleEndian(std::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = 4; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

// A unit's fields.
uint32_t LabelOf(uint32_t unit) { return unit & 0x800000FFu; }  // the byte; no unit of a value
uint32_t OffsetOf(uint32_t unit) { return (unit >> 10) << ((unit & 1u << 9) >> 6); }
bool HasLeaf(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t ValueOf(uint32_t unit) { return unit & 0x7FFFFFFFu; }

}  // namespace

bool Charsmap::Read(std::string_view bytes, std::string* problem) {
  const auto fail = [&](std::string what) {
    *problem = std::move(what);
    return false;
  };
  if (bytes.size() < 4) return fail("has " + std::to_string(bytes.size()) + " bytes");
  const size_t size = LittleEndian(bytes);
  if (size % 4 != 0 || size == 0 || size > bytes.size() - 4) {
    return fail("says that its trie has " + std::to_string(size) + " bytes, of " +
                std::to_string(bytes.size() - 4) + " that follow");
  }
  for (size_t i = 0; i < size; i += 4) units_.push_back(LittleEndian(bytes.substr(4 + i, 4)));
  replacements_ = bytes.substr(4 + size);
  if (ValidUtf8Length(replacements_) != replacements_.size()) {
    return fail("has replacements that are not UTF-8");
  }
  return CheckTrie() || fail("has a trie that leads out of it");
}

template <typename Body>
void Charsmap::ForEachPrefix(std::string_view text, const Body& body) const {
  if (units_.empty()) return;
  size_t at = OffsetOf(units_[0]);
  for (size_t i = 0; i < text.size() && text[i] != 0; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const size_t place = at ^ byte;
    const uint32_t unit = units_[place];
    if (LabelOf(unit) != byte) return;
    at = place ^ OffsetOf(unit);
    if (HasLeaf(unit) && !body(i + 1, ReplacementAt(ValueOf(units_[at])))) return;
  }
}

std::optional<std::string_view> Charsmap::Find(std::string_view text) const {
  std::optional<std::string_view> found;
  ForEachPrefix(text, [&](size_t, std::string_view replacement) {
    found = replacement;
    return false;
  });
  return found;
}

std::optional<Charsmap::Match> Charsmap::Longest(std::string_view text) const {
  std::optional<Match> found;
  ForEachPrefix(text, [&](size_t size, std::string_view replacement) {
    found = {size, replacement};
    return true;
  });
  return found;
}

std::string_view Charsmap::ReplacementAt(size_t begin) const {
  const size_t end = replacements_.find('\0', begin);
  return std::string_view(replacements_)
      .substr(begin, end == std::string::npos ? end : end - begin);
}

bool Charsmap::CheckTrie() {
  struct Node {
    size_t base;
    size_t depth;
  };
  std::vector<bool> seen(units_.size());
  std::vector<Node> nodes = {{OffsetOf(units_[0]), 0}};
  // Breadth first: a shared place counts for its shortest string.
  for (size_t i = 0; i < nodes.size(); ++i) {
    const auto [base, depth] = nodes[i];
    if ((base | 0xFF) >= units_.size()) return false;
    for (size_t byte = 1; byte < 256; ++byte) {
      const size_t place = base ^ byte;
      const uint32_t unit = units_[place];
      if (LabelOf(unit) != byte || seen[place]) continue;
      seen[place] = true;
      const size_t next = place ^ OffsetOf(unit);
      if (HasLeaf(unit)) {
        if (next >= units_.size()) return false;
        const size_t value = ValueOf(units_[next]);
        if (value >= replacements_.size() || Continues(replacements_[value])) return false;
        growth_ = std::max(growth_, static_cast<double>(ReplacementAt(value).size()) /
                                        static_cast<double>(depth + 1));
      }
      nodes.push_back({next, depth + 1});
    }
  }
  return true;
}

}  // namespace encore::internal
