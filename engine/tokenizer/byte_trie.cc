// SPDX-License-Identifier: Apache-2.0
//
// Builds the double array: a node after the other, each getting a base where its children find
// free places.

#include "engine/tokenizer/byte_trie.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <iterator>

namespace encore::inline v0_1::internal {

// Bases are unique, so that a node's label alone tells whose child it is. Places of one base lie in
// one block of 256.
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
      const Pending at = pending.back();
      pending.pop_back();
      Range range = at.range;
      if ((*entries_)[range.begin].first.size() == at.depth) {  // sorted: the shortest is first
        trie_->nodes_[at.node].label_and_value |= ((*entries_)[range.begin].second + 1)
                                                  << ByteTrie::kLabelBits;
        ++range.begin;
      }
      if (range.begin == range.end) continue;
      trie_->nodes_[at.node].base = PlaceChildren(range, at.depth, &children);
      add_children(at.depth + 1);
    }
  }

 private:
  static constexpr size_t kBlockSize = 256;
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
    uint32_t byte;
    uint32_t node;
  };
  struct Block {
    uint32_t start;
    unsigned failures = 0;
    std::bitset<kBlockSize> taken;
    std::bitset<kBlockSize> base_used;
  };

  void AddBlock() {
    Block block = {static_cast<uint32_t>(trie_->nodes_.size()), 0, {}, {}};
    block.base_used[0] = block.start == 0;
    trie_->nodes_.resize(trie_->nodes_.size() + kBlockSize);
    if (open_.size() == kMaxOpen) open_.erase(open_.begin());
    open_.push_back(block);
  }

  // Finds places for the bytes at `depth` of these entries, all of which are longer, and returns
  // their base.
  uint32_t PlaceChildren(Range range, size_t depth, std::vector<Child>* children) {
    children->clear();
    for (size_t i = range.begin; i < range.end; ++i) {
      const uint32_t byte = static_cast<unsigned char>((*entries_)[i].first[depth]);
      if (children->empty() || children->back().byte != byte) {
        children->push_back({{i, i}, byte, 0});
      }
      children->back().range.end = i + 1;
    }
    const uint32_t base = FindBase(*children);
    for (Child& child : *children) {
      child.node = base ^ child.byte;
      trie_->nodes_[child.node].label_and_value = child.byte;
    }
    return base;
  }

  uint32_t FindBase(const std::vector<Child>& children) {
    for (size_t i = 0; i < open_.size();) {
      uint32_t base = 0;
      if (FitInto(&open_[i], children, &base)) return base;
      if (++open_[i].failures >= kMaxFailures) {
        open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        ++i;
      }
    }
    AddBlock();
    uint32_t base = 0;
    (void)FitInto(&open_.back(), children, &base);  // an empty block has room for 256 children
    return base;
  }

  static bool FitInto(Block* block, const std::vector<Child>& children, uint32_t* base) {
    for (uint32_t low = 0; low < kBlockSize; ++low) {
      if (block->base_used[low]) continue;
      const bool fits = std::all_of(children.begin(), children.end(), [&](const Child& child) {
        return !block->taken[low ^ child.byte];
      });
      if (!fits) continue;
      block->base_used.set(low);
      for (const Child& child : children) block->taken.set(low ^ child.byte);
      *base = block->start + low;
      return true;
    }
    return false;
  }

  ByteTrie* trie_;
  const std::vector<ByteTrie::Entry>* entries_ = nullptr;
  std::vector<Block> open_;
};

ByteTrie::ByteTrie(std::vector<Entry> entries) {
  std::sort(entries.begin(), entries.end());
  ByteTrieBuilder(this).Build(entries);
}

}  // namespace encore::internal
