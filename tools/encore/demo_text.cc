// SPDX-License-Identifier: Apache-2.0
//
// `encore demo --model`: the sentences, the table of their similarities, the speed. Not here: the
// demo without a model (demo.cc).

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/measure/os.h"
#include "encore/thread_pool.h"
#include "encore/version.h"
#include "tools/encore/commands.h"
#include "tools/encore/failure.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

// The two that mean something alike have no word of their own in common.
const std::vector<std::string> kSentences = {
    "The cat sat on the mat",
    "A kitten is resting on the rug",
    "How do I renew my passport?",
};
// So many numbers of a vector are shown.
constexpr size_t kShown = 8;

double Cosine(ConstView a, ConstView b) {
  double product = 0;
  double square_a = 0;
  double square_b = 0;
  for (size_t i = 0; i < a.dim(0); ++i) {
    const double x = a(i);
    const double y = b(i);
    product += x * y;
    square_a += x * x;
    square_b += y * y;
  }
  const double lengths = std::sqrt(square_a * square_b);
  return lengths > 0 ? product / lengths : 0;
}

void PrintModel(const std::string& folder, const TextEncoder& model, const Executor& executor,
                double seconds) {
  std::cout << "encore " << ENCORE_VERSION_STRING << ": texts to vectors with the model in "
            << Printable(folder) << "\n(" << Counted(model.encoder().config().num_layers(), "layer")
            << " of width " << model.d_model() << ", computed in "
            << PrecisionName(model.encoder().precision()) << " with " << model.encoder().target()
            << " on " << Counted(static_cast<size_t>(executor.threads()), "thread")
            << "; opened in " << Number(seconds * 1e3, 0) << " ms)\n";
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
  std::vector<double> times;
  double spent = 0;
  while (times.size() < kSentences.size() || spent < seconds) {
    const std::string_view text = kSentences[times.size() % kSentences.size()];
    times.push_back(bench::SecondsOf([&] {
      Check(model.Encode({text}, vector.View<float>(), nullptr, {.executor = executor}));
    }));
    spent += times.back();
  }
  std::sort(times.begin(), times.end());
  std::cout << "\nSpeed, from a sentence to its vector, one at a time: "
            << Number(times[times.size() / 2] * 1e3, 2) << " ms (median of "
            << Counted(times.size(), "call") << ")\n";
}

}  // namespace

int RunTextDemo(const std::string& folder, OpenOptions open, double seconds) {
  const ThreadPool pool = Take(ThreadPool::Create());
  const Executor executor = pool.executor();
  open.executor = executor;
  std::optional<TextEncoder> model;
  const double open_seconds =
      bench::SecondsOf([&] { model = Take(TextEncoder::Open(folder, open), "--model"); });
  const Embeddings found = Take(model->Encode(kSentences, {.executor = executor}));

  PrintModel(folder, *model, executor, open_seconds);
  std::cout << "\n";
  for (size_t i = 0; i < kSentences.size(); ++i) {
    std::cout << "  " << i + 1 << "  " << kSentences[i] << "\n";
  }
  const ConstView vectors = found.vectors.View<float>();
  PrintVector(vectors[0], found.counts.tokens[0]);
  PrintSimilarities(vectors);
  if (seconds > 0) PrintSpeed(*model, executor, seconds);
  std::cout << "\nNext:\n  encore attend --model " << Printable(folder)
            << " \"The cat sat on the mat\"\n  encore info " << Printable(folder)
            << "\n  encore embed --help\n";
  return kExitOk;
}

}  // namespace encore::tool
