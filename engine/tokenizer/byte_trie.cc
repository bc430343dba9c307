// SPDX-License-Identifier: Apache-2.0
//
// Builds the double array: a node after the other, each getting a base where its children find
// free places.

#include "engine/tokenizer/byte_trie.h"

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <optional>
#include <span>

#include "engine/tokenizer/sort_texts.h"

namespace encore::inline v0_1::internal {

// Bases are unique, so that a node's label alone identifies its parent.
class ByteTrieBuilder {
 public:
  explicit ByteTrieBuilder(ByteTrie* trie) : trie_(trie) {}

  void Build(const std::vector<ByteTrie::Entry>& sorted) {
    entries_ = &sorted;
    AddBlock();  // base 0 stays in it unused
    struct Pending {
      Range range;
      size_t depth;
      uint32_t node;
    };
    std::vector<Pending> pending;
    std::vector<Child> children;
    const auto add_children = [&](size_t depth) {
      std::transform(children.begin(), children.end(), std::back_inserter(pending),
                     [depth](const Child& child) {
                       return Pending{child.range, depth, child.node};
                     });
    };
    trie_->root_ = PlaceChildren({0, sorted.size()}, 0, &children);
    add_children(1);
    while (!pending.empty()) {
      Pending at = pending.back();
      pending.pop_back();
      ByteTrie::Entry first = (*entries_)[at.range.begin];
      // Most nodes are on the way to one key only, whose bytes have no siblings.
      for (; at.range.begin + 1 == at.range.end && at.depth < first.first.size(); ++at.depth) {
        const auto byte = static_cast<uint8_t>(first.first[at.depth]);
        const uint32_t base = FindBase({&byte, 1});
        trie_->nodes_[at.node].base = base;
        at.node = base ^ byte;
        trie_->nodes_[at.node].label_and_value = byte;
      }
      if (first.first.size() == at.depth) {  // sorted: the shortest is first
        trie_->nodes_[at.node].label_and_value |= (first.second + 1) << ByteTrie::kLabelBits;
        ++at.range.begin;
      }
      if (at.range.begin == at.range.end) continue;
      trie_->nodes_[at.node].base = PlaceChildren(at.range, at.depth, &children);
      add_children(at.depth + 1);
    }
  }

 private:
  static constexpr size_t kBlockSize = ByteTrie::kBlockSize;
  // A block is closed once this many nodes did not fit into it, and the oldest once there are
  // more than so many: building stays linear.
  static constexpr unsigned kMaxFailures = 24;
  static constexpr size_t kMaxOpen = 16;

  struct Range {  // of entries
    size_t begin;
    size_t end;
  };
  struct Child {
    Range range;
    uint32_t node;
  };
  using Places = std::array<uint64_t, kBlockSize / 64>;  // a bit each
  struct Block {
    uint32_t start;
    unsigned failures = 0;
    Places taken = {};
    Places base_used = {};
  };

  void AddBlock() {
    Block block = {static_cast<uint32_t>(trie_->nodes_.size()), 0, {}, {}};
    if (block.start == 0) Set(0, &block.base_used);
    trie_->nodes_.resize(trie_->nodes_.size() + kBlockSize);
    if (open_.size() == kMaxOpen) open_.erase(open_.begin());
    open_.push_back(block);
  }

  // Finds places for the bytes at `depth` of these entries, all of which are longer, and returns
  // their base.
  uint32_t PlaceChildren(Range range, size_t depth, std::vector<Child>* children) {
    children->clear();
    bytes_.clear();
    for (size_t i = range.begin; i < range.end; ++i) {
      const auto byte = static_cast<uint8_t>((*entries_)[i].first[depth]);
      if (bytes_.empty() || bytes_.back() != byte) {
        bytes_.push_back(byte);
        children->push_back({{i, i}, 0});
      }
      children->back().range.end = i + 1;
    }
    const uint32_t base = FindBase(bytes_);
    for (size_t i = 0; i < bytes_.size(); ++i) {
      (*children)[i].node = base ^ bytes_[i];
      trie_->nodes_[base ^ bytes_[i]].label_and_value = bytes_[i];
    }
    return base;
  }

  // A base whose places for these bytes are free; they are not afterwards.
  uint32_t FindBase(std::span<const uint8_t> bytes) {
    uint32_t base = 0;
    for (size_t i = 0; i < open_.size();) {
      if (FitInto(&open_[i], bytes, &base)) return base;
      if (++open_[i].failures >= kMaxFailures) {
        open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        ++i;
      }
    }
    AddBlock();
    (void)FitInto(&open_.back(), bytes, &base);  // an empty block has room for 256 children
    return base;
  }

  static bool FitInto(Block* block, std::span<const uint8_t> bytes, uint32_t* base) {
    const std::optional<uint32_t> low =
        bytes.size() == 1 ? BaseOfOne(*block, bytes[0]) : BaseOfAll(*block, bytes);
    if (!low) return false;
    Set(*low, &block->base_used);
    for (const uint8_t byte : bytes) Set(*low ^ byte, &block->taken);
    *base = block->start + *low;
    return true;
  }

  // The base that puts the byte at the block's lowest free place for which no node has that base.
  static std::optional<uint32_t> BaseOfOne(const Block& block, uint8_t byte) {
    for (uint32_t word = 0; word < block.taken.size(); ++word) {
      for (uint64_t free = ~block.taken[word]; free != 0; free &= free - 1) {
        const uint32_t low = (word * 64 + static_cast<uint32_t>(std::countr_zero(free))) ^ byte;
        if ((block.base_used[low / 64] >> low % 64 & 1) == 0) return low;
      }
    }
    return {};
  }

  // The lowest base of the block whose places for all bytes are free.
  static std::optional<uint32_t> BaseOfAll(const Block& block, std::span<const uint8_t> bytes) {
    Places bases;
    for (size_t word = 0; word < bases.size(); ++word) bases[word] = ~block.base_used[word];
    for (const uint8_t byte : bytes) {
      const Places taken = Moved(block.taken, byte);
      uint64_t left = 0;
      for (size_t word = 0; word < bases.size(); ++word) left |= bases[word] &= ~taken[word];
      if (left == 0) return {};
    }
    uint32_t low = 0;
    while (bases[low / 64] == 0) low += 64;
    return low + static_cast<uint32_t>(std::countr_zero(bases[low / 64]));
  }

  static void Set(uint32_t place, Places* places) {
    (*places)[place / 64] |= uint64_t{1} << (place % 64);
  }

  // Bit i of the result is bit i XOR byte of `places`: whole words change places by the upper bits
  // of `byte`; each lower bit swaps neighbours of that distance.
  static Places Moved(const Places& places, uint32_t byte) {
    // Of each pair of neighbours at distance 1, 2, 4 ..., the lower one.
    constexpr uint64_t kLower[] = {0x5555555555555555u, 0x3333333333333333u, 0x0F0F0F0F0F0F0F0Fu,
                                   0x00FF00FF00FF00FFu, 0x0000FFFF0000FFFFu, 0x00000000FFFFFFFFu};
    Places moved;
    for (size_t word = 0; word < moved.size(); ++word) moved[word] = places[word ^ (byte / 64)];
    for (unsigned bit = 0; bit < 6; ++bit) {
      if ((byte >> bit & 1) == 0) continue;
      const unsigned distance = 1u << bit;
      for (uint64_t& word : moved) {
        word = (word & kLower[bit]) << distance | (word >> distance & kLower[bit]);
      }
    }
    return moved;
  }

  ByteTrie* trie_;
  const std::vector<ByteTrie::Entry>* entries_ = nullptr;
  std::vector<Block> open_;
  std::vector<uint8_t> bytes_;  // of the children that are being placed
};

ByteTrie::ByteTrie(std::vector<Entry> entries) {
  SortTexts(&entries);
  ByteTrieBuilder(this).Build(entries);
}

bool ByteTrie::Take(TableReader* in, size_t limit) {
  uint64_t root = 0;
  if (!in->Take(&root) || !in->Take(&nodes_)) return false;
  if (nodes_.size() % kBlockSize != 0 || root >= nodes_.size()) return false;
  root_ = static_cast<uint32_t>(root);
  return std::all_of(nodes_.begin(), nodes_.end(), [&](const Node& node) {
    return node.base < nodes_.size() && node.label_and_value >> kLabelBits <= limit;
  });
}

}  // namespace encore::internal
