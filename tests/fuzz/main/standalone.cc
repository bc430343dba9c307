// SPDX-License-Identifier: Apache-2.0
//
// Runs fuzz targets without libFuzzer, with any compiler: on files, or on random changes of them.
//
//   fuzz_standalone TARGET FILE_OR_FOLDER ...            each file once
//   fuzz_standalone TARGET --runs N [--seed S] FOLDER    N changes of the folder's files
//
// An input that breaks a promise ends the process and lies in ./fuzz-input then.

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

namespace encore::fuzz {
namespace {

struct Command {
  const Target* target = nullptr;
  uint64_t runs = 0;
  uint64_t seed = 1;
  std::vector<std::string> paths;
};

int Usage() {
  std::fprintf(stderr, "fuzz_standalone TARGET [--runs N] [--seed S] FILE_OR_FOLDER ...\n");
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
      inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
  }
  return inputs;
}

// What runs now, for the handler of the signal that ends the process. It writes with the standard
// library, which signal handlers should not do: the process ends anyway.
const std::string* running = nullptr;

void KeepInput(int /*signal*/) {
  if (running != nullptr) std::ofstream("fuzz-input", std::ios::binary) << *running;
}

void RunOne(const Target& target, const std::string& input) {
  running = &input;
  target.run(input);
  running = nullptr;
}

int Run(const Command& command) {
  std::signal(SIGABRT, KeepInput);
  std::vector<std::string> inputs = ReadAll(command.paths);
  for (const std::string& input : inputs) RunOne(*command.target, input);
  Mutator mutator(inputs, command.seed);
  for (uint64_t run = 0; run < command.runs; ++run) RunOne(*command.target, mutator.Next());
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
