// SPDX-License-Identifier: Apache-2.0
//
// What `encore embed` leaves behind: stopped and resumed runs, outputs that would take the place of
// something else, and numbers that a format does not have.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <limits>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/bf16.h"
#include "nlohmann/json.hpp"
#include "tests/cli/cli_runner.h"
#include "tests/support/text_case.h"

namespace encore {
namespace {

class CliEmbedOutputTest : public CliTest {
 protected:
  std::vector<std::string> Arguments(const std::string& input, const std::string& output,
                                     const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"embed",    "--model", folder_.path(), "--input", input,
                                          "--output", output,    "--max-length", "8"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  CliResult Embed(const std::string& input, const std::string& output,
                  const std::vector<std::string>& more = {}) const {
    return Encore(Arguments(Path(input), Path(output), more));
  }

  // Lines of 100 bytes, each another text.
  static std::string Lines(size_t count) {
    std::string lines;
    for (size_t i = 0; i < count; ++i) {
      std::string line = "tea " + std::to_string(i);
      line.resize(99, ' ');
      lines += line + "\n";
    }
    return lines;
  }

  // Replaces every weight by this number.
  void FillWeights(float value) const {
    std::string bytes = ReadFile(folder_.File("model.safetensors"));
    uint64_t header = 0;
    std::memcpy(&header, bytes.data(), sizeof(header));
    for (size_t at = 8 + header; at + sizeof(value) <= bytes.size(); at += sizeof(value)) {
      std::memcpy(bytes.data() + at, &value, sizeof(value));
    }
    WriteFile(folder_.File("model.safetensors"), bytes);
  }

  void StopBy(const std::vector<int>& signals) const;

  TextFolder folder_;
};

TEST_F(CliEmbedOutputTest, ResumeAddsWhatIsMissing) {
  const size_t first = 700;
  WriteFile(Path("some"), Lines(first));
  WriteFile(Path("all"), Lines(1000));
  for (const char* name : {"v.npy", "v.safetensors", "v.jsonl"}) {
    SCOPED_TRACE(name);
    const std::string whole = std::string("whole-") + name;
    ASSERT_EQ(Embed("all", whole).status, 0);
    ASSERT_EQ(Embed("some", name).status, 0);
    ASSERT_NE(ReadFile(Path(name)), ReadFile(Path(whole)));
    const CliResult resumed = Embed("all", name, {"--resume"});
    EXPECT_EQ(resumed.status, 0) << resumed.err;
    EXPECT_NE(resumed.out.find("700 texts had been done before\n300 texts, "), std::string::npos)
        << resumed.out;
    EXPECT_EQ(ReadFile(Path(name)), ReadFile(Path(whole)));
    EXPECT_EQ(Embed("all", name, {"--resume"}).status, 0);
    EXPECT_EQ(ReadFile(Path(name)), ReadFile(Path(whole)));
    const std::string new_name = std::string("new-") + name;
    EXPECT_EQ(Embed("all", new_name, {"--resume"}).status, 0);
    EXPECT_EQ(ReadFile(Path(new_name)), ReadFile(Path(whole)));
  }
}

TEST_F(CliEmbedOutputTest, ResumeRefusesRowsOfAnotherRun) {
  WriteFile(Path("x"), Lines(40));
  WriteFile(Path("other"), "bread\n" + Lines(39));
  WriteFile(Path("fewer"), Lines(39));
  for (const std::string name : {"v.npy", "v.safetensors", "v.jsonl"}) {
    SCOPED_TRACE(name);
    ASSERT_EQ(Embed("x", name).status, 0);
    const std::string before = ReadFile(Path(name));
    const auto refused = [&](const std::string& input, const std::vector<std::string>& more,
                             const std::vector<std::string>& words) {
      std::vector<std::string> options = {"--resume"};
      options.insert(options.end(), more.begin(), more.end());
      ExpectRefused(Arguments(Path(input), Path(name), options), words);
      EXPECT_EQ(ReadFile(Path(name)), before);
    };
    refused("other", {}, {"--resume", "row 0", "line 1"});
    refused("fewer", {}, {"--resume", "40 rows", "39 texts"});
    refused("x", {"--prompt", "a"}, {"--resume", "--prompt a"});
    refused("x", {"--dimensions", "5"}, {"--resume", "5 columns"});
    for (const std::string& broken :
         {before.substr(0, before.size() - 3), std::string("[1,2]"), "x" + before}) {
      WriteFile(Path(name), broken);
      ExpectRefused(Arguments(Path("x"), Path(name), {"--resume"}), {"--resume", name});
      EXPECT_EQ(ReadFile(Path(name)), broken);
    }
  }
}

std::string Rest(const std::string& bytes) { return bytes.substr(256); }

TEST_F(CliEmbedOutputTest, TypesAreThoseOfQuantizeEmbeddings) {
  WriteFile(Path("x"), "tea\nbread and butter\n");
  ASSERT_EQ(Embed("x", "f32.npy", {"--normalize"}).status, 0);
  std::vector<float> wanted(64);
  const std::string floats = Rest(ReadFile(Path("f32.npy")));
  ASSERT_EQ(floats.size(), wanted.size() * sizeof(float));
  std::memcpy(wanted.data(), floats.data(), floats.size());
  for (const std::string type : {"f16", "int8", "ubinary"}) {
    SCOPED_TRACE(type);
    for (const char* ending : {".npy", ".safetensors", ".jsonl"}) {
      ASSERT_EQ(Embed("x", type + ending, {"--normalize", "--output-type", type}).status, 0);
    }
    const std::string bytes = Rest(ReadFile(Path(type + ".npy")));
    EXPECT_EQ(Rest(ReadFile(Path(type + ".safetensors"))), bytes);
    const std::string lines = ReadFile(Path(type + ".jsonl"));
    const nlohmann::json first = nlohmann::json::parse(lines.substr(0, lines.find('\n')));
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (type == "f16") {
        ASSERT_EQ(bytes.size(), 128u);
        uint16_t half = 0;
        std::memcpy(&half, bytes.data() + 2 * i, 2);
        EXPECT_EQ(half, internal::F32ToF16(wanted[i]));
        if (i < 32) {
          EXPECT_EQ(first[i].get<float>(), internal::F16ToF32(half));
        }
      } else if (type == "int8") {
        ASSERT_EQ(bytes.size(), 64u);
        const int found = static_cast<int8_t>(bytes[i]);
        EXPECT_EQ(found, static_cast<int>(std::floor((wanted[i] + 1) / (2.0f / 255))) - 128)
            << wanted[i];
        if (i < 32) {
          EXPECT_EQ(first[i], found);
        }
      } else {
        ASSERT_EQ(bytes.size(), 8u);
        EXPECT_EQ((bytes[i / 8] >> (7 - i % 8)) & 1, wanted[i] > 0 ? 1 : 0);
        if (i % 8 == 0 && i < 32) {
          EXPECT_EQ(first[i / 8], static_cast<uint8_t>(bytes[i / 8]));
        }
      }
    }
    EXPECT_EQ(Embed("x", type + ".npy", {"--normalize", "--output-type", type, "--resume"}).status,
              0);
    ExpectRefused(Arguments(Path("x"), Path(type + ".npy"), {"--normalize", "--resume"}),
                  {"--resume", type + ".npy"});
  }
  EXPECT_NE(ReadFile(Path("f16.npy")).find("'descr': '<f2'"), std::string::npos);
  EXPECT_NE(ReadFile(Path("int8.npy")).find("'descr': '|i1'"), std::string::npos);
  EXPECT_NE(ReadFile(Path("ubinary.npy"))
                .find("'descr': '|u1', 'fortran_order': False, 'shape': "
                      "(2, 4)"),
            std::string::npos);
  EXPECT_NE(ReadFile(Path("ubinary.safetensors")).find(R"("U8","shape":[2,4])"), std::string::npos);
}

TEST_F(CliEmbedOutputTest, ShardsShareTheInput) {
  WriteFile(Path("x"), Lines(701));
  ASSERT_EQ(Embed("x", "whole.npy").status, 0);
  const std::string whole = Rest(ReadFile(Path("whole.npy")));
  constexpr size_t kRow = 32 * sizeof(float);
  std::string together(whole.size(), '?');
  for (size_t shard = 0; shard < 3; ++shard) {
    const std::string name = std::to_string(shard) + ".npy";
    ASSERT_EQ(Embed("x", name, {"--shard", std::to_string(shard + 1) + "/3"}).status, 0);
    const std::string part = Rest(ReadFile(Path(name)));
    for (size_t row = 0; row * kRow < part.size(); ++row) {
      together.replace((row * 3 + shard) * kRow, kRow, part, row * kRow, kRow);
    }
  }
  EXPECT_EQ(together, whole);
  // A run that was interrupted goes on within its shard, and within no other.
  WriteFile(Path("some"), Lines(400));
  ASSERT_EQ(Embed("some", "2.npy", {"--shard", "3/3"}).status, 0);
  const CliResult resumed = Embed("x", "2.npy", {"--shard", "3/3", "--resume"});
  EXPECT_EQ(resumed.out.substr(0, 30), "133 texts had been done before") << resumed.out;
  ASSERT_EQ(Embed("x", "again.npy", {"--shard", "3/3"}).status, 0);
  EXPECT_EQ(ReadFile(Path("2.npy")), ReadFile(Path("again.npy")));
  ExpectRefused(Arguments(Path("x"), Path("2.npy"), {"--shard", "2/3", "--resume"}),
                {"--resume", "--shard"});
  for (const char* wrong : {"0/3", "4/3", "2", "2/", "/3", "a/3", "2/3x", "-1/3"}) {
    ExpectRefused(Arguments(Path("x"), Path("y.npy"), {"--shard", wrong}), {"--shard", wrong});
  }
}

TEST_F(CliEmbedOutputTest, JsonLinesInAndOutByField) {
  WriteFile(Path("x.jsonl"),
            "{\"id\": 7, \"body\": \"tea\"}\n{\"body\": \"bread\"}\n"
            "{\"id\": \"a,[7\", \"body\": \"butter\"}\n");
  const std::vector<std::string> more = {"--field", "body", "--output-field", "my \"vector\""};
  ASSERT_EQ(Embed("x.jsonl", "v.jsonl", more).status, 0);
  ASSERT_EQ(Embed("x.jsonl", "plain.jsonl", {"--field", "body"}).status, 0);
  std::istringstream objects(ReadFile(Path("v.jsonl")));
  std::istringstream arrays(ReadFile(Path("plain.jsonl")));
  const std::vector<nlohmann::json> ids = {7, nullptr, "a,[7"};
  for (const nlohmann::json& id : ids) {
    std::string line;
    ASSERT_TRUE(std::getline(objects, line));
    const nlohmann::json object = nlohmann::json::parse(line);
    ASSERT_TRUE(std::getline(arrays, line));
    EXPECT_EQ(object["my \"vector\""], nlohmann::json::parse(line));
    EXPECT_EQ(object.size(), id.is_null() ? 1u : 2u);
    if (!id.is_null()) {
      EXPECT_EQ(object["id"], id);
    }
  }
  const std::string before = ReadFile(Path("v.jsonl"));
  std::vector<std::string> again = more;
  again.emplace_back("--resume");
  EXPECT_EQ(Embed("x.jsonl", "v.jsonl", again).status, 0);
  EXPECT_EQ(ReadFile(Path("v.jsonl")), before);
  ExpectRefused(Arguments(Path("x.jsonl"), Path("v.jsonl"), {"--field", "body", "--resume"}),
                {"--resume", "v.jsonl"});
  ExpectRefused(Arguments(Path("x.jsonl"), Path("v.npy"), more), {"--output-field", ".jsonl"});
}

#if defined(__linux__)
// Stops a run that waits for more of its standard input: everything else there has been computed.
void CliEmbedOutputTest::StopBy(const std::vector<int>& signals) const {
  const std::string lines = Lines(4000);  // more than encore's buffer and the pipe's hold
  WriteFile(Path("all"), lines);
  ASSERT_EQ(Embed("all", "whole.npy").status, 0);
  std::filesystem::remove(Path("v.npy"));
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t process = ::fork();
  ASSERT_GE(process, 0);
  if (process == 0) {
    for (const int signal : signals) std::signal(signal, SIG_DFL);
    ::dup2(ends[0], 0);
    ::close(ends[0]);
    ::close(ends[1]);
    const int out = ::open(Path("out").c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
    const int err = ::open(Path("err").c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
    ::dup2(out, 1);
    ::dup2(err, 2);
    std::vector<std::string> arguments = Arguments("-", Path("v.npy"));
    std::vector<char*> pointers = {const_cast<char*>("encore")};
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    ::execv(ENCORE_CLI_PATH, pointers.data());
    ::_exit(127);
  }
  ::close(ends[0]);
  ASSERT_EQ(::write(ends[1], lines.data(), lines.size()), static_cast<ssize_t>(lines.size()));
  for (int unread = 1; unread > 0;) {
    ASSERT_EQ(::ioctl(ends[1], FIONREAD, &unread), 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  for (const int signal : signals) EXPECT_EQ(::kill(process, signal), 0);
  ::close(ends[1]);
  int status = 0;
  ASSERT_EQ(::waitpid(process, &status, 0), process);
  ASSERT_TRUE(WIFEXITED(status));
  const std::string err = ReadFile(Path("err"));
  EXPECT_EQ(WEXITSTATUS(status), 3) << err;
  EXPECT_NE(err.find("v.npy has the vectors of the first "), std::string::npos) << err;
  EXPECT_NE(err.find("--resume"), std::string::npos) << err;

  const size_t row_bytes = 32 * sizeof(float);
  const std::string part = ReadFile(Path("v.npy"));
  const std::string whole = ReadFile(Path("whole.npy"));
  ASSERT_GT(part.size(), 256u);
  ASSERT_LT(part.size(), whole.size());
  EXPECT_EQ((part.size() - 256) % row_bytes, 0u);
  EXPECT_NE(part.find("'shape': (" + std::to_string((part.size() - 256) / row_bytes) + ", 32)"),
            std::string::npos);
  EXPECT_EQ(part.substr(256), whole.substr(256, part.size() - 256));
  EXPECT_EQ(Embed("all", "v.npy", {"--resume"}).status, 0);
  EXPECT_EQ(ReadFile(Path("v.npy")), whole);
}

TEST_F(CliEmbedOutputTest, AStoppedRunKeepsWhatIsDone) { StopBy({SIGINT}); }
TEST_F(CliEmbedOutputTest, AKilledRunKeepsWhatIsDone) { StopBy({SIGTERM}); }
// Both the system and the shell say so, and systemd says SIGTERM before.
TEST_F(CliEmbedOutputTest, AClosedTerminalKeepsWhatIsDone) {
  StopBy({SIGHUP, SIGHUP, SIGHUP});
  StopBy({SIGTERM, SIGHUP});
}
#endif

TEST_F(CliEmbedOutputTest, TakesThePlaceOfNothingThatItReads) {
  WriteFile(Path("x.jsonl"), "\"tea\"\n");
  std::filesystem::create_hard_link(Path("x.jsonl"), Path("hard.jsonl"));
  std::filesystem::create_symlink(Path("x.jsonl"), Path("soft.jsonl"));
  for (const char* name : {"x.jsonl", "hard.jsonl", "soft.jsonl"}) {
    ExpectRefused(Arguments(Path("x.jsonl"), Path(name)), {"--output", name, "--input"});
    ExpectRefused(Arguments(Path(name), Path("x.jsonl")), {"--output", "x.jsonl", "--input"});
  }
  ExpectRefused(Arguments(Path("x.jsonl"), folder_.File("model.safetensors")),
                {"--output", "model.safetensors", "--model"});
  EXPECT_EQ(ReadFile(Path("x.jsonl")), "\"tea\"\n");
#if defined(__linux__)
  const std::string command = "'" ENCORE_CLI_PATH "' embed --model '" + folder_.path() +
                              "' --input - --jsonl --output '" + Path("x.jsonl") + "' < '" +
                              Path("x.jsonl") + "' 2> '" + Path("err") + "'";
  const int status = std::system(command.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 2);
  EXPECT_EQ(ReadFile(Path("x.jsonl")), "\"tea\"\n");
#endif
}

TEST_F(CliEmbedOutputTest, JsonHasNoNan) {
  FillWeights(std::numeric_limits<float>::quiet_NaN());
  WriteFile(Path("x.csv"), "text\n\ntea\n");
  ExpectRefused(Arguments(Path("x.csv"), Path("v.jsonl")), {"line 3", "text 1", "nan", ".npy"});
  ExpectRefused(Arguments(Path("x.csv"), Path("v.npy"), {"--output-type", "int8"}), {"text 1"});
  EXPECT_EQ(Files(), std::vector<std::string>{"x.csv"});
  EXPECT_EQ(Embed("x.csv", "v.npy").status, 0);
}

TEST_F(CliEmbedOutputTest, WaitingForTheInputIsNoWork) {
  const std::string command =
      "(echo tea; sleep 1; echo bread) | '" ENCORE_CLI_PATH "' embed --model '" + folder_.path() +
      "' --input - --output '" + Path("v.npy") + "' > '" + Path("out") + "'";
  ASSERT_EQ(std::system(command.c_str()), 0);
  const std::string out = ReadFile(Path("out"));
  const size_t at = out.find(" in ");
  ASSERT_NE(at, std::string::npos) << out;
  const double seconds = std::strtod(out.c_str() + at + 4, nullptr);
  const size_t comma = out.find("), ");
  ASSERT_NE(comma, std::string::npos) << out;
  const double waited = std::strtod(out.c_str() + comma + 3, nullptr);
  // Two texts take a millisecond; the pipe opens while the model does.
  EXPECT_LT(seconds, 0.5) << out;
  EXPECT_GT(waited, 0.2) << out;
  EXPECT_NE(out.find("s of waiting for the input"), std::string::npos) << out;
}

}  // namespace
}  // namespace encore
