// SPDX-License-Identifier: Apache-2.0
//
// Tests of engine/platform/file_writer.h: a file appears whole or not at all, and what is left
// behind.

#include "engine/platform/file_writer.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/safetensors_bytes.h"

#if defined(__linux__)
#include <fcntl.h>
#endif

namespace encore::inline v0_1::internal {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

std::span<const std::byte> Bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string Content(const std::string& path) {
  const std::vector<std::byte> bytes = ReadBytes(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Whether files without names can be made in a folder here, and be given one.
bool HasNameless([[maybe_unused]] const TemporaryFolder& folder) {
#if defined(__linux__) && defined(O_TMPFILE)
  const int descriptor = ::open(folder.path().c_str(), O_TMPFILE | O_WRONLY, 0600);
  if (descriptor < 0) return false;
  const std::string name = folder.File("named");
  const bool linked = ::linkat(AT_FDCWD, ("/proc/self/fd/" + std::to_string(descriptor)).c_str(),
                               AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
  if (linked) ::unlink(name.c_str());
  ::close(descriptor);
  return linked;
#else
  return false;
#endif
}

class FileWriterTest : public testing::TestWithParam<Temporary> {
 protected:
  TemporaryFolder folder_;
  const std::string path_ = folder_.File("f");
};

TEST_P(FileWriterTest, AppearsAtTheEndAndReplacesWhole) {
  for (const std::string_view text : {"first", "the second, which is longer", "3rd"}) {
    FileWriter writer = Taken(FileWriter::Create(path_, GetParam()));
    const bool replaces = text != "first";
    const std::string before = replaces ? Content(path_) : "";
    ASSERT_TRUE(writer.Write(Bytes(text)).ok());
    ASSERT_TRUE(writer.Replace(0, Bytes("*")).ok());
    EXPECT_EQ(fs::exists(path_), replaces);
    if (replaces) {
      EXPECT_EQ(Content(path_), before);
    }
    const Status status = writer.Commit();
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(Content(path_), "*" + std::string(text.substr(1)));
    EXPECT_EQ(folder_.List(), Names{"f"});
  }
}

TEST_P(FileWriterTest, WithoutCommitNothingChanges) {
  WriteBytes(path_, Bytes("old"));
  {
    FileWriter writer = Taken(FileWriter::Create(path_, GetParam()));
    ASSERT_TRUE(writer.Write(Bytes("new")).ok());
    FileWriter moved = std::move(writer);
    ASSERT_TRUE(moved.Write(Bytes("newer")).ok());
  }
  EXPECT_EQ(Content(path_), "old");
  EXPECT_EQ(folder_.List(), Names{"f"});
}

TEST_P(FileWriterTest, PermissionsAreThoseOfTheOldFileOrTheUsual) {
  constexpr auto kUsual = fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read |
                          fs::perms::others_read;
  const auto write = [&] {
    FileWriter writer = Taken(FileWriter::Create(path_, GetParam()));
    ASSERT_TRUE(writer.Commit().ok());
  };
  const mode_t mask = ::umask(022);
  write();
  ::umask(mask);
  EXPECT_EQ(fs::status(path_).permissions(), kUsual);
  fs::permissions(path_, fs::perms::owner_all);
  write();
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms::owner_all);
}

TEST_P(FileWriterTest, WritersOfOnePathDoNotMeet) {
  std::vector<FileWriter> writers;
  for (int i = 0; i < 3; ++i) {
    FileWriter writer = Taken(FileWriter::Create(path_, GetParam()));
    ASSERT_TRUE(writer.Write(Bytes(std::to_string(i))).ok());
    writers.push_back(std::move(writer));
  }
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(writers[static_cast<size_t>(i)].Commit().ok());
    EXPECT_EQ(Content(path_), std::to_string(i));
  }
  EXPECT_EQ(folder_.List(), Names{"f"});
}

INSTANTIATE_TEST_SUITE_P(Temporaries, FileWriterTest,
                         testing::Values(Temporary::kNameless, Temporary::kNamed));

// What a process leaves that is killed while it writes `path`.
void KilledWhileWriting(const std::string& path) {
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Result<FileWriter> writer = FileWriter::Create(path);
    const bool ok = writer.ok() && writer->Write(Bytes("half")).ok();
    const char answer = ok ? 'y' : 'n';
    if (::write(pipe[1], &answer, 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  char answer = 0;
  EXPECT_EQ(::read(pipe[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'y');
  ::kill(child, SIGKILL);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST(FileWriterKillTest, AKilledProcessLeavesNothing) {
  const TemporaryFolder folder;
  if (!HasNameless(folder)) GTEST_SKIP() << "no files without names here";
  KilledWhileWriting(folder.File("f"));
  EXPECT_EQ(folder.List(), Names{});
  WriteBytes(folder.File("f"), Bytes("old"));
  KilledWhileWriting(folder.File("f"));
  EXPECT_EQ(folder.List(), Names{"f"});
  EXPECT_EQ(Content(folder.File("f")), "old");
}

// Leftovers of killed processes took the names that a process of the same number would try.
TEST(FileWriterNameTest, NamesAreRandom) {
  const TemporaryFolder folder;
  std::vector<std::string> all;
  for (int i = 0; i < 4; ++i) {
    FileWriter writer = Taken(FileWriter::Create(folder.File("f"), Temporary::kNamed));
    ASSERT_EQ(folder.List().size(), 1u);
    all.push_back(folder.List().front());
    EXPECT_TRUE(all.back().starts_with(".encore-")) << all.back();
  }
  // A counter's names share all but their last digits.
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::unique(all.begin(), all.end()), all.end());
  EXPECT_NE(all.front().substr(0, 14), all.back().substr(0, 14));
}

}  // namespace
}  // namespace encore::internal
