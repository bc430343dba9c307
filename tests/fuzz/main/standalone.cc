// SPDX-License-Identifier: Apache-2.0
//
// Runs fuzz targets without libFuzzer, with any compiler: on files, or on random changes of them.
//
//   fuzz_standalone TARGET FILE_OR_FOLDER ...            each file once
//   fuzz_standalone TARGET --runs N [--seed S] FOLDER    N changes of the folder's files
//
// An input that breaks a promise or crashes ends the process and lies in ./fuzz-input then, or in
// what --keep FILE names. Long runs say each minute how far they are.

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/fuzz/mutate.h"
#include "tests/fuzz/target.h"
#include "tests/support/sanitizers.h"

namespace encore::fuzz {
namespace {

struct Command {
  const Target* target = nullptr;
  uint64_t runs = 0;
  uint64_t seed = 1;
  std::string keep = "fuzz-input";
  std::vector<std::string> paths;
};

int Usage() {
  std::fprintf(stderr,
               "fuzz_standalone TARGET [--runs N] [--seed S] [--keep FILE] FILE_OR_FOLDER ...\n");
  std::fprintf(stderr, "the targets:");
  for (const Target& target : Targets()) std::fprintf(stderr, " %s", target.name.data());
  std::fprintf(stderr, "\n");
  return 2;
}

std::vector<std::string> ReadAll(const std::vector<std::string>& paths) {
  std::vector<std::string> inputs;
  for (const std::string& path : paths) {
    if (std::filesystem::is_directory(path)) {
      for (std::string& seed : ReadSeeds(path)) inputs.push_back(std::move(seed));
    } else {
      std::ifstream file(path, std::ios::binary);
      if (!file) {
        std::fprintf(stderr, "%s cannot be read; wanted a file or a folder\n", path.c_str());
        std::exit(2);
      }
      inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
  }
  return inputs;
}

// What runs now, for the handler of the signal that ends the process. It writes with the standard
// library, which signal handlers should not do: the process ends anyway.
const std::string* running = nullptr;
const std::string* keep_in = nullptr;

void KeepInput(int signal) {
  std::signal(signal, SIG_DFL);  // and again, where this returns to
  if (running != nullptr) std::ofstream(*keep_in, std::ios::binary) << *running;
}

void KeepInputs(const std::string& file) {
  keep_in = &file;
  std::signal(SIGABRT, KeepInput);
  if (kSanitized) return;  // sanitizers report the others, and then abort
  for (const int signal : {SIGSEGV, SIGFPE, SIGILL}) std::signal(signal, KeepInput);
#if defined(SIGBUS)
  std::signal(SIGBUS, KeepInput);
#endif
}

// Says each minute how many runs there were.
class Progress {
 public:
  void Report(uint64_t runs) {
    if (runs % 4096 != 0) return;
    const auto now = Clock::now();
    if (now - last_ < std::chrono::minutes(1)) return;
    last_ = now;
    Print(runs);
  }
  void Print(uint64_t runs) const {
    const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    std::printf("%llu runs in %.0f s, %.0f/s\n", static_cast<unsigned long long>(runs), seconds,
                seconds > 0 ? static_cast<double>(runs) / seconds : 0.0);
    std::fflush(stdout);
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_ = start_;
};

void RunOne(const Target& target, const std::string& input) {
  running = &input;
  target.run(input);
  running = nullptr;
}

int Run(const Command& command) {
  KeepInputs(command.keep);
  std::vector<std::string> inputs = ReadAll(command.paths);
  for (const std::string& input : inputs) RunOne(*command.target, input);
  Mutator mutator(inputs, command.seed);
  Progress progress;
  for (uint64_t run = 0; run < command.runs; ++run) {
    RunOne(*command.target, mutator.Next());
    progress.Report(run + 1);
  }
  if (command.runs > 0) progress.Print(command.runs);
  std::printf("%s: %zu files and %llu changes of them: all promises held\n",
              command.target->name.data(), inputs.size(),
              static_cast<unsigned long long>(command.runs));
  return 0;
}

int Main(int argc, char** argv) {
  Command command;
  if (argc > 1) command.target = FindTarget(argv[1]);
  for (int i = 2; i < argc; ++i) {
    const std::string argument = argv[i];
    if ((argument == "--runs" || argument == "--seed") && i + 1 < argc) {
      (argument == "--runs" ? command.runs : command.seed) = std::strtoull(argv[++i], nullptr, 10);
    } else if (argument == "--keep" && i + 1 < argc) {
      command.keep = argv[++i];
    } else {
      command.paths.push_back(argument);
    }
  }
  if (command.target == nullptr || command.paths.empty()) return Usage();
  return Run(command);
}

}  // namespace
}  // namespace encore::fuzz

// AddressSanitizer asks for this: its findings end in a SIGABRT too.
extern "C" const char* __asan_default_options() { return "abort_on_error=1"; }

int main(int argc, char** argv) { return encore::fuzz::Main(argc, argv); }
