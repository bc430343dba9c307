// SPDX-License-Identifier: Apache-2.0
//
// Runs the built `encore` as a person would, for the cli_*_test.cc: exit status, both outputs, a
// folder for files.

#ifndef ENCORE_TESTS_CLI_CLI_RUNNER_H_
#define ENCORE_TESTS_CLI_CLI_RUNNER_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/safetensors_bytes.h"

#if !defined(_WIN32)
#include <sys/wait.h>
#endif

namespace encore {

struct CliResult {
  int status = -1;  // -1: killed by a signal
  std::string out;
  std::string err;
};

inline bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class CliTest : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder_.File(name); }

  // Names in the test's folder, sorted.
  std::vector<std::string> Files() const {
    std::vector<std::string> names = folder_.List();
    std::sort(names.begin(), names.end());
    return names;
  }

  static std::string ReadFile(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

  static void WriteFile(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }

  static CliResult Encore(const std::vector<std::string>& arguments) {
    return Run(ENCORE_CLI_PATH, arguments);
  }

  static CliResult Run(const std::string& program, const std::vector<std::string>& arguments) {
    const TemporaryFolder outputs;
    const std::string out = outputs.File("out");
    const std::string err = outputs.File("err");
    std::string command = Quoted(program);
    for (const std::string& argument : arguments) command += " " + Quoted(argument);
    command += " > " + Quoted(out) + " 2> " + Quoted(err);
    const int status = std::system(command.c_str());
    CliResult result;
#if defined(_WIN32)
    result.status = status;
#else
    if (WIFEXITED(status) && WEXITSTATUS(status) < 128) result.status = WEXITSTATUS(status);
#endif
    result.out = ReadFile(out);
    result.err = ReadFile(err);
    return result;
  }

  // Exit status 2, nothing on stdout, and one line on stderr that has all of these in it.
  static void ExpectRefused(const std::vector<std::string>& arguments,
                            const std::vector<std::string>& words) {
    std::string command = "encore";
    for (const std::string& argument : arguments) command += " " + argument;
    const CliResult result = Encore(arguments);
    EXPECT_EQ(result.status, 2) << command;
    EXPECT_EQ(result.out, "") << command;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << command << "\n"
                                                                         << result.err;
    EXPECT_EQ(result.err.substr(0, 6), "encore") << command << "\n" << result.err;
    for (const std::string& word : words) {
      EXPECT_NE(result.err.find(word), std::string::npos)
          << command << "\nwanted: " << word << "\nfound: " << result.err;
    }
  }

 private:
  static std::string Quoted(const std::string& text) {
    std::string quoted = "'";
    for (char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return quoted + "'";
  }

  const TemporaryFolder folder_;
};

}  // namespace encore

#endif  // ENCORE_TESTS_CLI_CLI_RUNNER_H_
