// SPDX-License-Identifier: Apache-2.0
//
// The numeric contract on random batches: models of random sizes, switches and precisions, up to 64
// sequences of 1 to 300 tokens in random order, 1 to 8 threads, every executor, any SIMD target;
// each sequence has the bits that it has alone, taps and single rows included. Every run has
// the same rounds, tools/soak.sh draws others:
//
//   ENCORE_PROPERTY_SEED=N    rounds from this one on (a failing round prints its N)
//   ENCORE_PROPERTY_ROUNDS=N  so many rounds

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "encore/cpu.h"
#include "encore/encoder.h"
#include "encore/thread_pool.h"
#include "gtest/gtest.h"
#include "reference/accuracy.h"
#include "reference/all_taps.h"
#include "reference/encoder_model.h"
#include "reference/host_pool.h"
#include "tests/support/compare.h"
#include "tests/support/drawn_config.h"
#include "tests/support/environment.h"
#include "tests/support/executors.h"
#include "tests/support/guarded.h"
#include "tests/support/output_rows.h"
#include "tests/support/precisions.h"
#include "tests/support/sanitizers.h"

namespace encore {
namespace {

constexpr int kMostThreads = 8;
#if defined(__OPTIMIZE__)
constexpr bool kFewRounds = kSlow;
#else
constexpr bool kFewRounds = true;
#endif
constexpr uint32_t kRounds = kFewRounds ? 30 : 600;
constexpr size_t kMostSequences = kFewRounds ? 12 : 64;

size_t DrawLength(Draw& draw) {
  return draw.Between(1, draw.Chance(2) ? 300 : draw.Chance(2) ? 70 : 16);
}

// [n - 1] has n threads.
struct Pools {
  std::vector<std::unique_ptr<HostPool>> host;
  std::vector<ThreadPool> own;
  BackwardLoop loop;
  Pools() {
    for (int threads = 1; threads <= kMostThreads; ++threads) {
      host.push_back(std::make_unique<HostPool>(threads));
      own.push_back(*ThreadPool::Create({.threads = threads}));
    }
  }
};

Executor DrawExecutor(Draw& draw, Pools& pools, std::string& name) {
  const size_t threads = draw.Between(1, kMostThreads);
  const size_t kind = draw.Between(0, 10);
  name = kind == 0   ? "inline"
         : kind <= 3 ? "OpenMP"
         : kind <= 6 ? "host pool"
         : kind <= 9 ? "encore's pool"
                     : "host loop";
  if (kind == 0) return Executor::Inline();
  name += " " + std::to_string(threads);
  const int count = static_cast<int>(threads);
  if (kind <= 3) return Executor::OpenMP(count);
  if (kind <= 6) return Executor::HostPool(count, *pools.host[threads - 1]);
  if (kind <= 9) return pools.own[threads - 1].executor();
  return Executor::HostPool(count, pools.loop);
}

// Targets that must give the same bits: all with FMA, or one without by itself.
void DrawTargets(Draw& draw, std::string& alone, std::string& together) {
  const std::vector<std::string> targets = SupportedTargets();
  alone = targets[draw.Between(0, targets.size() - 1)];
  together = targets[draw.Between(0, targets.size() - 1)];
  if (!reference::TargetHasFma(alone) || !reference::TargetHasFma(together)) together = alone;
}

// Of integers, some matrices may be kept.
EncoderOptions DrawOptions(Draw& draw, const EncoderConfig& config) {
  EncoderOptions options{.precision = kPrecisions[draw.Between(0, 3)]};
  const bool keeps = IsInteger(options.precision) && draw.Chance(3);
  for (size_t layer = 0; keeps && layer < config.num_layers(); ++layer) {
    for (const LayerMatrix matrix :
         {LayerMatrix::kQkv, LayerMatrix::kOutProj, LayerMatrix::kLinear1, LayerMatrix::kLinear2}) {
      if (draw.Chance(2)) options.keep.push_back({layer, matrix});
    }
  }
  return options;
}

// One random batch; sequences compared are added to *compared.
testing::AssertionResult Round(uint32_t seed, Pools& pools, size_t* compared) {
  Draw draw(seed);
  const EncoderConfig config = DrawConfig(draw);
  const std::vector<WeightChoices> choices = DrawChoices(draw, config);
  const EncoderModel model(config, choices, draw.Seed());
  const EncoderOptions options = DrawOptions(draw, config);
  const size_t d = model.config().d_model;
  std::string alone_target, target, executor_name;
  DrawTargets(draw, alone_target, target);
  const Executor executor = DrawExecutor(draw, pools, executor_name);
  const AttentionMask mask{.causal = draw.Chance(3)};

  std::vector<size_t> lengths(draw.Between(1, draw.Chance(2) ? kMostSequences : 9));
  for (size_t& length : lengths) length = DrawLength(draw);
  const std::vector<size_t> starts = Starts(lengths);
  const std::vector<float> x = RandomFloats(starts.back() * d, draw.Seed());

  if (!SetTarget(target).ok()) return testing::AssertionFailure() << "no target " << target;
  const Encoder encoder = model.Make(options);
  const bool with_taps = draw.Chance(4);
  // A batch's outputs: entry b has what belongs to sequence b.
  const auto run = [&](const Encoder& by, const std::vector<size_t>& of,
                       const std::vector<float>& in, const Executor& on) {
    const AllTaps taps(config, with_taps ? of : std::vector<size_t>{0});
    const std::vector<float> y = Forward(by, Batch{.seq_starts = of, .mask = mask}, in, on,
                                         with_taps ? taps.taps() : Taps{});
    return with_taps ? taps.Parts(y) : Split(y, of, d);
  };
  const std::vector<std::vector<float>> found = run(encoder, starts, x, executor);

  const Batch batch{.seq_starts = starts, .mask = mask};
  const std::vector<float> y = Forward(encoder, batch, x);
  const testing::AssertionResult rows = SameOutputRows(encoder, batch, x, y, executor);
  if (!rows) {
    return testing::AssertionFailure()
           << rows.message() << "; " << lengths.size() << " sequences, " << executor_name << " on "
           << target << "; " << Describe(options) << "; " << Describe(config);
  }

  if (!SetTarget(alone_target).ok()) return testing::AssertionFailure() << alone_target;
  const Encoder other = model.Make(options);
  for (size_t b = 0; b < lengths.size(); ++b) {
    const std::span<const float> in = RowsOf(x, starts, d, b);
    const std::vector<float> want =
        run(other, {0, lengths[b]}, {in.begin(), in.end()}, Executor::Inline())[0];
    ++*compared;
    const testing::AssertionResult same = SameBits(found[b], want);
    if (same) continue;
    return testing::AssertionFailure()
           << same.message() << "; sequence " << b << " of " << lengths.size() << ", " << lengths[b]
           << " tokens, " << executor_name << " on " << target << ", alone on " << alone_target
           << "; " << Describe(options) << "; " << Describe(config)
           << (mask.causal ? ", all causal" : "") << (with_taps ? ", taps" : "");
  }
  return testing::AssertionSuccess();
}

TEST(ContractProperty, ASequenceInAnyBatchHasTheBitsThatItHasAlone) {
  struct Restore {
    ~Restore() { (void)SetTarget(""); }
  } restore;
  Pools pools;
  const uint32_t first = FromEnvironment("ENCORE_PROPERTY_SEED", 1);
  const uint32_t rounds = FromEnvironment("ENCORE_PROPERTY_ROUNDS", kRounds);
  std::printf("%u rounds, seeds from %u\n", rounds, first);
  size_t compared = 0;
  const auto start = std::chrono::steady_clock::now();
  for (uint32_t round = 0; round < rounds; ++round) {
    ASSERT_TRUE(Round(first + round, pools, &compared))
        << "round " << round
        << "; to repeat it: ENCORE_PROPERTY_ROUNDS=1 ENCORE_PROPERTY_SEED=" << first + round;
  }
  std::printf("%zu sequences compared in %.1f s\n", compared,
              std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  EXPECT_GE(compared, rounds);
}

}  // namespace
}  // namespace encore
