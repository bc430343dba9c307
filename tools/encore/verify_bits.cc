// SPDX-License-Identifier: Apache-2.0
//
// `encore verify`: a sequence's output has the same bits whatever the batch, its place, other
// sequences, the threads, the executor, taps, the SIMD target with FMA and the caller's
// floating-point modes; and what is wrong with one sequence reaches no other. In every precision:
// bf16 without subnormals, which the instructions of some targets take for 0.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "encore/encoder.h"
#include "encore/executor.h"
#include "encore/thread_pool.h"
#include "tools/encore/definitions.h"
#include "tools/encore/failure.h"
#include "tools/encore/verify_checks.h"

namespace encore::tool {
namespace {

using Rows = std::vector<float>;  // [length, d_model] of one sequence

constexpr int kMostThreads = 8;

constexpr const char* kBatchCheck = "any batch, place and other sequences";
constexpr const char* kOpenMpCheck = "OpenMP with 1 to 8 threads";
constexpr const char* kHostCheck = "a host's pool, 1 to 8 threads";
constexpr const char* kPoolCheck = "encore's pool, 1 to 8 threads";
constexpr const char* kTapsCheck = "taps, in place, used scratch";
constexpr const char* kModesCheck = "the caller's flush and rounding";
constexpr const char* kNanCheck = "NaN and inf stay where they are";
constexpr const char* kTargetsCheck = "every target with FMA";

enum class Extras { kNone, kTapsAndInPlace };

// One encoder and some sequences, which are put together into batches.
class BatchSubject {
 public:
  BatchSubject(const Encoder& encoder, const std::vector<Rows>& sequences, bool causal)
      : encoder_(encoder), sequences_(sequences), causal_(causal) {}

  size_t count() const { return sequences_.size(); }

  // The outputs of a batch of these sequences, in this order; behind each sequence's rows of y,
  // with taps, its rows of each layer's hidden state and its attention weights of each layer.
  std::vector<Rows> Run(const std::vector<size_t>& order, const Executor& executor = {},
                        Extras extras = Extras::kNone) const {
    const size_t d = encoder_.config().d_model;
    auto [starts, x] = Join(sequences_, order, d);
    const Batch batch{.seq_starts = starts, .mask = {.causal = causal_}};
    const bool in_place = extras == Extras::kTapsAndInPlace;
    Rows y(in_place ? size_t{0} : x.size());
    const Shape shape(starts.back(), d);
    const MutableView out(in_place ? x.data() : y.data(), shape);
    const Workspace workspace = Take(encoder_.MakeWorkspace(batch, executor));
    std::memset(workspace.data(), 0xFF, workspace.size_bytes());  // NaN
    const AllTaps taps(encoder_.config(), in_place ? starts : std::vector<size_t>{0});
    Check(encoder_.Forward(batch, ConstView(x.data(), shape), out, workspace, executor,
                           in_place ? taps.taps() : Taps{}));
    const std::span<const float> rows(out.data(), x.size());
    return in_place ? taps.Parts(rows) : Split(rows, starts, d);
  }

 private:
  const Encoder& encoder_;
  const std::vector<Rows>& sequences_;
  bool causal_;
};

bool SameRows(const Rows& a, const Rows& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// The findings of one target; their names begin with the prefix.
struct Tallies {
  VerifyReport& report;
  std::string prefix;
  std::string target;

  void Compare(const std::string& check, bool same, const std::string& where) const {
    report.Bits(prefix + check, target).Compare(same, where);
  }
};

// What each sequence gives alone: its output, and that with taps behind it (BatchSubject::Run).
struct Wanted {
  std::vector<Rows> y;
  std::vector<Rows> y_and_taps;
};

// A model with its sequences, and what each gives alone on the first target with FMA.
struct Trial {
  EncoderConfig config;
  std::vector<size_t> lengths;
  bool causal = false;
  size_t batches = 0;          // random ones
  size_t most_sequences = 21;  // of a random one; three times as many in one
  Precision precision = Precision::kF32;
  std::vector<MatrixOfLayer> keep = {};
  bool amx_bf16 = false;  // where the target has it, else there is no trial
  Wanted with_fma = {};
  std::string first_target = {};
};

// In bf16, int8 and int4 fewer and smaller ones: what shares work among threads and takes sequences
// apart is the same code as in f32. Inputs of matrices that are no multiple of 2 or 4, a walk over
// two tiles of keys, and of integers a matrix that is kept.
std::vector<Trial> TrialsOf(Precision precision, bool full) {
  const bool f32 = precision == Precision::kF32;
  const size_t batches = f32 ? (full ? 60 : 6) : (full ? 20 : 2);
  const std::vector<size_t> many = {1, 5, 17, 33, 64, 65, 130, 0, 9, 300};
  std::vector<Trial> trials;
  const auto add = [&](const EncoderConfig& config, const std::vector<size_t>& lengths, bool causal,
                       size_t random_batches) {
    trials.push_back({.config = config,
                      .lengths = lengths,
                      .causal = causal,
                      .batches = random_batches,
                      .most_sequences = f32 || full ? size_t{21} : size_t{5},
                      .precision = precision});
  };
  add(TorchStack{.d_model = 48,
                 .num_heads = 3,
                 .d_ff = 100,
                 .num_layers = 2,
                 .activation = Activation::kGelu},
      f32 ? many : std::vector<size_t>{1, 17, 65, 0}, false, batches);
  if (IsInteger(precision)) trials.back().keep = {{1, LayerMatrix::kLinear2}};
  add(TorchStack{.d_model = f32 ? size_t{28} : size_t{30},
                 .num_heads = 2,
                 .d_ff = 1101,
                 .activation = Activation::kSilu,
                 .norm_first = true,
                 .final_norm = true},
      f32 ? many : std::vector<size_t>{5, 33, 9}, true, batches);
  if (!f32) add(RotaryAndGate(), {520, 64, 1, 3}, false, batches);
  if (precision == Precision::kBF16) {
    add(TorchStack{.d_model = 96,
                   .num_heads = 3,
                   .d_ff = 1056,
                   .num_layers = 2,
                   .activation = Activation::kGelu},
        {1, 15, 16, 17, 90}, false, batches);
    trials.back().amx_bf16 = true;
  }
  if (!f32) return trials;
  add(TorchStack{.d_model = 64, .num_heads = 1, .d_ff = 65}, {520, 1, 3, 64}, false, batches / 2);
  add(RotaryAndGate(), many, false, batches / 2);
  add(BucketsAndBothNorms(), many, false, batches / 2);
  if (!full) return trials;
  add(TorchStack{.d_model = 390,
                 .num_heads = 6,
                 .d_ff = 1000,
                 .num_layers = 2,
                 .activation = Activation::kGeluTanh},
      many, false, 20);
  add(TorchStack{.d_model = 768, .num_heads = 12, .d_ff = 3072, .activation = Activation::kGelu},
      {1, 16, 127, 128, 40}, false, 10);
  return trials;
}

std::string Where(const Trial& trial, const std::string& how, size_t sequence) {
  const LayerConfig& layer = trial.config.layers[0];
  return "sequence " + std::to_string(sequence) + " of " + std::to_string(trial.lengths[sequence]) +
         " tokens, " + how + ", in a model of " + std::to_string(trial.config.d_model) + " x " +
         std::to_string(layer.num_heads) + " x " + std::to_string(layer.d_ff) +
         (layer.rotary     ? ", rotary"
          : layer.buckets  ? ", buckets"
          : layer.relative ? ", relative embeddings"
                           : "");
}

// One batch in all ways; `wanted` is what each sequence gives alone.
void CompareBatch(const BatchSubject& subject, const std::vector<size_t>& order,
                  const Wanted& wanted, const Trial& trial, int round, const Tallies& tallies) {
  const auto compare = [&](const std::string& check, const std::string& how,
                           const std::vector<Rows>& found, const std::vector<Rows>& want) {
    for (size_t b = 0; b < order.size(); ++b) {
      tallies.Compare(
          check, SameRows(found[b], want[order[b]]),
          Where(trial,
                how + " at place " + std::to_string(b) + " of " + std::to_string(order.size()),
                order[b]));
    }
  };
  compare(kBatchCheck, "inline", subject.Run(order), wanted.y);
  for (int threads = 1 + round % 2; threads <= kMostThreads; threads += 2) {
    const std::string count = " " + std::to_string(threads);
    compare(kOpenMpCheck, "OpenMP" + count, subject.Run(order, Executor::OpenMP(threads)),
            wanted.y);
    const ThreadPool pool = Take(ThreadPool::Create({.threads = threads}));
    compare(kPoolCheck, "pool" + count, subject.Run(order, pool.executor()), wanted.y);
    HostPool host(threads);
    compare(kHostCheck, "host threads" + count,
            subject.Run(order, Executor::HostPool(threads, host)), wanted.y);
  }
  compare(kTapsCheck, "with taps", subject.Run(order, {}, Extras::kTapsAndInPlace),
          wanted.y_and_taps);
  if (!reference::kHaveCallerModes) return;
  const ThreadPool pool = Take(ThreadPool::Create({.threads = 2}));
  for (const Executor& executor : {Executor::OpenMP(2), pool.executor(), Executor::Inline()}) {
    for (const uint64_t state :
         {reference::kFlushAndRoundUp, reference::kTowardZero | reference::kDividedByZero}) {
      const uint64_t before = reference::CallerState();
      reference::SetCallerState(state);
      const std::vector<Rows> found = subject.Run(order, executor);
      const uint64_t after = reference::CallerState();
      reference::SetCallerState(before);
      compare(kModesCheck, "under other modes", found, wanted.y);
      tallies.Compare(kModesCheck, ((after ^ state) & reference::KeptState(executor)) == 0,
                      "the caller's modes or sticky flags were left changed");
    }
  }
}

// Poisons each sequence in turn, in a batch of all.
void CompareIsolation(const Encoder& encoder, const std::vector<Rows>& sequences,
                      const std::vector<Rows>& wanted, const Trial& trial, const Tallies& tallies) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const float poisons[] = {std::numeric_limits<float>::quiet_NaN(), kInf, -kInf,
                           std::numeric_limits<float>::max()};
  std::vector<size_t> all(sequences.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  for (size_t bad = 0; bad < sequences.size(); ++bad) {
    if (sequences[bad].empty()) continue;
    std::vector<Rows> poisoned = sequences;
    for (size_t i = 0; i < poisoned[bad].size(); i += 7) poisoned[bad][i] = poisons[i % 4];
    const std::vector<Rows> found = BatchSubject(encoder, poisoned, trial.causal)
                                        .Run(all, Executor::OpenMP(1 + static_cast<int>(bad % 3)));
    for (size_t i = 0; i < all.size(); ++i) {
      if (i == bad) continue;
      tallies.Compare(kNanCheck, SameRows(found[i], wanted[i]),
                      Where(trial, "beside a poisoned one", i));
    }
  }
}

// What sequences give alone on this target and on the first one with FMA.
void CompareTargets(const std::string& check, const std::vector<Rows>& found,
                    const std::vector<Rows>& wanted, const Trial& trial, const Tallies& tallies) {
  for (size_t i = 0; i < found.size(); ++i) {
    tallies.Compare(check, SameRows(found[i], wanted[i]),
                    Where(trial, "other bits than on " + trial.first_target, i));
  }
}

std::vector<size_t> DrawOrder(std::mt19937& random, size_t batch, size_t sequences) {
  std::vector<size_t> order(batch);
  for (size_t& i : order) i = random() % sequences;
  return order;
}

void Try(Trial& trial, const std::string& target, const Tallies& tallies) {
  const EncoderModel model(trial.config);
  const Encoder encoder = Take(Encoder::Create(
      model.config(), model.weights(),
      {.precision = trial.precision, .keep = trial.keep, .amx_bf16 = trial.amx_bf16}));
  if (encoder.amx_bf16() != trial.amx_bf16) return;
  std::vector<Rows> sequences;
  for (const size_t length : trial.lengths) {
    sequences.push_back(
        RandomFloats(length * trial.config.d_model, static_cast<uint32_t>(70 + sequences.size())));
  }
  const BatchSubject subject(encoder, sequences, trial.causal);
  Wanted alone;
  for (size_t i = 0; i < subject.count(); ++i) {
    alone.y.push_back(subject.Run({i})[0]);
    alone.y_and_taps.push_back(subject.Run({i}, Executor::Inline(), Extras::kTapsAndInPlace)[0]);
  }
  if (reference::TargetHasFma(target)) {
    if (trial.with_fma.y.empty()) {
      trial.with_fma = alone;
      trial.first_target = target;
    }
    CompareTargets(kTargetsCheck, alone.y, trial.with_fma.y, trial, tallies);
  }
  std::mt19937 random(80);
  for (size_t round = 0; round < trial.batches; ++round) {
    const size_t most = trial.most_sequences;
    const size_t size = round == 1 ? 3 * most : round == 2 ? 1 : 2 + random() % (most - 1);
    CompareBatch(subject, DrawOrder(random, size, subject.count()), alone, trial,
                 static_cast<int>(round), tallies);
  }
  for (size_t i = 0; i < subject.count(); ++i) {
    Rows y = alone.y_and_taps[i];
    y.resize(alone.y[i].size());
    tallies.Compare(kTapsCheck, SameRows(y, alone.y[i]), Where(trial, "alone with taps", i));
  }
  if (reference::TargetHasFma(target)) {
    CompareTargets(kTapsCheck, alone.y_and_taps, trial.with_fma.y_and_taps, trial, tallies);
  }
  CompareIsolation(encoder, sequences, alone.y, trial, tallies);
}

}  // namespace

void VerifyBits(const VerifyContext& context) {
  std::vector<std::vector<Trial>> trials;  // [precision]
  double steps = 0;
  for (const Precision precision : context.precisions) {
    trials.push_back(TrialsOf(precision, context.full));
    for (Trial& trial : trials.back()) {
      if (context.batches != 0) trial.batches = context.batches;
    }
    steps += static_cast<double>(trials.back().size() * context.targets.size());
  }
  double step = 0;
  for (std::vector<Trial>& of_precision : trials) {
    const Precision precision = of_precision.front().precision;
    const std::string prefix =
        precision == Precision::kF32 ? "" : std::string(PrecisionName(precision)) + ": ";
    ForEachVerifyTarget(context, [&](const std::string& target) {
      const Tallies tallies{context.report, prefix, target};
      for (Trial& trial : of_precision) {
        Try(trial, target, tallies);
        context.progress.Advance(++step / steps);
      }
    });
  }
}

}  // namespace encore::tool
