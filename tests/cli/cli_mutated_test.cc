// SPDX-License-Identifier: Apache-2.0
//
// The commands on the folders of tests/data with random damage: each run ends, in bounded time and
// memory, with status 0 or with one sentence. Run n is the same everywhere and alone:
//
//   ENCORE_MUTATED_RUNS=5000      that many in place of a few
//   ENCORE_MUTATED_SEED=17        the first of them; a failure names its number
//   ENCORE_MUTATED_CLI=.../encore another build of the command line, such as one with sanitizers

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/cli/cli_runner.h"
#include "tests/fuzz/mutate.h"
#include "tests/support/sanitizers.h"

namespace encore {
namespace {

namespace fs = std::filesystem;

constexpr size_t kDefaultRuns = 24;
constexpr int kSeconds = 60;  // of a run, which takes a tenth of one; with sanitizers a second
constexpr int kMebibytes = 4096;

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, 10);
}

std::string BytesOf(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void Write(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// Model folders of tests/data, in the order of their names.
std::vector<fs::path> Folders() {
  std::vector<fs::path> folders;
  for (const char* parent : {"models", "text", "sentences"}) {
    for (const auto& entry : fs::directory_iterator(fs::path(ENCORE_TEST_DATA_DIR) / parent)) {
      if (fs::exists(entry.path() / "config.json")) folders.push_back(entry.path());
    }
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

// A copy; folders of models alone get a tokenizer.
void CopyFolder(const fs::path& from, const fs::path& to) {
  fs::copy(from, to, fs::copy_options::recursive);
  for (const auto& entry : fs::recursive_directory_iterator(to)) {
    fs::permissions(entry.path(), fs::perms::owner_write, fs::perm_options::add);
  }
  fs::remove(to / "expected.safetensors");
  fs::remove(to / "expected.json");
  if (fs::exists(to / "tokenizer.json")) return;
  std::string vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";  // their models have 120 tokens
  for (char letter = 'a'; letter <= 'z'; ++letter) {
    for (const char* mark : {"", "##"}) vocabulary += std::string(mark) + letter + "\n";
  }
  Write(to / "vocab.txt", vocabulary);
}

class Damage {
 public:
  explicit Damage(uint64_t seed) : random_(seed) {}

  size_t Below(size_t n) { return static_cast<size_t>(random_() % n); }

  // One to three changes of the folder's files.
  void Apply(const fs::path& folder) {
    for (size_t changes = 1 + Below(3); changes > 0; --changes) {
      std::vector<fs::path> files;
      for (const auto& entry : fs::recursive_directory_iterator(folder)) {
        if (entry.is_regular_file()) files.push_back(entry.path());
      }
      if (files.empty()) return;
      std::sort(files.begin(), files.end());
      Change(files[Below(files.size())]);
    }
  }

 private:
  void Change(const fs::path& file) {
    std::string bytes = BytesOf(file);
    const nlohmann::json json = nlohmann::json::parse(bytes, nullptr, false);
    const size_t kind = Below(16);
    if (kind == 0) {
      fs::remove(file);
      return;
    }
    if (kind == 1) {
      bytes.resize(Below(bytes.size() + 1));
    } else if (kind < 11 && !json.is_discarded()) {
      bytes = ChangedJson(json);
    } else if (file.extension() == ".safetensors" && kind < 14) {
      bytes = ChangedHeader(bytes);
    } else {
      bytes = fuzz::Mutator({bytes}, random_()).Next();
    }
    Write(file, bytes);
  }

  // One value is another, or is gone.
  std::string ChangedJson(nlohmann::json json) {
    nlohmann::json* at = &json;
    while (at->is_structured() && !at->empty()) {
      auto child = at->begin();
      std::advance(child, Below(std::min<size_t>(at->size(), kMostMembers)));
      const bool stop = !child->is_structured() || Below(4) == 0;
      if (stop && Below(4) == 0) {
        at->erase(child);
        break;
      }
      at = &*child;
      if (stop) {
        *at = OtherValue(*at);
        break;
      }
    }
    return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }

  nlohmann::json OtherValue(const nlohmann::json& value) {
    if (value.is_number_integer() && Below(2) == 0) {
      const auto number = static_cast<int64_t>(value.get<uint64_t>() & 0xFFFFFFFF);
      const int64_t others[] = {number + 1, number - 1, number * 2, -number, number / 2};
      return others[Below(std::size(others))];
    }
    static const nlohmann::json kOthers = {nullptr,
                                           true,
                                           false,
                                           0,
                                           1,
                                           -1,
                                           65536,
                                           2147483648,
                                           18446744073709551615u,
                                           9223372036854775807,
                                           1e300,
                                           1e-45,
                                           0.5,
                                           "",
                                           "gelu",
                                           "\xED\x9F\xBF",
                                           nlohmann::json::array(),
                                           nlohmann::json::object(),
                                           {1, 2},
                                           {{"type", "Sequence"}}};
    return kOthers[Below(kOthers.size())];
  }

  // The length or a value of the JSON before the tensors.
  std::string ChangedHeader(const std::string& bytes) {
    if (bytes.size() < 8) return bytes;
    uint64_t length = 0;
    std::memcpy(&length, bytes.data(), sizeof(length));
    if (length > bytes.size() - 8) return bytes;
    const std::string header = bytes.substr(8, length);
    const nlohmann::json json = nlohmann::json::parse(header, nullptr, false);
    const std::string changed = json.is_discarded() || Below(4) == 0
                                    ? fuzz::Mutator({header}, random_()).Next()
                                    : ChangedJson(json);
    length = Below(16) == 0 ? random_() >> Below(64) : changed.size();
    std::string out(8, '\0');
    std::memcpy(out.data(), &length, sizeof(length));
    return out + changed + bytes.substr(8 + header.size());
  }

  static constexpr size_t kMostMembers = 4096;
  std::mt19937_64 random_;
};

class CliMutatedTest : public CliTest {
 protected:
  // Draws a folder, damage and a command, and runs it.
  void RunOne(const std::string& cli, uint64_t seed) {
    Damage damage(seed);
    const std::vector<fs::path> folders = Folders();
    const TemporaryFolder place;
    const fs::path folder = place.path() / "model";
    const fs::path& base = folders[damage.Below(folders.size())];
    CopyFolder(base, folder);
    damage.Apply(folder);
    Write(place.path() / "x.txt", "the harbour\n\ncaf\u00e9 [SEP] \U0001F600\n");
    const std::string model = folder.string();
    const std::string texts = place.File("x.txt");
    const std::vector<std::vector<std::string>> commands = {
        {"embed", "--model", model, "--input", texts, "--output", place.File("v.jsonl")},
        {"embed", "--model", model, "--input", texts, "--output", place.File("v.npy"),
         "--precision", "int8"},
        {"tokenize", "--model", model, "--input", texts},
        {"info", model},
        {"convert", model, place.File("out"), "--precision", "bf16"},
        {"rerank", "--model", model, "--input", texts, "--query", "tea"}};
    const std::string name = base.filename().string();
    const bool scores = name == "reranker" || name.ends_with("_1");  // heads of one label
    const std::vector<std::string>& command =
        commands[damage.Below(commands.size() - (scores ? 0 : 1))];

    // Sanitizers reserve terabytes of addresses; they have a limit of their own.
    const std::string sanitizers =
        std::getenv("ENCORE_MUTATED_CLI") != nullptr
            ? "export ASAN_OPTIONS=hard_rss_limit_mb=" + std::to_string(kMebibytes) + "; "
            : "";
    const std::string limit =
        kSanitized || !sanitizers.empty() ? "" : "ulimit -v " + std::to_string(kMebibytes * 1024);
    std::vector<std::string> arguments = {
        "-c", sanitizers + limit + "\nexec timeout " + std::to_string(kSeconds) + " \"$0\" \"$@\"",
        cli};
    arguments.insert(arguments.end(), command.begin(), command.end());
    const CliResult result = Run("/bin/sh", arguments);
    ++statuses_[result.status < 0 ? 4 : std::min(result.status, 4)];
    const bool sentence = std::count(result.err.begin(), result.err.end(), '\n') == 1 &&
                          result.err.starts_with("encore " + command[0] + ": ");
    const bool refused =
        sentence && (result.status == 2 || (result.status == 3 && command[0] == "tokenize"));
    EXPECT_TRUE(result.status == 0 || refused)
        << "seed " << seed << ", " << command[0] << ": status " << result.status << "\n"
        << result.err.substr(0, 4000);
    EXPECT_TRUE(result.status != 2 || result.out.empty()) << "seed " << seed << "\n" << result.out;
  }

  size_t statuses_[5] = {};
};

TEST_F(CliMutatedTest, EndsInOneSentence) {
  const char* const other = std::getenv("ENCORE_MUTATED_CLI");
  const std::string cli = other == nullptr ? ENCORE_CLI_PATH : other;
  const uint64_t first = FromEnvironment("ENCORE_MUTATED_SEED", 1);
  const uint64_t runs = FromEnvironment("ENCORE_MUTATED_RUNS", kDefaultRuns);
  for (uint64_t i = 0; i < runs; ++i) RunOne(cli, first + i);
  std::printf("%zu done, %zu refused, %zu refused after some output\n", statuses_[0], statuses_[2],
              statuses_[3]);
  if (runs >= kDefaultRuns) {
    EXPECT_GT(statuses_[0], 0u) << "all damage was refused: is the command there?";
    EXPECT_GT(statuses_[2], 0u) << "no damage was noticed";
  }
}

}  // namespace
}  // namespace encore
