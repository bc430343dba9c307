// SPDX-License-Identifier: Apache-2.0
//
// `encore rerank`: texts of a file, the one that fits a query best first, by a cross-encoder.

#include <algorithm>
#include <cmath>
#include <iostream>

#include "tools/encore/commands.h"
#include "tools/encore/failure.h"
#include "tools/encore/progress.h"
#include "tools/encore/shared_options.h"
#include "tools/encore/text.h"
#include "tools/encore/text_input.h"

namespace encore::tool {
namespace {

constexpr const char* kRerankFooter =
    R"(Output of plain text: one line per text, with its score, a tab and the text. Of the other
formats (see `encore embed --help`): one JSON object per line,
  {"score": 3.2, "index": 0, "id": "a7", "text": "..."}
where "index" counts the input's texts from 0, and "id" is the input's member or column of this
name, if it has one. Higher scores are better. The model needs a classification head of one label.

Examples:
  encore rerank --model ms-marco-MiniLM-L6-v2 --query "how tall is the tower" --input passages.txt
  encore rerank --model bge-reranker --query "who wrote it" --input passages.jsonl --top 10
  encore rerank --model bge-reranker --query "who wrote it" --input passages.txt --scores)";

struct RerankOptions {
  TextOptions text;
  std::string query;
  bool scores = false;
  size_t top = 0;
};

struct Ranked {
  float score = 0;
  size_t index = 0;
  std::string text;
  std::string id;  // as JSON; empty: none
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

// {"score": 3.2, "index": 0, "id": "a7", "text": "..."}
std::string JsonLine(const Ranked& one) {
  return "{\"score\": " + ShortestText(one.score) + ", \"index\": " + std::to_string(one.index) +
         (one.id.empty() ? "" : ", \"id\": " + one.id) + ", \"text\": " + AsJson(one.text) + "}\n";
}

int RunRerank(const RerankOptions& options) {
  const TextSource source = options.text.input.source();
  const bool json = !options.scores && source.FormatOrGuess() != TextFormat::kLines;
  TextChunks input(source);
  const TextSession session(options.text);
  const TextEncoder& model = session.model();
  const auto score = options.text.SettingsOf<ScoreOptions>(session.executor());
  Check(model.Score(options.query, Texts(), score).status(), "--model " + options.text.model);

  std::vector<Ranked> ranked;
  TextProgress progress(input);
  const auto compute = [&](const Texts& texts) { return model.Score(options.query, texts, score); };
  progress.ForAll(&input, compute, [&](const Scores& scores) {
    const std::vector<std::string>& texts = input.texts();
    for (size_t i = 0; i < texts.size(); ++i) {
      const float value = scores.values[i];
      if (options.scores) {
        std::cout << ShortestText(value) << "\n";
        continue;
      }
      if (json && !std::isfinite(value)) {
        throw Failure(input.Where(i) + ": text " + std::to_string(progress.texts() + i + 1) +
                      " has the score " + ShortestText(value) + ", which JSON cannot hold");
      }
      ranked.push_back({value, progress.texts() + i, texts[i], input.ids()[i]});
    }
    Keep(options.top, &ranked);
  });
  std::sort(ranked.begin(), ranked.end(), Better);
  for (const Ranked& one : ranked) {
    std::cout << (json ? JsonLine(one) : ShortestText(one.score) + "\t" + one.text + "\n");
  }
  const size_t max_length = score.max_length > 0 ? score.max_length : model.max_length();
  std::cerr << progress.Summary(max_length) << "\n";
  return kExitOk;
}

}  // namespace

void AddRerank(CommandLine& line, Action& action) {
  const auto [command, options] =
      AddCommand(line, action, "rerank", "Rank texts by how well they fit a query, best first",
                 kRerankFooter, RunRerank);
  options->text.AddTo(command);
  command.Add("--query", &options->query, "Score each text against this query",
              {.type = "TEXT", .required = true});
  const Option scores = command.Add("--scores", &options->scores,
                                    "Print one score per line, in the order of the input");
  command.Add("--top", &options->top, "Print only the best N; 0: all",
              {.show_default = true, .range = Range{0, 1 << 24}, .excludes = {scores}});
}

}  // namespace encore::tool
