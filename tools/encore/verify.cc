// SPDX-License-Identifier: Apache-2.0
//
// `encore verify`: proves the numeric contract on this machine. The checks are in verify_*.cc; this
// is the command.

#include <cstdint>
#include <cstdio>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "encore/cpu.h"
#include "encore/version.h"
#include "engine/platform/file_writer.h"
#include "tests/reference/golden_hashes.h"
#include "tools/encore/commands.h"
#include "tools/encore/failure.h"
#include "tools/encore/terminal.h"
#include "tools/encore/verify_checks.h"
#include "tools/encore/verify_progress.h"
#include "tools/encore/verify_report.h"

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

constexpr const char* kFooter =
    R"(Examples:
  encore verify                     seconds: some millions of inputs of each function
  encore verify --full              every float there is: minutes, by the machine
  encore verify --json report.json

What is promised is in the README and in encore/encoder.h. Exit status: 0 every promise was kept, 1
one was broken, 2 bad usage or a file that cannot be written.)";

// Of floats that are tried in quick mode: a prime, so that all low bits occur; 8.4 million floats.
constexpr uint64_t kQuickStep = 509;

struct Options {
  bool quick = false;
  bool full = false;
  bool print_hashes = false;
  uint64_t step = 0;  // 0: by the mode
  std::string json;
};

int PrintHashes() {
  for (const reference::GoldenHash& golden : reference::kGoldenHashes) {
    std::printf("    {\"%s\", 0x%016llx},\n", std::string(golden.name).c_str(),
                static_cast<unsigned long long>(reference::ComputeGoldenHash(golden.name)));
  }
  return kExitOk;
}

int Verify(const Options& options) {
  if (options.print_hashes) return PrintHashes();
  // Before the work: a file that cannot be written is known now. It appears when it is complete.
  std::optional<internal::FileWriter> json;
  if (!options.json.empty()) {
    json.emplace(Take(internal::FileWriter::Create(options.json), "--json"));
  }

  const bool full = options.full;
  const std::vector<std::string> targets = SupportedTargets();
  std::cout << "encore " << ENCORE_VERSION_STRING << " verify, " << (full ? "full" : "quick")
            << "; SIMD target " << targets.front() << " and " << targets.size() - 1
            << " more; numbers in [] are of targets without FMA\n\n";
  std::cout.flush();
  VerifyReport report(full, targets);
  {
    Progress progress(StderrIsTerminal(), FunctionsWork(full) + OperationsWork(full) +
                                              OrderWork(full) + BitsWork(full) +
                                              PublishedWork(full));
    const uint64_t step = options.step != 0 ? options.step : full ? 1 : kQuickStep;
    const VerifyContext context{full, step, targets, report, progress};
    VerifyPublished(context);
    VerifyOrder(context);
    VerifyBits(context);
    VerifyOperations(context);
    VerifyFunctions(context);
  }
  report.Print(std::cout, StdoutHasColour());
  if (json) {
    const std::string text = report.Json();
    Check(json->Write(std::as_bytes(std::span(text))), "--json");
    Check(json->Commit(), "--json");
  }
  return report.Broken() == 0 ? kExitOk : kExitCheckFailed;
}

}  // namespace

void AddVerify(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand("verify", "Prove the promises about numbers on this machine");
  CLI::Option* quick =
      sub->add_flag("--quick", options->quick, "Some millions of inputs (default)");
  sub->add_flag("--full", options->full, "All floats, larger models, more batches")
      ->excludes(quick);
  sub->add_option("--step", options->step, "Try every N-th float (quick: 509, full: 1)")
      ->check(CLI::Range(1u, 1u << 31))
      ->type_name("N");
  sub->add_option("--json", options->json, "Write the findings to this file as well")
      ->type_name("FILE");
  sub->add_flag("--print-hashes", options->print_hashes,
                "Only print the hashes that are published, as this machine computes them");
  sub->footer(kFooter);
  sub->callback([options, &action] { action = [options] { return Verify(*options); }; });
}

}  // namespace encore::tool
