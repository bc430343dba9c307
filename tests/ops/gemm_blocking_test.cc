// SPDX-License-Identifier: Apache-2.0
//
// The pure functions that cut a matrix product: every row, column and k is in exactly one piece,
// and the pieces fit where they are to live.

#include "engine/ops/gemm_blocking.h"

#include <algorithm>
#include <cstddef>

#include "engine/base/int_math.h"
#include "gtest/gtest.h"

namespace encore::inline v0_1::internal {
namespace {

// A kernel like those there are, by its registers.
GemmKernel Kernel(size_t threads, bool many_registers) {
  GemmKernel kernel{};
  kernel.lanes = threads;
  kernel.best_nv = many_registers ? 3 : 2;
  kernel.max_mr[1] = many_registers ? 16 : 8;
  kernel.max_mr[2] = many_registers ? 12 : 6;
  kernel.max_mr[3] = many_registers ? 8 : 4;
  kernel.max_mr[4] = many_registers ? 6 : 0;
  return kernel;
}

TEST(EvenSplit, CoversAllOnceInNearlyEqualParts) {
  for (const size_t count : {0, 1, 2, 5, 63, 64, 65, 1000}) {
    for (const size_t parts : {1, 2, 3, 7, 64, 100}) {
      const EvenSplit split{count, parts};
      EXPECT_EQ(split.begin(0), 0u);
      EXPECT_EQ(split.begin(parts), count);
      for (size_t i = 0; i < parts; ++i) {
        const size_t size = split.begin(i + 1) - split.begin(i);
        EXPECT_TRUE(size == count / parts || size == DivCeil(count, parts))
            << count << " in " << parts << ", part " << i << " has " << size;
      }
    }
  }
}

TEST(GemmBlocking, FitsTheCaches) {
  for (const size_t l2 : {0, 1, 32 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20, 64 << 20}) {
    for (const size_t k : {0, 1, 255, 256, 257, 768, 1023, 1024, 1025, 3072, 100000}) {
      for (const size_t nr : {4, 8, 24, 48, 64}) {
        const GemmBlocking blocking = ChooseGemmBlocking({.l1d = 0, .l2 = l2, .l3 = 0}, k, nr);
        SCOPED_TRACE(testing::Message() << "l2 " << l2 << ", k " << k << ", nr " << nr);
        EXPECT_GE(blocking.kc, 1u);
        EXPECT_LE(blocking.kc, std::max<size_t>(k, 1)) << "more than there is";
        EXPECT_LE(blocking.kc, 1024u);
        EXPECT_GE(blocking.mc, 1u);
        EXPECT_LE(blocking.mc, kMaxMc) << "strips on the stack have kMaxMc rows";
        // Nearly equal slices: the last one is not a sliver.
        const size_t slices = std::max<size_t>(1, DivCeil(k, blocking.kc));
        EXPECT_TRUE(k == 0 || k > (slices - 1) * blocking.kc);
        if (l2 >= (256u << 10)) {
          EXPECT_LE(blocking.kc * nr * sizeof(float), l2) << "a slice of a panel";
          EXPECT_LE(blocking.kc * blocking.mc * sizeof(float), l2) << "a block of A";
        }
      }
    }
  }
}

TEST(ChoosePanelVectors, IsAWidthThereIsATileFor) {
  for (const size_t threads : {4, 8, 16}) {
    for (const bool many : {false, true}) {
      const GemmKernel kernel = Kernel(threads, many);
      for (size_t n = 0; n <= 400; ++n) {
        const size_t nv = ChoosePanelVectors(kernel, n);
        ASSERT_GE(nv, 1u);
        ASSERT_LE(nv, kernel.max_nv());
        const size_t vectors = std::max<size_t>(1, DivCeil(n, threads));
        EXPECT_LE(nv, std::max(vectors, kernel.best_nv)) << n;
        EXPECT_TRUE(vectors % kernel.best_nv != 0 || nv == kernel.best_nv) << n;
      }
      EXPECT_EQ(ChoosePanelVectors(kernel, 1), 1u);
    }
  }
}

TEST(ChooseAlignedPanelVectors, DividesTheMultiple) {
  EXPECT_EQ(ChooseAlignedPanelVectors(Kernel(16, true), 64), 4u);
  EXPECT_EQ(ChooseAlignedPanelVectors(Kernel(8, false), 64), 2u);
  EXPECT_EQ(ChooseAlignedPanelVectors(Kernel(4, false), 64), 2u);
  EXPECT_EQ(ChooseAlignedPanelVectors(Kernel(4, true), 64), 4u);
  EXPECT_EQ(ChooseAlignedPanelVectors(Kernel(16, true), 16), 1u);
}

TEST(ChooseTileGrid, EnoughTasksAndNoneEmpty) {
  for (const size_t m : {1, 2, 31, 64, 127, 128, 129, 512, 4096}) {
    for (const size_t panels : {1, 2, 3, 16, 64}) {
      for (const size_t mc : {32, 64, 128}) {
        for (const size_t threads : {1, 2, 3, 7, 64}) {
          const TileGrid grid = ChooseTileGrid(m, panels, mc, threads);
          SCOPED_TRACE(testing::Message() << "m " << m << ", panels " << panels << ", mc " << mc
                                          << ", threads " << threads);
          EXPECT_EQ(grid.rows.count, m);
          EXPECT_EQ(grid.panels.count, panels);
          EXPECT_GE(grid.rows.parts, 1u);
          EXPECT_LE(grid.rows.parts, m);
          EXPECT_GE(grid.panels.parts, 1u);
          EXPECT_LE(grid.panels.parts, panels);
          EXPECT_LE(DivCeil(m, grid.rows.parts), mc);
          EXPECT_GE(grid.tasks(), std::min(threads, panels)) << "threads without work";
        }
      }
    }
  }
}

TEST(ChooseTileGrid, NoRowsOrNoPanelsIsNoTrouble) {
  EXPECT_EQ(ChooseTileGrid(0, 4, 64, 3).rows.count, 0u);
  EXPECT_EQ(ChooseTileGrid(4, 0, 64, 3).panels.parts, 1u);
}

}  // namespace
}  // namespace encore::internal
