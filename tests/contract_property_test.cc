// SPDX-License-Identifier: Apache-2.0
//
// The numeric contract on random batches: models of random sizes, up to 64 sequences of 1 to 300
// tokens in random order, 1 to 8 threads, every executor, any SIMD target; each sequence has the
// bits that it has alone, taps included. Every run draws other rounds; a round is repeated with its
// seed:
//
//   ENCORE_PROPERTY_SEED=N    this round alone (a failing round prints its N)
//   ENCORE_PROPERTY_ROUNDS=N  so many rounds
//
// Not here: chosen cases (encoder_contract_test.cc).

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "encore/cpu.h"
#include "encore/encoder.h"
#include "encore/thread_pool.h"
#include "gtest/gtest.h"
#include "tests/compare.h"
#include "tests/executors.h"
#include "tests/guarded.h"
#include "tests/host_pool.h"
#include "tests/reference/accuracy.h"
#include "tests/reference/encoder_model.h"
#include "tests/sanitizers.h"

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

// All that a round draws comes from its seed, in the same way everywhere.
class Draw {
 public:
  explicit Draw(uint32_t seed) : engine_(seed) {}
  size_t Between(size_t low, size_t high) { return low + engine_() % (high - low + 1); }
  bool Chance(size_t one_in) { return engine_() % one_in == 0; }
  uint32_t Seed() { return static_cast<uint32_t>(engine_()); }

 private:
  std::mt19937 engine_;
};

EncoderConfig DrawConfig(Draw& draw) {
  EncoderConfig config;
  config.num_heads = draw.Between(1, 5);
  // Odd sizes as often as round ones.
  const size_t head_size = draw.Chance(3) ? 8 * draw.Between(1, 3) : draw.Between(1, 20);
  config.d_model = config.num_heads * head_size;
  config.d_ff = draw.Chance(8) ? draw.Between(1000, 1200) : draw.Between(1, 150);
  config.num_layers = draw.Between(1, 2);
  config.activation = static_cast<Activation>(draw.Between(0, 3));
  config.norm_first = draw.Chance(2);
  config.final_norm = draw.Chance(3);
  return config;
}

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
  const int lanes = static_cast<int>(threads);
  if (kind <= 3) return Executor::OpenMP(lanes);
  if (kind <= 6) return Executor::HostPool(lanes, *pools.host[threads - 1]);
  if (kind <= 9) return pools.own[threads - 1].executor();
  return Executor::HostPool(lanes, pools.loop);
}

// Targets that must give the same bits: all with FMA, or one without by itself.
void DrawTargets(Draw& draw, std::string& alone, std::string& together) {
  const std::vector<std::string> targets = SupportedTargets();
  alone = targets[draw.Between(0, targets.size() - 1)];
  together = targets[draw.Between(0, targets.size() - 1)];
  if (!reference::TargetHasFma(alone) || !reference::TargetHasFma(together)) together = alone;
}

// Memory for all taps of a batch.
struct AllTaps {
  AllTaps(const EncoderConfig& config, const std::vector<size_t>& batch_starts)
      : starts(batch_starts), hidden(config.num_layers * starts.back() * config.d_model) {
    for (size_t l = 0; l < config.num_layers; ++l) {
      hidden_views.emplace_back(hidden.data() + l * starts.back() * config.d_model,
                                Shape(starts.back(), config.d_model));
      for (size_t b = 0; b + 1 < starts.size(); ++b) {
        const size_t length = starts[b + 1] - starts[b];
        const Shape square(config.num_heads, length, length);
        weights.emplace_back(*square.NumElements());
        weight_views.emplace_back(weights.back().data(), square);
      }
    }
  }
  Taps taps() const { return {.attention = weight_views, .hidden = hidden_views}; }

  // Whether sequence b has what the only one of `alone` has.
  testing::AssertionResult SameAs(const AllTaps& alone, size_t b) const {
    const size_t layers = hidden_views.size();
    const size_t floats = alone.hidden.size() / layers;
    for (size_t l = 0; l < layers; ++l) {
      const std::string of = " of layer " + std::to_string(l);
      const size_t begin = (l * starts.back() + starts[b]) * hidden_views[l].dim(1);
      testing::AssertionResult same = SameBits(std::span(hidden).subspan(begin, floats),
                                               std::span(alone.hidden).subspan(l * floats, floats));
      if (!same) return same << " in the hidden state" << of;
      same = SameBits(weights[l * (starts.size() - 1) + b], alone.weights[l]);
      if (!same) return same << " in the attention weights" << of;
    }
    return testing::AssertionSuccess();
  }

  std::vector<size_t> starts;
  std::vector<float> hidden;
  std::vector<std::vector<float>> weights;
  std::vector<MutableView> hidden_views, weight_views;
};

// One random batch; sequences compared are added to *compared.
testing::AssertionResult Round(uint32_t seed, Pools& pools, size_t* compared) {
  Draw draw(seed);
  const EncoderModel model(DrawConfig(draw), !draw.Chance(4), draw.Seed());
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
  const Encoder encoder = model.Make();
  const bool with_taps = draw.Chance(4);
  const AllTaps taps(model.config(), with_taps ? starts : std::vector<size_t>{0});
  const std::vector<float> y = Forward(encoder, Batch{.seq_starts = starts, .mask = mask}, x,
                                       executor, with_taps ? taps.taps() : Taps{});

  if (!SetTarget(alone_target).ok()) return testing::AssertionFailure() << alone_target;
  const Encoder other = model.Make();
  for (size_t b = 0; b < lengths.size(); ++b) {
    const auto rows = [&](const std::vector<float>& all) {
      return std::span(all).subspan(starts[b] * d, lengths[b] * d);
    };
    const std::vector<size_t> one = {0, lengths[b]};
    const std::span<const float> in = rows(x);
    const AllTaps want_taps(model.config(), with_taps ? one : std::vector<size_t>{0});
    const std::vector<float> want = Forward(
        other, Batch{.seq_starts = one, .mask = mask}, std::vector<float>(in.begin(), in.end()),
        Executor::Inline(), with_taps ? want_taps.taps() : Taps{});
    ++*compared;
    testing::AssertionResult same = SameBits(rows(y), want);
    if (same && with_taps) same = taps.SameAs(want_taps, b);
    if (same) continue;
    const EncoderConfig& c = model.config();
    return testing::AssertionFailure()
           << same.message() << "; sequence " << b << " of " << lengths.size() << ", " << lengths[b]
           << " tokens, " << executor_name << " on " << target << ", alone on " << alone_target
           << "; d_model " << c.d_model << ", heads " << c.num_heads << ", d_ff " << c.d_ff
           << ", layers " << c.num_layers << ", " << ActivationName(c.activation)
           << (c.norm_first ? ", pre-norm" : "") << (mask.causal ? ", causal" : "")
           << (with_taps ? ", taps" : "");
  }
  return testing::AssertionSuccess();
}

// The number in an environment variable, or `otherwise`.
uint32_t FromEnvironment(const char* name, uint32_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : static_cast<uint32_t>(std::strtoul(text, nullptr, 10));
}

TEST(ContractProperty, ASequenceInAnyBatchHasTheBitsThatItHasAlone) {
  struct Restore {
    ~Restore() { (void)SetTarget(""); }
  } restore;
  Pools pools;
  const bool repeat = std::getenv("ENCORE_PROPERTY_SEED") != nullptr;
  const uint32_t first = FromEnvironment("ENCORE_PROPERTY_SEED", std::random_device()());
  const uint32_t rounds = repeat ? 1 : FromEnvironment("ENCORE_PROPERTY_ROUNDS", kRounds);
  std::printf("%u rounds, seeds from %u\n", rounds, first);
  size_t compared = 0;
  const auto start = std::chrono::steady_clock::now();
  for (uint32_t round = 0; round < rounds; ++round) {
    ASSERT_TRUE(Round(first + round, pools, &compared))
        << "round " << round << "; to repeat it: ENCORE_PROPERTY_SEED=" << first + round;
  }
  std::printf("%zu sequences compared in %.1f s\n", compared,
              std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  EXPECT_GE(compared, rounds);
}

}  // namespace
}  // namespace encore
