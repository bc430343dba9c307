// SPDX-License-Identifier: Apache-2.0
//
// Tests of engine/platform/checksum_in_pieces.h: its definition, on one thread and on several.

#include "engine/platform/checksum_in_pieces.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "encore/executor.h"
#include "encore/status.h"
#include "encore/thread_pool.h"
#include "engine/base/checksum.h"
#include "tests/support/results.h"

namespace encore::inline v0_1::internal {
namespace {

TEST(ChecksumInPiecesTest, IsOfThePiecesOneByOne) {
  constexpr size_t kMiB = size_t{1} << 20;
  std::mt19937 draw(1);
  std::vector<std::byte> all(3 * kMiB + 5);
  for (std::byte& byte : all) byte = static_cast<std::byte>(draw());
  const ThreadPool pool = Taken(ThreadPool::Create({.threads = 3}));
  for (const size_t size : {size_t{0}, size_t{1}, kMiB - 1, kMiB, kMiB + 1, 2 * kMiB, all.size()}) {
    const std::span<const std::byte> bytes = std::span(all).first(size);
    std::vector<uint64_t> pieces;
    for (size_t at = 0; at < size; at += kMiB) {
      pieces.push_back(ChecksumOf(bytes.subspan(at, std::min(kMiB, size - at))));
    }
    const uint64_t wanted = ChecksumOf(std::as_bytes(std::span(pieces)));
    EXPECT_EQ(*ChecksumInPieces(Executor::Inline(), bytes), wanted) << size;
    EXPECT_EQ(*ChecksumInPieces(pool.executor(), bytes), wanted) << size;
  }
}

}  // namespace
}  // namespace encore::internal
