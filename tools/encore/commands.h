// SPDX-License-Identifier: Apache-2.0
//
// The subcommands of `encore`, one .cc each. Each function adds its subcommand with options, help
// and examples to `line`; when the command line names it, `action` becomes what is to be done.

#ifndef ENCORE_TOOLS_ENCORE_COMMANDS_H_
#define ENCORE_TOOLS_ENCORE_COMMANDS_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "tools/encore/command_line.h"

namespace encore::tool {

// Does the work and returns the exit status; throws Failure.
using Action = std::function<int()>;

// How each of them begins: adds the subcommand, which runs run(options) with options of its own,
// and returns both. The options stay where they are until `action` is gone.
template <typename Options>
std::pair<Command, Options*> AddCommand(CommandLine& line, Action& action, const std::string& name,
                                        const std::string& words, const std::string& footer,
                                        int (*run)(const Options&)) {
  auto options = std::make_shared<Options>();
  const Command command = line.AddCommand(name, words, footer, [options, run, &action] {
    action = [options, run] { return run(*options); };
  });
  return {command, options.get()};
}

void AddDemo(CommandLine& line, Action& action);       // demo.cc
void AddAttend(CommandLine& line, Action& action);     // attend.cc
void AddRun(CommandLine& line, Action& action);        // run.cc
void AddConvert(CommandLine& line, Action& action);    // convert.cc
void AddCalibrate(CommandLine& line, Action& action);  // calibrate.cc
void AddBench(CommandLine& line, Action& action);      // bench.cc
void AddInfo(CommandLine& line, Action& action);       // info.cc
void AddVerify(CommandLine& line, Action& action);     // verify.cc
void AddTokenize(CommandLine& line, Action& action);   // tokenize.cc
void AddEmbed(CommandLine& line, Action& action);      // embed.cc
void AddRerank(CommandLine& line, Action& action);     // rerank.cc
void AddLabel(CommandLine& line, Action& action);      // label.cc
void AddClassify(CommandLine& line, Action& action);   // classify.cc
void AddServe(CommandLine& line, Action& action);      // serve.cc, where it is built

// What `encore` alone does: the demo with its defaults.
int RunDefaultDemo();

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_COMMANDS_H_
