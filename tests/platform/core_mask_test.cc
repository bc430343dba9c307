// SPDX-License-Identifier: Apache-2.0
//
// Masks of cores, on kernels of any size: one that knows more cores refuses short masks.

#include "engine/platform/core_mask.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <set>
#include <utility>
#include <vector>

namespace encore::inline v0_1::internal {
namespace {

// A kernel for so many cores, of which the thread may use some.
struct Kernel {
  size_t cores;
  std::set<int> allowed;
  std::vector<size_t>* asked;

  int operator()(size_t bytes, CoreMask::Word* words) const {
    asked->push_back(8 * bytes);
    if (8 * bytes < cores) return EINVAL;
    std::fill_n(words, bytes / sizeof(*words), CoreMask::Word{0});
    constexpr size_t kBits = 8 * sizeof(*words);
    for (const int core : allowed) {
      const auto c = static_cast<size_t>(core);
      words[c / kBits] |= CoreMask::Word{1} << c % kBits;
    }
    return 0;
  }
};

TEST(CoreMask, GrowsUntilTheKernelTakesIt) {
  for (const size_t cores : {size_t{1}, size_t{64}, size_t{1024}, size_t{1025}, size_t{2048},
                             size_t{4096}, size_t{8192}, size_t{10000}, size_t{1} << 20}) {
    SCOPED_TRACE(cores);
    const int last = static_cast<int>(cores) - 1;
    const std::set<int> allowed = {last / 2, std::min(last, last / 2 + 3), last};
    std::vector<size_t> asked;
    const CoreMask mask = CoreMask::Read(Kernel{cores, allowed, &asked});
    EXPECT_EQ(mask.count(), allowed.size());
    EXPECT_EQ(mask.first(), static_cast<size_t>(*allowed.begin()));
    for (int core = -2; core <= last + 2; ++core) {
      ASSERT_EQ(mask.Has(core), allowed.contains(core)) << core;
    }
    EXPECT_FALSE(mask.Has(1 << 30));
    std::vector<size_t> rooms = {1024};
    while (rooms.back() < cores) rooms.push_back(2 * rooms.back());
    EXPECT_EQ(asked, rooms);
  }
}

TEST(CoreMask, IsEmptyWhereTheSystemTellsNothing) {
  std::vector<size_t> asked;
  EXPECT_EQ(CoreMask::Read(Kernel{(size_t{1} << 20) + 1, {3}, &asked}).count(), 0u);
  EXPECT_EQ(asked.size(), 11u);  // 2^10 to 2^20
  for (const int error : {EFAULT, EPERM, ESRCH, ENOSYS}) {
    int asks = 0;
    const CoreMask none = CoreMask::Read([&](size_t /*bytes*/, CoreMask::Word* words) {
      words[0] = 7;
      ++asks;
      return error;
    });
    EXPECT_EQ(none.count(), 0u);
    EXPECT_EQ(none.first(), 0u);
    EXPECT_FALSE(none.Has(0));
    EXPECT_EQ(asks, 1);
  }
}

TEST(CoreMask, IsASetOfCores) {
  CoreMask mask;
  std::set<int> cores;
  for (const int core : {5, 64, 5, 1023, 1024, 8191, 70000}) {
    EXPECT_TRUE(mask.Add(core));
    cores.insert(core);
    EXPECT_TRUE(mask.Has(core));
    EXPECT_EQ(mask.count(), cores.size());
  }
  EXPECT_EQ(mask.first(), 5u);
  EXPECT_EQ(mask.cores(), std::vector<int>(cores.begin(), cores.end()));
  EXPECT_FALSE(mask.Add(-1));
  EXPECT_FALSE(mask.Add(1 << 20));
  for (const int core : {-1, 6, 1 << 20, 70000, 5}) {
    mask.Remove(core);
    cores.erase(core);
    EXPECT_FALSE(mask.Has(core));
    EXPECT_EQ(mask.count(), cores.size());
  }
  EXPECT_EQ(mask.first(), 64u);
  const CoreMask moved = std::move(mask);
  EXPECT_EQ(moved.count(), cores.size());
}

// Whatever room they have.
TEST(CoreMask, IsEqualByItsCores) {
  CoreMask small;
  CoreMask large;
  EXPECT_TRUE(large.Add(5000));
  EXPECT_FALSE(small == large);
  EXPECT_FALSE(large == small);
  large.Remove(5000);
  EXPECT_TRUE(small == large);
  EXPECT_TRUE(small.Add(1000));
  EXPECT_FALSE(large == small);
  EXPECT_TRUE(large.Add(1000));
  EXPECT_TRUE(large == small);
}

}  // namespace
}  // namespace encore::internal
