// SPDX-License-Identifier: Apache-2.0
//
// `encore-exhaustive`: tries every float (2^32 of them) on the elementwise functions, on the
// activations inside a block, on softmax's exponential and on conversions to bf16 and f16, and
// prints the largest errors, where they are, and what was promised. Not here: the search
// (search.h).

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "encore/version.h"
#include "engine/platform/file_writer.h"
#include "tests/reference/hard_floats.h"
#include "tools/encore/failure.h"
#include "tools/encore/terminal.h"
#include "tools/encore/text.h"
#include "tools/encore/verify_progress.h"
#include "tools/exhaustive/conversions.h"
#include "tools/exhaustive/report.h"
#include "tools/exhaustive/rows.h"
#include "tools/exhaustive/search.h"

namespace encore::tool {
namespace {

constexpr const char* kFooter =
    R"(Examples:
  encore-exhaustive                        everything: minutes
  encore-exhaustive exp tile_gelu          these alone
  encore-exhaustive conversions            bf16 and f16, on every target
  encore-exhaustive --all-targets          every float on every SIMD target
  encore-exhaustive --step 4099 --json report.json

Exit status: 0 every promise was kept, 1 one was broken, 2 bad usage or a file that cannot be
written.)";

// Of each function, from so many binades the worst float is told.
constexpr size_t kWorstBinades = 3;

struct Options {
  std::vector<std::string> functions;
  uint64_t step = 1;
  uint64_t others_step = 251;
  bool all_targets = false;
  bool markdown = false;
  bool hard_floats = false;
  std::string json;
};

using Subjects = std::vector<std::unique_ptr<Subject>>;

Subjects Chosen(const std::vector<std::string>& names) {
  Subjects all = AllSubjects();
  if (names.empty()) return all;
  Subjects chosen;
  for (const std::string& name : names) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const auto& subject) {
      return subject != nullptr && subject->name() == name;
    });
    if (found != all.end()) chosen.push_back(std::move(*found));
  }
  return chosen;
}

bool WantsConversions(const std::vector<std::string>& names) {
  return names.empty() || std::find(names.begin(), names.end(), kConversionsName) != names.end();
}

int Run(const Options& options) {
  // Before the work: a file that cannot be written is known now. It appears when it is complete.
  std::optional<internal::FileWriter> json;
  if (!options.json.empty()) {
    json.emplace(Take(internal::FileWriter::Create(options.json), "--json"));
  }
  const Subjects subjects = Chosen(options.functions);
  const std::vector<TargetKernels> targets = AllTargetKernels();
  const std::vector<float> hard = reference::HardFloats(400000);
  const SearchPlan plan{.step = options.step,
                        .others_step = options.all_targets ? options.step : options.others_step,
                        .hard = hard,
                        .stretches = std::size(reference::kHardFloats)};
  PrintRowsHeader(std::cout);
  std::vector<Row> all;
  std::ostringstream worst;
  Progress progress(StderrIsTerminal(), static_cast<double>(subjects.size() + 1));
  for (const std::unique_ptr<Subject>& subject : subjects) {
    progress.Begin(subject->name(), 1);
    const std::vector<TargetResult> results =
        Search(*subject, targets, plan, [&](double share) { progress.Advance(share); });
    std::vector<Row> rows = RowsOf(*subject, results);
    rows.push_back(ReferenceRow(*subject));
    progress.Clear();
    PrintRows(std::cout, rows, StdoutHasColour());
    PrintHardFloats(worst, subject->name(), results, kWorstBinades);
    all.insert(all.end(), rows.begin(), rows.end());
  }
  if (WantsConversions(options.functions)) {
    progress.Begin(kConversionsName, 1);
    const std::vector<Row> rows = TryConversions(AllConversions(), options.step,
                                                 [&](double share) { progress.Advance(share); });
    progress.Clear();
    PrintRows(std::cout, rows, StdoutHasColour());
    all.insert(all.end(), rows.begin(), rows.end());
  }
  progress.Clear();
  size_t broken = 0;
  for (const Row& row : all) broken += row.kept() ? 0 : 1;
  std::cout << (broken == 0 ? "Every promise was kept.\n"
                            : Counted(broken, "promise") + " BROKEN.\n");
  if (options.hard_floats) std::cout << "\n" << worst.str();
  if (options.markdown) std::cout << "\n" << MarkdownOf(all);
  if (json) {
    const std::string text = JsonOf(all);
    Check(json->Write(std::as_bytes(std::span(text))), "--json");
    Check(json->Commit(), "--json");
  }
  return broken == 0 ? kExitOk : kExitCheckFailed;
}

int Fail(const std::string& sentence, int exit_status) {
  std::cout.flush();
  std::cerr << "encore-exhaustive: " << sentence << "\n";
  return exit_status;
}

// `exit_status`, unless what was printed cannot be written (a full disk).
int Finish(int exit_status) {
  std::cout.flush();
  if (!std::cout) return Fail("the standard output cannot be written", kExitBadInput);
  return exit_status;
}

int Main(int argc, char** argv) {
  std::vector<std::string> names;
  for (const auto& subject : AllSubjects()) names.push_back(subject->name());
  names.push_back(kConversionsName);

  Options options;
  CLI::App app("Tries every float on encore's functions.", "encore-exhaustive");
  app.set_version_flag("--version", std::string("encore ") + ENCORE_VERSION_STRING);
  app.footer(kFooter);
  app.add_option("function", options.functions, "Which; all by default")
      ->check(CLI::IsMember(names));
  app.add_option("--step", options.step, "Try every N-th float")
      ->check(CLI::Range(1u, 1u << 31))
      ->type_name("N");
  const CLI::Option* others_step =
      app.add_option("--others-step", options.others_step,
                     "On targets other than the best and AVX2, every N-th (251)")
          ->check(CLI::Range(1u, 1u << 31))
          ->type_name("N");
  app.add_flag("--all-targets", options.all_targets, "The same floats on all targets");
  app.add_flag("--markdown", options.markdown, "Print the README's tables as well");
  app.add_flag("--hard-floats", options.hard_floats,
               "Print the worst floats as well, as lines for tests/reference/hard_floats.h");
  app.add_option("--json", options.json, "Write the findings to this file as well")
      ->type_name("FILE")
      ->check(CLI::Validator(
          [](std::string& value) {
            return value.empty() ? std::string("found nothing, wanted a value") : std::string();
          },
          ""));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
      return Finish(app.exit(error));
    }
    return Fail(error.what() + std::string("; `encore-exhaustive --help` shows the usage"),
                kExitBadInput);
  }
  if (others_step->count() > 0 && options.others_step < options.step) {
    return Fail("--others-step: found " + std::to_string(options.others_step) +
                    ", wanted at least --step, " + std::to_string(options.step),
                kExitBadInput);
  }
  try {
    return Finish(Run(options));
  } catch (const Failure& failure) {
    return Fail(failure.what(), failure.exit_status());
  } catch (const std::exception& error) {
    return Fail(error.what(), kExitBadInput);
  }
}

}  // namespace
}  // namespace encore::tool

int main(int argc, char** argv) try {
  return encore::tool::Main(argc, argv);
} catch (...) {  // no memory for the command line itself, or for the words of an error
  std::fputs("encore-exhaustive: out of memory\n", stderr);
  return encore::tool::kExitBadInput;
}
