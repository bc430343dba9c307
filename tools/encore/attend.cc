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

constexpr const char* kAttendFooter =
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
constexpr int kMostLayers = 100000;

struct AttendOptions {
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

int Show(const AttendOptions& options, AttentionExample& example,
         const std::vector<CaseCheck>& checks) {
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

int RunText(const std::string& text, const AttendOptions& options) {
  AttentionExample example =
      SeededExample(SplitWords(text), options.dim, options.heads, options.seed);
  example.title = '"' + Joined(example.tokens, " ") + '"';
  Compute(example);
  return Show(options, example, {});
}

int RunCase(const AttendOptions& options, const nlohmann::json& spec) {
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

int RunModel(const std::string& text, const AttendOptions& options) {
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

int RunAttend(const AttendOptions& options) {
  const std::string text = Joined(options.text, " ");
  if (text.empty() == options.file.empty()) {
    throw Failure("found " + std::string(text.empty() ? "neither" : "both") +
                  " a text and --file, wanted one: encore attend \"The cat sat on the mat\"");
  }
  if (!options.model.empty()) return RunModel(text, options);
  if (options.file.empty()) return RunText(text, options);
  const nlohmann::json spec = LoadCase(options.file, options.name);
  if (IsBlockCase(spec)) return RunCase(options, spec);
  AttentionExample example = ExampleFromCase(spec, options.seed);
  Compute(example);
  return Show(options, example, CheckCase(spec, example));
}

void AddModelOptions(const Command& command, const Option& model, AttendOptions& options) {
  options.precision.AddTo(command, {.needs = model});
  command.Add("--pair", &options.pair, "A second text, for models of pairs",
              {.type = "TEXT", .needs = model});
  const Option layer = command.Add("--layer", &options.layer, "This layer's weights, from 1",
                                   {.type = "N", .range = Range{1, kMostLayers}, .needs = model});
  command.Add("--head", &options.head, "This head's weights, from 1",
              {.type = "N", .range = Range{1, kMostLayers}, .needs = layer});
}

}  // namespace

void AddAttend(CommandLine& line, Action& action) {
  const auto [command, options] = AddCommand(
      line, action, "attend", "Show the self-attention of a sentence, step by step or in a model",
      kAttendFooter, RunAttend);
  command.Add("text", &options->text, "The sentence; without --model its words are the tokens",
              {.type = "TEXT"});
  const Option dim = command.Add("--dim", &options->dim, "Width of embeddings, Q, K and V",
                                 {.show_default = true, .range = Range{1, kMaxExampleDim}});
  const Option heads = command.Add("--heads", &options->heads, "Attention heads; must divide --dim",
                                   {.show_default = true, .range = Range{1, kMaxExampleDim}});
  const Option seed =
      command.Add("--seed", &options->seed, "Seed of the random matrices",
                  {.show_default = true, .range = Range{0, std::numeric_limits<uint32_t>::max()}});
  command.Add("--digits", &options->digits, "Digits after the point (default 4, or 2 with --model)",
              {.range = Range{1, 9}});
  const Option file = command.Add("--file", &options->file, "A JSON file of worked examples",
                                  {.type = "FILE", .excludes = {dim, heads}});
  command.Add("--case", &options->name, "Take the case of this name",
              {.type = "NAME", .needs = file});
  const Option model =
      command.Add("--model", &options->model, "Show attention in all of this model's folder",
                  {.type = "FOLDER", .excludes = {dim, heads, seed, file}});
  AddModelOptions(command, model, *options);
  command.Add("--json", &options->json, "Print all numbers as JSON");
}

}  // namespace encore::tool
