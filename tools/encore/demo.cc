// SPDX-License-Identifier: Apache-2.0
//
// `encore demo`, and `encore` alone: the worked example's block on drawn data, checked and timed.
// The block itself is in seeded_block, the demo with a model in demo_text.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <limits>
#include <string>
#include <vector>

#include "bench/measure/os.h"
#include "encore/cpu.h"
#include "encore/encoder.h"
#include "encore/thread_pool.h"
#include "encore/version.h"
#include "encore/workspace.h"
#include "tests/reference/encoder_model.h"
#include "tools/encore/commands.h"
#include "tools/encore/failure.h"
#include "tools/encore/seeded_block.h"
#include "tools/encore/shared_options.h"
#include "tools/encore/terminal.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

constexpr const char* kFooter =
    R"(Runs the block of torch.nn.TransformerEncoderLayer (d_model 64, 4 heads, d_ff 256, relu,
post-norm) with drawn weights on x [32, 10, 64], inline and with a pool of threads, and compares it
with a reference in double precision. Exit status 1 if it is wrong. With --model it shows what a
sentence encoder does instead: three sentences, their vectors, which two are closest.

Examples:
  encore demo
  encore demo --model all-MiniLM-L6-v2 --precision int8
  encore demo --seed 7 --seconds 0
  encore demo --target AVX2)";

// The worked example's sizes.
constexpr size_t kBatch = 32;
constexpr size_t kSeq = 10;
const TorchStack kStack = {.d_model = 64, .num_heads = 4, .d_ff = 256};
constexpr const char* kSentence = "The cat sat on the mat";

struct Options {
  uint32_t seed = 42;
  double seconds = 0.5;
  std::string target;
  std::string model;
  PrecisionOptions precision;
};

void PrintShapes() {
  const auto line = [](const std::string& name, const Shape& shape, const std::string& note) {
    std::cout << "  " << PadRight(name, 20) << shape.ToString();
    if (!note.empty()) std::cout << PadLeft(note, note.size() + 18 - shape.ToString().size());
    std::cout << "\n";
  };
  const size_t d = kStack.d_model;
  const size_t heads = kStack.num_heads;
  std::cout << "Shapes on the way\n";
  line("x", {kBatch, kSeq, d}, "32 sequences of 10 tokens");
  line("Q, K, V", {kBatch, heads, kSeq, d / heads}, "each: 4 heads of 16");
  line("attention weights", {kBatch, heads, kSeq, kSeq}, "softmax(Q K^T / sqrt(16))");
  line("attention output", {kBatch, kSeq, d}, "heads side by side, projected");
  line("add & norm", {kBatch, kSeq, d}, "");
  line("feed-forward, inner", {kBatch, kSeq, kStack.d_ff}, "relu");
  line("add & norm: y", {kBatch, kSeq, d}, "");
}

bool SameBits(const Tensor& a, const Tensor& b) {
  return a.size_bytes() == b.size_bytes() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

std::string Threads(const Executor& executor) {
  return Counted(static_cast<size_t>(executor.threads()), "thread");
}

// Returns whether all is right.
bool PrintCheck(const SeededBlock& block, const Encoder& encoder, const Tensor& x,
                const Executor& threads) {
  const BlockRun inline_run = RunBlock(encoder, x, Executor::Inline());
  const BlockRun threads_run = RunBlock(encoder, x, threads);
  const BlockCheck check = CheckBlock(block, x, inline_run);
  const bool same = SameBits(inline_run.y, threads_run.y) &&
                    SameBits(inline_run.attention, threads_run.attention);
  const auto line = [](const std::string& name, const std::string& text, bool ok) {
    std::cout << "  " << PadRight(name, 20) << text << (ok ? "  ok\n" : "  WRONG\n");
  };
  std::cout << "\nAgainst the reference in double precision (bounds derived from f32 rounding)\n";
  line("y", Describe(check.y), check.y.ok());
  line("attention weights", Describe(check.attention), check.attention.ok());
  line("pool, " + Threads(threads), same ? "the same bits as inline" : "other bits than inline",
       same);
  return check.ok() && same;
}

void PrintSentence(const Encoder& encoder, NumpyRandom& random) {
  const std::vector<std::string> tokens = SplitWords(kSentence);
  const size_t n = tokens.size();
  const Tensor x = DrawInput({1, n, kStack.d_model}, random);
  const BlockRun run = RunBlock(encoder, x, Executor::Inline());
  const ConstView weights = run.attention.View<float>()[0][0];
  std::cout << "\nWho attends to whom in \"" << kSentence << "\", head 1 of " << kStack.num_heads
            << "\n(embeddings and weights are random: this shows the mechanism, no meaning)\n";
  PrintHeatMap(std::cout, tokens, tokens, weights, {.precision = 2, .colour = StdoutHasColour()});
  std::cout << "  most:";
  for (size_t i = 0; i < n; ++i) {
    const size_t key = LargestColumn(weights, i);
    std::cout << (i > 0 ? ", " : " ") << tokens[i] << " -> " << tokens[key] << " "
              << Number(weights(i, key), 2);
  }
  std::cout << "\n";
}

// Seconds of a forward pass, one entry a pass, over about this long; at least 3 passes.
std::vector<double> TimeForward(const Encoder& encoder, const Tensor& x, const Executor& executor,
                                double seconds) {
  constexpr size_t kTokens = kBatch * kSeq;
  const std::vector<size_t> starts = Starts(std::vector<size_t>(kBatch, kSeq));
  const Batch batch{.seq_starts = starts};
  const Workspace workspace = Take(encoder.MakeWorkspace(batch, executor));
  Tensor y = NewTensor({kTokens, kStack.d_model});
  const ConstView rows(static_cast<const float*>(x.data()), {kTokens, kStack.d_model});
  std::vector<double> times;
  double spent = 0;
  while (times.size() < 3 || spent < seconds) {
    times.push_back(bench::SecondsOf(
        [&] { Check(encoder.Forward(batch, rows, y.View<float>(), workspace, executor)); }));
    spent += times.back();
  }
  std::sort(times.begin(), times.end());
  return times;
}

void PrintSpeed(const Encoder& encoder, const Tensor& x, const Executor& threads, double seconds) {
  std::cout << "\nSpeed on x [32, 10, 64], f32, " << encoder.target() << "\n";
  const auto line = [&](const Executor& executor) {
    const std::vector<double> times = TimeForward(encoder, x, executor, seconds);
    const double tokens = kBatch * kSeq;
    std::cout << "  " << PadRight(Threads(executor), 14) << "median "
              << PadLeft(Grouped(tokens / times[times.size() / 2]), 11) << " tokens/s, best "
              << PadLeft(Grouped(tokens / times.front()), 11) << " tokens/s ("
              << Counted(times.size(), "run") << ")\n";
  };
  line(Executor::Inline());
  if (threads.threads() > 1) line(threads);
}

int Run(const Options& options) {
  CheckSeconds(options.seconds);
  if (!options.target.empty()) Check(SetTarget(options.target), "--target");
  if (!options.model.empty()) {
    const OpenOptions open{.precision = options.precision.precision(),
                           .keep = options.precision.kept()};
    return RunTextDemo(options.model, open, options.seconds);
  }
  NumpyRandom random(options.seed);
  const SeededBlock block = DrawBlock(kStack, random);
  const Tensor x = DrawInput({kBatch, kSeq, kStack.d_model}, random);
  const Encoder encoder = Take(Encoder::Create(block.config, block.views));
  const ThreadPool pool = Take(ThreadPool::Create());

  std::cout << "encore " << ENCORE_VERSION_STRING << ": a transformer encoder block, computed with "
            << encoder.target() << "\n"
            << "d_model 64, 4 heads, d_ff 256, relu, post-norm; weights drawn with seed "
            << options.seed << "\n\n";
  PrintShapes();
  const bool right = PrintCheck(block, encoder, x, pool.executor());
  PrintSentence(encoder, random);
  if (options.seconds > 0) PrintSpeed(encoder, x, pool.executor(), options.seconds);
  std::cout << "\nNext: encore attend \"" << kSentence << "\", encore run --help, encore info\n";
  if (!right) {
    throw Failure("the check failed: the block's results are wrong on this machine",
                  kExitCheckFailed);
  }
  return kExitOk;
}

}  // namespace

int RunDefaultDemo() { return Run(Options()); }

void AddDemo(CLI::App& app, Action& action) {
  const auto [sub, options] = AddCommand(
      app, action, "demo", "One encoder block, checked and timed (the default)", kFooter, Run);
  CLI::Option* seed =
      sub->add_option("--seed", options->seed, "Seed of the drawn weights and inputs")
          ->check(CLI::Range(uint32_t{0}, std::numeric_limits<uint32_t>::max()))
          ->capture_default_str();
  CLI::Option* model =
      sub->add_option("--model", options->model, "Texts to vectors with the model in this folder")
          ->type_name("DIR")
          ->excludes(seed);
  options->precision.AddTo(*sub)->needs(model);
  sub->add_option("--seconds", options->seconds, "How long each speed is measured; 0: not at all")
      ->capture_default_str();
  sub->add_option("--target", options->target, "SIMD target, e.g. AVX2; else the best")
      ->type_name("NAME");
}

}  // namespace encore::tool
