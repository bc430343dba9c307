// SPDX-License-Identifier: Apache-2.0
//
// Tests of encore/workspace.h.

#include "encore/workspace.h"
#include "tests/support/results.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

namespace encore {
namespace {

TEST(WorkspaceTest, DefaultHasNoMemory) {
  EXPECT_EQ(Workspace().data(), nullptr);
  EXPECT_EQ(Workspace().size_bytes(), 0u);
  const Workspace none = Taken(Workspace::Create(0));
  EXPECT_EQ(none.size_bytes(), 0u);
}

TEST(WorkspaceTest, CreateGivesAlignedMemory) {
  for (const size_t bytes : {size_t{1}, size_t{64}, size_t{1000}, size_t{5} << 20}) {
    Workspace made = Taken(Workspace::Create(bytes));
    const Workspace workspace = std::move(made);
    EXPECT_EQ(workspace.size_bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(workspace.data()) % Workspace::kAlignment, 0u);
    std::memset(workspace.data(), 1, bytes);
  }
}

TEST(WorkspaceTest, CreateTellsOfMissingMemory) {
  EXPECT_TRUE(FailsWith(Workspace::Create(size_t{1} << 62), {"4611686018427387904 bytes"},
                        ErrorCode::kOutOfMemory));
}

TEST(WorkspaceTest, WrapUsesTheCallersMemory) {
  alignas(64) unsigned char memory[256];
  const Workspace workspace = Taken(Workspace::Wrap(memory, sizeof(memory)));
  EXPECT_EQ(workspace.data(), memory);
  EXPECT_EQ(workspace.size_bytes(), sizeof(memory));
  EXPECT_TRUE(Workspace::Wrap(nullptr, 0).ok());
}

TEST(WorkspaceTest, WrapRefusesNullAndMisaligned) {
  EXPECT_TRUE(FailsWith(Workspace::Wrap(nullptr, 10), {"10 bytes"}));
  alignas(64) unsigned char memory[256];
  EXPECT_TRUE(FailsWith(Workspace::Wrap(memory + 4, 128), {"is 4 bytes past"}));
}

TEST(WorkspaceTest, ReserveOnlyGrows) {
  Workspace workspace;
  ASSERT_TRUE(workspace.Reserve(0).ok());
  EXPECT_EQ(workspace.data(), nullptr);
  ASSERT_TRUE(workspace.Reserve(100).ok());
  EXPECT_EQ(workspace.size_bytes(), 100u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(workspace.data()) % Workspace::kAlignment, 0u);
  void* const memory = workspace.data();
  for (const size_t bytes : {0, 99, 100}) {
    ASSERT_TRUE(workspace.Reserve(bytes).ok());
    EXPECT_EQ(workspace.data(), memory);
    EXPECT_EQ(workspace.size_bytes(), 100u);
  }
  ASSERT_TRUE(workspace.Reserve(5000).ok());
  EXPECT_EQ(workspace.size_bytes(), 5000u);
  std::memset(workspace.data(), 1, 5000);
}

TEST(WorkspaceTest, ReserveThatFailsChangesNothing) {
  Workspace workspace = *Workspace::Create(100);
  void* const memory = workspace.data();
  const Status none = workspace.Reserve(size_t{1} << 62);
  EXPECT_EQ(none.code(), ErrorCode::kOutOfMemory);
  EXPECT_EQ(workspace.data(), memory);
  EXPECT_EQ(workspace.size_bytes(), 100u);
  alignas(64) unsigned char callers[256];
  Workspace wrapped = *Workspace::Wrap(callers, sizeof(callers));
  EXPECT_TRUE(wrapped.Reserve(256).ok());
  EXPECT_TRUE(FailsWith(wrapped.Reserve(257), {"256 bytes and cannot grow; wanted 257"}));
  EXPECT_EQ(wrapped.data(), callers);
  EXPECT_EQ(wrapped.size_bytes(), 256u);
}

TEST(WorkspaceTest, MovingLeavesNothingBehind) {
  Workspace made = Taken(Workspace::Create(128));
  Workspace first = std::move(made);
  void* const memory = first.data();
  Workspace second = std::move(first);
  EXPECT_EQ(second.data(), memory);
  EXPECT_EQ(second.size_bytes(), 128u);
  EXPECT_EQ(first.data(), nullptr);  // NOLINT(bugprone-use-after-move): that is what is tested
  EXPECT_EQ(first.size_bytes(), 0u);
  first = std::move(second);
  EXPECT_EQ(first.data(), memory);
  EXPECT_EQ(second.size_bytes(), 0u);  // NOLINT(bugprone-use-after-move)
}

}  // namespace
}  // namespace encore
