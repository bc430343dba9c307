// SPDX-License-Identifier: Apache-2.0
//
// Tests of engine/platform/temporary_name.h: which files and folders are removed, and which stay.

#include "engine/platform/temporary_name.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>

#include "engine/platform/file_writer.h"
#include "tests/support/safetensors_bytes.h"

namespace encore::inline v0_1::internal {
namespace {

namespace fs = std::filesystem;
using NameSet = std::set<std::string>;

class TemporaryNameTest : public testing::Test {
 protected:
  void Make(std::string_view name) const {
    WriteBytes(folder_.File(name), std::as_bytes(std::span(name)));
  }
  NameSet Names() const {
    const auto all = folder_.List();
    return {all.begin(), all.end()};
  }
  TemporaryFolder folder_;
};

TEST_F(TemporaryNameTest, WhatNobodyHoldsIsRemoved) {
  for (const char* name : {".encore-0.tmp", ".encore-18446744073709551615.tmp"}) Make(name);
  fs::create_directories(folder_.File(".encore-7.tmp/1_Pooling"));
  Make(".encore-7.tmp/config.json");
  Make(".encore-8.tmp");  // what an old output's permissions made of it
  fs::permissions(folder_.File(".encore-8.tmp"), fs::perms::owner_read);
  const fs::path own = TemporaryName(folder_.File("f"));
  Make(own.filename().string());
  RemoveAbandoned(folder_.path());
  EXPECT_EQ(Names(), NameSet());
  RemoveAbandoned(folder_.File("none"));
}

TEST_F(TemporaryNameTest, OtherNamesStay) {
  const NameSet others = {".encore-.tmp",   ".encore-1.tmp2", ".encore-1",      ".encore-1a.tmp",
                          ".encore--1.tmp", "encore-1.tmp",   "x.encore-1.tmp", ".encore-1.TMP"};
  for (const std::string& name : others) Make(name);
  Make("diary");
  fs::create_symlink(folder_.File("diary"), folder_.File(".encore-5.tmp"));
  ASSERT_EQ(::mkfifo(folder_.File(".encore-6.tmp").c_str(), 0600), 0);
  NameSet all = Names();
  RemoveAbandoned(folder_.path());
  EXPECT_EQ(Names(), all);
}

TEST_F(TemporaryNameTest, WhatIsHeldStaysUntilItIsReleased) {
  fs::create_directory(folder_.File(".encore-1.tmp"));
  const int held = ::open(folder_.File(".encore-1.tmp").c_str(), O_RDONLY);
  ASSERT_TRUE(HoldTemporary(held));
  {
    FileWriter writer = Taken(FileWriter::Create(folder_.File("f"), Temporary::kNamed));
    RemoveAbandoned(folder_.path());
    EXPECT_EQ(Names().size(), 2u);
    ASSERT_TRUE(writer.Commit().ok());
  }
  EXPECT_EQ(Names(), (NameSet{".encore-1.tmp", "f"}));
  ::close(held);
  RemoveAbandoned(folder_.path());
  EXPECT_EQ(Names(), NameSet{"f"});
}

// One that was removed between its making and its lock, and one that is about to be.
TEST_F(TemporaryNameTest, WhoeverIsLateNotices) {
  Make("f");
  const int removed = ::open(folder_.File("f").c_str(), O_RDWR);
  fs::remove(folder_.File("f"));
  EXPECT_FALSE(HoldTemporary(removed));
  ::close(removed);
  Make("f");
  const int first = ::open(folder_.File("f").c_str(), O_RDWR);
  const int second = ::open(folder_.File("f").c_str(), O_RDWR);
  EXPECT_TRUE(HoldTemporary(first));
  EXPECT_FALSE(HoldTemporary(second));
  ::close(first);
  EXPECT_TRUE(HoldTemporary(second));
  ::close(second);
}

}  // namespace
}  // namespace encore::internal
