// SPDX-License-Identifier: Apache-2.0
//
// How --help looks, and what is said of commands and options that do not exist.

#ifndef ENCORE_TOOLS_ENCORE_USAGE_H_
#define ENCORE_TOOLS_ENCORE_USAGE_H_

#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class FormatterBase;
}  // namespace CLI

namespace encore::tool {

// Plain types, defaults in words ("--top N (default 10)"), lines of at most 100 columns.
std::shared_ptr<CLI::FormatterBase> MakeHelpFormatter();

// Of what the command line holds and no command takes, the first: "unknown option --modle, the
// nearest is --model". Empty if there is nothing.
std::string UnknownArgument(const CLI::App& app);

// The one of `known` that `word` may be a slip of: few letters are missing, wrong or swapped, or it
// is the beginning. Empty if none is near.
std::string NearestOf(const std::string& word, const std::vector<std::string>& known);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_USAGE_H_
