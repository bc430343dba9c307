// SPDX-License-Identifier: Apache-2.0
//
// `encore embed --resume`: a run that goes on gives what one run gives, and nothing that was made
// of other texts, by other settings or another model is taken for done.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/cli/cli_runner.h"
#include "tests/support/sanitizers.h"
#include "tests/support/text_case.h"
#include "tools/encore/resume_record.h"

#if !defined(_WIN32)
#include <sys/wait.h>
#include <unistd.h>
#endif

namespace encore {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

struct Format {
  std::string output;
  Strings options = {};
};

const std::vector<Format> kFormats = {{"v.npy"},
                                      {"v.safetensors"},
                                      {"v.jsonl"},
                                      {"field.jsonl", {"--output-field", "vector"}},
                                      {"f16.npy", {"--output-type", "f16"}},
                                      {"int8.npy", {"--output-type", "int8", "--normalize"}},
                                      {"bits.npy", {"--output-type", "ubinary"}},
                                      {"int8.jsonl", {"--output-type", "int8", "--normalize"}},
                                      {"shard.npy", {"--shard", "2/3"}}};

class CliResumeTest : public CliTest {
 protected:
  Strings Arguments(const std::string& input, const Format& format,
                    const Strings& more = {}) const {
    Strings arguments = {"embed",     "--model",  folder_.path(),     "--input",
                         Path(input), "--output", Path(format.output)};
    arguments.insert(arguments.end(), format.options.begin(), format.options.end());
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  CliResult Embed(const std::string& input, const Format& format, const Strings& more = {}) const {
    return Encore(Arguments(input, format, more));
  }
  // Refused with these words, and the output and its record stay.
  void ExpectNoResume(const std::string& input, const Format& format, Strings more,
                      const Strings& words) {
    const std::string output = ReadFile(Path(format.output));
    const std::string record = ReadFile(Path(format.output + ".resume"));
    more.emplace_back("--resume");
    Strings wanted = words;
    wanted.emplace_back("--resume");
    ExpectRefused(Arguments(input, format, more), wanted);
    EXPECT_EQ(ReadFile(Path(format.output)), output);
    EXPECT_EQ(ReadFile(Path(format.output + ".resume")), record);
  }
  void WriteLines(const std::string& name, const Strings& texts) const {
    std::string lines;
    for (const std::string& text : texts) lines += text + "\n";
    WriteFile(Path(name), lines);
  }
  static Strings Texts(size_t count) {
    Strings texts;
    for (size_t i = 0; i < count; ++i) texts.push_back("tea and bread " + std::to_string(i));
    return texts;
  }

  TextFolder folder_;
};

constexpr size_t kDone = 120;

// One edit of a text among the first `done`, by which these are others. Its name is for messages.
std::string Edit(Strings* texts, size_t done, std::mt19937* draw) {
  const auto drawn = [&](size_t below) { return static_cast<size_t>((*draw)()) % below; };
  const size_t at = drawn(done);
  const auto place = texts->begin() + static_cast<ptrdiff_t>(at);
  const std::string where = " at " + std::to_string(at);
  switch (drawn(7)) {
    case 0:
      *place += " x";
      return "longer" + where;
    case 1:
      place->back() = place->back() == 'x' ? 'y' : 'x';
      return "another letter" + where;
    case 2:
      place->insert(drawn(place->size()), " ");  // the same tokens, perhaps
      return "a blank" + where;
    case 3: {
      const size_t other = (at + 1 + drawn(done - 1)) % done;
      std::swap(*place, (*texts)[other]);
      return "swapped" + where + " and " + std::to_string(other);
    }
    case 4:
      texts->erase(place);
      return "removed" + where;
    case 5:
      texts->insert(place, "new");
      return "added" + where;
    default:
      std::rotate(place, place + 1, texts->end());  // the text goes to the end
      return "moved" + where;
  }
}

TEST_F(CliResumeTest, EveryEditAmongTheDoneTextsIsNoticed) {
  constexpr int kEdits = kSlow ? 3 : 10;
  std::mt19937 draw(1);
  const Strings texts = Texts(200);
  WriteLines("some", Strings(texts.begin(), texts.begin() + kDone));
  WriteLines("all", texts);
  for (const Format& format : kFormats) {
    SCOPED_TRACE(format.output);
    ASSERT_EQ(Embed("all", format).status, 0);
    const std::string whole = ReadFile(Path(format.output));
    for (int i = 0; i < kEdits; ++i) {
      ASSERT_EQ(Embed("some", format).status, 0);
      Strings edited = texts;
      const std::string what = Edit(&edited, kDone, &draw);
      SCOPED_TRACE(what);
      WriteLines("edited", edited);
      // A shard sees the edits of its own texts, and all that moves these.
      const CliResult result = Embed("edited", format, {"--resume"});
      if (format.output == "shard.npy" && result.status == 0) {
        Format again = format;
        again.output = "again.npy";
        ASSERT_EQ(Embed("edited", again).status, 0);
        EXPECT_EQ(ReadFile(Path(format.output)), ReadFile(Path(again.output)));
        continue;
      }
      EXPECT_EQ(result.status, 2) << result.out;
      EXPECT_TRUE(Has(result.err, "--resume")) << result.err;
    }
    // What was not done yet may change, and what was done is not done again.
    ASSERT_EQ(Embed("some", format).status, 0);
    const CliResult result = Embed("all", format, {"--resume"});
    EXPECT_TRUE(Has(result.out, "texts had been done before")) << result.err;
    EXPECT_EQ(ReadFile(Path(format.output)), whole);
    const auto written = fs::last_write_time(Path(format.output));
    EXPECT_EQ(Embed("all", format, {"--resume"}).status, 0);
    EXPECT_EQ(fs::last_write_time(Path(format.output)), written);
    EXPECT_EQ(ReadFile(Path(format.output)), whole);
  }
}

TEST_F(CliResumeTest, EverySettingOfTheRowsIsNoticed) {
  WriteLines("x", Texts(20));
  const Format format = {"v.npy"};
  const std::vector<Strings> settings = {
      {"--prompt", "a"},       {"--no-prompt"},           {"--normalize"},
      {"--no-normalize"},      {"--max-length", "7"},     {"--dimensions", "32"},
      {"--plain-text"},        {"--replace-invalid"},     {"--precision", "bf16"},
      {"--precision", "int8"}, {"--output-type", "int8"}, {"--shard", "1/1"}};
  ASSERT_EQ(Embed("x", format).status, 0);
  for (const Strings& more : settings) {
    SCOPED_TRACE(more[0]);
    if (more[0] == "--dimensions") {  // all there are: what the folder says
      EXPECT_EQ(Embed("x", format, {"--dimensions", "32", "--resume"}).status, 0);
      continue;
    }
    ExpectNoResume("x", format, more, {more[0] == "--output-type" ? "v.npy" : more[0].substr(5)});
  }
  // Those that change no row.
  for (const Strings& more : std::vector<Strings>{{"--threads", "1"},
                                                  {"--batch-tokens", "64"},
                                                  {"--on-long", "error"},
                                                  {"--cache", Path("cache")}}) {
    Strings resumed = more;
    resumed.emplace_back("--resume");
    const CliResult result = Embed("x", format, resumed);
    EXPECT_EQ(result.status, 0) << result.err;
  }
  const Format ids = {"v.jsonl", {"--output-field", "v"}};
  WriteFile(Path("x.jsonl"), "{\"text\": \"tea\", \"id\": 1}\n\"bread\"\n");
  ASSERT_EQ(Embed("x.jsonl", ids).status, 0);
  WriteFile(Path("x.jsonl"), "{\"text\": \"tea\", \"id\": 1}\n{\"text\": \"bread\", \"id\": 2}\n");
  ExpectNoResume("x.jsonl", ids, {}, {"--output"});
}

TEST_F(CliResumeTest, EveryFileOfTheModelIsNoticed) {
  folder_.WriteModules();
  folder_.Write("vocab.txt", "a\n");  // tokenizer.json comes before it
  WriteLines("x", Texts(20));
  const Format format = {"v.npy"};
  ASSERT_EQ(Embed("x", format).status, 0);
  size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder_.path())) {
    if (!entry.is_regular_file()) continue;
    const std::string path = entry.path().string();
    const std::string bytes = ReadFile(path);
    if (path.ends_with(".json") || path.ends_with(".txt")) {
      WriteFile(path, bytes + "\n");
    } else if (path.ends_with(".safetensors")) {
      std::string other = bytes;  // of one value the last bits
      other[other.size() - 4] = static_cast<char>(other[other.size() - 4] ^ 1);
      WriteFile(path, other);
    } else {
      continue;
    }
    ++files;
    ExpectNoResume("x", format, {}, {entry.path().filename().string(), "--model"});
    WriteFile(path, bytes);
  }
  EXPECT_GE(files, 7u);
  // Of a large file size and time count.
  const std::string large(2 << 20, 'w');
  folder_.Write("more.safetensors", large);
  ASSERT_EQ(Embed("x", format).status, 0);
  for (const bool same : {false, true}) {
    folder_.Write("more.safetensors", same ? large : large + "w");
    ExpectNoResume("x", format, {}, {"more.safetensors", "--model"});
  }
  fs::remove(folder_.path() + "/more.safetensors");
  ASSERT_EQ(Embed("x", format).status, 0);
  folder_.Write("README.md", "read me");
  folder_.Write("x.txt", ReadFile(Path("x")) + "one more\n");  // no file that a model has
  Strings arguments = Arguments("x", format, {"--resume"});
  EXPECT_EQ(Encore(arguments).status, 0);
  std::replace(arguments.begin(), arguments.end(), Path("x"), folder_.path() + "/x.txt");
  EXPECT_EQ(Encore(arguments).status, 0);
}

TEST_F(CliResumeTest, AnOutputThatWasChangedIsNoticed) {
  std::mt19937 draw(1);
  WriteLines("x", Texts(40));
  for (const Format& format : kFormats) {
    SCOPED_TRACE(format.output);
    ASSERT_EQ(Embed("x", format).status, 0);
    const std::string output = ReadFile(Path(format.output));
    for (int i = 0; i < 6; ++i) {
      std::string changed = output;
      const size_t at = draw() % changed.size();
      changed[at] = static_cast<char>(changed[at] ^ (1 << draw() % 8));
      if (i == 0) changed += changed.substr(256);
      if (i == 1) changed.resize(changed.size() / 2);
      if (i == 2) changed.clear();
      WriteFile(Path(format.output), changed);
      ExpectNoResume("x", format, {}, {format.output});
    }
    WriteFile(Path(format.output), output);
    EXPECT_EQ(Embed("x", format, {"--resume"}).status, 0);
    // Of another command, or of an encore that noted nothing.
    fs::remove(Path(format.output + ".resume"));
    ExpectNoResume("x", format, {}, {format.output + ".resume"});
  }
}

TEST_F(CliResumeTest, AFileOfSomebodyElseIsNoRecord) {
  WriteLines("x", Texts(3));
  for (const char* other :
       {"diary", "{\"encore_resume\": 2}\n", "{}\n", "[]", "\n",
        R"({"encore_resume":1,"rows":-1,"texts":"0","output":"0","settings":{}})"
        "\n"}) {
    WriteFile(Path("v.npy.resume"), other);
    ExpectRefused(Arguments("x", {"v.npy"}), {"v.npy.resume"});
    EXPECT_EQ(ReadFile(Path("v.npy.resume")), other);
    EXPECT_FALSE(fs::exists(Path("v.npy")));
  }
  fs::rename(Path("x"), Path("v.npy.resume"));
  ExpectRefused(Arguments("v.npy.resume", {"v.npy"}), {"v.npy.resume", "--input"});
}

// The output on disk has a record at every moment of every run, whichever was ended where.
TEST_F(CliResumeTest, EveryEndBetweenTheTwoFilesLeavesARecord) {
  using tool::ResumeFile;
  using tool::ResumeRecord;
  const std::string output = Path("v.npy");
  const auto record = [](uint64_t number) {
    return ResumeRecord{.rows = number, .texts = 0, .output = number, .settings = {}};
  };
  const auto found = [&] {
    Strings numbers;
    const ResumeFile file(output);
    for (uint64_t i = 1; i < 10; ++i) {
      if (file.Find(i, i)) numbers.push_back(std::to_string(i));
    }
    return numbers;
  };
  const auto write = [&](uint64_t number, const std::optional<ResumeRecord>& before) {
    ResumeFile file(output);
    EXPECT_TRUE(file.Write(record(number), before).ok());
    return file;
  };
  write(1, {}).DropOthers(record(1));  // a whole run: the output is the first
  EXPECT_EQ(found(), Strings({"1"}));
  (void)write(2, record(1));  // a resumed run that ends before its output is there
  (void)write(3, {});         // and two without --resume
  (void)write(4, {});
  EXPECT_EQ(found(), Strings({"1", "2", "3", "4"}));
  (void)write(5, record(1));  // a resumed run knows whose record it needs
  EXPECT_EQ(found(), Strings({"1", "5"}));
  (void)write(6, {});  // its output is there; it ends before the others are dropped
  EXPECT_EQ(found(), Strings({"1", "5", "6"}));
  write(7, record(6)).DropOthers(record(7));
  EXPECT_EQ(found(), Strings({"7"}));
}

TEST_F(CliResumeTest, AnOutputWhoseRunsEndedBetweenTheTwoFilesIsResumed) {
  const Format format = {"v.npy"};
  const Strings texts = Texts(30);
  WriteLines("some", Strings(texts.begin(), texts.begin() + 10));
  WriteLines("all", texts);
  ASSERT_EQ(Embed("all", format).status, 0);
  const std::string whole = ReadFile(Path("v.npy"));
  const std::string other = ReadFile(Path("v.npy.resume"));
  ASSERT_EQ(Embed("some", format).status, 0);
  const std::string own = ReadFile(Path("v.npy.resume"));
  EXPECT_EQ(std::count(own.begin(), own.end(), '\n'), 1);
  // Neither the last record nor the one before it is the output's.
  WriteFile(Path("v.npy.resume"), own + other + other);
  EXPECT_EQ(Embed("all", format, {"--resume"}).status, 0);
  EXPECT_EQ(ReadFile(Path("v.npy")), whole);
}

#if !defined(_WIN32)
// Ended at drawn moments, however it is, until all is done.
TEST_F(CliResumeTest, EndedAtAnyMomentARunGoesOn) {
  constexpr int kEnds[] = {SIGKILL, SIGTERM, SIGINT, SIGHUP};
  std::mt19937 draw(1);
  constexpr int kAttempts = kSlow ? 6 : 24;
  WriteLines("all", Texts(kSlow ? 1000 : 5000));
  for (const Format& format : {kFormats[0], kFormats[3], kFormats[5]}) {
    SCOPED_TRACE(format.output);
    const auto start = std::chrono::steady_clock::now();
    ASSERT_EQ(Embed("all", format).status, 0);
    const auto time = std::chrono::duration_cast<std::chrono::microseconds>(
        std::chrono::steady_clock::now() - start);
    const std::string whole = ReadFile(Path(format.output));
    fs::remove(Path(format.output));
    Strings arguments = Arguments("all", format, {"--resume"});
    std::vector<char*> pointers = {const_cast<char*>(ENCORE_CLI_PATH)};
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    size_t kept = 0;
    // More and later ones on a machine that has become slower meanwhile.
    for (int i = 0; i < kAttempts || (kept == 0 && i < 240); ++i) {
      if (i % 12 == 0) fs::remove(Path(format.output));
      const pid_t child = ::fork();
      ASSERT_GE(child, 0);
      if (child == 0) {
        if (std::freopen("/dev/null", "w", stdout) == nullptr) ::_exit(126);
        if (std::freopen("/dev/null", "w", stderr) == nullptr) ::_exit(126);
        ::execv(pointers[0], pointers.data());
        ::_exit(127);
      }
      std::this_thread::sleep_for(time * (1 + i / kAttempts) * static_cast<int>(draw() % 1000) /
                                  1000);
      ::kill(child, kEnds[draw() % 4]);
      int status = 0;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      if (WIFEXITED(status)) {
        EXPECT_TRUE(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 2 ||
                    WEXITSTATUS(status) == 3)
            << WEXITSTATUS(status);
        kept += WEXITSTATUS(status) == 3 ? 1 : 0;
      }
    }
    EXPECT_GT(kept, 0u);
    const CliResult result = Encore(arguments);
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(ReadFile(Path(format.output)), whole);
  }
}
#endif

}  // namespace
}  // namespace encore
