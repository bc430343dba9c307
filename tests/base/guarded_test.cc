// SPDX-License-Identifier: Apache-2.0
//
// Tests of engine/base/guarded.h and of GuardedFile: what is thrown becomes which Status.

#include "engine/base/guarded.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "engine/platform/file_error.h"

namespace encore::inline v0_1::internal {
namespace {

TEST(GuardedTest, WantOfMemoryIsAStatus) {
  EXPECT_TRUE(Guarded("a list", [] { return Status(); }).ok());
  const Status status = Guarded("a list", []() -> Status { throw std::bad_alloc(); });
  EXPECT_EQ(status.code(), ErrorCode::kOutOfMemory);
  EXPECT_EQ(status.message(), "no memory for a list");
  const Result<int> result = Guarded("a list", []() -> Result<int> {
    std::vector<int> list;
    list.reserve(list.max_size() + 1);
    return 1;
  });
  EXPECT_EQ(result.status().code(), ErrorCode::kOutOfMemory);
}

TEST(GuardedTest, ADefectIsNoStatus) {
  const auto defect = []() -> Status { throw std::out_of_range("beyond the end"); };
  EXPECT_THROW((void)Guarded("a list", defect), std::out_of_range);
  EXPECT_THROW((void)GuardedFile("a file", defect), std::out_of_range);
  EXPECT_THROW((void)Guarded("a list", []() -> Status { throw std::runtime_error("a host's"); }),
               std::runtime_error);
}

TEST(GuardedTest, WhatTheSystemThrowsOfAFileIsIo) {
  const Status status = GuardedFile("f.bin", []() -> Status {
    throw std::filesystem::filesystem_error("no such encoding",
                                            std::make_error_code(std::errc::illegal_byte_sequence));
  });
  EXPECT_EQ(status.code(), ErrorCode::kIo);
  EXPECT_EQ(status.message().rfind("f.bin: ", 0), 0u) << status.message();
  EXPECT_EQ(GuardedFile("f.bin", []() -> Status { throw std::bad_alloc(); }).code(),
            ErrorCode::kOutOfMemory);
}

}  // namespace
}  // namespace encore::internal
