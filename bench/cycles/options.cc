// SPDX-License-Identifier: Apache-2.0
//
// Reading of flags, the loop over targets, and the JSON file.

#include "bench/cycles/options.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

#include "bench/measure/context.h"
#include "bench/measure/os.h"
#include "encore/cpu.h"
#include "engine/platform/file_writer.h"

namespace encore::bench {
namespace {

constexpr char kUsage[] =
    "  --target=NAME,...         SIMD targets (default: AVX2 and the best one)\n"
    "  --benchmark_min_time=S    seconds for each figure, by the name that the other benchmarks\n"
    "                            have for it (default: 0.1)\n"
    "  --cpu=N                   core to run on, -1 for any (default: the last one)\n"
    "  --json=FILE               writes the figures there, too\n";

void SetTargetOrFail(const std::string& name) {
  const Status status = SetTarget(name);
  if (!status.ok()) Fail("--target: " + status.message(), 2);
}

std::vector<std::string> ParseTargets(const std::string& text) {
  std::vector<std::string> targets;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    targets.push_back(text.substr(begin, end - begin));
    SetTargetOrFail(targets.back());
    begin = end + 1;
  }
  return targets;
}

// AVX2, where there is one, and the best.
std::vector<std::string> DefaultTargets() {
  const std::vector<std::string> supported = SupportedTargets();  // best first
  std::vector<std::string> targets;
  if (std::find(supported.begin() + 1, supported.end(), "AVX2") != supported.end()) {
    targets.emplace_back("AVX2");
  }
  targets.push_back(supported.front());
  return targets;
}

double ParseNumber(const std::string& flag, const std::string& text, double low, double high) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(value >= low && value <= high)) {
    Fail(flag + ": found '" + text + "', wanted a number from " + std::to_string(low) + " to " +
             std::to_string(high),
         2);
  }
  return value;
}

struct CycleOptions {
  std::vector<std::string> targets;  // SIMD targets that this machine can run
  double seconds;                    // for each figure
  std::string json;                  // a file, or empty
};

CycleOptions ParseCycleOptions(int argc, char** argv, const char* what) {
  CycleOptions options{DefaultTargets(), 0.1, ""};
  const CoreMask cores;
  int cpu = cores.Last();
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const size_t equals = std::min(arg.find('='), arg.size());
    const std::string name = arg.substr(0, equals);
    const std::string value = equals < arg.size() ? arg.substr(equals + 1) : "";
    if (name == "--help" || name == "-h") {
      std::printf("%s\n%s", what, kUsage);
      std::exit(0);
    } else if (name == "--target") {
      options.targets = ParseTargets(value);
    } else if (name == "--benchmark_min_time") {
      options.seconds = ParseNumber(name, value, 0, 60);
    } else if (name == "--cpu") {
      cpu = static_cast<int>(ParseNumber(name, value, -1, 1023));
      if (!cores.Bind(cpu)) Fail("--cpu: this process may not use core " + value, 2);
    } else if (name == "--json") {
      options.json = value;
      // Before the work rather than after it; the file itself is not touched yet.
      OrFail(internal::FileWriter::Create(value));
    } else {
      Fail("unknown flag " + arg + "; --help shows them", 2);
    }
  }
  (void)cores.Bind(cpu);
  SetTargetOrFail("auto");
  for (const auto& [name, value] : Context()) {
    if (name == "version" || name == "date" || name == "cpu" || name == "caches" ||
        name == "compiler") {
      std::printf("%-10s %s\n", name.c_str(), value.c_str());
    }
  }
  return options;
}

void WriteFigures(const CycleOptions& options, const nlohmann::ordered_json& rows) {
  if (options.json.empty()) return;
  nlohmann::ordered_json json = {{"context", nlohmann::ordered_json::object()}, {"rows", rows}};
  for (const auto& [name, value] : Context()) json["context"][name] = value;
  const std::string text = json.dump(1) + "\n";
  internal::FileWriter writer = OrFail(internal::FileWriter::Create(options.json));
  Status status = writer.Write(std::as_bytes(std::span(text)));
  if (status.ok()) status = writer.Commit();
  if (!status.ok()) Fail("--json: " + status.message(), 1);
}

}  // namespace

int RunCycleBenchmark(int argc, char** argv, const CycleBenchmark& benchmark) noexcept try {
  const CycleOptions options = ParseCycleOptions(argc, argv, benchmark.what);
  std::fputs(benchmark.legend, stdout);
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const std::string& target : options.targets) {
    SetTargetOrFail(target);
    benchmark.run(target, options.seconds, &rows);
  }
  WriteFigures(options, rows);
  return 0;
} catch (...) {
  std::fprintf(stderr, "%s: out of memory\n", benchmark.name);
  return 1;
}

void Fail(const std::string& sentence, int exit_status) {
  std::fprintf(stderr, "%s\n", sentence.c_str());
  std::exit(exit_status);
}

}  // namespace encore::bench
