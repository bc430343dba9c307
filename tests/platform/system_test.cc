// SPDX-License-Identifier: Apache-2.0
//
// What every system must do in its own way: names that are not ASCII, files that are replaced while
// they are mapped, held folders, cores and caches.

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "encore/cpu.h"
#include "engine/io/folder.h"
#include "engine/platform/core_domains.h"
#include "engine/platform/file_writer.h"
#include "engine/platform/mapped_file.h"
#include "engine/platform/path.h"
#include "engine/platform/temporary_name.h"
#include "engine/platform/thread_affinity.h"
#include "tests/support/safetensors_bytes.h"
#include "tests/support/sanitizers.h"

namespace encore::inline v0_1::internal {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "m\u00f6 \u65e5\u672c";  // "mö 日本"

Status Write(const std::string& path, std::string_view text, Temporary temporary) {
  Result<FileWriter> writer = FileWriter::Create(path, temporary);
  if (!writer.ok()) return writer.status();
  const Status written = writer->Write(std::as_bytes(std::span(text)));
  return written.ok() ? writer->Commit() : written;
}

TEST(SystemTest, PathsAreUtf8) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / ToPath(kName);
  EXPECT_EQ(PathText(path.filename()), kName);
  ASSERT_TRUE(fs::create_directory(path));
  const std::string file = PathText(path / ToPath(kName));
  ASSERT_TRUE(Write(file, "text", Temporary::kNamed).ok());
  // By its name in the system's own encoding, and not by what a narrow string would be.
  EXPECT_TRUE(fs::exists(folder.path() / u8"m\u00f6 \u65e5\u672c" / u8"m\u00f6 \u65e5\u672c"));
  const Result<MappedFile> mapped = MappedFile::Open(file);
  ASSERT_TRUE(mapped.ok()) << mapped.status().message();
  EXPECT_EQ(TextOf(*mapped), "text");
  EXPECT_EQ(mapped->mapped_bytes(), 4u);
}

TEST(SystemTest, WhatIsMappedCanBeReplaced) {
  if (kEmulated && !kPathsAreBytes) GTEST_SKIP() << "wine 8 has no POSIX semantics of renaming";
  const TemporaryFolder folder;
  const std::string file = folder.File("f");
  for (const Temporary temporary : {Temporary::kNameless, Temporary::kNamed}) {
    ASSERT_TRUE(Write(file, "old", temporary).ok());
    const Result<MappedFile> old = MappedFile::Open(file);
    ASSERT_TRUE(old.ok());
    const Status replaced = Write(file, "newer", temporary);
    ASSERT_TRUE(replaced.ok()) << replaced.message();
    EXPECT_EQ(TextOf(*old), "old");
    EXPECT_TRUE(old->CheckUnchanged(file).ok());
    old->ReleasePages();
    EXPECT_EQ(TextOf(*old), "old");
    EXPECT_EQ(TextOf(*MappedFile::Open(file)), "newer");
    EXPECT_EQ(folder.List(), std::vector<std::string>{"f"});
  }
}

TEST(SystemTest, WhatIsRewrittenInPlaceIsNoticed) {
  const TemporaryFolder folder;
  const std::string file = folder.File("f");
  const auto write = [&](std::string_view text) {
    WriteBytes(file, std::as_bytes(std::span(text)));
  };
  write("0123");
  const Result<MappedFile> mapped = MappedFile::Open(file);
  ASSERT_TRUE(mapped.ok());
  fs::last_write_time(file, fs::last_write_time(file) - std::chrono::hours(1));
  EXPECT_TRUE(
      FailsWith(mapped->CheckUnchanged(file), {"another time of modification"}, ErrorCode::kIo));
  const auto same = []() -> Result<bool> { return true; };
  EXPECT_TRUE(mapped->CheckUnchanged(file, same).ok());
}

TEST(SystemTest, OtherErrorsHaveTheirOwnCodes) {
  const TemporaryFolder folder;
  EXPECT_EQ(MappedFile::Open(folder.File("none")).status().code(), ErrorCode::kNotFound);
  EXPECT_EQ(MappedFile::Open(folder.File("none/f")).status().code(), ErrorCode::kNotFound);
  EXPECT_TRUE(FailsWith(MappedFile::Open(PathText(folder.path())).status(), {"found a folder"},
                        ErrorCode::kIo));
  EXPECT_EQ(Write(folder.File("none/f"), "", Temporary::kNamed).code(), ErrorCode::kNotFound);
}

TEST(SystemTest, HeldFoldersStay) {
  const TemporaryFolder folder;
  const fs::path made = TemporaryName(folder.path() / "f");
  ASSERT_TRUE(fs::create_directory(made));
  FileHandle held;
  ASSERT_TRUE(HoldTemporaryFolder(made, &held));
  const auto age = [&] {
    fs::last_write_time(made, fs::last_write_time(made) - std::chrono::hours(1));
  };
  age();
  RemoveAbandoned(folder.path());
  EXPECT_TRUE(fs::exists(made));
  EXPECT_EQ(RenameHeldFolder(made, folder.path() / "named", &held), 0);
  EXPECT_EQ(folder.List(), std::vector<std::string>{"named"});
  held = {};
  fs::rename(folder.path() / "named", made);
  age();
  RemoveAbandoned(folder.path());
  EXPECT_FALSE(fs::exists(made));
}

TEST(SystemTest, DomainsAreNodesAndCaches) {
  // Two threads of a core, a core of the same cache, another cache, another node, one of no cache.
  const std::vector<CorePlace> places = {{0, 7, 1}, {0, 7, 1}, {0, 7, 2},
                                         {0, 8, 3}, {1, 8, 4}, {1, -1, -1}};
  EXPECT_EQ(
      JoinDomains({0, 1, 2, 3, 64, 65}, places),
      (std::vector<CoreDomain>{{0, {0, 2}, {1}}, {0, {3}, {}}, {1, {65}, {}}, {1, {64}, {}}}));
}

#if defined(__linux__) || defined(_WIN32)
TEST(SystemTest, ThreadsRunWhereTheyArePinned) {
  const CoreMask mask = CoreMask::OfThisThread();
  ASSERT_GT(mask.count(), 0u);
  const auto core = static_cast<int>(mask.first());
  CoreMask pinned;
  int on = -1;
  std::thread([&] {
    SpreadThisThread(1);
    PinThisThread(core);
    NameThisThread("pinned");
    pinned = CoreMask::OfThisThread();
    std::this_thread::yield();
    on = CurrentCore();
  }).join();
  EXPECT_EQ(pinned.count(), 1u);
  EXPECT_TRUE(pinned.Has(core));
  EXPECT_EQ(on, core);
  EXPECT_TRUE(CoreMask::OfThisThread() == mask);
  EXPECT_LE(mask.count(), static_cast<size_t>(Cores().online));
}
#endif

}  // namespace
}  // namespace encore::internal
