// SPDX-License-Identifier: Apache-2.0
//
// A model's calls in frames, and the search for the number of tokens.

#include "tools/encore/bench_deadline.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "bench/measure/frames.h"
#include "bench/measure/os.h"
#include "bench/measure/samples.h"
#include "bench/measure/threads.h"
#include "encore/executor.h"
#include "encore/tensor.h"
#include "encore/text_encoder.h"
#include "tools/encore/bench_roofs.h"
#include "tools/encore/failure.h"
#include "tools/encore/stop_signal.h"
#include "tools/encore/text.h"
#include "tools/encore/text_input.h"

namespace encore::tool {
namespace {

constexpr size_t kMostTokens = 16384;  // tried of a model without a limit
constexpr size_t kLeastFrames = 4;

using Call = std::function<void(size_t i, size_t caller)>;

// A model's calls on one of some texts, into memory that is there already where that can be.
class TextCalls {
 public:
  TextCalls(const TextEncoder& model, const Executor& executor)
      : model_(model), executor_(executor), vector_(model.dimensions()) {}

  void Run(std::span<const std::string> texts, size_t i, size_t max_length) {
    ThrowIfStopped();
    const std::span<const std::string> one = texts.subspan(i % texts.size(), 1);
    if (vector_.empty()) {
      (void)BenchModel::Call(model_, one, executor_, max_length);
      return;
    }
    Check(model_.Encode(one, {vector_.data(), {1, vector_.size()}}, nullptr,
                        {.executor = executor_, .max_length = max_length}));
  }

 private:
  TextEncoder model_;
  Executor executor_;
  std::vector<float> vector_;
};

// So many frames, or as many as fill the seconds if that is more, after a warm-up of `least` calls
// or more.
bench::FrameTimes Frames(bench::FrameLoop loop, double seconds, size_t least, const Call& call) {
  const double start = bench::WallSeconds();
  const bench::FrameLoop once = {.frames = loop.callers.value_or(1), .callers = once.frames};
  size_t calls = 0;
  do {
    (void)bench::RunFrames(once, [&](size_t i, size_t caller) { call(calls + i, caller); });
    calls += once.frames;
  } while (calls < least || bench::WallSeconds() - start < std::min(seconds, kMaxWarmUpSeconds));
  const double each = (bench::WallSeconds() - start) / static_cast<double>(calls);
  const double control = loop.callers ? 0 : bench::kControlSeconds;
  const double frame = loop.hz > 0 ? 1.0 / loop.hz : each + control;
  loop.frames = std::max(loop.frames, static_cast<size_t>(std::lround(seconds / frame)));
  return bench::RunFrames(loop, call);
}

bool Fits(const bench::FrameTimes& times, double budget) {
  return times.calls.size() >= kCallsForP99 && bench::Quantile(times.calls, 0.99) <= budget;
}

// As SecondsOfBudget takes it.
std::string BudgetText(double seconds) {
  const auto us = static_cast<int64_t>(std::llround(seconds * 1e6));
  return us % 1000 == 0 ? std::to_string(us / 1000) + " ms" : std::to_string(us) + " us";
}

std::string NameOf(const Deadline& deadline, size_t texts) {
  const std::string rhythm = deadline.hz > 0 ? std::to_string(deadline.hz) + " Hz" : "back to back";
  if (deadline.budget) return "within " + BudgetText(*deadline.budget) + ", " + rhythm;
  return Counted(texts, "text") + ", " + rhythm;
}

}  // namespace

double SecondsOfBudget(const std::string& text) {
  constexpr double kMost = 10;
  int value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  const std::string unit(stop, end);
  const double seconds = value * (unit == "ms" ? 1e-3 : 1e-6);
  if (error != std::errc() || (unit != "ms" && unit != "us") || value < 1 || seconds > kMost) {
    throw Failure("--budget: found '" + Printable(text) +
                  "', wanted a whole number of ms or us, such as 16ms, up to 10000ms");
  }
  return seconds;
}

std::vector<std::string> SentencesOfLoop(const std::string& path) {
  if (!path.empty()) return SampleTexts(path, kMostTexts);
  return {
      "The engineer measured the small pump twice before breakfast because nobody else would "
      "trust the old gauge.",
      "Our team compared the annual report with three letters from the northern harbour on a "
      "rainy Tuesday.",
      "A tired pilot repaired the broken bicycle near the old station while the town's lights "
      "went out.",
      "The weather service found a memory leak in the new compiler and described it without "
      "great care."};
}

std::pair<size_t, bench::FrameTimes> MostWithin(
    double budget, size_t least, size_t most, const std::function<bool(size_t)>& guess,
    const std::function<bench::FrameTimes(size_t)>& run) {
  size_t low = least;
  if (guess(most)) {
    low = most;
  } else {
    for (size_t high = most; high - low > 1;) {
      const size_t middle = low + (high - low) / 2;
      (guess(middle) ? low : high) = middle;
    }
  }
  bench::FrameTimes times = run(low);
  for (size_t tries = 1; !Fits(times, budget) && low > least; ++tries) {
    const bool step = tries % 3 == 0;  // a disturbance may be over the next time
    if (step) low -= std::min(low - least, std::max<size_t>(1, tries * low / 150));
    times = run(low);
  }
  return {low, std::move(times)};
}

const ReportRow& MeasureDeadline(const BenchModel& model, const Deadline& deadline,
                                 const std::vector<std::string>& texts, size_t precision,
                                 int threads, BenchMeasurer* measurer) {
  const TextEncoder& encoder = model.model(precision);
  bench::BindFor(threads);
  const Executor executor = ExecutorFor(threads);
  const bench::Products products = model.products(precision);
  TextCalls calls(encoder, executor);
  const auto add = [&](ReportRow row, const bench::FrameTimes& times) -> const ReportRow& {
    return measurer->Add(std::move(row), products, threads, times, deadline.hz);
  };
  if (deadline.budget) {
    // A word has a token or more: the text is cut to so many tokens.
    const auto frames = [&](size_t tokens, bench::FrameLoop loop, double seconds) {
      const std::vector<std::string> text = {TextOfWords(tokens)};
      loop.hz = deadline.hz;
      measurer->sensors().Start();
      return Frames(loop, seconds, 1, [&](size_t i, size_t) { calls.Run(text, i, tokens); });
    };
    const std::vector<std::string> word = {TextOfWords(1)};
    const size_t least = BenchModel::Call(encoder, word, executor).tokens[0];
    const size_t most = encoder.max_length() > 0 ? encoder.max_length() : kMostTokens;
    const double budget = *deadline.budget;
    // Medians, which a disturbance does not move, say where p99 is tried first.
    const auto guess = [&](size_t tokens) {
      return bench::Quantile(frames(tokens, {.frames = 15}, 0).calls, 0.5) <= budget;
    };
    auto [tokens, times] = MostWithin(budget, least, most, guess, [&](size_t count) {
      return frames(count, {.frames = kCallsForP99, .most = budget}, deadline.seconds);
    });
    const std::vector<std::string> text = {TextOfWords(tokens)};
    const Answer answer = model.CheckedCall(precision, text, executor, tokens);
    ReportRow row = model.RowOf(NameOf(deadline, 1), precision, answer.tokens);
    row.budget = {
        .seconds = budget, .fits = Fits(times, budget), .max_length = encoder.max_length()};
    return add(std::move(row), times);
  }
  ReportRow row = model.RowOfOne(NameOf(deadline, texts.size()), precision, texts, executor);
  measurer->sensors().Start();
  const bench::FrameTimes times =
      Frames({.hz = deadline.hz, .frames = kLeastFrames}, deadline.seconds, texts.size(),
             [&](size_t i, size_t) { calls.Run(texts, i, 0); });
  return add(std::move(row), times);
}

namespace {

// Calls of one thread each, back to back, and then as they arrive.
std::vector<ReportRow> Serve(const Deadline& deadline, const ReportRow& of_calls,
                             bench::Products products, size_t copies, const Call& call,
                             BenchMeasurer* measurer) {
  std::vector<ReportRow> rows;
  bench::BindFor(static_cast<int>(copies));
  const auto add = [&](const std::string& name, const bench::FrameTimes& times,
                       std::optional<size_t> load, const std::optional<ReportBudget>& budget) {
    ReportRow row = of_calls;
    row.workload = name + " of " + row.workload;
    row.budget = budget;
    row.server = {.load_percent = load};
    rows.push_back(measurer->Add(std::move(row), products, static_cast<int>(copies), times));
  };
  measurer->sensors().Start();
  const bench::FrameTimes alone =
      Frames({.frames = kLeastFrames * copies, .callers = copies}, deadline.seconds, 1, call);
  const double rate = static_cast<double>(alone.calls.size()) / alone.seconds;
  add("rate", alone, {}, {});
  const auto run = [&](size_t percent, double seconds, bench::FrameLoop loop) {
    const double arriving = rate * static_cast<double>(percent) / 100;
    loop.frames = std::max(loop.frames, static_cast<size_t>(arriving * seconds));
    loop.callers = copies;
    loop.arrivals = bench::PoissonArrivals(loop.frames, arriving);
    measurer->sensors().Start();
    return bench::RunFrames(loop, call);
  };
  for (const size_t percent : deadline.loads) {
    add(std::to_string(percent) + " % load",
        run(percent, deadline.seconds, {.frames = kLeastFrames}), percent, {});
  }
  if (deadline.budget) {
    const double budget = *deadline.budget;
    const bench::FrameLoop loop = {.frames = kCallsForP99, .most = budget};
    const auto [percent, times] = MostWithin(
        budget, 1, 100,
        [&](size_t load) { return Fits(run(load, deadline.seconds / 3, loop), budget); },
        [&](size_t load) { return run(load, deadline.seconds, loop); });
    add("p99 in " + BudgetText(budget), times, percent,
        ReportBudget{.seconds = budget, .fits = Fits(times, budget)});
  }
  return rows;
}

}  // namespace

std::vector<ReportRow> MeasureServer(const BenchModel& model, const Deadline& deadline,
                                     const std::vector<std::string>& texts, size_t precision,
                                     size_t copies, BenchMeasurer* measurer) {
  std::vector<TextCalls> calls;
  for (size_t i = 0; i < copies; ++i) {
    calls.emplace_back(i == 0 ? model.model(precision) : model.OpenCopy(precision),
                       Executor::Inline());
  }
  return Serve(
      deadline, model.RowOfOne(Counted(texts.size(), "text"), precision, texts, Executor::Inline()),
      model.products(precision), copies,
      [&](size_t i, size_t caller) { calls[caller].Run(texts, i, 0); }, measurer);
}

std::vector<ReportRow> MeasureServer(const bench::NamedWorkload& workload, bench::Products products,
                                     const Deadline& deadline, size_t copies,
                                     BenchMeasurer* measurer) {
  auto [calls, row] = measurer->Copies(workload, products, copies);
  std::vector<bench::ForwardCall>& each = calls;
  return Serve(
      deadline, row, products, copies,
      [&](size_t i, size_t caller) {
        ThrowIfStopped();
        Check(each[caller].Run(i), workload.name);
      },
      measurer);
}

}  // namespace encore::tool
