// SPDX-License-Identifier: Apache-2.0
//
// `encore demo`, and `encore` alone: the worked example's block on drawn data, checked and timed;
// or three sentences, their vectors and which two are closest. The block itself is in seeded_block.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iostream>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/measure/os.h"
#include "encore/cpu.h"
#include "encore/encoder.h"
#include "encore/text_encoder.h"
#include "encore/thread_pool.h"
#include "encore/version.h"
#include "encore/workspace.h"
#include "tools/encore/commands.h"
#include "tools/encore/definitions.h"
#include "tools/encore/failure.h"
#include "tools/encore/seeded_block.h"
#include "tools/encore/shared_options.h"
#include "tools/encore/terminal.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

constexpr const char* kDemoFooter =
    R"(Runs the layer of torch.nn.TransformerEncoderLayer (d_model 64, 4 heads, d_ff 256, relu,
post-norm) with random weights on x [32, 10, 64], inline and with a pool of threads, and compares it
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

struct DemoOptions {
  uint32_t seed = 42;
  double seconds = 0.5;
  std::string target;
  std::string model;
  PrecisionOptions precision;
};

std::string Threads(const Executor& executor) {
  return Counted(static_cast<size_t>(executor.threads()), "thread");
}

// Seconds of each call, ascending: as many calls as take about this long, at least three.
template <typename Call>
std::vector<double> TimesOf(double seconds, const Call& call) {
  std::vector<double> times;
  for (double spent = 0; times.size() < 3 || spent < seconds; spent += times.back()) {
    times.push_back(bench::SecondsOf([&] { call(times.size()); }));
  }
  std::sort(times.begin(), times.end());
  return times;
}

// ---- The block ----------------------------------------------------------------------------------

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

void PrintSpeed(const Encoder& encoder, const Tensor& x, const Executor& threads, double seconds) {
  constexpr size_t kTokens = kBatch * kSeq;
  const std::vector<size_t> starts = Starts(std::vector<size_t>(kBatch, kSeq));
  const Batch batch{.seq_starts = starts};
  Tensor y = NewTensor({kTokens, kStack.d_model});
  const ConstView rows(static_cast<const float*>(x.data()), {kTokens, kStack.d_model});
  std::cout << "\nSpeed on x [32, 10, 64], f32, " << encoder.target() << "\n";
  const auto line = [&](const Executor& executor) {
    const Workspace workspace = Take(encoder.MakeWorkspace(batch, executor));
    const std::vector<double> times = TimesOf(seconds, [&](size_t /*call*/) {
      Check(encoder.Forward(batch, rows, y.View<float>(), workspace, executor));
    });
    std::cout << "  " << PadRight(Threads(executor), 14) << "median "
              << PadLeft(Grouped(kTokens / times[times.size() / 2]), 11) << " tokens/s, best "
              << PadLeft(Grouped(kTokens / times.front()), 11) << " tokens/s ("
              << Counted(times.size(), "run") << ")\n";
  };
  line(Executor::Inline());
  if (threads.threads() > 1) line(threads);
}

// ---- With a model -------------------------------------------------------------------------------

// The two that mean something alike have no word of their own in common.
const std::vector<std::string> kSentences = {
    "The cat sat on the mat",
    "A kitten is resting on the rug",
    "How do I renew my passport?",
};
// So many numbers of a vector are shown.
constexpr size_t kShown = 8;

double Product(ConstView a, ConstView b) {
  return std::inner_product(a.data(), a.data() + a.dim(0), b.data(), 0.0, std::plus<>(),
                            [](double x, double y) { return x * y; });
}

double Cosine(ConstView a, ConstView b) {
  const double lengths = std::sqrt(Product(a, a) * Product(b, b));
  return lengths > 0 ? Product(a, b) / lengths : 0;
}

void PrintModel(const std::string& folder, const TextEncoder& model, const Executor& executor,
                double seconds) {
  std::cout << "encore " << ENCORE_VERSION_STRING << ": texts to vectors with the model in "
            << Printable(folder) << "\n(";
  if (model.has_encoder()) {
    std::cout << Counted(model.encoder().config().num_layers(), "layer") << " of width "
              << model.d_model() << ", computed in " << PrecisionName(model.encoder().precision())
              << " with " << model.encoder().target();
  } else {
    std::cout << "static embeddings of width " << model.d_model();
  }
  std::cout << " on " << Threads(executor) << "; opened in " << Number(seconds * 1e3, 0)
            << " ms)\n";
}

void PrintVector(ConstView vector, size_t tokens) {
  std::cout << "\nSentence 1: " << Counted(tokens, "token") << ", and a vector of "
            << Counted(vector.dim(0), "number") << "\n ";
  const size_t shown = std::min(kShown, vector.dim(0));
  for (size_t i = 0; i < shown; ++i) std::cout << " " << PadLeft(Number(vector(i), 4), 7);
  std::cout << (shown < vector.dim(0) ? "  ...\n" : "\n");
}

// All similarities, and the largest of two different sentences.
void PrintSimilarities(ConstView vectors) {
  const size_t n = vectors.dim(0);
  std::cout << "\nHow alike two sentences are: the cosine of their vectors' angle (1: the same "
               "direction)\n    ";
  for (size_t j = 0; j < n; ++j) std::cout << PadLeft(std::to_string(j + 1), 8);
  std::cout << "\n";
  size_t first = 0;
  size_t second = 1;
  double largest = -2;
  for (size_t i = 0; i < n; ++i) {
    std::cout << "  " << i + 1 << " ";
    for (size_t j = 0; j < n; ++j) {
      const double cosine = Cosine(vectors[i], vectors[j]);
      std::cout << PadLeft(Number(cosine, 4), 8);
      if (i >= j || cosine <= largest) continue;
      largest = cosine;
      first = i;
      second = j;
    }
    std::cout << "\n";
  }
  std::cout << "\nClosest: " << first + 1 << " and " << second + 1 << ", " << Number(largest, 4)
            << "\n  " << kSentences[first] << "\n  " << kSentences[second] << "\n";
}

// From the text to its vector, one sentence at a time.
void PrintSpeed(const TextEncoder& model, const Executor& executor, double seconds) {
  Tensor vector = NewTensor({1, model.dimensions()});
  const std::vector<double> times = TimesOf(seconds, [&](size_t call) {
    const std::string_view text = kSentences[call % kSentences.size()];
    Check(model.Encode({text}, vector.View<float>(), nullptr, {.executor = executor}));
  });
  std::cout << "\nSpeed, from a sentence to its vector, one at a time: "
            << Number(times[times.size() / 2] * 1e3, 2) << " ms (median of "
            << Counted(times.size(), "call") << ")\n";
}

int RunWithModel(const DemoOptions& options) {
  const ThreadPool pool = Take(ThreadPool::Create());
  const Executor executor = pool.executor();
  const OpenOptions open{.executor = executor,
                         .precision = options.precision.precision(),
                         .keep = options.precision.kept()};
  std::optional<TextEncoder> model;
  const double open_seconds =
      bench::SecondsOf([&] { model = Take(TextEncoder::Open(options.model, open), "--model"); });
  const Embeddings found = Take(model->Encode(kSentences, {.executor = executor}));

  PrintModel(options.model, *model, executor, open_seconds);
  std::cout << "\n";
  for (size_t i = 0; i < kSentences.size(); ++i) {
    std::cout << "  " << i + 1 << "  " << kSentences[i] << "\n";
  }
  const ConstView vectors = found.vectors.View<float>();
  PrintVector(vectors[0], found.counts.tokens[0]);
  PrintSimilarities(vectors);
  if (options.seconds > 0) PrintSpeed(*model, executor, options.seconds);
  std::cout << "\nNext:\n  encore attend --model " << Printable(options.model)
            << " \"The cat sat on the mat\"\n  encore info " << Printable(options.model)
            << "\n  encore embed --help\n";
  return kExitOk;
}

int RunDemo(const DemoOptions& options) {
  CheckSeconds(options.seconds);
  if (!options.target.empty()) Check(SetTarget(options.target), "--target");
  if (!options.model.empty()) return RunWithModel(options);
  NumpyRandom random(options.seed);
  const SeededBlock block = DrawBlock(kStack, random);
  const Tensor x = DrawInput({kBatch, kSeq, kStack.d_model}, random);
  const Encoder encoder = Take(Encoder::Create(block.config, block.views));
  const ThreadPool pool = Take(ThreadPool::Create());

  std::cout << "encore " << ENCORE_VERSION_STRING << ": a transformer encoder layer, computed with "
            << encoder.target() << "\n"
            << "d_model 64, 4 heads, d_ff 256, relu, post-norm; weights drawn with seed "
            << options.seed << "\n\n";
  PrintShapes();
  const bool right = PrintCheck(block, encoder, x, pool.executor());
  PrintSentence(encoder, random);
  if (options.seconds > 0) PrintSpeed(encoder, x, pool.executor(), options.seconds);
  std::cout << "\nNext: encore attend \"" << kSentence << "\", encore run --help, encore info\n";
  if (!right) {
    throw Failure("the check failed: the layer's results are wrong on this machine",
                  kExitCheckFailed);
  }
  return kExitOk;
}

}  // namespace

int RunDefaultDemo() { return RunDemo(DemoOptions()); }

void AddDemo(CommandLine& line, Action& action) {
  const auto [command, options] =
      AddCommand(line, action, "demo", "Run one encoder layer, checked and timed (the default)",
                 kDemoFooter, RunDemo);
  const Option seed =
      command.Add("--seed", &options->seed, "Seed of the random weights and inputs",
                  {.show_default = true, .range = Range{0, std::numeric_limits<uint32_t>::max()}});
  const Option model = command.Add("--model", &options->model,
                                   "Turn sentences into vectors with this model's folder",
                                   {.type = "FOLDER", .excludes = {seed}});
  options->precision.AddTo(command, {.needs = model});
  command.Add("--seconds", &options->seconds, "How long each speed is measured; 0: not at all",
              {.show_default = true});
  command.Add("--target", &options->target, "SIMD target, e.g. AVX2; default: the best",
              {.type = "NAME"});
}

}  // namespace encore::tool
