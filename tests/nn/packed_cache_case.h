// SPDX-License-Identifier: Apache-2.0
//
// An encoder, a folder for its packed weights, and what is said of the file there.

#ifndef ENCORE_TESTS_NN_PACKED_CACHE_CASE_H_
#define ENCORE_TESTS_NN_PACKED_CACHE_CASE_H_

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "encore/encoder.h"
#include "reference/encoder_model.h"
#include "tests/support/compare.h"
#include "tests/support/safetensors_bytes.h"

namespace encore {

inline constexpr char kMapped[] = "mapped";
inline constexpr char kCompared[] = "mapped, all panels compared";
inline constexpr char kRenewed[] = "mapped, all panels compared and written";
inline constexpr char kWritten[] = "packed and written";
inline constexpr char kDamaged[] = "packed and written; the file there was damaged";
inline constexpr char kOther[] = "packed and written; the file there was of other weights";
inline constexpr char kTrusted[] = "mapped, not checked";

// Panels of more than one page, the last of each matrix narrower than the others.
inline EncoderConfig Plain() {
  return EncoderConfig::Uniform(72, 2,
                                {.num_heads = 2, .d_ff = 136, .activation = Activation::kGelu});
}

inline std::vector<float> Output(const Encoder& encoder) {
  const std::vector<size_t> starts = {0, 3, 20};
  return Forward(encoder, {.seq_starts = starts},
                 RandomFloats(starts.back() * encoder.config().d_model, 7));
}

class PackedCacheTest : public testing::Test {
 protected:
  PackedCacheTest() : model_(Plain()) {}

  EncoderOptions Options(const std::string& identity = "one",
                         Precision precision = Precision::kF32) const {
    return {.precision = precision,
            .cache = {.folder = folder_.File("cache"), .model = "m", .identity = identity}};
  }
  // The only file there.
  std::string File() const {
    std::string found;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.File("cache"))) {
      EXPECT_TRUE(found.empty()) << entry.path();
      found = entry.path().string();
    }
    return found;
  }
  void Expect(const EncoderModel& model, const EncoderOptions& options, const std::string& use) {
    EncoderOptions without = options;
    without.cache = {};
    const Encoder plain = model.Make(without);
    const Encoder cached = model.Make(options);
    EXPECT_EQ(cached.cache_use(), use);
    EXPECT_EQ(cached.packed_bytes(), plain.packed_bytes());
    EXPECT_TRUE(SameBits(Output(cached), Output(plain)));
    EXPECT_EQ(plain.cache_use(), "");
  }

  TemporaryFolder folder_;
  EncoderModel model_;
};

// Exit status of a child process that runs this.
inline int InChild(const std::function<int()>& run) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(run());
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
}

}  // namespace encore

#endif  // ENCORE_TESTS_NN_PACKED_CACHE_CASE_H_
