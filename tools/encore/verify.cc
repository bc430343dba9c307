// SPDX-License-Identifier: Apache-2.0
//
// `encore verify`: proves the numeric contract on this machine. The checks are in verify_*.cc; this
// is the command.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <iostream>
#include <set>
#include <string>
#include <vector>

#include "encore/cpu.h"
#include "encore/version.h"
#include "tools/encore/commands.h"
#include "tools/encore/definitions.h"
#include "tools/encore/failure.h"
#include "tools/encore/progress.h"
#include "tools/encore/shared_options.h"
#include "tools/encore/terminal.h"
#include "tools/encore/verify_checks.h"

namespace encore::tool {

void ForEachVerifyTarget(const VerifyContext& context,
                         const std::function<void(const std::string&)>& body) {
  struct Restore {
    ~Restore() { (void)SetTarget(""); }
  } restore;
  for (const std::string& target : context.targets) {
    Check(SetTarget(target));
    if (ActiveTarget() != target) {
      throw Failure("asked for SIMD target " + target + ", got " + ActiveTarget(),
                    kExitCheckFailed);
    }
    body(target);
  }
}

namespace {

constexpr const char* kVerifyFooter =
    R"(Examples:
  encore verify                     seconds: some millions of inputs of each function
  encore verify --full              all floats on the best target and AVX2, one in 251 on
                                     others: about 12 minutes
  encore verify --only published    a second: are these the bits of every other machine?
  encore verify --only bits --precision int8
  encore verify --function exp,tile_gelu --full    every float of these alone
  encore verify --only conversions --full          every float to bf16 and f16
  encore verify --only functions --full --all-targets --markdown    the tables of docs/accuracy.md
  encore verify --json report.json

What is promised is in docs/contract.md, in encore/encore.h and in encore/ops.h. Exit status: 0
every promise was kept, 1 one was broken, 2 bad usage or a file that cannot be written.)";

// Of floats that are tried in quick mode: a prime, so that all low bits occur; 8.4 million floats.
constexpr uint64_t kQuickStep = 509;

// Where all floats are tried on the best target and AVX2, every so many-th is on the others.
constexpr uint64_t kOthersStep = 251;

struct VerifyOptions {
  bool quick = false;
  bool full = false;
  bool all_targets = false;
  bool markdown = false;
  bool print_hashes = false;
  size_t step = 0;                  // 0: by the mode
  size_t batches = 0;               // 0: by the mode
  std::set<std::string> only;       // empty: everything
  std::set<std::string> functions;  // empty: all
  std::vector<std::string> precisions = {"f32", "bf16", "int8", "int4"};
  std::string json;
  std::string target;  // of printed hashes; empty: the best
};

struct Part {
  VerifySection section;
  const char* name;  // of the progress bar; and seconds of an ordinary machine
  double seconds_quick;
  double seconds_full;
  void (*run)(const VerifyContext& context);
};

// What takes long comes last.
constexpr Part kParts[] = {
    {VerifySection::kPublished, "published hashes", 0.5, 0.5, VerifyPublished},
    {VerifySection::kBits, "orders of operations", 1, 1, VerifyOrder},
    {VerifySection::kBits, "the same bits", 10, 260, VerifyBits},
    {VerifySection::kOperations, "operations", 4, 40, VerifyOperations},
    {VerifySection::kConversions, "conversions", 0.5, 100, VerifyConversions},
    {VerifySection::kFunctions, "functions", 8, 340, VerifyFunctions}};

int PrintHashes() {
  for (const reference::GoldenHash& golden : reference::kGoldenHashes) {
    std::printf("    {\"%s\", 0x%016llx},\n", std::string(golden.name).c_str(),
                static_cast<unsigned long long>(reference::ComputeGoldenHash(golden.name)));
  }
  return kExitOk;
}

int Verify(const VerifyOptions& options) {
  if (!options.target.empty()) Check(SetTarget(options.target), "--target");
  if (options.print_hashes) return PrintHashes();
  std::set<std::string> only = options.only;
  if (only.empty() && !options.functions.empty()) only = {"functions"};
  const auto wanted = [&](VerifySection section) {
    return only.empty() || only.contains(SectionName(section));
  };
  if (!wanted(VerifySection::kFunctions) && (!options.functions.empty() || options.markdown)) {
    throw Failure(std::string(options.markdown ? "--markdown" : "--function") +
                  ": found --only without functions, wanted functions among its parts");
  }
  WantWritable(options.json, "--json");

  const bool full = options.full;
  const uint64_t step = options.step != 0 ? options.step : full ? 1 : kQuickStep;
  const std::vector<std::string> targets = SupportedTargets();
  std::set<Precision> precisions;
  for (const std::string& name : options.precisions) {
    precisions.insert(Take(PrecisionFromName(name), "--precision"));
  }
  std::string only_text;
  for (const std::string& name : only)
    only_text += (only_text.empty() ? ", only " : " and ") + name;
  std::cout << "encore " << ENCORE_VERSION_STRING << " verify, " << (full ? "full" : "quick")
            << only_text << "; SIMD target " << targets.front() << " and " << targets.size() - 1
            << " more; numbers in [] are of targets without FMA\n\n";
  std::cout.flush();

  VerifyReport report(full, targets, only);
  std::string markdown;
  {
    const auto seconds = [&](const Part& part) {
      if (!wanted(part.section)) return 0.0;
      return full ? part.seconds_full : part.seconds_quick;
    };
    double work = 0;
    for (const Part& part : kParts) work += seconds(part);
    Progress progress(StderrIsTerminal(), work);
    const VerifyContext context{
        .full = full,
        .step = step,
        .others_step = full && !options.all_targets ? std::max(step, kOthersStep) : step,
        .functions = options.functions,
        .batches = options.batches,
        .precisions = precisions,
        .targets = targets,
        .report = report,
        .progress = progress,
        .markdown = markdown};
    for (const Part& part : kParts) {
      if (!wanted(part.section)) continue;
      progress.Begin(part.name, seconds(part));
      part.run(context);
    }
  }
  report.Print(std::cout, StdoutHasColour());
  if (options.markdown) std::cout << markdown;
  if (!options.json.empty()) WriteTextFile(options.json, report.Json());
  return report.Broken() == 0 ? kExitOk : kExitCheckFailed;
}

}  // namespace

void AddVerify(CommandLine& line, Action& action) {
  const auto [command, options] = AddCommand(
      line, action, "verify", "Check the numeric contract on this machine", kVerifyFooter, Verify);
  const Option quick = command.Add("--quick", &options->quick, "Some millions of inputs (default)");
  const Option full = command.Add(
      "--full", &options->full,
      "All floats on the best target and AVX2, larger models, more batches", {.excludes = {quick}});
  command.Add("--step", &options->step, "Try every N-th float (quick: 509, full: 1)",
              {.type = "N", .range = Range{1, int64_t{1} << 31}});
  command.Add("--batches", &options->batches,
              "Draw N batches of each model (quick: 6 or fewer, full: 60 or fewer)",
              {.type = "N", .range = Range{1, 1 << 20}});
  command.Add("--all-targets", &options->all_targets,
              "All floats on every target, where --full tries one in 251 on some", {.needs = full});
  command.Add(
      "--only", &options->only,
      "Try these parts alone, with commas between: functions, operations, conversions, bits, "
      "published",
      {.type = "PART", .one_of = {"functions", "operations", "conversions", "bits", "published"}});
  command.Add("--function", &options->functions,
              "Try these functions alone, with commas between; without --only no other part",
              {.type = "NAME", .one_of = FunctionNames()});
  command.Add("--markdown", &options->markdown,
              "Print the largest errors of functions as the tables of docs/accuracy.md, too");
  command.Add("--precision", &options->precisions,
              "Compare the bits of layers in these precisions, with commas between",
              {.type = "NAME", .show_default = true, .one_of = {"f32", "bf16", "int8", "int4"}});
  command.Add("--json", &options->json, "Write the findings to this file as well",
              {.type = "FILE"});
  const Option print =
      command.Add("--print-hashes", &options->print_hashes,
                  "Only print the hashes that are published, as this machine computes them");
  command.Add("--target", &options->target,
              "Print the hashes of this SIMD target, e.g. SSE2; default: the best",
              {.type = "NAME", .needs = print});
}

}  // namespace encore::tool
