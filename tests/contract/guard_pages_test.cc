// SPDX-License-Identifier: Apache-2.0
//
// No operation and no encoder touches a byte outside of what it was given, nor of what the library
// allocates: all of it lies beside pages that cannot be read, on every SIMD target, and results
// have the bits that they have in ordinary memory. Rounds are drawn, the same every time;
// ENCORE_GUARD_ROUNDS=N draws so many.

#if defined(__unix__)

#include "tests/contract/guard_pages.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "encore/encoder.h"
#include "encore/ops.h"
#include "encore/thread_pool.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/bf16.h"
#include "gtest/gtest.h"
#include "reference/drawn.h"
#include "reference/encoder_model.h"
#include "tests/support/compare.h"
#include "tests/support/drawn_config.h"
#include "tests/support/precisions.h"
#include "tests/support/sanitizers.h"
#include "tests/support/targets.h"

namespace encore::inline v0_1::internal {
namespace {

struct Allocations {
  std::mutex mutex;
  std::unordered_map<void*, size_t> bytes;
  GuardSide side = GuardSide::kEnd;
  size_t count = 0;
};
Allocations& All() {
  static auto* const all = new Allocations;  // outlives every static
  return *all;
}

}  // namespace

// In place of engine/base/aligned_buffer.cc, which a static library then leaves out.
void* AllocateAligned(size_t bytes) {
  Allocations& all = All();
  const size_t size = std::max(bytes, kMemoryAlignment);
  const std::lock_guard<std::mutex> lock(all.mutex);
  void* const memory = MapGuarded(size, kMemoryAlignment, all.side);
  if (memory == nullptr) return nullptr;
  all.bytes[memory] = size;
  ++all.count;
  return memory;
}

void FreeAligned(void* memory) {
  if (memory == nullptr) return;
  Allocations& all = All();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.bytes.find(memory);
  if (found == all.bytes.end()) std::abort();
  UnmapGuarded(memory, found->second, kMemoryAlignment);
  all.bytes.erase(found);
}

}  // namespace encore::internal

namespace encore {
namespace {

uint32_t Rounds(uint32_t usual) {
  const char* const wanted = std::getenv("ENCORE_GUARD_ROUNDS");
  if (wanted != nullptr) return static_cast<uint32_t>(std::strtoul(wanted, nullptr, 10));
  return kSlow ? usual / 10 : usual;
}

GuardSide SideOf(Draw& draw) { return draw.Chance(3) ? GuardSide::kStart : GuardSide::kEnd; }

std::string Name(GuardSide side) { return side == GuardSide::kEnd ? "end" : "start"; }

// Weights of their own pages, in f32 or bf16.
struct GuardedWeights {
  GuardedWeights(const EncoderConfig& config, std::vector<WeightChoices> choices, GuardSide side) {
    for (WeightChoices& c : choices) {
      if (c.type != DType::kF32) c.type = DType::kBF16;
    }
    weights = MakeWeights(config, choices, [&](const NewWeight& weight) {
      const size_t count = *weight.shape.NumElements();
      const float scale = weight.kind == WeightKind::kMatrix ? 0.3f : 0.1f;
      const std::vector<float> values = RandomFloats(count, ++seed_, scale, 0.1f);
      if (weight.type == DType::kF32) {
        floats_.emplace_back(std::span<const float>(values), side);
        return WeightView(DType::kF32, floats_.back().data(), weight.shape);
      }
      halves_.emplace_back(count, side);
      std::transform(values.begin(), values.end(), halves_.back().data(), internal::F32ToBf16);
      return WeightView(DType::kBF16, halves_.back().data(), weight.shape);
    });
  }
  EncoderWeights weights;

 private:
  std::deque<GuardedArray<float>> floats_;
  std::deque<GuardedArray<uint16_t>> halves_;
  uint32_t seed_ = 0;
};

TEST(GuardPages, Encoders) {
  FaultNote note;
  const ThreadPool pool = Taken(ThreadPool::Create({.threads = 3}));
  const size_t allocated = internal::All().count;
  const uint32_t rounds = Rounds(120);
  for (uint32_t round = 0; round < rounds; ++round) {
    Draw draw(round);
    const EncoderConfig config = DrawConfig(draw);
    const GuardSide side = SideOf(draw);
    internal::All().side = SideOf(draw);
    const GuardedWeights model(config, DrawChoices(draw, config), side);
    EncoderOptions options;
    options.precision = kPrecisions[round % std::size(kPrecisions)];
    std::vector<size_t> starts = {0};
    for (size_t left = draw.Between(1, 5); left > 0; --left) {
      starts.push_back(starts.back() +
                       (draw.Chance(6) ? draw.Between(100, 140) : draw.Between(0, 37)));
    }
    if (starts.back() == 0) starts.back() = 1;
    const size_t tokens = starts.back();
    const size_t d = config.d_model;
    const std::vector<float> values = RandomFloats(tokens * d, round);
    const Executor executor = draw.Chance(3) ? pool.executor() : Executor();
    ForEachTarget([&](const std::string& target) {
      const std::string what = "round " + std::to_string(round) + " on " + target + ", " +
                               Describe(options) + ", at the " + Name(side) + ": " +
                               Describe(config);
      SCOPED_TRACE(what);
      note.Set(what);
      const Encoder encoder = Taken(Encoder::Create(config, model.weights, options));
      const std::vector<float> wanted = Forward(encoder, Batch{starts}, values);

      const GuardedArray<size_t> guarded_starts(std::span<const size_t>(starts), side);
      const GuardedArray<float> x(std::span<const float>(values), side);
      const GuardedArray<float> y(tokens * d, side);
      const Batch batch{.seq_starts = std::span<const size_t>(guarded_starts.span())};
      const size_t bytes = Taken(encoder.WorkspaceBytes(batch, executor));
      // Exactly what it asked for, of the caller's.
      struct Scratch {
        explicit Scratch(size_t n, GuardSide s)
            : size(n), memory(MapGuarded(n, internal::kMemoryAlignment, s)) {}
        ~Scratch() { UnmapGuarded(memory, size, internal::kMemoryAlignment); }
        size_t size;
        void* memory;
      } const scratch(bytes, side);
      const Workspace workspace = Taken(Workspace::Wrap(scratch.memory, scratch.size));
      const Status status =
          encoder.Forward(batch, ConstView(x.data(), {tokens, d}),
                          MutableView(y.data(), {tokens, d}), workspace, executor);
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_TRUE(SameBits(y.span(), wanted));
    });
    if (HasFailure()) break;
  }
  // The test's own functions are those in use.
  EXPECT_GT(internal::All().count, allocated + rounds);
}

// Operations on views of the same values in ordinary memory and between pages.
TEST(GuardPages, Operations) {
  FaultNote note;
  const uint32_t rounds = Rounds(200);
  for (uint32_t round = 0; round < rounds; ++round) {
    Draw draw(round + 1000);
    const size_t rows = draw.Between(1, 70);
    const size_t depth = draw.Between(1, draw.Chance(4) ? 300 : 40);
    const size_t columns = draw.Between(1, draw.Chance(4) ? 200 : 40);
    const GuardSide side = SideOf(draw);
    internal::All().side = SideOf(draw);
    const std::vector<float> a = RandomFloats(rows * depth, round);
    const std::vector<float> b = RandomFloats(depth * columns, round + 1);
    const std::vector<float> bias = RandomFloats(std::max(depth, columns), round + 2);
    using Call = Status (*)(ConstView a, ConstView b, ConstView depths, ConstView bias,
                            MutableView product, MutableView same);
    // In f32 [rows, depth] x [depth, columns]; `same` is as large as a.
    struct Operation {
      const char* name;
      Call run;
    };
    const Operation operations[] = {
        {"matmul", [](ConstView x, ConstView y, ConstView, ConstView, MutableView product,
                      MutableView) { return MatMul(x, y, product); }},
        {"packed linear",
         [](ConstView x, ConstView y, ConstView, ConstView last, MutableView product, MutableView) {
           const ConstView weight(y.data(), {y.dim(1), y.dim(0)}, {1, y.stride(0)});
           const Result<PackedLinear> linear = PackedLinear::Create(weight, last);
           return linear.ok() ? linear->Apply(x, product) : linear.status();
         }},
        {"exp", [](ConstView x, ConstView, ConstView, ConstView, MutableView,
                   MutableView same) { return Exp(x, same); }},
        {"gelu", [](ConstView x, ConstView, ConstView, ConstView, MutableView,
                    MutableView same) { return Gelu(x, same); }},
        {"tanh", [](ConstView x, ConstView, ConstView, ConstView, MutableView,
                    MutableView same) { return Tanh(x, same); }},
        {"add", [](ConstView x, ConstView, ConstView, ConstView, MutableView,
                   MutableView same) { return Add(x, x, same); }},
        {"softmax", [](ConstView x, ConstView, ConstView, ConstView, MutableView,
                       MutableView same) { return Softmax(x, same); }},
        {"layer_norm", [](ConstView x, ConstView, ConstView depths, ConstView, MutableView,
                          MutableView same) { return LayerNorm(x, depths, depths, 1e-5, same); }},
        {"rms_norm", [](ConstView x, ConstView, ConstView depths, ConstView, MutableView,
                        MutableView same) { return RmsNorm(x, depths, 1e-6, same); }},
        {"attention", [](ConstView x, ConstView, ConstView, ConstView, MutableView,
                         MutableView same) { return Attention(x, x, x, same); }},
    };
    ForEachTarget([&](const std::string& target) {
      for (const Operation& operation : operations) {
        const std::string what = std::string(operation.name) + " on " + target + ", " +
                                 Shape(rows, depth, columns).ToString() + ", at the " + Name(side);
        SCOPED_TRACE(what);
        note.Set(what);
        std::vector<float> product(rows * columns);
        std::vector<float> same(rows * depth);
        const auto call = [&](const float* left, const float* right, const float* vector,
                              const float* last, float* to_product, float* to_same) {
          return operation.run(ConstView(left, {rows, depth}), ConstView(right, {depth, columns}),
                               ConstView(vector, Shape(depth)), ConstView(last, Shape(columns)),
                               MutableView(to_product, {rows, columns}),
                               MutableView(to_same, {rows, depth}));
        };
        ASSERT_TRUE(
            call(a.data(), b.data(), bias.data(), bias.data(), product.data(), same.data()).ok());

        const GuardedArray<float> left(std::span<const float>(a), side);
        const GuardedArray<float> right(std::span<const float>(b), side);
        const GuardedArray<float> vector(std::span<const float>(bias).first(depth), side);
        const GuardedArray<float> last(std::span<const float>(bias).first(columns), side);
        const GuardedArray<float> to_product(std::span<const float>(product), side);
        const GuardedArray<float> to_same(std::span<const float>(same), side);
        std::fill_n(to_product.data(), to_product.size(), 0.0f);
        std::fill_n(to_same.data(), to_same.size(), 0.0f);
        ASSERT_TRUE(call(left.data(), right.data(), vector.data(), last.data(), to_product.data(),
                         to_same.data())
                        .ok());
        EXPECT_TRUE(SameBits(to_product.span(), product));
        EXPECT_TRUE(SameBits(to_same.span(), same));
      }
    });
    if (HasFailure()) break;
  }
}

// That a touch outside is seen: one float too many is read.
TEST(GuardPagesDeathTest, OneFloatTooMuchEndsTheTest) {
  if (kSlow) GTEST_SKIP() << "sanitizers and emulators report faults in their own way";
  const GuardedArray<float> x(5, GuardSide::kEnd);
  const GuardedArray<float> y(6, GuardSide::kEnd);
  EXPECT_DEATH(
      {
        FaultNote note;
        note.Set("six of five");
        (void)Exp(ConstView(x.data(), Shape(6)), MutableView(y.data(), Shape(6)));
      },
      "memory outside was touched: six of five");
}

}  // namespace
}  // namespace encore

#endif  // defined(__unix__)
