// SPDX-License-Identifier: Apache-2.0
//
// A set of byte strings with numbers, for the longest one that a text starts with: a double-array
// trie (Aoe 1989; Yata's form: a node's children are at base XOR byte).

#ifndef ENCORE_ENGINE_TOKENIZER_BYTE_TRIE_H_
#define ENCORE_ENGINE_TOKENIZER_BYTE_TRIE_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/tokenizer/packed_tables.h"

namespace encore::inline v0_1::internal {

// Immutable once built. Eight bytes a node, so that a vocabulary of 30,000 tokens stays in a second
// level cache.
class ByteTrie {
 public:
  using Entry = std::pair<std::string_view, uint32_t>;
  // Values are at most this.
  static constexpr uint32_t kMaxValue = (uint32_t{1} << 23) - 2;

  ByteTrie() : ByteTrie(std::vector<Entry>()) {}
  // Keys must differ and not be empty. Throws std::bad_alloc.
  explicit ByteTrie(std::vector<Entry> entries);

  struct Match {
    size_t size = 0;  // of the key; 0: none
    uint32_t value = 0;
  };
  // The longest key that [at, end) starts with.
  Match Longest(const char* at, const char* end) const {
    Match match;
    ForEachPrefix(at, end, [&match](size_t size, uint32_t value) { match = {size, value}; });
    return match;
  }
  // Calls body(size, value) for every key that [at, end) starts with, the shortest first.
  template <typename Body>
  void ForEachPrefix(const char* at, const char* end, const Body& body) const {
    uint32_t base = root_;
    for (const char* p = at; p < end;) {
      const uint32_t byte = static_cast<unsigned char>(*p++);
      const Node node = nodes_[base ^ byte];
      if ((node.label_and_value & kLabelMask) != byte) break;
      base = node.base;
      const uint32_t packed_value = node.label_and_value >> kLabelBits;
      if (packed_value != 0) body(static_cast<size_t>(p - at), packed_value - 1);
    }
  }
  // The value of a key; false if it is none.
  bool Find(std::string_view key, uint32_t* value) const {
    const Match match = Longest(key.data(), key.data() + key.size());
    if (match.size != key.size() || key.empty()) return false;
    *value = match.value;
    return true;
  }

  void Put(TableWriter* out) const {
    out->Put(uint64_t{root_});
    out->Put(nodes_);
  }
  // What Put has written; false for other bytes: a search would leave the nodes, or find a value
  // that is not below `limit`.
  [[nodiscard]] bool Take(TableReader* in, size_t limit);

 private:
  friend class ByteTrieBuilder;

  // Places of one base are in one block.
  static constexpr size_t kBlockSize = 256;

  static constexpr unsigned kLabelBits = 9;
  static constexpr uint32_t kLabelMask = (1u << kLabelBits) - 1;
  static constexpr uint32_t kFree = kLabelMask;  // the label of no byte

  struct Node {
    uint32_t base = 0;  // the children's; 0, which is nobody's, without children
    // The byte that leads here; above it 1 + the value of the key that ends here, or 0.
    uint32_t label_and_value = kFree;
  };

  std::vector<Node> nodes_;
  uint32_t root_ = 0;  // the base of the root's children
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_BYTE_TRIE_H_
