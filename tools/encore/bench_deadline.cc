// SPDX-License-Identifier: Apache-2.0
//
// A model's calls in frames, and the search for the number of tokens.

#include "tools/encore/bench_deadline.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <span>
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
#include "tools/encore/text.h"
#include "tools/encore/text_input.h"

namespace encore::tool {
namespace {

constexpr size_t kMostTokens = 16384;  // tried of a model without a limit
constexpr size_t kLeastFrames = 4;

// A model's calls on one of some texts, into memory that is there already where that can be.
class TextCalls {
 public:
  TextCalls(const TextEncoder& model, const Executor& executor)
      : model_(model), executor_(executor), vector_(model.dimensions()) {}

  void Run(std::span<const std::string> texts, size_t i, size_t max_length) {
    const std::span<const std::string> one = texts.subspan(i % texts.size(), 1);
    if (vector_.empty()) {
      (void)BenchModel::Call(model_, one, executor_, max_length);
      return;
    }
    Check(model_.Encode(one, {vector_.data(), {1, vector_.size()}}, nullptr,
                        {.executor = executor_, .max_length = max_length}));
  }

  // So many frames, or as many as fill the seconds if that is more, after a warm-up.
  bench::FrameTimes Frames(std::span<const std::string> texts, size_t max_length,
                           bench::FrameLoop loop, double seconds) {
    const double start = bench::WallSeconds();
    size_t calls = 0;
    do {
      Run(texts, calls++, max_length);
    } while (calls < texts.size() ||
             bench::WallSeconds() - start < std::min(seconds, kMaxWarmUpSeconds));
    const double call = (bench::WallSeconds() - start) / static_cast<double>(calls);
    const double frame = loop.hz > 0 ? 1.0 / loop.hz : call + bench::kControlSeconds;
    loop.frames = std::max(loop.frames, static_cast<size_t>(std::lround(seconds / frame)));
    return bench::RunFrames(loop, [&](size_t i) { Run(texts, i, max_length); });
  }

 private:
  const TextEncoder& model_;
  Executor executor_;
  std::vector<float> vector_;
};

// The most tokens of one text whose p99 is within the budget.
class TokenSearch {
 public:
  TokenSearch(const TextEncoder& model, const Executor& executor, const Deadline& deadline)
      : calls_(model, executor), hz_(deadline.hz), budget_(*deadline.budget) {
    const std::vector<std::string> word = {TextOfWords(1)};
    least_ = BenchModel::Call(model, word, executor).tokens[0];
    most_ = model.max_length() > 0 ? model.max_length() : kMostTokens;
  }

  // With calls of the tokens that were found, or of the fewest if not even they fit. Medians, which
  // a disturbance does not move, find where p99 is tried first, three times each; steps down become
  // larger.
  std::pair<size_t, bench::FrameTimes> Find(double seconds) {
    size_t low = least_;
    if (Median(most_) <= budget_) {
      low = most_;
    } else {
      for (size_t high = most_; high - low > 1;) {
        const size_t middle = low + (high - low) / 2;
        (Median(middle) <= budget_ ? low : high) = middle;
      }
    }
    bench::FrameTimes times = Frames(low, seconds);
    for (size_t tries = 1; !Fits(times) && low > least_; ++tries) {
      const bool step = tries % 3 == 0;  // a disturbance may be over the next time
      if (step) low -= std::min(low - least_, std::max<size_t>(1, tries * low / 150));
      times = Frames(low, seconds);
    }
    return {low, std::move(times)};
  }

  bool Fits(const bench::FrameTimes& times) const {
    return times.calls.size() >= kCallsForP99 && bench::Quantile(times.calls, 0.99) <= budget_;
  }

 private:
  double Median(size_t tokens) {
    const std::vector<std::string> text = {TextOfWords(tokens)};
    return bench::Quantile(calls_.Frames(text, tokens, {.hz = hz_, .frames = 15}, 0).calls, 0.5);
  }

  // Ends early if they do not fit. A word has a token or more: the text is cut to so many tokens.
  bench::FrameTimes Frames(size_t tokens, double seconds) {
    const std::vector<std::string> text = {TextOfWords(tokens)};
    return calls_.Frames(text, tokens, {.hz = hz_, .frames = kCallsForP99, .most = budget_},
                         seconds);
  }

  TextCalls calls_;
  int hz_;
  double budget_;
  size_t least_ = 1;
  size_t most_ = 1;
};

std::string NameOf(const Deadline& deadline, size_t texts) {
  const std::string rhythm = deadline.hz > 0 ? std::to_string(deadline.hz) + " Hz" : "back to back";
  if (deadline.budget) return "within " + Number(*deadline.budget * 1e3, 3) + " ms, " + rhythm;
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

const ReportRow& MeasureDeadline(const BenchModel& model, const Deadline& deadline,
                                 const std::vector<std::string>& texts, size_t precision,
                                 int threads, BenchMeasurer* measurer) {
  const TextEncoder& encoder = model.model(precision);
  bench::BindFor(threads);
  const Executor executor = ExecutorFor(threads);
  const bench::Products products = model.products(precision);
  const double start = bench::WallSeconds();
  measurer->sensors().Start();
  const auto add = [&](ReportRow row, const bench::FrameTimes& times) -> const ReportRow& {
    return measurer->Add(std::move(row), products, threads, times, deadline.hz,
                         bench::WallSeconds() - start);
  };
  if (deadline.budget) {
    TokenSearch search(encoder, executor, deadline);
    auto [tokens, times] = search.Find(deadline.seconds);
    const std::vector<std::string> text = {TextOfWords(tokens)};
    const Answer answer = model.CheckedCall(precision, text, executor, tokens);
    ReportRow row = model.RowOf(NameOf(deadline, 1), precision, answer.tokens);
    row.budget = {.seconds = *deadline.budget,
                  .fits = search.Fits(times),
                  .max_length = encoder.max_length()};
    return add(std::move(row), times);
  }
  const Answer answer = model.CheckedCall(precision, texts, executor);
  ReportRow row = model.RowOf(NameOf(deadline, texts.size()), precision, answer.tokens);
  row.sequences = 1;  // a call has one text: what it has on average
  row.tokens = std::max<size_t>(1, (row.tokens + texts.size() / 2) / texts.size());
  row.useful_tokens = row.tokens;
  row.flops /= static_cast<double>(texts.size());
  TextCalls calls(encoder, executor);
  const bench::FrameTimes times =
      calls.Frames(texts, 0, {.hz = deadline.hz, .frames = kLeastFrames}, deadline.seconds);
  return add(std::move(row), times);
}

}  // namespace encore::tool
