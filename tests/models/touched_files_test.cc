// SPDX-License-Identifier: Apache-2.0
//
// Files of weights that other programs touch, replace or write to while a model has them mapped.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "encore/executor.h"
#include "encore/status.h"
#include "encore/thread_pool.h"
#include "engine/io/folder.h"
#include "engine/models/weight_files.h"
#include "engine/platform/mapped_file.h"
#include "tests/support/safetensors_bytes.h"

namespace encore::inline v0_1::internal {
namespace {

namespace fs = std::filesystem;

// Adds so much to the byte there, in place.
void AddToByte(const std::string& path, size_t place, int more) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(place));
  const int byte = file.get();
  file.seekp(static_cast<std::streamoff>(place));
  file.put(static_cast<char>(byte + more));
  ASSERT_TRUE(file.good());
}

void Touch(const std::string& path, std::chrono::seconds ago) {
  fs::last_write_time(path, fs::file_time_type::clock::now() - ago);
}

class TouchedFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const auto& entry : fs::directory_iterator(kFrom)) {
      if (entry.is_regular_file()) fs::copy(entry.path(), folder_.path());
    }
    Touch(path_, std::chrono::seconds(100));
    const Result<Folder> folder = Folder::Open(folder_.path().string());
    ASSERT_TRUE(folder.ok());
    Result<WeightFiles> files = WeightFiles::Open(*folder);
    ASSERT_TRUE(files.ok()) << files.status().message();
    files_ = *std::move(files);
  }

  void ExpectRefused(const std::string& found) {
    const Status status = files_.CheckUnchanged();
    EXPECT_EQ(status.code(), ErrorCode::kIo);
    for (const std::string& part :
         {std::string("/model.safetensors' was changed since it was opened: found ") + found,
          std::string(". Open the file or its model again; ")}) {
      EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
    }
  }

  const std::string kFrom = ENCORE_TEST_DATA_DIR "/models/bert";
  const TemporaryFolder folder_;
  const std::string path_ = folder_.File("model.safetensors");
  WeightFiles files_;
};

TEST_F(TouchedFiles, OnlyTimesTellBeforeBytesAreNoted) {
  EXPECT_TRUE(files_.CheckUnchanged().ok());
  Touch(path_, std::chrono::seconds(50));
  ExpectRefused("another time of modification, wanted the one it had");
  EXPECT_EQ(files_.NoteBytes({}).code(), ErrorCode::kIo);
  ExpectRefused("another time of modification, wanted the one it had");
}

TEST_F(TouchedFiles, ATouchDoesNoHarmOnceBytesAreNoted) {
  ASSERT_TRUE(files_.NoteBytes({}).ok());
  for (const int ago : {50, 0, 200}) {
    Touch(path_, std::chrono::seconds(ago));
    std::atomic<bool> stop = true;
    EXPECT_EQ(files_.CheckUnchanged(Executor().WithStop(&stop)).code(), ErrorCode::kCancelled);
    EXPECT_TRUE(files_.CheckUnchanged().ok()) << ago;
    EXPECT_TRUE(files_.NoteBytes({}).ok()) << ago;
  }
  const Result<ThreadPool> pool = ThreadPool::Create({.threads = 3});
  ASSERT_TRUE(pool.ok());
  Touch(path_, std::chrono::seconds(50));
  EXPECT_TRUE(files_.CheckUnchanged(pool->executor()).ok());
}

// The first, one within and the last byte of the file: every one counts.
TEST_F(TouchedFiles, AnyOtherByteIsFound) {
  ASSERT_TRUE(files_.NoteBytes({}).ok());
  const size_t size = fs::file_size(path_);
  for (const size_t place : {size_t{0}, size / 2, size - 1}) {
    AddToByte(path_, place, 1);
    ExpectRefused("other bytes, wanted those it had");
    Touch(path_, std::chrono::seconds(50));
    ExpectRefused("other bytes, wanted those it had");
    AddToByte(path_, place, -1);
    EXPECT_TRUE(files_.CheckUnchanged().ok()) << place;
  }
  fs::resize_file(path_, size - 1);
  ExpectRefused(std::to_string(size - 1) + " bytes, wanted the " + std::to_string(size) +
                " it had");
}

// A write may leave the times of a touch just before it as they are: the system's clock for files
// ticks every few milliseconds.
TEST_F(TouchedFiles, AWriteRightAfterATouchIsFound) {
  ASSERT_TRUE(files_.NoteBytes({}).ok());
  for (int i = 0; i < 20; ++i) {
    Touch(path_, std::chrono::seconds(0));
    EXPECT_TRUE(files_.CheckUnchanged().ok());
    AddToByte(path_, 1000, 1);
    ExpectRefused("other bytes, wanted those it had");
    AddToByte(path_, 1000, -1);
  }
}

TEST(FileChecksum, IsTheSameOnAnyThreadsAndOfEachByte) {
  const TemporaryFolder folder;
  const Result<ThreadPool> pool = ThreadPool::Create({.threads = 3});
  ASSERT_TRUE(pool.ok());
  constexpr size_t kMiB = size_t{1} << 20;
  for (const size_t size : {size_t{1}, kMiB - 1, kMiB, 3 * kMiB + 5}) {
    const std::string path = folder.File(std::to_string(size));
    std::ofstream(path, std::ios::binary) << std::string(size, 'x');
    const Result<MappedFile> file = MappedFile::Open(path);
    ASSERT_TRUE(file.ok());
    const auto sum = [&](const Executor& executor) { return *file->FileChecksum(path, executor); };
    const uint64_t wanted = sum({});
    EXPECT_EQ(sum(pool->executor()), wanted);
    for (const size_t place : {size_t{0}, size / 2, size - 1}) {
      AddToByte(path, place, 1);
      EXPECT_NE(sum({}), wanted) << size << " " << place;
      AddToByte(path, place, -1);
    }
    EXPECT_EQ(sum({}), wanted);
  }
}

}  // namespace
}  // namespace encore::inline v0_1::internal
