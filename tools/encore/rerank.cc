// SPDX-License-Identifier: Apache-2.0
//
// `encore rerank`: texts of a file, the one that fits a query best first, by a cross-encoder. Not
// here: reading texts (text_input).

#include <algorithm>
#include <cmath>
#include <iostream>

#include "nlohmann/json.hpp"
#include "tools/encore/commands.h"
#include "tools/encore/failure.h"
#include "tools/encore/progress.h"
#include "tools/encore/shared_options.h"
#include "tools/encore/text.h"
#include "tools/encore/text_input.h"

namespace encore::tool {
namespace {

constexpr const char* kFooter =
    R"(A line is a score, a tab and a text; with --jsonl the text is a JSON string. More is
better. The folder's model needs a classification head of one label.

Examples:
  encore rerank --model ms-marco-MiniLM-L6-v2 --query "how tall is the tower" --input passages.txt
  encore rerank --model bge-reranker --query "who wrote it" --input passages.txt --top 10
  encore rerank --model bge-reranker --query "who wrote it" --input passages.txt --scores)";

struct Options {
  TextOptions text;
  std::string query;
  bool scores = false;
  size_t top = 0;
};

struct Ranked {
  float score = 0;
  size_t index = 0;
  std::string text;
};

// NaN last; of equals the earlier first.
bool Better(const Ranked& a, const Ranked& b) {
  if (a.score > b.score) return true;
  if (b.score > a.score) return false;
  const bool a_is_nan = std::isnan(a.score);
  if (a_is_nan != std::isnan(b.score)) return !a_is_nan;
  return a.index < b.index;
}

// Keeps the best `top` of them (0: all), so that memory does not grow with the input.
void Keep(size_t top, std::vector<Ranked>* ranked) {
  if (top == 0 || ranked->size() <= top) return;
  std::nth_element(ranked->begin(), ranked->begin() + static_cast<ptrdiff_t>(top), ranked->end(),
                   Better);
  ranked->resize(top);
}

int Run(const Options& options) {
  TextChunks input(options.text.input, options.text.jsonl);
  const TextSession session(options.text);
  const TextEncoder& model = session.model();
  const auto score = options.text.SettingsOf<ScoreOptions>(session.executor());
  Check(model.Score(options.query, Texts(), score).status(), "--model " + options.text.model);

  std::vector<Ranked> ranked;
  TextProgress progress(input);
  while (input.Next()) {
    const std::vector<std::string>& texts = input.texts();
    const Result<Scores> scores = model.Score(options.query, texts, score);
    input.Check(scores.status());
    const size_t before = progress.texts();
    progress.Add(scores->counts);
    for (size_t i = 0; i < texts.size(); ++i) {
      if (options.scores) {
        std::cout << ShortestText(scores->values[i]) << "\n";
      } else {
        ranked.push_back({scores->values[i], before + i, texts[i]});
      }
    }
    Keep(options.top, &ranked);
  }
  progress.Clear();
  std::sort(ranked.begin(), ranked.end(), Better);
  for (const Ranked& one : ranked) {
    const std::string text = options.text.jsonl
                                 ? nlohmann::json(one.text).dump(
                                       -1, ' ', false, nlohmann::json::error_handler_t::replace)
                                 : one.text;
    std::cout << ShortestText(one.score) << "\t" << text << "\n";
  }
  const size_t max_length = score.max_length > 0 ? score.max_length : model.max_length();
  std::cerr << progress.Summary(max_length) << "\n";
  return kExitOk;
}

}  // namespace

void AddRerank(CLI::App& app, Action& action) {
  const auto [sub, options] = AddCommand(
      app, action, "rerank", "Texts by how well they fit a query, best first", kFooter, Run);
  options->text.AddTo(*sub);
  AddRequired(*sub, "--query", "TEXT", options->query, "What the texts are compared with");
  CLI::Option* scores =
      sub->add_flag("--scores", options->scores, "One score a line, in the order of the input");
  sub->add_option("--top", options->top, "So many of the best; 0: all")
      ->check(CLI::Range(0, 1 << 24))
      ->capture_default_str()
      ->excludes(scores);
}

}  // namespace encore::tool
