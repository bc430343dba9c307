// SPDX-License-Identifier: Apache-2.0
//
// Tests of engine/base/checksum.h: published values, pieces of any size, and that single changes
// are found.

#include "engine/base/checksum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>

namespace encore::inline v0_1::internal {
namespace {

// Of xxhash's Python package, 3.5.0.
TEST(ChecksumTest, IsXxh64) {
  EXPECT_EQ(ChecksumOf(""), 0xef46db3751d8e999u);
  EXPECT_EQ(ChecksumOf("", 1), 0xd5afba1336a3be4bu);
  EXPECT_EQ(ChecksumOf("a"), 0xd24ec4f1a98c6e5bu);
  EXPECT_EQ(ChecksumOf("abc"), 0x44bc2cf5ad770999u);
  EXPECT_EQ(ChecksumOf("Nobody inspects the spammish repetition"), 0xfbcea83c8a378bf1u);
  EXPECT_EQ(ChecksumText(0x0123456789abcdefu), "0123456789abcdef");
}

std::string Drawn(size_t size, std::mt19937* draw) {
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>((*draw)());
  return text;
}

TEST(ChecksumTest, PiecesDoNotMatter) {
  std::mt19937 draw(1);
  for (size_t size = 0; size < 200; ++size) {
    const std::string text = Drawn(size, &draw);
    Checksum pieces(size);
    for (std::string_view rest = text; !rest.empty();) {
      const size_t count = std::min<size_t>(rest.size(), draw() % 70);
      pieces.Add(rest.substr(0, count));
      rest.remove_prefix(count);
      EXPECT_EQ(pieces.value(), ChecksumOf(text.substr(0, text.size() - rest.size()), size));
    }
    EXPECT_EQ(pieces.value(), ChecksumOf(text, size)) << size;
  }
}

TEST(ChecksumTest, FindsEachChangedBitAndByte) {
  std::mt19937 draw(2);
  for (const size_t size : {1, 7, 31, 32, 33, 100, 1000}) {
    const std::string text = Drawn(size, &draw);
    const uint64_t was = ChecksumOf(text);
    for (size_t bit = 0; bit < 8 * size; ++bit) {
      std::string other = text;
      other[bit / 8] = static_cast<char>(other[bit / 8] ^ (1 << bit % 8));
      ASSERT_NE(ChecksumOf(other), was) << size << " " << bit;
    }
    EXPECT_NE(ChecksumOf(text + '\0'), was);
    EXPECT_NE(ChecksumOf(text.substr(1)), was);
    EXPECT_NE(ChecksumOf(text, 1), was);
  }
}

}  // namespace
}  // namespace encore::internal
