// SPDX-License-Identifier: Apache-2.0
//
// What a caller's data and state may not do to others: NaN and infinity in one sequence change no
// bit of another, taps included; subnormal numbers survive; a call neither heeds nor changes the
// floating-point state of its thread and of a host's: modes, traps and sticky flags.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ios>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "encore/encoder.h"
#include "encore/ops.h"
#include "encore/thread_pool.h"
#include "gtest/gtest.h"
#include "reference/all_taps.h"
#include "reference/caller_modes.h"
#include "reference/encoder_model.h"
#include "reference/host_pool.h"
#include "tests/support/compare.h"
#include "tests/support/executors.h"
#include "tests/support/guarded.h"
#include "tests/support/precisions.h"
#include "tests/support/sanitizers.h"
#include "tests/support/targets.h"

namespace encore {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kTiny = std::numeric_limits<float>::denorm_min();

// y and all taps of a pass, cut at sequences: [b] has everything that belongs to sequence b.
std::vector<std::vector<float>> RunWithTaps(const Encoder& encoder, const Batch& batch,
                                            const std::vector<float>& x, const Executor& executor) {
  const AllTaps taps(encoder.config(), batch.seq_starts);
  return taps.Parts(Forward(encoder, batch, x, executor, taps.taps()));
}

// Each sequence is poisoned in turn, wholly or in one number, and every other one keeps its bits.
TEST(ContractIsolation, APoisonedSequenceReachesNoOther) {
  const EncoderModel model({.d_model = 24,
                            .num_heads = 2,
                            .d_ff = 100,
                            .num_layers = 2,
                            .activation = Activation::kGelu});
  const std::vector<size_t> starts = Starts({1, 5, 130, 17, 64, 3});
  const std::vector<float> x = RandomFloats(starts.back() * 24, 1);
  const Executors executors;
  const float poisons[] = {NAN, kInf, -kInf, std::numeric_limits<float>::max()};
  ForEachTarget([&](const std::string&) {
    const Batch batch{.seq_starts = starts};
    std::vector<Encoder> encoders;
    std::vector<std::vector<std::vector<float>>> clean;
    for (const Precision precision : kPrecisions) {
      encoders.push_back(model.Make({.precision = precision}));
      clean.push_back(RunWithTaps(encoders.back(), batch, x, {}));
    }
    size_t turn = 0;
    for (size_t bad = 0; bad + 1 < starts.size(); ++bad) {
      for (size_t kind = 0; kind < 5; ++kind) {
        std::vector<float> poisoned = x;
        const size_t begin = starts[bad] * 24;
        if (kind < 4) {
          poisoned[begin + 7 * kind % 24] = poisons[kind];
        } else {
          std::fill(poisoned.begin() + static_cast<ptrdiff_t>(begin),
                    poisoned.begin() + static_cast<ptrdiff_t>(starts[bad + 1] * 24), NAN);
        }
        const auto& [name, executor] = executors.begin()[(bad * 5 + kind) % 10];
        // Each poison in each sequence; every precision on every executor and with every poison.
        const size_t which = turn++ % 3;
        SCOPED_TRACE(PrecisionName(kPrecisions[which]));
        const auto& want = clean[which];
        const auto got = RunWithTaps(encoders[which], batch, poisoned, executor);
        for (size_t b = 0; b < got.size(); ++b) {
          if (b == bad) continue;
          EXPECT_TRUE(SameBits(got[b], want[b]))
              << name << ": poison " << kind << " in sequence " << bad << " reached " << b;
        }
        if (kind == 0) {
          EXPECT_TRUE(std::isnan(got[bad][0])) << "a NaN was lost";
        }
      }
    }
  });
}

// The calls of encore/ops.h and encore/encoder.h by name; each returns all that it computed.
struct Call {
  const char* name;
  std::function<std::vector<float>()> run;
};

Call Unary(const char* name, Status (*function)(ConstView, MutableView)) {
  std::vector<float> x = RandomFloats(100, 3);
  for (size_t i = 0; i < x.size(); i += 2) x[i] *= 1e-39f;
  return {name, [function, x] {
            std::vector<float> y(x.size());
            EXPECT_TRUE(function({x.data(), {100}}, {y.data(), {100}}).ok());
            return y;
          }};
}

// Inputs have subnormal numbers among them, and are drawn here: a call may run under other modes.
std::vector<Call> AllCalls(const EncoderModel& model, const Executor& executor) {
  const auto drawn = [](size_t count, uint32_t seed) {
    std::vector<float> x = RandomFloats(count, seed);
    for (size_t i = 0; i < count; i += 3) x[i] *= 1e-39f;
    return x;
  };
  const auto matrix = [](const std::vector<float>& x, size_t cols) {
    return ConstView(x.data(), {x.size() / cols, cols});
  };
  const auto checked = [](const Status& status) { EXPECT_TRUE(status.ok()) << status.message(); };
  std::vector<Call> calls = {Unary("Exp", Exp),   Unary("Tanh", Tanh),         Unary("Relu", Relu),
                             Unary("Gelu", Gelu), Unary("GeluTanh", GeluTanh), Unary("Silu", Silu)};
  const std::vector<float> a = drawn(70 * 24, 5);
  const std::vector<float> b = drawn(70 * 24, 6);
  calls.push_back({"Add", [=] {
                     std::vector<float> y(a.size());
                     checked(Add(matrix(a, 24), matrix(b, 24), {y.data(), {70, 24}}));
                     return y;
                   }});
  calls.push_back({"MatMul", [=] {
                     std::vector<float> y(size_t{70} * 70);
                     checked(MatMul(matrix(a, 24), matrix(b, 24), {y.data(), {70, 70}},
                                    {.transpose_b = Transpose::kYes, .executor = executor}));
                     return y;
                   }});
  calls.push_back({"PackedLinear", [=] {
                     std::vector<float> y(size_t{70} * 70);
                     const Result<PackedLinear> linear = PackedLinear::Create(matrix(b, 24));
                     checked(linear.status());
                     checked(linear->Apply(matrix(a, 24), {y.data(), {70, 70}}, executor));
                     return y;
                   }});
  calls.push_back({"Softmax", [=] {
                     std::vector<float> y(a.size());
                     checked(Softmax(matrix(a, 24), {y.data(), {70, 24}}));
                     return y;
                   }});
  calls.push_back({"LayerNorm", [=] {
                     std::vector<float> y(a.size());
                     const ConstView row(b.data(), {24});
                     checked(LayerNorm(matrix(a, 24), row, row, 0.1, {y.data(), {70, 24}}));
                     return y;
                   }});
  calls.push_back({"Attention", [=] {
                     std::vector<float> y(a.size());
                     checked(Attention(matrix(a, 24), matrix(b, 24), matrix(b, 24),
                                       {y.data(), {70, 24}}, {.executor = executor}));
                     return y;
                   }});
  calls.push_back({"MultiHeadAttention", [=, &model] {
                     const EncoderLayerWeights& w = model.weights().layers[0];
                     std::vector<float> y(a.size());
                     checked(
                         MultiHeadAttention(matrix(a, 24), matrix(b, 24), matrix(b, 24),
                                            {2, F32View(w.in_proj.weight), F32View(w.in_proj.bias),
                                             F32View(w.out_proj.weight), F32View(w.out_proj.bias)},
                                            {y.data(), {70, 24}}, {.executor = executor}));
                     return y;
                   }});
  for (const Precision precision : kPrecisions) {
    calls.push_back({PrecisionName(precision).data(), [=, &model] {
                       const std::vector<size_t> starts = Starts({40, 30});
                       return Forward(model.Make({.precision = precision}),
                                      Batch{.seq_starts = starts}, a, executor);
                     }});
  }
  calls.push_back({"a refused MatMul", [=] {
                     std::vector<float> y(1);
                     EXPECT_FALSE(MatMul(matrix(a, 24), matrix(b, 24), {y.data(), {1, 1}}).ok());
                     return y;
                   }});
  return calls;
}

// Runs the call in this state of the thread, and checks that it gives these bits and leaves that
// state; the flags too, where no code of others ran on the thread.
void CheckUnder(uint64_t state, const Call& call, const Executor& executor,
                const std::vector<float>& want) {
  reference::SetCallerState(state);
  const std::vector<float> got = call.run();
  const uint64_t after = reference::CallerState();
  reference::SetCallerState(reference::kDefaultModes);
  EXPECT_EQ((after ^ state) & reference::KeptState(executor), 0u)
      << std::hex << "found " << state << ", left " << after;
  EXPECT_TRUE(SameBits(got, want)) << "in the state " << std::hex << state;
}

// A block with all that calls have; AllCalls needs its width and heads.
TorchStack SmallConfig() {
  return {.d_model = 24,
          .num_heads = 2,
          .d_ff = 100,
          .activation = Activation::kGelu,
          .norm_first = true};
}

TEST(ContractIsolation, EveryCallLeavesTheCallersStateAndHeedsNone) {
  if (!reference::kHaveCallerModes) GTEST_SKIP() << "no modes to try on this machine";
  const EncoderModel model(SmallConfig());
  HostPool host(3);
  const ThreadPool pool = *ThreadPool::Create({.threads = 3});
  const Executor executors[] = {Executor::Inline(), pool.executor(), Executor::OpenMP(3),
                                Executor::HostPool(3, host)};
  const uint64_t states[] = {
      reference::kDefaultModes, reference::kDefaultModes | reference::kDividedByZero,
      reference::kFlushAndRoundUp, reference::kTowardZero | reference::kDividedByZero};
  ForEachTarget([&](const std::string&) {
    for (const Executor& executor : executors) {
      for (const Call& call : AllCalls(model, executor)) {
        SCOPED_TRACE(call.name);
        reference::SetCallerState(reference::kDefaultModes);
        const std::vector<float> want = call.run();
        for (const uint64_t state : states) CheckUnder(state, call, executor, want);
      }
    }
  });
}

// A caller for whom every exception traps, a rounded result among them: the process would end.
TEST(ContractIsolation, TheCallersTrapsAreNotSprung) {
  if (!reference::kHaveTraps) GTEST_SKIP() << "no traps on this machine";
  if (kSanitized) GTEST_SKIP() << "a sanitizer's own arithmetic may trap";
  const EncoderModel model(SmallConfig());
  const ThreadPool pool = *ThreadPool::Create({.threads = 3});
  const Executor executors[] = {Executor::Inline(), pool.executor(), Executor::OpenMP(3)};
  ForEachTarget([&](const std::string&) {
    for (const Executor& executor : executors) {
      for (const Call& call : AllCalls(model, executor)) {
        SCOPED_TRACE(call.name);
        const std::vector<float> want = call.run();
        CheckUnder(reference::kAllTraps, call, executor, want);
        CheckUnder(reference::kAllTraps | reference::kDividedByZero, call, executor, want);
      }
    }
  });
}

// A host whose threads flush and round upward while they run a loop's bodies.
class HostWithModes {
 public:
  template <typename F>
  void parallel_for(size_t count, F body) {
    pool_.parallel_for(count, [&](size_t i) {
      constexpr uint64_t kOdd = reference::kFlushAndRoundUp | reference::kDividedByZero;
      const uint64_t before = reference::CallerState();
      reference::SetCallerState(kOdd);
      body(i);
      if (reference::CallerState() != kOdd) ++changed_;
      reference::SetCallerState(before);
      ++bodies_;
    });
  }
  int bodies() const { return bodies_; }
  int changed() const { return changed_; }

 private:
  HostPool pool_{3};
  std::atomic<int> bodies_ = 0;
  std::atomic<int> changed_ = 0;
};

TEST(ContractIsolation, AHostsThreadsKeepTheirStateAndItIsNotHeeded) {
  if (!reference::kHaveCallerModes) GTEST_SKIP() << "no modes to try on this machine";
  const EncoderModel model(SmallConfig());
  HostWithModes host;
  ForEachTarget([&](const std::string&) {
    const std::vector<Call> alone = AllCalls(model, Executor::Inline());
    const std::vector<Call> calls = AllCalls(model, Executor::HostPool(3, host));
    const int bodies = host.bodies();
    for (size_t i = 0; i < calls.size(); ++i) {
      SCOPED_TRACE(calls[i].name);
      const int changed = host.changed();
      EXPECT_TRUE(SameBits(calls[i].run(), alone[i].run()));
      EXPECT_EQ(host.changed(), changed) << "bodies left another state";
    }
    EXPECT_GT(host.bodies(), bodies) << "no call came to the host";
  });
}

// Subnormal numbers go through whatever hands numbers on unchanged.
TEST(ContractIsolation, SubnormalNumbersSurvive) {
  std::vector<float> x = RandomFloats(40 * 24, 7);
  for (size_t i = 0; i < x.size(); ++i) {
    if (i % 3 != 0) x[i] *= i % 3 == 1 ? 1e-39f : 1e-44f;
    if (x[i] == 0) x[i] = kTiny;  // no zeros, whose sign a sum may change
  }
  x[5] = -kTiny;
  // The residual connections of a pre-norm block hand x on; attention and feed-forward add zeros.
  const EncoderModel model({.d_model = 24, .num_heads = 2, .d_ff = 100, .norm_first = true},
                           {.biases = false});
  EncoderWeights weights = model.weights();
  const std::vector<float> zeros(size_t{24} * 100);
  weights.layers[0].out_proj.weight = ConstView(zeros.data(), {24, 24});
  weights.layers[0].linear2.weight = ConstView(zeros.data(), {24, 100});
  std::vector<float> identity(size_t{24} * 24);
  for (size_t i = 0; i < 24; ++i) identity[i * 25] = 1;
  const std::vector<size_t> starts = Starts({25, 15});
  const Shape shape(40, 24);
  const Executors executors;
  ForEachTarget([&](const std::string&) {
    const Encoder encoder = Taken(Encoder::Create(model.config(), weights));
    const uint64_t before = reference::CallerState();
    for (const uint64_t modes : {before, reference::kFlushAndRoundUp}) {
      for (const auto& [name, executor] : executors) {
        SCOPED_TRACE(name);
        std::vector<float> product(x.size());
        if (reference::kHaveCallerModes) reference::SetCallerState(modes);
        const std::vector<float> y = Forward(encoder, Batch{.seq_starts = starts}, x, executor);
        const Status status = MatMul({x.data(), shape}, {identity.data(), {24, 24}},
                                     {product.data(), shape}, {.executor = executor});
        if (reference::kHaveCallerModes) reference::SetCallerState(before);
        ASSERT_TRUE(status.ok());
        EXPECT_TRUE(SameBits(y, x)) << "the encoder";
        EXPECT_TRUE(SameBits(product, x)) << "x times 1";
      }
    }
    // The one key's value has the weight 1.
    std::vector<float> out(24);
    ASSERT_TRUE(Attention({x.data(), {1, 24}}, {identity.data(), {1, 24}}, {x.data(), {1, 24}},
                          {out.data(), {1, 24}})
                    .ok());
    EXPECT_TRUE(SameBits(out, std::span(x).first(24)));
    for (const auto function : {Relu, Tanh}) {  // tanh x = x there
      const float in[] = {kTiny, 1e-40f, 1.1e-38f};
      float y[3];
      ASSERT_TRUE(function({in, {3}}, {y, {3}}).ok());
      EXPECT_TRUE(SameBits(y, in));
    }
  });
}

}  // namespace
}  // namespace encore
