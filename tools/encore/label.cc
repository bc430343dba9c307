// SPDX-License-Identifier: Apache-2.0
//
// `encore label`: entities in texts (names, places, personal data), by a model for token
// classification.

#include <algorithm>
#include <iostream>
#include <string>

#include "tools/encore/commands.h"
#include "tools/encore/failure.h"
#include "tools/encore/progress.h"
#include "tools/encore/shared_options.h"
#include "tools/encore/text.h"
#include "tools/encore/text_input.h"

namespace encore::tool {
namespace {

constexpr const char* kLabelFooter =
    R"(Input formats are those of `encore embed --help`. The output is one JSON object per text,
  {"index": 0, "id": "a7", "entities": [{"label": "PER", "score": 0.99, "start": 0, "end": 5,
   "text": "Maria"}]}
where "index" counts the input's texts from 0, "id" is the input's member or column of this name,
if it has one, and "start" and "end" count bytes of UTF-8. The model needs a head for token
classification.

Examples:
  encore label --model bert-base-NER --input texts.txt > entities.jsonl
  encore label --model pii-model --input texts.jsonl --field body --aggregation first)";

struct LabelCommandOptions {
  TextOptions text;
  std::string aggregation = "simple";
  bool all = false;
};

Aggregation AggregationOf(const std::string& name) {
  for (const Aggregation known : {Aggregation::kNone, Aggregation::kSimple, Aggregation::kFirst,
                                  Aggregation::kAverage, Aggregation::kMax}) {
    if (name == AggregationName(known)) return known;
  }
  throw Failure("--aggregation: found '" + Printable(name) + "'");
}

std::string JsonOf(const std::vector<Entity>& entities, const std::string& text) {
  std::string list;
  for (const Entity& entity : entities) {
    const auto [begin, end] = entity.place;
    list += (list.empty() ? "" : ", ") + std::string("{\"label\": ") + AsJson(entity.label) +
            ", \"score\": " + ShortestText(entity.score) + ", \"start\": " + std::to_string(begin) +
            ", \"end\": " + std::to_string(end) +
            ", \"text\": " + AsJson(text.substr(begin, end - begin)) + "}";
  }
  return "[" + list + "]";
}

int RunLabel(const LabelCommandOptions& options) {
  TextChunks input(options.text.input.source());
  const TextSession session(options.text);
  const TextEncoder& model = session.model();
  auto label = options.text.SettingsOf<LabelOptions>(session.executor());
  label.aggregation = AggregationOf(options.aggregation);
  if (options.all) label.ignore_labels.clear();
  Check(model.FindEntities(Texts(), label).status(), "--model " + options.text.model);

  TextProgress progress(input);
  const auto compute = [&](const Texts& texts) { return model.FindEntities(texts, label); };
  progress.ForAll(&input, compute, [&](const Entities& found) {
    for (size_t i = 0; i < input.texts().size(); ++i) {
      const std::string& id = input.ids()[i];
      std::cout << "{\"index\": " << progress.texts() + i << (id.empty() ? "" : ", \"id\": " + id)
                << ", \"entities\": " << JsonOf(found.of_texts[i], input.texts()[i]) << "}\n";
    }
  });
  const size_t max_length = label.max_length > 0 ? label.max_length : model.max_length();
  std::cerr << progress.Summary(max_length) << "\n";
  return kExitOk;
}

}  // namespace

void AddLabel(CommandLine& line, Action& action) {
  const auto [command, options] =
      AddCommand(line, action, "label", "Find entities in texts with a token classifier",
                 kLabelFooter, RunLabel);
  options->text.AddTo(command);
  command.Add("--aggregation", &options->aggregation,
              "Join tokens to entities as transformers' aggregation_strategy does",
              {.show_default = true, .one_of = {"none", "simple", "first", "average", "max"}});
  command.Add("--all", &options->all, "Print entities of the label O too");
}

}  // namespace encore::tool
