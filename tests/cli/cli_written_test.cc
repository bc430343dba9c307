// SPDX-License-Identifier: Apache-2.0
//
// What the commands that write leave behind: with a standard output that takes nothing, beyond the
// limit of a file's size, and after a command that was killed.

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/cli/cli_runner.h"
#include "tests/support/text_case.h"

#if !defined(_WIN32)
#include <sys/wait.h>
#include <unistd.h>

namespace encore {
namespace {

namespace fs = std::filesystem;

// A command that writes, and the name of what it writes.
struct Writing {
  std::vector<std::string> arguments;
  std::string output;
};

class CliWrittenTest : public CliTest {
 protected:
  CliWrittenTest() {
    WriteFile(Path("texts"), "the bread\ntea\n");
    fs::create_directory(Path("out"));
  }

  std::vector<Writing> All() const {
    const std::string data = ENCORE_TEST_DATA_DIR;
    const std::string weights = data + "/golden/padding_post.weights.safetensors";
    const std::string tensors = data + "/golden/padding_post.input.safetensors";
    std::vector<Writing> all;
    const auto add = [&](std::vector<std::string> arguments, const std::string& option,
                         const std::string& name) {
      if (!option.empty()) arguments.push_back(option);
      arguments.push_back(Path("out/" + name));
      all.push_back({arguments, Path("out/" + name)});
    };
    const auto embed = [&](const std::string& folder, const std::string& name) {
      add({"embed", "--model", folder, "--input", Path("texts")}, "--output", name);
    };
    for (const char* name : {"v.npy", "v.safetensors", "v.jsonl"}) embed(folder_.path(), name);
    for (const char* name : {"s.npz", "s.jsonl"}) embed(data + "/heads/splade_bert", name);
    embed(data + "/late/own", "t.npz");
    add({"run", "--weights", weights, "--input", tensors}, "--output", "y.safetensors");
    add({"convert", "--precision", "int8", weights}, "", "w8.safetensors");
    add({"convert", "--precision", "int8", folder_.path()}, "", "folder8");
    add({"calibrate", "--input", tensors, weights}, "", "c.safetensors");
    add({"calibrate", "--input", Path("texts"), folder_.path()}, "", "calibrated");
    add({"bench", "--seconds", "0", "--precision", "f32", "--model", folder_.path()}, "--json",
        "b.json");
    add({"verify", "--only", "conversions"}, "--json", "verify.json");
    return all;
  }

  // Of a shell's line with the command at its end.
  CliResult Shell(const std::string& before, const Writing& writing,
                  const std::string& after) const {
    std::string line = before + " '" ENCORE_CLI_PATH "'";
    for (const std::string& argument : writing.arguments) line += " '" + argument + "'";
    const int status = std::system((line + " 2> '" + Path("err") + "' " + after).c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, "", ReadFile(Path("err"))};
  }

  std::vector<std::string> Written() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(Path("out"))) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }

  TextFolder folder_;
};

TEST_F(CliWrittenTest, StatusTwoMeansThatNothingWasWritten) {
  for (const Writing& writing : All()) {
    SCOPED_TRACE(writing.output);
    for (const char* out : {"> /dev/full", ">&-"}) {
      const CliResult result = Shell("", writing, out);
      ASSERT_TRUE(fs::exists(writing.output)) << result.err;
      EXPECT_EQ(result.status, 3) << result.err;
      EXPECT_TRUE(Has(result.err, "standard output cannot be written")) << result.err;
      fs::remove_all(writing.output);
    }
  }
}

TEST_F(CliWrittenTest, AReaderThatIsGoneIsNoNews) {
  for (const Writing& writing : All()) {
    SCOPED_TRACE(writing.output);
    // As services are started, and as shells do it.
    for (const char* before : {"trap '' PIPE; (", "("}) {
      const CliResult result = Shell(before, writing, ") | true");
      EXPECT_EQ(result.err, "");
      fs::remove_all(writing.output);
    }
  }
}

TEST_F(CliWrittenTest, TheLimitOfAFilesSizeIsAnErrorLikeOthers) {
  WriteFile(Path("more"), [] {
    std::string lines;
    for (int i = 0; i < 3000; ++i) lines += "tea " + std::to_string(i) + "\n";
    return lines;
  }());
  size_t refused = 0;
  for (Writing writing : All()) {
    SCOPED_TRACE(writing.output);
    for (std::string& argument : writing.arguments) {
      if (argument == Path("texts")) argument = Path("more");
    }
    const CliResult result = Shell("ulimit -f 4;", writing, "> /dev/null");
    if (result.status == 0) {  // it is that small
      EXPECT_TRUE(fs::exists(writing.output));
      fs::remove_all(writing.output);
      continue;
    }
    ++refused;
    const bool printed = writing.output.ends_with(".json");  // a table, before
    EXPECT_EQ(result.status, printed ? 3 : 2) << result.err;
    EXPECT_TRUE(Has(result.err, "File too large")) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_EQ(Written(), std::vector<std::string>());
  }
  EXPECT_GE(refused, 9u);
}

TEST_F(CliWrittenTest, WhatAKilledCommandLeftIsRemovedByTheNext) {
  for (const Writing& writing : All()) {
    SCOPED_TRACE(writing.output);
    WriteFile(Path("out/.encore-123.tmp"), "half");
    fs::create_directories(Path("out/.encore-9876543210.tmp/1_Pooling"));
    const CliResult result = Shell("", writing, "> /dev/null");
    EXPECT_EQ(result.status, 0) << result.err;
    for (const std::string& name : Written()) EXPECT_FALSE(name.ends_with(".tmp")) << name;
    ASSERT_TRUE(fs::exists(writing.output));
    fs::remove_all(Path("out"));
    fs::create_directory(Path("out"));
  }
}

// Killed at any moment while it replaces an output: that is the old one or the new one, and nothing
// is left beside it after another run.
TEST_F(CliWrittenTest, KilledAtAnyMoment) {
  constexpr int kDrawn = 12;
  std::mt19937 draw(1);
  for (const Writing& writing : All()) {
    if (writing.arguments[0] != "embed" && writing.arguments[0] != "run") continue;
    SCOPED_TRACE(writing.output);
    const auto start = std::chrono::steady_clock::now();
    ASSERT_EQ(Shell("", writing, "> /dev/null").status, 0);
    const auto whole = std::chrono::duration_cast<std::chrono::microseconds>(
        std::chrono::steady_clock::now() - start);
    const std::string wanted = ReadFile(writing.output);
    for (int i = 0; i < kDrawn; ++i) {
      WriteFile(writing.output, "old");
      std::vector<char*> pointers = {const_cast<char*>(ENCORE_CLI_PATH)};
      for (const std::string& a : writing.arguments) {
        pointers.push_back(const_cast<char*>(a.c_str()));
      }
      pointers.push_back(nullptr);
      const pid_t child = ::fork();
      if (child == 0) {
        if (std::freopen("/dev/null", "w", stdout) == nullptr) ::_exit(126);
        ::execv(pointers[0], pointers.data());
        ::_exit(127);
      }
      std::this_thread::sleep_for(whole * static_cast<int>(draw() % 1000) / 1000);
      ::kill(child, SIGKILL);
      int status = 0;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      const std::string found = ReadFile(writing.output);
      EXPECT_TRUE(found == "old" || found == wanted) << found.size();
    }
    ASSERT_EQ(Shell("", writing, "> /dev/null").status, 0);
    EXPECT_EQ(ReadFile(writing.output), wanted);
    for (const std::string& name : Written()) EXPECT_FALSE(name.ends_with(".tmp")) << name;
  }
}

}  // namespace
}  // namespace encore
#endif
