// SPDX-License-Identifier: Apache-2.0
//
// `encore attend`: self-attention of a sentence, or of a worked example's case, step by step; or in
// a real model. This file has the options and the order of things; the parts are in
// attention_example, attend_case, attend_report and seeded_block, and in model_attention and its
// like.

#include <cstdint>
#include <iostream>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "tools/encore/attend_case.h"
#include "tools/encore/attend_report.h"
#include "tools/encore/attention_example.h"
#include "tools/encore/commands.h"
#include "tools/encore/failure.h"
#include "tools/encore/model_attention.h"
#include "tools/encore/shared_options.h"
#include "tools/encore/terminal.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

constexpr const char* kFooter =
    R"(Without --model, embeddings and weights are random: the sentence shows how attention
computes, not what words mean. They are NumPy's own RandomState(seed).rand, drawn in the order X,
W_q, W_k, W_v; the output ends with the lines that give the same numbers in NumPy.

Examples:
  encore attend "The cat sat on the mat"
  encore attend "The cat sat on the mat" --dim 8 --heads 2 --seed 7
  encore attend "The cat sat" --json | python3 -m json.tool
  encore attend --file examples.json --case words_the_cat_sat
  tests/data/worked_examples.json in encore's source is such a file.

With --file the results are compared with those of the case; exit status 1 if any is wrong.

With --model the weights are those of a real model, a folder as it was downloaded:
  encore attend --model all-MiniLM-L6-v2 "The cat sat on the mat"
  encore attend --model all-MiniLM-L6-v2 "The cat sat on the mat" --layer 3 --head 7
  encore attend --model reranker "who sat?" --pair "The cat sat on the mat"
Layers and heads are counted from 1. `python -m pyencore.lab attention` draws all of this.)";

// Of numbers that can be asked for; a model's own are looked at once it is open.
constexpr size_t kMostLayers = 100000;

struct Options {
  std::vector<std::string> text;  // a sentence, or its words one by one
  size_t dim = 8;
  size_t heads = 1;
  uint32_t seed = 42;
  std::optional<int> digits;
  std::string file;
  std::string name;
  bool json = false;
  std::string model;
  PrecisionOptions precision;
  std::optional<std::string> pair;
  size_t layer = 0;  // of the model, from 1; 0: all
  size_t head = 0;
};

// After the output: what was computed is worth seeing above all when it is wrong.
int ExitOf(const std::vector<CaseCheck>& checks) {
  for (const CaseCheck& check : checks) {
    if (check.ok) continue;
    throw Failure(
        "the result differs from what the case expects: " + check.what + ": " + check.detail,
        kExitCheckFailed);
  }
  return kExitOk;
}

void PrintJson(nlohmann::ordered_json json, const std::vector<CaseCheck>& checks) {
  if (!checks.empty()) json["checks"] = ChecksToJson(checks);
  std::cout << json.dump(1) << "\n";
}

int Show(const Options& options, AttentionExample& example, const std::vector<CaseCheck>& checks) {
  if (options.json) {
    PrintJson(ExampleToJson(example), checks);
  } else {
    const MatrixStyle style = {.precision = options.digits.value_or(4),
                               .colour = StdoutHasColour()};
    PrintExample(std::cout, example, style);
    if (!checks.empty()) PrintChecks(std::cout, checks);
  }
  return ExitOf(checks);
}

int RunText(const std::string& text, const Options& options) {
  AttentionExample example =
      SeededExample(SplitWords(text), options.dim, options.heads, options.seed);
  example.title = '"' + Joined(example.tokens, " ") + '"';
  Compute(example);
  return Show(options, example, {});
}

int RunBlock(const Options& options, const nlohmann::json& spec) {
  const BlockCaseResult result = RunBlockCase(spec, options.seed);
  if (options.json) {
    PrintJson({{"title", result.title}}, result.checks);
  } else {
    std::cout << result.title << "\n";
    PrintChecks(std::cout, result.checks);
  }
  return ExitOf(result.checks);
}

// The option's number, from 1, as an index.
std::optional<size_t> Index(const char* option, size_t number, size_t count) {
  if (number == 0) return std::nullopt;
  if (number > count) {
    throw Failure(std::string(option) + " is " + std::to_string(number) + ", wanted 1 to " +
                  std::to_string(count));
  }
  return number - 1;
}

int RunModel(const std::string& text, const Options& options) {
  const ModelAttention attention =
      AttendWithModel(options.model, options.precision, text, options.pair);
  const AttentionHabits habits = FindHabits(attention);
  const AttentionChoice choice = {Index("--layer", options.layer, attention.layers()),
                                  Index("--head", options.head, attention.heads)};
  if (options.json) {
    std::cout << ModelAttentionToJson(attention, habits, choice).dump() << "\n";
    return kExitOk;
  }
  PrintModelAttention(std::cout, attention, habits, choice,
                      {.precision = options.digits.value_or(2), .colour = StdoutHasColour()});
  return kExitOk;
}

int Run(const Options& options) {
  const std::string text = Joined(options.text, " ");
  if (text.empty() == options.file.empty()) {
    throw Failure("found " + std::string(text.empty() ? "neither" : "both") +
                  " a text and --file, wanted one: encore attend \"The cat sat on the mat\"");
  }
  if (!options.model.empty()) return RunModel(text, options);
  if (options.file.empty()) return RunText(text, options);
  const nlohmann::json spec = LoadCase(options.file, options.name);
  if (IsBlockCase(spec)) return RunBlock(options, spec);
  AttentionExample example = ExampleFromCase(spec, options.seed);
  Compute(example);
  return Show(options, example, CheckCase(spec, example));
}

void AddModelOptions(CLI::App& sub, CLI::Option* model, Options& options) {
  options.precision.AddTo(sub)->needs(model);
  sub.add_option("--pair", options.pair, "A second text, for models of pairs")
      ->type_name("TEXT")
      ->needs(model);
  CLI::Option* layer = sub.add_option("--layer", options.layer, "This layer's weights, from 1")
                           ->check(CLI::Range(size_t{1}, kMostLayers))
                           ->type_name("N")
                           ->needs(model);
  sub.add_option("--head", options.head, "This head's weights, from 1")
      ->check(CLI::Range(size_t{1}, kMostLayers))
      ->type_name("N")
      ->needs(layer);
}

}  // namespace

void AddAttend(CLI::App& app, Action& action) {
  const auto [sub, options] =
      AddCommand(app, action, "attend",
                 "Show the self-attention of a sentence, step by step or in a model", kFooter, Run);
  sub->add_option("text", options->text, "The sentence; without --model its words are the tokens")
      ->type_name("TEXT");
  CLI::Option* dim = sub->add_option("--dim", options->dim, "Width of embeddings, Q, K and V")
                         ->check(CLI::Range(size_t{1}, kMaxExampleDim))
                         ->capture_default_str();
  CLI::Option* heads =
      sub->add_option("--heads", options->heads, "Attention heads; must divide --dim")
          ->check(CLI::Range(size_t{1}, kMaxExampleDim))
          ->capture_default_str();
  CLI::Option* seed = sub->add_option("--seed", options->seed, "Seed of the random matrices")
                          ->check(CLI::Range(uint32_t{0}, std::numeric_limits<uint32_t>::max()))
                          ->capture_default_str();
  sub->add_option("--digits", options->digits, "Digits after the point [4, with --model 2]")
      ->check(CLI::Range(1, 9));
  CLI::Option* file = sub->add_option("--file", options->file, "A JSON file of worked examples")
                          ->type_name("FILE")
                          ->excludes(dim)
                          ->excludes(heads);
  sub->add_option("--case", options->name, "Take the case of this name")
      ->type_name("NAME")
      ->needs(file);
  CLI::Option* model =
      sub->add_option("--model", options->model, "Show attention in all of this model's folder")
          ->type_name("FOLDER")
          ->excludes(dim)
          ->excludes(heads)
          ->excludes(seed)
          ->excludes(file);
  AddModelOptions(*sub, model, *options);
  sub->add_flag("--json", options->json, "Print all numbers as JSON");
}

}  // namespace encore::tool
