// SPDX-License-Identifier: Apache-2.0
//
// That a forward pass allocates nothing. With OpenMP only operator new is looked at: libgomp
// mallocs when it makes threads, which is not the library's doing.

#include <cstddef>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "encore/encoder.h"
#include "gtest/gtest.h"
#include "reference/encoder_model.h"
#include "reference/switched.h"
#include "tests/support/counted_allocations.h"
#include "tests/support/executors.h"
#include "tests/support/guarded.h"
#include "tests/support/precisions.h"
#include "tests/support/targets.h"

namespace encore {
namespace {

// Hides a pointer from compilers that would leave out an allocation nobody uses.
void Use(void* memory) { asm volatile("" : : "g"(memory) : "memory"); }

TEST(AllocationCounter, CountsEveryWay) {
  EXPECT_EQ(CountAllocations([] {}).operator_news, 0u);
  EXPECT_EQ(CountAllocations([] {}).mallocs, 0u);
  const auto news = [](const auto& body) { return CountAllocations(body).operator_news; };
  EXPECT_EQ(news([] {
              std::vector<int> v(10);
              Use(v.data());
            }),
            1u);
  EXPECT_EQ(news([] {
              int* p = new (std::nothrow) int[3];
              Use(p);
              delete[] p;
            }),
            1u);
  struct alignas(64) Aligned {
    char bytes[64];
  };
  EXPECT_EQ(news([] {
              Aligned* p = new Aligned;
              Use(p);
              delete p;
            }),
            1u);
  EXPECT_GE(news([] {
              std::string s(100, 'x');
              Use(s.data());
            }),
            1u);
#if ENCORE_TEST_COUNTS_MALLOC
  const auto all = [](const auto& body) { return CountAllocations(body).mallocs; };
  EXPECT_EQ(all([] {
              void* p = std::malloc(10);
              Use(p);
              std::free(p);
            }),
            1u);
  EXPECT_EQ(all([] {
              void* p = std::calloc(10, 10);
              Use(p);
              std::free(p);
            }),
            1u);
  EXPECT_EQ(all([] {
              void* p = std::aligned_alloc(64, 128);
              Use(p);
              std::free(p);
            }),
            1u);
  EXPECT_EQ(all([] {
              void* p = nullptr;
              if (posix_memalign(&p, 64, 10) == 0) {
                Use(p);
                std::free(p);
              }
            }),
            1u);
  // What the library itself takes memory with.
  EXPECT_GE(all([] { (void)Tensor::Create(DType::kF32, Shape(100)); }), 1u);
#endif
}

// Attention masks, taps, several sequences and layers: all that could want memory.
void ExpectNoAllocation(const EncoderConfig& config) {
  const EncoderModel model(config);
  const std::vector<size_t> starts = Starts({1, 70, 0, 600, 9});
  const size_t d = config.d_model;
  const size_t heads = config.layers[0].num_heads;
  const std::vector<float> x = RandomFloats(starts.back() * d, 1);
  const std::vector<float> add = RandomFloats(600 * 600, 2);
  std::vector<float> y(x.size()), hidden_memory(x.size()), attention_memory(heads * 600 * 600);
  const Shape shape(starts.back(), d);
  std::vector<MutableView> hidden(config.num_layers()), attention(config.num_layers() * 5);
  hidden[1] = {hidden_memory.data(), shape};
  attention[3] = {attention_memory.data(), {heads, 600, 600}};
  const Executors executors;
  ForEachTarget([&](const std::string& target) {
    for (const Precision precision : kPrecisions) {
      SCOPED_TRACE(PrecisionName(precision));
      const Encoder encoder = model.Make({.precision = precision});
      for (const Executors::Named& named : executors) {
        const Executor& executor = named.executor;
        if (named.name != "inline" && target != SupportedTargets().front()) continue;
        // Of the others a pool, OpenMP and a host's pool.
        const bool few = named.name == "inline" || named.name == "OpenMP 3" ||
                         named.name == "host pool 2" || named.name == "pool 3";
        if (precision != Precision::kF32 && !few) continue;
        for (const bool everything : {false, true}) {
          Batch batch{.seq_starts = starts};
          Taps taps;
          if (everything) {
            batch.mask.causal = true;
            batch.mask.additive = {add.data(), {600, 600}};
            taps = {attention, hidden};
          }
          const Result<Workspace> workspace = encoder.MakeWorkspace(batch, executor);
          ASSERT_TRUE(workspace.ok());
          bool ok = true;
          const auto forward = [&] {
            ok = encoder
                     .Forward(batch, {x.data(), shape}, {y.data(), shape}, *workspace, executor,
                              taps)
                     .ok() &&
                 ok;
          };
          // A row of each; every sequence must have one.
          const Batch full{.seq_starts = {0, 1, 71, 671, 680}, .mask = batch.mask};
          std::vector<float> work = x;
          const Shape rows(4, d);
          const auto forward_rows = [&] {
            ok = encoder
                     .ForwardRows(full, OutputRows::kLast, {work.data(), shape}, {y.data(), rows},
                                  *workspace, executor)
                     .ok() &&
                 ok;
          };
          forward();  // what happens once in a process may
          const Counts counts = CountAllocations([&] {
            for (int i = 0; i < 2; ++i) forward();
            forward_rows();
          });
          EXPECT_TRUE(ok);
          EXPECT_EQ(counts.operator_news, 0u) << named.name;
          if (executor.kind() != Executor::Kind::kOpenMP) {
            EXPECT_EQ(counts.mallocs, 0u) << named.name;
          }
        }
      }
    }
  });
}

TEST(EncoderAllocations, ForwardAllocatesNothing) {
  ExpectNoAllocation(TorchStack{.d_model = 24,
                                .num_heads = 2,
                                .d_ff = 1100,
                                .num_layers = 2,
                                .activation = Activation::kGelu,
                                .norm_first = true,
                                .final_norm = true});
}

TEST(EncoderAllocations, NorWithOtherSwitches) {
  ExpectNoAllocation(RotaryAndGate());
  ExpectNoAllocation(BucketsAndBothNorms());
  ExpectNoAllocation(RelativeAndWindow());
  ExpectNoAllocation(ExpertsInTurn());
  ExpectNoAllocation(LayerInputs());
  ExpectNoAllocation(Convolutions());
}

TEST(PackedLinearAllocations, ApplyToPlainRowsAllocatesNothing) {
  const std::vector<float> w = RandomFloats(100 * 1100, 1);
  const std::vector<float> x = RandomFloats(150 * 1100, 2);
  std::vector<float> y(150 * 100);
  const Executors executors;
  ForEachTarget([&](const std::string&) {
    const Result<PackedLinear> linear = PackedLinear::Create({w.data(), {100, 1100}});
    ASSERT_TRUE(linear.ok());
    for (const Executors::Named& named : executors) {
      const Executor& executor = named.executor;
      const auto apply = [&] {
        (void)linear->Apply({x.data(), {150, 1100}}, {y.data(), {150, 100}}, executor);
      };
      apply();
      const Counts counts = CountAllocations(apply);
      EXPECT_EQ(counts.operator_news, 0u) << named.name;
      if (executor.kind() != Executor::Kind::kOpenMP) {
        EXPECT_EQ(counts.mallocs, 0u) << named.name;
      }
    }
  });
}

}  // namespace
}  // namespace encore
