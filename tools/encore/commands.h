// SPDX-License-Identifier: Apache-2.0
//
// The subcommands of `encore`, one .cc each. Each function adds its subcommand with options, help
// and examples to `app`; when the command line names it, `action` becomes what is to be done.

#ifndef ENCORE_TOOLS_ENCORE_COMMANDS_H_
#define ENCORE_TOOLS_ENCORE_COMMANDS_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"

namespace encore::tool {

// Does the work and returns the exit status; throws Failure.
using Action = std::function<int()>;

// How each of them begins: adds the subcommand, which runs run(options) with options of its own,
// and returns both. The options stay where they are until `action` is gone.
template <typename Options>
std::pair<CLI::App*, Options*> AddCommand(CLI::App& app, Action& action, const std::string& name,
                                          const std::string& words, const std::string& footer,
                                          int (*run)(const Options&)) {
  auto options = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand(name, words)->footer(footer);
  sub->callback([options, run, &action] { action = [options, run] { return run(*options); }; });
  return {sub, options.get()};
}

void AddDemo(CLI::App& app, Action& action);       // demo.cc
void AddAttend(CLI::App& app, Action& action);     // attend.cc
void AddRun(CLI::App& app, Action& action);        // run.cc
void AddConvert(CLI::App& app, Action& action);    // convert.cc
void AddCalibrate(CLI::App& app, Action& action);  // calibrate.cc
void AddBench(CLI::App& app, Action& action);      // bench.cc
void AddInfo(CLI::App& app, Action& action);       // info.cc
void AddVerify(CLI::App& app, Action& action);     // verify.cc
void AddTokenize(CLI::App& app, Action& action);   // tokenize.cc
void AddEmbed(CLI::App& app, Action& action);      // embed.cc
void AddRerank(CLI::App& app, Action& action);     // rerank.cc

// What `encore` alone does: the demo with its defaults.
int RunDefaultDemo();

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_COMMANDS_H_
