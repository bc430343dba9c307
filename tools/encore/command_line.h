// SPDX-License-Identifier: Apache-2.0
//
// Options, commands and their help, in front of CLI11: a compiler takes ten seconds to read that,
// so command_line.cc alone does.

#ifndef ENCORE_TOOLS_ENCORE_COMMAND_LINE_H_
#define ENCORE_TOOLS_ENCORE_COMMAND_LINE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace encore::tool {

// An option of a command.
class Option {
 public:
  Option() = default;
  explicit Option(CLI::Option* option) : option_(option) {}

  bool given() const;  // once the command line has been read
  std::string name() const;

 private:
  friend class Command;
  CLI::Option* option_ = nullptr;
};

struct Range {
  int64_t least;
  int64_t most;
};

// What else there is to say of an option.
struct OptionRules {
  const char* type = "";  // of what it takes, in the help
  bool required = false;
  bool show_default = false;        // in the help: the value that there is now
  std::optional<Range> range = {};  // of each number that is given
  std::vector<std::string> one_of = {};
  Option needs = {};
  std::vector<Option> excludes = {};
};

// Where the value of an option goes: it must stay there until the command line has been read. A
// bool is a flag. "--yes,!--no" with an optional<bool> is a flag that says either, the last one
// counting. Lists take commas between their entries, or are all arguments without a name.
using OptionValue =
    std::variant<bool*, std::optional<bool>*, int*, std::optional<int>*, uint32_t*, size_t*,
                 std::optional<size_t>*, double*, std::optional<double>*, std::string*,
                 std::optional<std::string>*, std::vector<std::string>*, std::vector<size_t>*,
                 std::set<std::string>*>;

class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}
  // A name without a dash is that of an argument.
  Option Add(const std::string& name, const OptionValue& value, const std::string& words,
             const OptionRules& rules = {}) const;

 private:
  CLI::App* app_;
};

// A program's command line. Its help shows plain types, defaults in words ("--top N (default 10)")
// and lines of at most 100 columns.
class CommandLine {
 public:
  // version: what --version prints; there is no such option where it is empty.
  CommandLine(const std::string& program, const std::string& words, const std::string& footer = "",
              const std::string& version = "");
  ~CommandLine();

  // Options of the program itself.
  Command all() { return Command(app_.get()); }
  // A command, one of which may be given. chosen() is called when it was.
  Command AddCommand(const std::string& name, const std::string& words, const std::string& footer,
                     const std::function<void()>& chosen);

  // What is wrong with the value of an option that is no file and no folder, or "".
  void CheckTexts(std::function<std::string(const std::string&)> wrong) {
    wrong_text_ = std::move(wrong);
  }

  // Reads the command line. Returns "", or a sentence on what is wrong with it. An empty value is
  // wrong, such as a shell's variable that was not set. `done`: the help or the version was asked
  // for, and has been printed on standard output.
  std::string Read(int argc, const char* const* argv, bool* done);

  // "encore", or "encore run" once that command was recognised.
  std::string name() const;
  std::string Help() const;

 private:
  std::unique_ptr<CLI::App> app_;
  std::function<std::string(const std::string&)> wrong_text_;
};

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_COMMAND_LINE_H_
