// SPDX-License-Identifier: Apache-2.0
//
// What a mapped file of weights takes of a process's memory, before and after its pages were given
// back; and that tensors and workspaces give theirs back.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "encore/cpu.h"
#include "encore/encoder.h"
#include "encore/safetensors.h"
#include "encore/tensor.h"
#include "encore/thread_pool.h"
#include "encore/workspace.h"
#include "gtest/gtest.h"
#include "reference/encoder_model.h"
#include "tests/support/compare.h"
#include "tests/support/safetensors_bytes.h"
#include "tests/support/sanitizers.h"

namespace encore {
namespace {

// Bytes of the file that are in this process's memory. None where the system does not tell, or the
// emulator tells of its own. Not what all files together take: that grows with each page of the
// program's own code that runs for the first time.
std::optional<size_t> ResidentBytesOf(const std::string& path) {
  std::ifstream maps("/proc/self/smaps");
  if (kEmulated || !maps) return std::nullopt;
  const std::string name = std::filesystem::canonical(path).string();
  size_t bytes = 0;
  bool is_the_file = false;
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    std::string key;
    size_t kilobytes = 0;
    words >> key;
    if (!key.ends_with(':')) {  // "55d0-55d4 r--p ... name" begins a mapping
      is_the_file = line.ends_with(name);
    } else if (is_the_file && key == "Rss:" && words >> kilobytes) {
      bytes += kilobytes * 1024;
    }
  }
  return bytes;
}

// Bytes of memory of the process's own. None as above.
std::optional<size_t> OwnBytes() {
  if (kEmulated) return std::nullopt;
  std::ifstream status("/proc/self/status");
  for (std::string key; status >> key;) {
    size_t kilobytes = 0;
    if (key == "RssAnon:" && status >> kilobytes) return kilobytes * 1024;
  }
  return std::nullopt;
}

SafetensorsEntry Entry(const std::string& name, const Shape& shape,
                       const std::vector<float>& values) {
  return {name, DType::kF32, shape, std::as_bytes(std::span(values))};
}

constexpr size_t kMegabyte = size_t{1} << 20;

TEST(ResidentMemory, ReleasedPagesAreGivenBackAndReadAgain) {
  const TemporaryFolder folder;
  const std::vector<float> values = RandomFloats(8 * kMegabyte, 1);
  const std::vector<SafetensorsEntry> entries = {Entry("x", Shape(values.size()), values)};
  ASSERT_TRUE(WriteSafetensors(folder.File("x"), entries).ok());
  const SafetensorsFile file = Taken(SafetensorsFile::Open(folder.File("x")));
  const ConstView view = *file.ViewF32("x");
  const SafetensorsFile copy = file;
  for (int round = 0; round < 2; ++round) {
    EXPECT_TRUE(SameBits({view.data(), values.size()}, values));
    const std::string path = folder.File("x");
    const std::optional<size_t> before = ResidentBytesOf(path);
    if (before.has_value()) {
      EXPECT_GE(*before, 28 * kMegabyte);
    }
    copy.ReleasePages();
    EXPECT_LE(ResidentBytesOf(path).value_or(0), kMegabyte);
  }
  EXPECT_TRUE(SameBits({view.data(), values.size()}, values));
}

TEST(ResidentMemory, BytesOfTheCallersStay) {
  const std::vector<std::byte> bytes = SafetensorsBytes(
      R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", std::string("\0\0\x80\x3F", 4));
  const SafetensorsFile file = Taken(SafetensorsFile::FromBytes(bytes));
  file.ReleasePages();
  const Tensor x = *file.ReadAsF32("x");
  EXPECT_EQ(*static_cast<const float*>(x.data()), 1.0f);
}

// Without an instruction for products of bytes, int8 weights are packed in 16 bits (precision.h).
size_t PackedElementBytes(Precision precision) {
  if (precision == Precision::kF32) return 4;
  const std::string target = ActiveTarget();
  const bool has_byte_products =
      target == "AMX" || target == "AVX3_DL" || target == "AVX3_ZEN4" || target == "AVX3_SPR";
  return precision == Precision::kInt8 && has_byte_products ? 1 : 2;
}

// Layer by layer: no more of the file than one layer is resident after any of them, the process's
// own memory is what the packed weights take, and the encoder is the same.
void CheckRelease(Precision precision) {
  constexpr size_t kLayers = 6;
  constexpr size_t kModel = 256;
  constexpr size_t kInner = 1024;
  const std::vector<float> qkv = RandomFloats(3 * kModel * kModel, 1, 0.1f);
  const std::vector<float> out = RandomFloats(kModel * kModel, 2, 0.1f);
  const std::vector<float> inner = RandomFloats(kInner * kModel, 3, 0.1f);
  const size_t layer_bytes = (qkv.size() + out.size() + 2 * inner.size()) * sizeof(float);
  std::vector<SafetensorsEntry> entries;
  for (size_t i = 0; i < kLayers; ++i) {
    const std::string n = std::to_string(i);
    entries.push_back(Entry(n + "qkv", Shape(3 * kModel, kModel), qkv));
    entries.push_back(Entry(n + "out", Shape(kModel, kModel), out));
    entries.push_back(Entry(n + "linear1", Shape(kInner, kModel), inner));
    entries.push_back(Entry(n + "linear2", Shape(kModel, kInner), inner));
  }
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteSafetensors(folder.File("x"), entries).ok());
  const SafetensorsFile file = Taken(SafetensorsFile::Open(folder.File("x")));
  EncoderWeights weights;
  for (size_t i = 0; i < kLayers; ++i) {
    const std::string n = std::to_string(i);
    weights.layers.push_back({.in_proj = {.weight = file.Find(n + "qkv")->View()},
                              .out_proj = {.weight = file.Find(n + "out")->View()},
                              .linear1 = {.weight = file.Find(n + "linear1")->View()},
                              .linear2 = {.weight = file.Find(n + "linear2")->View()}});
  }
  const EncoderConfig config =
      EncoderConfig::Uniform(kModel, kLayers, {.num_heads = 4, .d_ff = kInner});
  const ThreadPool pool = *ThreadPool::Create({.threads = 2});

  const std::string path = folder.File("x");
  const std::optional<size_t> own_before = OwnBytes();
  size_t calls = 0;
  size_t most = 0;
  size_t most_own = 0;
  size_t least = SIZE_MAX;
  const Result<Encoder> encoder = Encoder::Create(
      config, weights, {.precision = precision, .executor = pool.executor(), .layer_packed = [&] {
                          ++calls;
                          const size_t now = ResidentBytesOf(path).value_or(0);
                          most = std::max(most, now);
                          least = std::min(least, now);
                          most_own = std::max(most_own, OwnBytes().value_or(0));
                          file.ReleasePages();
                        }});
  ASSERT_TRUE(encoder.ok()) << encoder.status().message();
  EXPECT_EQ(calls, kLayers);
  if (const std::optional<size_t> after = ResidentBytesOf(path); after.has_value()) {
    EXPECT_GE(least, layer_bytes * 3 / 4);
    EXPECT_LE(most, layer_bytes * 7 / 4);
    EXPECT_LE(*after, layer_bytes / 8);
  }
  const size_t packed_bytes = kLayers * layer_bytes / sizeof(float) * PackedElementBytes(precision);
  if (own_before.has_value() && !kSanitized) {
    EXPECT_GE(most_own, *own_before + packed_bytes / 3);
    EXPECT_LE(most_own, *own_before + packed_bytes + layer_bytes / 2);
  }
  const Encoder other = Taken(Encoder::Create(config, weights, {.precision = precision}));
  const std::vector<float> x = RandomFloats(5 * kModel, 4);
  const Batch batch{.seq_starts = {0, 5}};
  EXPECT_TRUE(SameBits(Forward(*encoder, batch, x), Forward(other, batch, x)));
}

TEST(ResidentMemory, LayersAreReleasedWhileAnEncoderIsMade) {
  // The largest last: memory that the ones before gave back is not counted again.
  for (const Precision precision : {Precision::kInt8, Precision::kBF16, Precision::kF32}) {
    SCOPED_TRACE(std::string(PrecisionName(precision)));
    CheckRelease(precision);
  }
}

// All but the norms and biases is in the file's pages, which other processes have too.
TEST(ResidentMemory, APackedCacheIsNoMemoryOfAProcess) {
  constexpr size_t kLayers = 2;
  constexpr size_t kModel = 512;
  const TemporaryFolder folder;
  const EncoderModel model(
      EncoderConfig::Uniform(kModel, kLayers, {.num_heads = 8, .d_ff = 4 * kModel}));
  const EncoderOptions options{.cache = {.folder = folder.File("cache"), .identity = "1"}};
  const std::vector<float> x = RandomFloats(5 * kModel, 4);
  const Batch batch{.seq_starts = {0, 5}};
  std::vector<float> wanted;
  for (const char* const use : {"packed and written", "mapped"}) {
    const std::optional<size_t> before = OwnBytes();
    const Encoder encoder = model.Make(options);
    EXPECT_EQ(encoder.cache_use(), use);
    const std::vector<float> found = Forward(encoder, batch, x);
    if (wanted.empty()) wanted = found;
    EXPECT_TRUE(SameBits(found, wanted));
    EXPECT_GE(encoder.packed_bytes(), 24 * kMegabyte);
    if (before.has_value() && !kSanitized) {
      EXPECT_LE(OwnBytes().value_or(0), *before + encoder.packed_bytes() / 4);
    }
  }
}

// Tensors and workspaces that were destroyed leave nothing behind: half a gigabyte of each, every
// page of it written.
TEST(ResidentMemory, TensorsAndWorkspacesAreGivenBack) {
  constexpr size_t kBytes = 32 * kMegabyte;
  const std::optional<size_t> before = OwnBytes();
  if (!before.has_value()) GTEST_SKIP() << "nothing tells the process's own memory here";
  if (kSanitized) GTEST_SKIP() << "a sanitizer keeps freed memory";
  for (int round = 0; round < 16; ++round) {
    const Workspace workspace = Taken(Workspace::Create(kBytes));
    std::memset(workspace.data(), 1, kBytes);
  }
  EXPECT_LE(OwnBytes().value(), *before + 8 * kBytes);
  for (int round = 0; round < 16; ++round) {
    const Tensor tensor = Taken(Tensor::Create(DType::kU8, Shape(kBytes)));
  }
  EXPECT_LE(OwnBytes().value(), *before + 8 * kBytes);
}

}  // namespace
}  // namespace encore
