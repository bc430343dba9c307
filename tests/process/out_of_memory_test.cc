// SPDX-License-Identifier: Apache-2.0
//
// That no exception leaves the library when memory runs out: every function with a Status is called
// with an operator new that fails from its first, second, third ... call on, good calls and bad
// ones (whose sentences take memory too).

#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

#include "encore/encore.h"
#include "gtest/gtest.h"
#include "reference/encoder_model.h"
#include "tests/support/own_new.h"
#include "tests/support/weights_file.h"

namespace {

// How many more calls of operator new succeed on this thread; negative for all of them.
thread_local ptrdiff_t allowed = -1;
thread_local bool one_only = false;  // the one that fails; else all later ones do too
thread_local bool failed = false;

void* AllocateForNew(size_t size, size_t alignment) noexcept {
  if (allowed == 0) {
    failed = true;
    if (one_only) allowed = -1;
    return nullptr;
  }
  if (allowed > 0) --allowed;
  return PlainMemory(size, alignment);
}

}  // namespace

namespace encore {
namespace {

constexpr ErrorCode kOk = ErrorCode::kOk;
constexpr ErrorCode kBad = ErrorCode::kInvalidArgument;

// What the call's Status or Result says, without a copy, which would take memory itself.
ErrorCode CodeOf(ErrorCode code) { return code; }
ErrorCode CodeOf(const Status& status) { return status.code(); }
template <typename T>
ErrorCode CodeOf(const Result<T>& result) {
  return result.status().code();
}

// Calls `call` until it gets all the memory it asks for. An error for want of memory says so, and
// with all of it the call ends as `expected`. Returns how many of its allocations were refused.
template <typename Call>
size_t StarveOnce(const char* name, ErrorCode expected, const Call& call) {
  for (ptrdiff_t n = 0;; ++n) {
    failed = false;
    bool thrown = false;
    ErrorCode code = kOk;
    allowed = n;
    try {
      code = CodeOf(call());
    } catch (...) {
      thrown = true;
    }
    allowed = -1;
    EXPECT_FALSE(thrown) << name << " threw without its allocation " << n;
    if (!failed) {
      EXPECT_EQ(code, expected) << name;
      return static_cast<size_t>(n);
    }
    // Some do without, as sorting does.
    EXPECT_TRUE(thrown || code == ErrorCode::kOutOfMemory || code == expected)
        << name << " without its allocation " << n << ": " << ErrorCodeName(code);
  }
}

// Without the memory from some point on, and without one piece of it.
template <typename Call>
size_t Starve(const char* name, ErrorCode expected, const Call& call) {
  one_only = true;
  StarveOnce(name, expected, call);
  one_only = false;
  return StarveOnce(name, expected, call);
}

TEST(OutOfMemory, TensorsAndWorkspaces) {
  const size_t extents[7] = {1, 1, 1, 1, 1, 1, 1};
  const Shape huge(size_t{1} << 62, 8);
  alignas(64) char memory[128];
  Starve("Tensor::Create", kOk, [] { return Tensor::Create(DType::kF32, {2, 3}); });
  EXPECT_GT(Starve("Tensor::Create", kBad, [&] { return Tensor::Create(DType::kF32, huge); }), 0u);
  EXPECT_GT(Starve("Shape::Create", kBad, [&] { return Shape::Create(extents, 7); }), 0u);
  EXPECT_GT(Starve("NumElements", kBad, [&] { return huge.NumElements(); }), 0u);
  EXPECT_GT(Starve("Workspace::Create", ErrorCode::kOutOfMemory,
                   [&] { return Workspace::Create(SIZE_MAX); }),
            0u);
  EXPECT_GT(Starve("Workspace::Wrap", kBad, [&] { return Workspace::Wrap(memory + 1, 100); }), 0u);
  EXPECT_GT(Starve("SetTarget", kBad, [] { return SetTarget("a target that nobody has"); }), 0u);
  EXPECT_GT(Starve("ActivationFromName", kBad, [] { return ActivationFromName("?"); }), 0u);
}

// What a host asks about the machine takes no memory, or does without.
TEST(OutOfMemory, TheMachine) {
  static_assert(noexcept(Caches())&& noexcept(UsableCores()));
  const CacheSizes all = Caches();
  EXPECT_EQ(Starve("Caches", kOk,
                   [&] {
                     const CacheSizes found = Caches();
                     return found.l1d == all.l1d && found.l2 == all.l2 && found.l3 == all.l3 ? kOk
                                                                                             : kBad;
                   }),
            0u);
  Starve("UsableCores", kOk, [] { return UsableCores() >= 1 ? kOk : kBad; });
}

TEST(OutOfMemory, Operations) {
  std::vector<float> memory(100, 1.0f);
  std::vector<float> out(100);
  const ConstView x(memory.data(), {4, 6});
  const ConstView w(memory.data(), {6, 6});
  const MutableView y(out.data(), {4, 6});
  const MutableView bad(out.data(), {6, 4});
  const MultiHeadAttentionWeights weights{.num_heads = 2,
                                          .in_proj_weight = {memory.data(), {18, 6}, {1, 1}},
                                          .in_proj_bias = {},
                                          .out_proj_weight = w,
                                          .out_proj_bias = {}};
  for (const MutableView& to : {y, bad}) {
    const ErrorCode code = to.dim(0) == 4 ? kOk : kBad;
    Starve("MatMul", code, [&] { return MatMul(x, w, to); });
    Starve("Apply", code, [&] {
      const Result<PackedLinear> linear = PackedLinear::Create(w);
      return linear.ok() ? CodeOf(linear->Apply(x, to)) : CodeOf(linear);
    });
    Starve("Exp", code, [&] { return Exp(x, to); });
    Starve("Add", code, [&] { return Add(x, x, to); });
    Starve("Softmax", code, [&] { return Softmax(x, to); });
    Starve("LayerNorm", code, [&] { return LayerNorm(x, {}, {}, 1e-5, to); });
    Starve("Attention", code, [&] { return Attention(x, x, x, to); });
    Starve("MultiHeadAttention", code, [&] { return MultiHeadAttention(x, x, x, weights, to); });
  }
  EXPECT_GT(Starve("PackedLinear::Create", kOk, [&] { return PackedLinear::Create(w); }), 0u);
  EXPECT_GT(Starve("PackedLinear::Create", kBad,
                   [&] {
                     return PackedLinear::Create({nullptr, {2, 2}});
                   }),
            0u);
}

TEST(OutOfMemory, Encoders) {
  const EncoderModel model({.d_model = 8, .num_heads = 2, .d_ff = 12, .num_layers = 2});
  EncoderConfig config = model.config();
  EXPECT_GT(
      Starve("Encoder::Create", kOk, [&] { return Encoder::Create(config, model.weights()); }), 0u);
  config.layers[1].num_heads = 3;
  EXPECT_GT(
      Starve("Encoder::Create", kBad, [&] { return Encoder::Create(config, model.weights()); }),
      0u);
  LayerConfig switches{.num_heads = 2, .rotary = RotaryConfig{}, .d_ff = 12};
  EncoderConfig positions = EncoderConfig::Uniform(8, 2, switches);
  positions.layers[1].rotary.reset();
  positions.layers[1].buckets = BucketConfig{};
  const EncoderModel with_positions(positions);
  EXPECT_GT(Starve("Encoder::Create", kOk,
                   [&] { return Encoder::Create(positions, with_positions.weights()); }),
            0u);
  const Encoder encoder = model.Make();
  std::vector<float> x(5 * 8), y(5 * 8);
  const std::vector<size_t> starts = {0, 5};
  const std::vector<size_t> backwards = {0, 5, 3};
  const auto forward = [&](const std::vector<size_t>& s) {
    return encoder.Forward(Batch{s}, {x.data(), {5, 8}}, {y.data(), {5, 8}}, Workspace());
  };
  EXPECT_GT(Starve("Forward", kBad, [&] { return forward(starts); }), 0u);
  EXPECT_GT(Starve("Forward", kBad, [&] { return forward(backwards); }), 0u);
  EXPECT_GT(
      Starve("WorkspaceBytes", kBad, [&] { return encoder.WorkspaceBytes(Batch{backwards}, {}); }),
      0u);
  EXPECT_GT(Starve("WorkspaceBytes", kBad,
                   [&] { return encoder.WorkspaceBytes({.tokens = SIZE_MAX}, 1); }),
            0u);
  EXPECT_GT(
      Starve("MakeWorkspace", kBad, [&] { return encoder.MakeWorkspace(Batch{backwards}, {}); }),
      0u);
  EXPECT_GT(
      Starve("MakeWorkspace", kBad, [&] { return encoder.MakeWorkspace({.tokens = SIZE_MAX}); }),
      0u);
  alignas(64) std::byte memory[64];
  EXPECT_GT(Starve("Reserve", kBad, [&] { return (*Workspace::Wrap(memory, 64)).Reserve(65); }),
            0u);
  EXPECT_GT(Starve("PaddedBatch", kOk, [] { return PaddedBatch::Create(2, 3); }), 0u);
  const std::vector<int64_t> mask = {1, 1, 0, 1, 2, 0};
  EXPECT_GT(Starve("FromAttentionMask", kOk,
                   [&] {
                     return PaddedBatch::FromAttentionMask({mask.data(), {2, 2}});
                   }),
            0u);
  EXPECT_GT(Starve("FromAttentionMask", kBad,
                   [&] {
                     return PaddedBatch::FromAttentionMask({mask.data(), {2, 3}});
                   }),
            0u);
  EXPECT_GT(Starve("PaddedBatch", kBad, [] { return PaddedBatch::Create(SIZE_MAX, 2); }), 0u);
  const Result<PaddedBatch> padded = PaddedBatch::Create(1, 5);
  ASSERT_TRUE(padded.ok());
  EXPECT_GT(Starve("Pack", kBad,
                   [&] {
                     return padded->Pack({x.data(), {1, 4, 8}}, {y.data(), {5, 8}});
                   }),
            0u);
  EXPECT_GT(Starve("Unpack", kBad,
                   [&] {
                     return padded->Unpack({x.data(), {5, 8}}, {y.data(), {1, 4, 8}});
                   }),
            0u);
}

TEST(OutOfMemory, Files) {
  const std::string path = testing::TempDir() + "out_of_memory_test.safetensors";
  const std::string nowhere = testing::TempDir() + "no/such/folder/of_tensors.safetensors";
  Result<Tensor> tensor = Tensor::Create(DType::kF32, {2, 3});
  ASSERT_TRUE(tensor.ok());
  const std::vector<SafetensorsEntry> entries = {
      MakeSafetensorsEntry("a tensor of a rather long name", *tensor)};
  const SafetensorsMetadata metadata = {{"a key of a length beyond small strings", "and a value"}};
  EXPECT_GT(
      Starve("WriteSafetensors", kOk, [&] { return WriteSafetensors(path, entries, metadata); }),
      0u);
  EXPECT_GT(Starve("WriteSafetensors", ErrorCode::kNotFound,
                   [&] { return WriteSafetensors(nowhere, entries); }),
            0u);
  EXPECT_GT(Starve("Open", kOk, [&] { return SafetensorsFile::Open(path); }), 0u);
  EXPECT_GT(Starve("Open", ErrorCode::kNotFound, [&] { return SafetensorsFile::Open(nowhere); }),
            0u);
  EXPECT_GT(Starve("TorchWeights::Open", kBad, [&] { return TorchWeights::Open(path); }), 0u);
  EXPECT_GT(Starve("TorchWeights::Open", ErrorCode::kNotFound,
                   [&] { return TorchWeights::Open(nowhere); }),
            0u);
  // A number of so many digits needs memory to be read, and for want of it is not malformed.
  const std::string weights = testing::TempDir() + "out_of_memory_test_weights.safetensors";
  WriteWeightsFile(path);
  {
    const Result<SafetensorsFile> drawn = SafetensorsFile::Open(path);
    ASSERT_TRUE(drawn.ok());
    const SafetensorsMetadata told = {{"nhead", "4"},
                                      {"activation", "gelu"},
                                      {"layer_norm_eps", "0.0000100000000000000000000000"}};
    ASSERT_TRUE(WriteSafetensors(weights, drawn->tensors(), told).ok());
  }
  EXPECT_GT(Starve("TorchWeights::Open", kOk, [&] { return TorchWeights::Open(weights); }), 0u);
  std::remove(weights.c_str());
  ASSERT_TRUE(WriteSafetensors(path, entries, metadata).ok());
  const Result<SafetensorsFile> file = SafetensorsFile::Open(path);
  ASSERT_TRUE(file.ok());
  Starve("Read", kOk, [&] { return file->Read(entries[0].name); });
  EXPECT_GT(Starve("Read", ErrorCode::kNotFound, [&] { return file->Read("?"); }), 0u);
  EXPECT_GT(Starve("ReadAsF32", ErrorCode::kNotFound, [&] { return file->ReadAsF32("?"); }), 0u);
  EXPECT_GT(Starve("ViewF32", ErrorCode::kNotFound, [&] { return file->ViewF32("?"); }), 0u);
  std::remove(path.c_str());
}

}  // namespace
}  // namespace encore
