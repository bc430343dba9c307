// SPDX-License-Identifier: Apache-2.0
//
// `encore attend`: self-attention of a sentence, or of a worked example's case, step by step. This
// file has the options and the order of things; the parts are in attention_example, attend_case,
// attend_report and seeded_block.

#include <cstdint>
#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "tools/encore/attend_case.h"
#include "tools/encore/attend_report.h"
#include "tools/encore/attention_example.h"
#include "tools/encore/block_case.h"
#include "tools/encore/commands.h"
#include "tools/encore/failure.h"
#include "tools/encore/svg.h"
#include "tools/encore/terminal.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

constexpr const char* kFooter =
    R"(Embeddings and weights are random: the sentence shows how attention computes, not what
words mean. They are NumPy's own RandomState(seed).rand, drawn in the order X, W_q, W_k, W_v; the
output ends with the lines that give the same numbers in NumPy.

Examples:
  encore attend "The cat sat on the mat"
  encore attend "The cat sat on the mat" --dim 8 --heads 2 --seed 7 --svg weights.svg
  encore attend "The cat sat" --json | python3 -m json.tool
  encore attend --file examples.json --case words_the_cat_sat
  tests/data/worked_examples.json in encore's source is such a file.

With --file the results are compared with those of the case; exit status 1 if any is wrong.)";

struct Options {
  std::vector<std::string> text;  // a sentence, or its words one by one
  size_t dim = 8;
  size_t heads = 1;
  uint32_t seed = 42;
  int precision = 4;
  std::string file;
  std::string name;
  std::string svg;
  bool json = false;
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
  if (!options.svg.empty()) WriteTextFile(options.svg, ExampleToSvg(example));
  if (options.json) {
    PrintJson(ExampleToJson(example), checks);
  } else {
    const MatrixStyle style = {.precision = options.precision, .colour = StdoutHasColour()};
    PrintExample(std::cout, example, style);
    if (!checks.empty()) PrintChecks(std::cout, checks);
    if (!options.svg.empty()) std::cout << "\nThe heat map is in " << options.svg << "\n";
  }
  return ExitOf(checks);
}

int RunText(const std::string& text, const Options& options) {
  AttentionExample example =
      SeededExample(SplitWords(text), options.dim, options.heads, options.seed);
  for (const std::string& token : example.tokens) {
    example.title += (example.title.empty() ? "\"" : " ") + token;
  }
  example.title += "\"";
  Compute(example);
  return Show(options, example, {});
}

int RunBlock(const Options& options, const nlohmann::json& spec) {
  if (!options.svg.empty()) {
    throw Failure(CaseLabel(spec) + " is a whole encoder block: --svg draws attention cases only");
  }
  const BlockCaseResult result = RunBlockCase(spec, options.seed);
  if (options.json) {
    PrintJson({{"title", result.title}}, result.checks);
  } else {
    std::cout << result.title << "\n";
    PrintChecks(std::cout, result.checks);
  }
  return ExitOf(result.checks);
}

int Run(const Options& options) {
  std::string text;
  for (const std::string& part : options.text) text += (text.empty() ? "" : " ") + part;
  if (text.empty() == options.file.empty()) {
    throw Failure("found " + std::string(text.empty() ? "neither" : "both") +
                  " a text and --file, wanted one: encore attend \"The cat sat on the mat\"");
  }
  if (options.file.empty()) return RunText(text, options);
  const nlohmann::json spec = LoadCase(options.file, options.name);
  if (IsBlockCase(spec)) return RunBlock(options, spec);
  AttentionExample example = ExampleFromCase(spec, options.seed);
  Compute(example);
  return Show(options, example, CheckCase(spec, example));
}

}  // namespace

void AddAttend(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand("attend", "Self-attention of a sentence, step by step");
  sub->add_option("text", options->text, "The sentence; its words are the tokens")
      ->type_name("TEXT");
  CLI::Option* dim = sub->add_option("--dim", options->dim, "Width of embeddings, Q, K and V")
                         ->check(CLI::Range(size_t{1}, kMaxExampleDim))
                         ->capture_default_str();
  CLI::Option* heads =
      sub->add_option("--heads", options->heads, "Attention heads; they divide --dim")
          ->check(CLI::Range(size_t{1}, kMaxExampleDim))
          ->capture_default_str();
  sub->add_option("--seed", options->seed, "Seed of the random matrices")
      ->check(CLI::Range(uint32_t{0}, std::numeric_limits<uint32_t>::max()))
      ->capture_default_str();
  sub->add_option("--precision", options->precision, "Digits after the point")
      ->check(CLI::Range(1, 9))
      ->capture_default_str();
  sub->add_option("--svg", options->svg, "Draw the weights as a picture into this file")
      ->type_name("FILE");
  CLI::Option* file = sub->add_option("--file", options->file, "A JSON file of worked examples")
                          ->type_name("FILE")
                          ->excludes(dim)
                          ->excludes(heads);
  sub->add_option("--case", options->name, "Which of its cases")->type_name("NAME")->needs(file);
  sub->add_flag("--json", options->json, "All numbers as JSON");
  sub->footer(kFooter);
  sub->callback([options, &action] { action = [options] { return Run(*options); }; });
}

}  // namespace encore::tool
