// SPDX-License-Identifier: Apache-2.0
//
// CLI11 behind command_line.h: options of each type, a formatter for the help, and what is said of
// commands and options that do not exist.

#include "tools/encore/command_line.h"

#include <algorithm>
#include <sstream>
#include <type_traits>
#include <utility>

#include "CLI/CLI.hpp"

namespace encore::tool {
namespace {

constexpr size_t kColumns = 100;
constexpr size_t kDescriptionColumn = 30;

// The words of `text` in lines of kColumns at most, the first of which follows `head`; all of them
// begin at the column `indent`.
std::string Wrapped(const std::string& head, const std::string& text, size_t indent) {
  std::string out;
  std::string line = head;
  const auto end_line = [&] {
    out += line + "\n";
    line.clear();
  };
  if (line.size() >= indent && indent > 0) end_line();
  bool first = true;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (!first && line.size() + 1 + word.size() > kColumns) {
      end_line();
      first = true;
    }
    if (first) {
      line.resize(std::max(line.size(), indent), ' ');
    } else {
      line += ' ';
    }
    line += word;
    first = false;
  }
  end_line();
  return out;
}

void Replace(const std::string& what, const std::string& by, std::string* text) {
  for (size_t at = text->find(what); at != std::string::npos; at = text->find(what, at)) {
    text->replace(at, what.size(), by);
    at += by.size();
  }
}

// What an option takes, in words.
struct PlainType {
  std::string name;     // "N" of "UINT:INT in [0 - 1024]", "f32|bf16" of "TEXT:{f32,bf16}"
  std::string choices;  // those that are too many to be a name
};

PlainType PlainTypeOf(const CLI::Option& option) {
  constexpr size_t kLongestName = 40;
  const std::string type = option.get_type_name();
  const size_t colon = type.find(':');
  PlainType plain = {type.substr(0, colon), ""};
  if (plain.name == "UINT" || plain.name == "INT") plain.name = "N";
  if (plain.name == "FLOAT") plain.name = "X";
  if (colon != std::string::npos && type[colon + 1] == '{') {
    std::string choices = type.substr(colon + 2, type.find('}') - colon - 2);
    if (choices.size() <= kLongestName) {
      std::replace(choices.begin(), choices.end(), ',', '|');
      plain.name = choices;
    } else {
      Replace(",", ", ", &choices);
      plain = {"NAME", choices};
    }
  }
  const bool many = option.get_expected_max() == CLI::detail::expected_max_vector_size;
  if (many && !plain.name.ends_with("...")) plain.name += option.get_positional() ? " ..." : ",...";
  return plain;
}

class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() { label("SUBCOMMAND", "COMMAND"); }

  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    std::string head = "  " + option->get_name(is_positional, !is_positional);
    Replace("{false}", "", &head);
    Replace("{true}", "", &head);
    Replace(",", ", ", &head);
    std::string words = option->get_description();
    if (option->get_type_size() != 0) {  // no flag
      const PlainType type = PlainTypeOf(*option);
      if (!type.name.empty()) head += " " + type.name;
      if (!type.choices.empty()) words += "; of " + type.choices;
      if (option->get_required()) head += " (required)";
      std::string value = option->get_default_str();
      if (value.starts_with('[') && value.ends_with(']')) value = value.substr(1, value.size() - 2);
      if (!value.empty()) head += " (default " + value + ")";
    }
    return Wrapped(head, words, kDescriptionColumn);
  }

  std::string make_subcommand(const CLI::App* command) const override {
    return Wrapped("  " + command->get_name(), command->get_description(), kDescriptionColumn);
  }

  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override {
    return Formatter::make_group(is_positional ? "Arguments" : std::move(group), is_positional,
                                 std::move(options));
  }

  std::string make_description(const CLI::App* app) const override {
    return Wrapped("", app->get_description(), 0);
  }
};

// Letters that are missing, surplus, wrong or swapped with the next.
size_t Distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> of(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        of[i][j] = i + j;
        continue;
      }
      of[i][j] = std::min(
          {of[i - 1][j] + 1, of[i][j - 1] + 1, of[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        of[i][j] = std::min(of[i][j], of[i - 2][j - 2] + 1);
      }
    }
  }
  return of[a.size()][b.size()];
}

// The one of `known` that `word` may be a slip of: few letters are missing, wrong or swapped, or it
// is the beginning. Empty if none is near.
std::string NearestOf(const std::string& word, const std::vector<std::string>& known) {
  constexpr size_t kLongest = 64;  // no name is near to longer ones
  constexpr size_t kShortestBeginning = 3;
  if (word.size() > kLongest) return "";
  const std::string letters = word.substr(std::min(word.find_first_not_of('-'), word.size()));
  std::string nearest;
  size_t least = std::max<size_t>(1, letters.size() / 3) + 1;
  for (const std::string& name : known) {
    const size_t distance = Distance(word, name);
    if (distance >= least) continue;
    least = distance;
    nearest = name;
  }
  if (!nearest.empty() || letters.size() < kShortestBeginning) return nearest;
  const auto begins = [&](const std::string& name) { return name.starts_with(word); };
  const auto found = std::find_if(known.begin(), known.end(), begins);
  return found == known.end() ? "" : *found;
}

std::vector<std::string> OptionNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

// Of what the command line holds and no command takes, the first: "unknown option --modle, the
// nearest is --model". Empty if there is nothing.
std::string UnknownArgument(const CLI::App& app) {
  const std::vector<std::string> rest = app.remaining(true);
  const auto is_word = [](const std::string& word) { return word != "--"; };
  const auto first = std::find_if(rest.begin(), rest.end(), is_word);
  if (first == rest.end()) return "";
  const std::vector<CLI::App*> commands = app.get_subcommands();  // those given
  const std::string word =
      first->substr(0, first->starts_with('-') ? first->find('=') : first->size());
  std::string sentence;
  std::string nearest;
  if (word.starts_with('-')) {
    sentence = "unknown option " + word;
    nearest = NearestOf(word, OptionNames(commands.empty() ? app : *commands.front()));
  } else if (commands.empty()) {
    sentence = "unknown command '" + word + "'";
    nearest = NearestOf(word, CommandNames(app));
  } else {
    sentence = "unexpected argument '" + word + "'";
  }
  return nearest.empty() ? sentence : sentence + ", the nearest is " + nearest;
}

// CLI11 would take an empty value for 0 or for no option at all.
void RefuseEmptyValues(CLI::App& app) {
  const CLI::Validator not_empty(
      [](std::string& value) {
        return value.empty() ? std::string("found nothing, wanted a value") : std::string();
      },
      "");
  for (CLI::App* command : app.get_subcommands({})) {
    for (CLI::Option* option : command->get_options()) {
      if (option->get_items_expected_max() > 0 && !option->get_positional()) {
        option->check(not_empty);
      }
    }
  }
}

void RefuseWrongTexts(CLI::App& app, const std::function<std::string(const std::string&)>& wrong) {
  const CLI::Validator check([wrong](std::string& value) { return wrong(value); }, "");
  for (CLI::App* command : app.get_subcommands({})) {
    for (CLI::Option* option : command->get_options()) {
      const bool path = option->get_type_name().starts_with("FILE") ||
                        option->get_type_name().starts_with("FOLDER");
      if (option->get_items_expected_max() > 0 && !path) option->check(check);
    }
  }
}

}  // namespace

bool Option::given() const { return option_->count() > 0; }

std::string Option::name() const { return option_->get_name(); }

Option Command::Add(const std::string& name, const OptionValue& value, const std::string& words,
                    const OptionRules& rules) const {
  CLI::Option* const option = std::visit(
      [&](auto* to) {
        using T = std::remove_pointer_t<decltype(to)>;
        if constexpr (std::is_same_v<T, bool>) {
          return app_->add_flag(name, *to, words);
        } else if constexpr (std::is_same_v<T, std::optional<bool>>) {
          return app_
              ->add_flag_function(
                  name, [to](int64_t given) { *to = given > 0; }, words)
              ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
        } else {
          CLI::Option* const added = app_->add_option(name, *to, words);
          const bool list = added->get_expected_max() == CLI::detail::expected_max_vector_size;
          return list && name.starts_with('-') ? added->delimiter(',') : added;
        }
      },
      value);
  if (rules.range) option->check(CLI::Range(rules.range->least, rules.range->most));
  if (!rules.one_of.empty()) option->check(CLI::IsMember(rules.one_of));
  if (*rules.type != '\0') option->type_name(rules.type);
  if (rules.required) option->required();
  if (rules.show_default) option->capture_default_str();
  if (rules.needs.option_ != nullptr) option->needs(rules.needs.option_);
  for (const Option& other : rules.excludes) option->excludes(other.option_);
  return Option(option);
}

CommandLine::CommandLine(const std::string& program, const std::string& words,
                         const std::string& footer, const std::string& version)
    : app_(std::make_unique<CLI::App>(words, program)) {
  app_->formatter(std::make_shared<HelpFormatter>());  // commands take it when they are added
  if (!version.empty()) app_->set_version_flag("--version", version, "Print the version and exit");
  app_->set_help_flag("-h,--help", "Print this help and exit");
  app_->footer(footer);
  app_->require_subcommand(0, 1);
}

CommandLine::~CommandLine() = default;

Command CommandLine::AddCommand(const std::string& name, const std::string& words,
                                const std::string& footer, const std::function<void()>& chosen) {
  CLI::App* const command = app_->add_subcommand(name, words)->footer(footer);
  command->callback(chosen);
  return Command(command);
}

std::string CommandLine::Read(int argc, const char* const* argv, bool* done) {
  RefuseEmptyValues(*app_);
  if (wrong_text_) RefuseWrongTexts(*app_, wrong_text_);
  *done = false;
  try {
    app_->parse(argc, argv);
    return "";
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
      app_->exit(error);  // prints it
      *done = true;
      return "";
    }
    const std::string unknown = UnknownArgument(*app_);
    return unknown.empty() ? error.what() : unknown;
  }
}

std::string CommandLine::name() const {
  const std::vector<CLI::App*> given = app_->get_subcommands();
  return app_->get_name() + (given.empty() ? "" : " " + given.front()->get_name());
}

std::string CommandLine::Help() const { return app_->help(); }

}  // namespace encore::tool
