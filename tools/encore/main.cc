// SPDX-License-Identifier: Apache-2.0
//
// `encore`: reads the command line, runs one subcommand, turns every failure into one sentence on
// stderr and an exit status (0 done, 1 a check failed, 2 bad usage or input). The subcommands are
// in files of their own (commands.h).

#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
#include <string>

#include "encore/version.h"
#include "tools/encore/commands.h"
#include "tools/encore/failure.h"

namespace encore::tool {
namespace {

constexpr const char* kFooter =
    R"(Examples:
  encore                                        the demo: one block, checked and timed
  encore attend "The cat sat on the mat"        self-attention, step by step
  encore run --weights w.safetensors --input x.safetensors --output y.safetensors
  encore convert w.safetensors w8.safetensors --precision int8
                                                weights in bf16 or int8
  encore bench                                  how fast blocks are on this machine
  encore report --out FILE.html                 all that this machine can do, as a page
  encore compare A.json B.json                  reports of two runs side by side
  encore embed --model DIR --input FILE --output V.npy
                                                vectors of texts
  encore rerank --model DIR --query Q --input FILE
                                                texts by how well they fit
  encore tokenize --model DIR --input FILE      token ids of texts
  encore info                                   what encore sees of this machine
  encore verify                                 proves the promises about numbers here

`encore COMMAND --help` tells more about each.
Exit status: 0 done, 1 a check failed, 2 bad usage or input.)";

// "encore", or "encore run" once that subcommand was recognised: what its errors start with.
std::string Name(const CLI::App& app) {
  for (const CLI::App* sub : app.get_subcommands()) return "encore " + sub->get_name();
  return "encore";
}

// An empty value is a mistake, such as a shell's variable that was not set; CLI11 would take it for
// 0 or for no option at all.
void RefuseEmptyValues(CLI::App& app) {
  const CLI::Validator not_empty(
      [](std::string& value) {
        return value.empty() ? std::string("found nothing, wanted a value") : std::string();
      },
      "");
  for (CLI::App* sub : app.get_subcommands({})) {
    for (CLI::Option* option : sub->get_options()) {
      if (option->get_items_expected_max() > 0 && !option->get_positional()) {
        option->check(not_empty);
      }
    }
  }
}

int Fail(const std::string& name, const std::string& sentence, int exit_status) {
  std::cout.flush();
  std::cerr << name << ": " << sentence << "\n";
  return exit_status;
}

// `exit_status`, unless what was printed cannot be written (a full disk).
int Finish(const std::string& name, int exit_status) {
  std::cout.flush();
  if (!std::cout) return Fail(name, "the standard output cannot be written", kExitBadInput);
  return exit_status;
}

int Main(int argc, char** argv) {
  CLI::App app("encore computes transformer encoder blocks on CPUs.", "encore");
  app.set_version_flag("--version", std::string("encore ") + ENCORE_VERSION_STRING,
                       "Print the version and exit");
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.footer(kFooter);
  app.require_subcommand(0, 1);
  Action action = RunDefaultDemo;
  AddDemo(app, action);
  AddAttend(app, action);
  AddRun(app, action);
  AddConvert(app, action);
  AddCalibrate(app, action);
  AddBench(app, action);
  AddReport(app, action);
  AddCompare(app, action);
  AddInfo(app, action);
  AddVerify(app, action);
  AddTokenize(app, action);
  AddEmbed(app, action);
  AddRerank(app, action);
  RefuseEmptyValues(app);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
      return Finish(Name(app), app.exit(error));  // the help or the version that was asked for
    }
    const std::string name = Name(app);
    return Fail(name, error.what() + std::string("; `") + name + " --help` shows the usage",
                kExitBadInput);
  }

  const std::string name = Name(app);
  try {
    return Finish(name, action());
  } catch (const Failure& failure) {
    return Fail(name, failure.what(), failure.exit_status());
  } catch (const std::bad_alloc&) {
    return Fail(name, "out of memory", kExitBadInput);
  } catch (const std::exception& error) {
    return Fail(name, std::string("unexpected error: ") + error.what(), kExitBadInput);
  }
}

}  // namespace
}  // namespace encore::tool

int main(int argc, char** argv) try {
  return encore::tool::Main(argc, argv);
} catch (...) {  // no memory for the command line itself, or for the words of an error
  std::fputs("encore: out of memory\n", stderr);
  return encore::tool::kExitBadInput;
}
