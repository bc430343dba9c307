// SPDX-License-Identifier: Apache-2.0
//
// EncoderOptions::cache: the same bits with a cache as without, on every target and in every
// precision; and whatever is in the folder, nothing of it is trusted.

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "encore/executor.h"
#include "engine/kernels/gemm_kernel.h"
#include "reference/switched.h"
#include "tests/nn/packed_cache_case.h"
#include "tests/support/compare.h"
#include "tests/support/peak_memory.h"
#include "tests/support/precisions.h"
#include "tests/support/safetensors_bytes.h"
#include "tests/support/targets.h"

namespace encore {
namespace {

namespace fs = std::filesystem;

// The targets whose kernels make these panels: f32's are one for all of AVX-512.
std::string KernelTargets(const EncoderOptions& options) {
  if (options.precision == Precision::kF32) return internal::GetGemmKernelF32().target;
  const std::string bf16 = internal::GetGemmKernelBf16().target;
  if (options.precision == Precision::kBF16) return bf16;
  const std::string integers = options.precision == Precision::kInt8
                                   ? internal::GetGemmKernelInt8().target
                                   : internal::GetGemmKernelInt4().target;
  return integers + (options.keep.empty() ? "" : " " + bf16);
}

TEST_F(PackedCacheTest, BitsAreTheSameOnEveryTarget) {
  const EncoderModel gated(RotaryAndGate());
  const EncoderModel both(BucketsAndBothNorms());
  const EncoderModel experts(ExpertsInTurn());
  const EncoderModel inputs(LayerInputs());
  EncoderConfig convolutions = Convolutions();
  for (LayerConfig& layer : convolutions.layers) layer.relative.reset();
  const EncoderModel joined(convolutions);
  std::set<std::string> files;
  ForEachTarget([&](const std::string&) {
    for (const EncoderModel* model :
         {&std::as_const(model_), &gated, &both, &experts, &inputs, &joined}) {
      for (const Precision precision : kPrecisions) {
        for (const bool keeps : {false, true}) {
          if (keeps && !IsInteger(precision)) continue;
          EncoderOptions options = Options("one", precision);
          if (keeps) options.keep = {{0, LayerMatrix::kLinear1}, {1, LayerMatrix::kQkv}};
          const std::string file =
              Describe(options) + " " + std::to_string(model->config().d_model);
          SCOPED_TRACE(file);
          const bool is_new = files.insert(file + " " + KernelTargets(options)).second;
          Expect(*model, options, is_new ? kWritten : kMapped);
          Expect(*model, options, kMapped);
          options.cache.compare = true;
          Expect(*model, options, kCompared);
        }
      }
    }
  });
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.File("cache")), fs::directory_iterator()),
            static_cast<ptrdiff_t>(files.size()));
}

TEST_F(PackedCacheTest, ThreadsCompareAsOneDoes) {
  for (const Precision precision : kPrecisions) {
    EncoderOptions options = Options("", precision);
    Expect(model_, options, kWritten);
    for (const Executor& executor : {Executor::OpenMP(3), Executor::Inline()}) {
      options.executor = executor;
      Expect(model_, options, kCompared);
    }
  }
}

TEST_F(PackedCacheTest, OtherWeightsReplaceIt) {
  const EncoderModel other(Plain(), WeightChoices{}, 2);
  for (const Precision precision : kPrecisions) {
    SCOPED_TRACE(PrecisionName(precision));
    Expect(model_, Options("one", precision), kWritten);
    Expect(other, Options("two", precision), kOther);
    Expect(other, Options("two", precision), kMapped);
    // One panel of each matrix tells, even where the identity lies.
    Expect(model_, Options("two", precision), kOther);
    // Gates in the other order: the same tensors, of the same shapes.
    EncoderConfig config = RotaryAndGate();
    const EncoderModel first(config);
    for (LayerConfig& layer : config.layers) layer.gate = Gate::kSecondHalf;
    Expect(first, Options("gate", precision), kWritten);
    Expect(EncoderModel(config), Options("gate", precision), kOther);
  }
}

TEST_F(PackedCacheTest, AnotherIdentityIsComparedAndRenewed) {
  Expect(model_, Options("one"), kWritten);
  Expect(model_, Options("two"), kRenewed);
  Expect(model_, Options("two"), kMapped);
  // An identity that is not known is never equal, and is not written.
  Expect(model_, Options(""), kCompared);
  Expect(model_, Options(""), kCompared);
  Expect(model_, Options("two"), kMapped);
}

TEST_F(PackedCacheTest, ModelsHaveFilesOfTheirOwn) {
  Expect(model_, Options(), kWritten);
  EncoderOptions other = Options();
  other.cache.model = "n";
  Expect(EncoderModel(Plain(), WeightChoices{}, 2), other, kWritten);
  Expect(model_, Options(), kMapped);
}

TEST_F(PackedCacheTest, WhatIsNoFileIsLeftAlone) {
  Expect(model_, Options(), kWritten);
  const std::string path = File();
  fs::remove(path);
  fs::create_directory(path);
  const std::string use = model_.Make(Options()).cache_use();
  EXPECT_TRUE(use.starts_with("packed, not written: ")) << use;
  EXPECT_NE(use.find("found a folder"), std::string::npos) << use;
  fs::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_TRUE(model_.Make(Options()).cache_use().starts_with("packed, not written: "));
  // A folder that cannot be made.
  EncoderOptions options = Options();
  WriteBytes(folder_.File("file"), {});
  options.cache.folder = folder_.File("file/cache");
  const Encoder encoder = model_.Make(options);
  EXPECT_TRUE(encoder.cache_use().starts_with("packed, not written: ")) << encoder.cache_use();
  EXPECT_TRUE(SameBits(Output(encoder), Output(model_.Make())));
}

// 32 MB of panels: in memory of the process or in the file, at no time in both.
TEST_F(PackedCacheTest, PanelsAreInMemoryOnce) {
  const EncoderModel model(EncoderConfig::Uniform(512, 2, {.num_heads = 8, .d_ff = 3072}));
  for (const char* use : {kWritten, kMapped, kCompared}) {
    EncoderOptions options = Options();
    options.cache.compare = use == kCompared;
    size_t packed = 0;
    const std::optional<size_t> peak = PeakOf([&] {
      const Encoder encoder = model.Make(options);
      EXPECT_EQ(encoder.cache_use(), use);
      packed = encoder.packed_bytes();
    });
    if (!peak) GTEST_SKIP() << "the system does not tell the most resident memory";
    EXPECT_GE(packed, size_t{32} << 20);
    EXPECT_LE(*peak, packed + (size_t{2} << 20)) << use;
  }
}

// The weights' file may give its pages back after each layer, whatever it was read for.
TEST_F(PackedCacheTest, EachReadingEndsByLayers) {
  EncoderOptions options = Options();
  size_t calls = 0;
  options.layer_packed = [&] { ++calls; };
  const size_t layers = model_.config().layers.size();
  for (const char* use : {kWritten, kMapped}) {
    calls = 0;
    EXPECT_EQ(model_.Make(options).cache_use(), use);
    EXPECT_EQ(calls, layers);
  }
}

TEST_F(PackedCacheTest, AFullDiskIsTold) {
  const std::vector<float> wanted = Output(model_.Make());
  EXPECT_EQ(InChild([&] {
              (void)std::signal(SIGXFSZ, SIG_IGN);
              const rlimit limit = {.rlim_cur = 20000, .rlim_max = 20000};
              if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
              const Encoder encoder = model_.Make(Options());
              if (!encoder.cache_use().starts_with("packed, not written: ")) return 3;
              return SameBits(Output(encoder), wanted) ? 0 : 4;
            }),
            0);
  EXPECT_TRUE(fs::is_empty(folder_.File("cache")));
  Expect(model_, Options(), kWritten);
}

TEST_F(PackedCacheTest, ManyProcessesAtOnce) {
  const std::vector<float> wanted = Output(model_.Make());
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    for (int round = 0; round < 20; ++round) {
      // Two kinds of weights under one name: each replaces the other's file.
      const EncoderModel other(Plain(), WeightChoices{}, 2);
      (void)other.Make(Options("two"));
      const Encoder encoder = model_.Make(Options("one"));
      if (!SameBits(Output(encoder), wanted)) ::_exit(1);
    }
    ::_exit(0);
  }
  for (const pid_t child : children) {
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_NE(File(), "");
}

TEST_F(PackedCacheTest, AChangeInPlaceIsFoundBeforeACall) {
  ASSERT_EQ(model_.Make(Options()).cache_use(), kWritten);
  const Encoder encoder = model_.Make(Options());
  const Encoder copy = encoder;
  const std::vector<float> wanted = Output(encoder);
  // Renamed over, as encore does it: the old file stays.
  fs::rename(File(), folder_.File("old"));
  ASSERT_EQ(model_.Make(Options()).cache_use(), kWritten);
  EXPECT_TRUE(SameBits(Output(encoder), wanted));
  fs::resize_file(folder_.File("old"), 100);
  const std::vector<size_t> starts = {0, 2};
  std::vector<float> x(2 * 72);
  const MutableView view(x.data(), {2, 72});
  const Workspace workspace = *encoder.MakeWorkspace({.seq_starts = starts});
  EXPECT_TRUE(FailsWith(copy.Forward({.seq_starts = starts}, view, view, workspace),
                        {".packed' was changed since it was opened: found 100 bytes"},
                        ErrorCode::kIo));
}

// The file's checksums tell a touch from a change.
TEST_F(PackedCacheTest, ATouchDoesNoHarm) {
  ASSERT_EQ(model_.Make(Options()).cache_use(), kWritten);
  for (const bool trust : {false, true}) {
    EncoderOptions options = Options();
    options.cache.trust = trust;
    const Encoder encoder = model_.Make(options);
    const std::vector<float> wanted = Output(encoder);
    const auto touch = [&](int seconds_ago) {
      fs::last_write_time(File(),
                          fs::file_time_type::clock::now() - std::chrono::seconds(seconds_ago));
    };
    touch(50);
    EXPECT_TRUE(SameBits(Output(encoder), wanted));
    const std::vector<size_t> starts = {0, 2};
    std::vector<float> x(2 * 72);
    const MutableView view(x.data(), {2, 72});
    const Workspace workspace = *encoder.MakeWorkspace({.seq_starts = starts});
    const size_t size = fs::file_size(File());
    // In the description, the checksums, the vectors, between them and the panels, and in those.
    std::vector<size_t> places = {size - 1};
    for (size_t place = 0; place < std::min<size_t>(size, 10000); place += 61) {
      places.push_back(place);
    }
    for (const size_t place : places) {
      const auto change = [&](int more) {
        std::fstream file(File(), std::ios::in | std::ios::out | std::ios::binary);
        file.seekg(static_cast<std::streamoff>(place));
        const int byte = file.get();
        file.seekp(static_cast<std::streamoff>(place));
        file.put(static_cast<char>(byte + more));
      };
      change(1);
      touch(40);
      const Status status = encoder.Forward({.seq_starts = starts}, view, view, workspace);
      EXPECT_EQ(status.code(), ErrorCode::kIo) << place;
      EXPECT_NE(status.message().find("found other bytes"), std::string::npos) << status.message();
      change(-1);
      EXPECT_TRUE(SameBits(Output(encoder), wanted)) << place;
    }
  }
}

}  // namespace
}  // namespace encore
