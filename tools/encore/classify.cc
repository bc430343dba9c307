// SPDX-License-Identifier: Apache-2.0
//
// `encore classify`: the labels of texts and their scores, by a sequence classifier.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iostream>
#include <numeric>
#include <string>
#include <vector>

#include "tools/encore/commands.h"
#include "tools/encore/failure.h"
#include "tools/encore/progress.h"
#include "tools/encore/shared_options.h"
#include "tools/encore/text.h"
#include "tools/encore/text_input.h"

namespace encore::tool {
namespace {

constexpr const char* kClassifyFooter =
    R"(Input formats are those of `encore embed --help`. The output is one JSON object per text,
  {"index": 0, "id": "a7", "labels": [{"label": "toxic", "score": 0.98}, ...]}
where "index" counts the input's texts from 0, "id" is the input's member or column of this name,
if it has one, and labels are sorted by their scores, the highest first. Scores are those of
transformers' pipeline "text-classification": without --function-to-apply, problem_type of
config.json decides. The model needs a head for sequence classification.

Examples:
  encore classify --model toxic-bert --input comments.txt > labels.jsonl
  encore classify --model emotions --input texts.jsonl --field body --top 1
  encore classify --model emotions --input texts.txt --function-to-apply none)";

struct ClassifyOptions {
  TextOptions text;
  std::string function;  // empty: as the folder says
  size_t top = 0;
};

// The labels of a text, the best `top` of them (0: all), of equals the earlier first.
std::string LabelsAsJson(ConstView scores, const std::vector<std::string>& labels, size_t top) {
  std::vector<size_t> order(labels.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return scores(a) > scores(b); });
  if (top > 0 && top < order.size()) order.resize(top);
  std::string list;
  for (const size_t i : order) {
    list += (list.empty() ? "" : ", ") + std::string("{\"label\": ") + AsJson(labels[i]) +
            ", \"score\": " + ShortestText(scores(i)) + "}";
  }
  return "[" + list + "]";
}

int RunClassify(const ClassifyOptions& options) {
  TextChunks input(options.text.input.source());
  const TextSession session(options.text);
  const TextEncoder& model = session.model();
  auto classify = options.text.SettingsOf<ScoreOptions>(session.executor());
  if (!options.function.empty()) {
    classify.activation = Take(ScoreActivationFromName(options.function), "--function-to-apply");
  }
  Check(model.Classify(Texts(), classify).status(), "--model " + options.text.model);

  TextProgress progress(input);
  const auto compute = [&](const Texts& texts) { return model.Classify(texts, classify); };
  progress.ForAll(&input, compute, [&](const Predictions& found) {
    for (size_t i = 0; i < input.texts().size(); ++i) {
      const ConstView scores = found.values.View<float>()[i];
      for (size_t label = 0; label < model.labels().size(); ++label) {
        if (std::isfinite(scores(label))) continue;
        throw Failure(input.Where(i) + ": text " + std::to_string(progress.texts() + i + 1) +
                      " has the score " + ShortestText(scores(label)) + ", which JSON cannot hold");
      }
      const std::string& id = input.ids()[i];
      std::cout << "{\"index\": " << progress.texts() + i << (id.empty() ? "" : ", \"id\": " + id)
                << ", \"labels\": " << LabelsAsJson(scores, model.labels(), options.top) << "}\n";
    }
  });
  const size_t max_length = classify.max_length > 0 ? classify.max_length : model.max_length();
  std::cerr << progress.Summary(max_length) << "\n";
  return kExitOk;
}

}  // namespace

void AddClassify(CommandLine& line, Action& action) {
  const auto [command, options] =
      AddCommand(line, action, "classify", "Score the labels of texts with a sequence classifier",
                 kClassifyFooter, RunClassify);
  options->text.AddTo(command);
  command.Add("--function-to-apply", &options->function,
              "What follows the logits; default: as the folder says",
              {.one_of = {"sigmoid", "softmax", "none"}});
  command.Add("--top", &options->top, "Print only the best N; 0: all",
              {.show_default = true, .range = Range{0, 1 << 24}});
}

}  // namespace encore::tool
