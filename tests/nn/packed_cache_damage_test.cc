// SPDX-License-Identifier: Apache-2.0
//
// Whatever stands in the folder of EncoderOptions::cache: no vector is another one, a damaged file
// is replaced, and nothing else is written to or opened.

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/nn/packed_cache_case.h"
#include "tests/support/compare.h"
#include "tests/support/precisions.h"
#include "tests/support/safetensors_bytes.h"

namespace encore {
namespace {

namespace fs = std::filesystem;

// What stands in the only file is replaced, and changes nothing meanwhile.
class DamagedCacheTest : public PackedCacheTest {
 protected:
  void Start(Precision precision) {
    fs::remove_all(folder_.File("cache"));
    options_ = Options("one", precision);
    wanted_ = Output(model_.Make({.precision = precision}));
    const Encoder first = model_.Make(options_);
    ASSERT_EQ(first.cache_use(), kWritten);
    path_ = File();
    bytes_ = ReadBytes(path_);
    panels_ = bytes_.size() - first.packed_bytes();
  }
  void ExpectReplaced(const std::vector<std::byte>& damaged, const std::string& what) {
    SCOPED_TRACE(what);
    WriteBytes(path_, damaged);
    const Encoder encoder = model_.Make(options_);
    EXPECT_EQ(encoder.cache_use(), kDamaged);
    EXPECT_TRUE(SameBits(Output(encoder), wanted_));
    EXPECT_TRUE(ReadBytes(path_) == bytes_);
  }
  void ExpectFlipFound(size_t at, int bit) {
    std::vector<std::byte> damaged = bytes_;
    damaged[at] ^= std::byte{1} << bit;
    ExpectReplaced(damaged, "bit " + std::to_string(bit) + " of byte " + std::to_string(at));
  }

  EncoderOptions options_;
  std::vector<float> wanted_;
  std::string path_;
  std::vector<std::byte> bytes_;
  size_t panels_ = 0;  // where they begin
};

TEST_F(DamagedCacheTest, OfAnyLength) {
  for (const Precision precision : kPrecisions) {
    SCOPED_TRACE(PrecisionName(precision));
    ASSERT_NO_FATAL_FAILURE(Start(precision));
    for (const size_t size :
         {size_t{0}, size_t{1}, size_t{63}, size_t{700}, size_t{4095}, size_t{4096}, panels_,
          bytes_.size() / 2, bytes_.size() - 64, bytes_.size() - 1, bytes_.size() + 1,
          bytes_.size() + 64, bytes_.size() + 4096, 2 * bytes_.size()}) {
      std::vector<std::byte> other = bytes_;
      other.resize(size);
      ExpectReplaced(other, "size " + std::to_string(size));
    }
    ExpectReplaced(std::vector<std::byte>(bytes_.size(), std::byte{0xFF}), "all bits");
    ExpectReplaced(std::vector<std::byte>(bytes_.size()), "zeros");
  }
}

// Description, numbers, scales, panels, and what fills up between: wherever one bit is another.
TEST_F(DamagedCacheTest, AtAnyByte) {
  constexpr size_t kFlips = 100;
  for (const Precision precision : kPrecisions) {
    SCOPED_TRACE(PrecisionName(precision));
    ASSERT_NO_FATAL_FAILURE(Start(precision));
    for (size_t i = 0; i < kFlips; ++i) {
      ExpectFlipFound(i * (panels_ - 1) / (kFlips - 1), static_cast<int>(i % 8));
      ExpectFlipFound(panels_ + i * (bytes_.size() - panels_ - 1) / (kFlips - 1),
                      static_cast<int>((3 * i + 1) % 8));
    }
  }
}

// As disks and memory do it: blocks that were never written, are another's, or changed places.
TEST_F(DamagedCacheTest, InBlocks) {
  std::mt19937 draw(1);
  for (const Precision precision : kPrecisions) {
    SCOPED_TRACE(PrecisionName(precision));
    ASSERT_NO_FATAL_FAILURE(Start(precision));
    for (const size_t block : {size_t{4}, size_t{8}, size_t{32}, size_t{512}, size_t{4096}}) {
      for (int i = 0; i < 4; ++i) {
        const size_t blocks = bytes_.size() / block;
        const auto a = static_cast<ptrdiff_t>(draw() % blocks * block);
        const auto b = static_cast<ptrdiff_t>(draw() % blocks * block);
        const auto size = static_cast<ptrdiff_t>(block);
        const std::string what = std::to_string(block) + " bytes at " + std::to_string(a);
        const auto expect_found = [&](const std::vector<std::byte>& damaged,
                                      const std::string& how) {
          if (damaged != bytes_) ExpectReplaced(damaged, what + how);
        };
        std::vector<std::byte> damaged = bytes_;
        std::fill_n(damaged.begin() + a, size, std::byte{0});
        expect_found(damaged, " zeros");
        damaged = bytes_;
        std::copy_n(bytes_.begin() + b, size, damaged.begin() + a);
        expect_found(damaged, " of " + std::to_string(b));
        std::copy_n(bytes_.begin() + a, size, damaged.begin() + b);
        expect_found(damaged, " exchanged with " + std::to_string(b));
      }
    }
  }
}

// Not asked for: all bytes.
TEST_F(DamagedCacheTest, TrustedInPanelsAlone) {
  for (const Precision precision : kPrecisions) {
    SCOPED_TRACE(PrecisionName(precision));
    ASSERT_NO_FATAL_FAILURE(Start(precision));
    options_.cache.trust = true;
    Expect(model_, options_, kTrusted);
    for (size_t at = 0; at < panels_; at += 811) ExpectFlipFound(at, 4);
    // The first matrix' first panel is one of those that are compared.
    std::vector<std::byte> damaged = bytes_;
    damaged[panels_ + 5] ^= std::byte{0x10};
    WriteBytes(path_, damaged);
    Expect(model_, options_, kOther);
    damaged = bytes_;
    // The middle of that matrix, whose other panels are not.
    damaged[panels_ + (bytes_.size() - panels_) / 10] ^= std::byte{0x10};
    WriteBytes(path_, damaged);
    EXPECT_EQ(model_.Make(options_).cache_use(), kTrusted);
    options_.cache.trust = false;
    Expect(model_, options_, kDamaged);
  }
  EncoderOptions both = Options();
  both.cache.compare = both.cache.trust = true;
  EXPECT_TRUE(
      FailsWith(Encoder::Create(model_.config(), model_.weights(), both), {"compare and trust"}));
}

TEST_F(DamagedCacheTest, LinksAreReplacedAndNeverFollowed) {
  ASSERT_NO_FATAL_FAILURE(Start(Precision::kF32));
  const std::string diary = folder_.File("diary");
  fs::create_directory(folder_.File("others"));
  fs::copy_file(path_, folder_.File("others/copy"));
  const std::vector<std::byte> precious(8, std::byte{'p'});
  const auto expect_replaced = [&](const std::string& use) {
    Expect(model_, options_, use);
    EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(path_)));
    EXPECT_EQ(fs::hard_link_count(path_), 1u);
    EXPECT_TRUE(ReadBytes(path_) == bytes_);
    EXPECT_TRUE(ReadBytes(diary) == precious);
    EXPECT_TRUE(ReadBytes(folder_.File("others/copy")) == bytes_);
    EXPECT_FALSE(fs::exists(folder_.File("nothing")));
  };
  for (const std::string& target :
       {diary, folder_.File("nothing"), folder_.File("others"), folder_.File("others/copy"),
        std::string("/dev/null"), path_, folder_.File("no/such/folder")}) {
    SCOPED_TRACE(target);
    WriteBytes(diary, precious);
    fs::remove(path_);
    fs::create_symlink(target, path_);
    expect_replaced("packed and written; the file there was a symbolic link");
  }
  // Another name of a file, which stays.
  WriteBytes(diary, precious);
  fs::remove(path_);
  fs::create_hard_link(diary, path_);
  expect_replaced(kDamaged);
  // The folder itself may be a link.
  fs::create_directory_symlink(folder_.File("cache"), folder_.File("link"));
  options_.cache.folder = folder_.File("link");
  Expect(model_, options_, kMapped);
}

TEST_F(DamagedCacheTest, FilesOfOthersAreNotOpened) {
  if (::geteuid() != 0) GTEST_SKIP() << "files are given to others by root alone";
  ASSERT_NO_FATAL_FAILURE(Start(Precision::kInt8));
  // What would be found in no other way: a file that is right.
  for (const uid_t other : {uid_t{1}, uid_t{54321}}) {
    ASSERT_EQ(::chown(path_.c_str(), other, 0), 0);
    const std::string use = model_.Make(options_).cache_use();
    EXPECT_TRUE(use.starts_with("packed, not written: ")) << use;
    EXPECT_NE(use.find("found a file of user " + std::to_string(other) + ", wanted one of user 0"),
              std::string::npos)
        << use;
    Expect(model_, options_, use);
    EXPECT_TRUE(ReadBytes(path_) == bytes_);
  }
  // Root's are everybody's, and one's own: in a child, as one cannot become root again.
  fs::permissions(folder_.path(), fs::perms::all);
  fs::permissions(folder_.File("cache"), fs::perms::all);
  for (const uid_t owner : {uid_t{0}, uid_t{54321}, uid_t{1}}) {
    ASSERT_EQ(::chown(path_.c_str(), owner, 0), 0);
    EXPECT_EQ(InChild([&] {
                if (::setuid(54321) != 0) return 2;
                const std::string use = model_.Make(options_).cache_use();
                return use == kMapped ? 0 : 1;
              }),
              owner == 1 ? 1 : 0)
        << owner;
  }
}

TEST_F(DamagedCacheTest, OnlyTheOwnerMayWriteToAFile) {
  const mode_t before = ::umask(0);
  Start(Precision::kF32);
  ::umask(before);
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms(0644));
  fs::permissions(path_, fs::perms(0666));
  std::vector<std::byte> damaged = bytes_;
  damaged.back() ^= std::byte{1};
  ExpectReplaced(damaged, "of all");
  EXPECT_EQ(fs::status(path_).permissions() & ~fs::perms(0644), fs::perms::none);
}

}  // namespace
}  // namespace encore
