// SPDX-License-Identifier: Apache-2.0
//
// The files of a folder as the system gives them: links that lead nowhere, files that are too
// large, that cannot be read or that are pointers of git-lfs, and weights that are shortened while
// they are used. Each is an error that names the file; none is taken for a file that is absent.

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "encore/text_encoder.h"
#include "engine/io/folder.h"
#include "tests/support/safetensors_bytes.h"
#include "tests/support/sanitizers.h"

namespace encore {
namespace {

namespace fs = std::filesystem;

// Every kind of file that decides about vectors.
constexpr const char* kFiles[] = {"modules.json",
                                  "config.json",
                                  "model.safetensors",
                                  "tokenizer.json",
                                  "tokenizer_config.json",
                                  "sentence_bert_config.json",
                                  "config_sentence_transformers.json",
                                  "1_Pooling/config.json",
                                  "2_Dense/config.json",
                                  "2_Dense/model.safetensors"};

class FolderFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    fs::copy(ENCORE_TEST_DATA_DIR "/sentences/sentence_t5", path(), fs::copy_options::recursive);
  }

  std::string path() const { return folder_.File("model"); }
  std::string File(const std::string& name) const { return path() + "/" + name; }
  Status Opened() const { return TextEncoder::Open(path()).status(); }

  // What opening says while `change` has been done to the file.
  Status With(const std::string& name, const std::function<void(const std::string&)>& change) {
    const std::string kept = folder_.File("kept");
    fs::rename(File(name), kept);
    change(File(name));
    Status status = Opened();
    fs::remove_all(File(name));
    fs::rename(kept, File(name));
    EXPECT_TRUE(Opened().ok()) << name;
    return status;
  }

  // The status of a child process that runs this: what it returns, or 1000 + the signal.
  static int InChild(const std::function<int()>& run) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(run());
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
  }

  const TemporaryFolder folder_;
};

TEST_F(FolderFilesTest, LinksThatLeadNowhereAreErrors) {
  for (const std::string name : kFiles) {
    const auto link = [](const std::string& file) { fs::create_symlink("../gone/blob", file); };
    EXPECT_TRUE(FailsWith(With(name, link), {name, "is a link to '../gone/blob'"}, ErrorCode::kIo));
  }
  for (const std::string name : {"1_Pooling", "2_Dense"}) {
    const auto link = [](const std::string& file) { fs::create_symlink("gone", file); };
    EXPECT_TRUE(FailsWith(With(name, link), {name, "is a link to 'gone'"}, ErrorCode::kIo));
  }
  fs::create_symlink("gone", folder_.File("link"));
  EXPECT_TRUE(
      FailsWith(TextEncoder::Open(folder_.File("link")), {"is a link to 'gone'"}, ErrorCode::kIo));
}

// As in the cache of Hugging Face's hub.
TEST_F(FolderFilesTest, LinksThatLeadToFilesAreThoseFiles) {
  for (const std::string name : kFiles) {
    const auto link = [this](const std::string& file) {
      fs::create_symlink(folder_.File("kept"), file);
    };
    EXPECT_TRUE(With(name, link).ok()) << name;
  }
}

// Of the optional files: absent is no error, and neither is it for those that stand in for others.
TEST_F(FolderFilesTest, AbsentFilesAreNoErrors) {
  for (const std::string name : {"tokenizer_config.json", "sentence_bert_config.json",
                                 "config_sentence_transformers.json"}) {
    EXPECT_TRUE(With(name, [](const std::string&) {}).ok()) << name;
  }
}

TEST_F(FolderFilesTest, WhatMayNotBeReadIsNotAbsent) {
  fs::permissions(folder_.path(), fs::perms{0755});
  // Root may read everything: the child becomes somebody else.
  const auto status_of = [this](const std::vector<std::string>& words) {
    return InChild([&] {
      if (::geteuid() == 0 && ::setuid(65534) != 0) return 77;
      const Status status = Opened();
      if (status.code() != ErrorCode::kIo) return 1;
      for (const std::string& word : words) {
        if (status.message().find(word) == std::string::npos) return 2;
      }
      return 0;
    });
  };
  if (status_of({}) == 77) GTEST_SKIP() << "LEFT OUT: root cannot become another user here";
  const auto expect = [&](const std::string& closed, const std::vector<std::string>& words) {
    const fs::perms before = fs::status(closed).permissions();
    fs::permissions(closed, fs::perms::none);
    EXPECT_EQ(status_of(words), 0) << closed;
    fs::permissions(closed, before);
  };
  expect(path(), {path(), "the folder cannot be searched", "Permission denied"});
  for (const std::string name : kFiles) expect(File(name), {name, "Permission denied"});
  expect(File("1_Pooling"), {"1_Pooling", "Permission denied"});
}

TEST_F(FolderFilesTest, PointersOfGitLfsAreNamed) {
  for (const std::string name : kFiles) {
    const auto pointer = [](const std::string& file) {
      std::ofstream(file)
          << "version https://git-lfs.github.com/spec/v1\n"
             "oid sha256:53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab1\n"
             "size 90868376\n";
    };
    EXPECT_TRUE(
        FailsWith(With(name, pointer), {name, "is a git-lfs pointer"}, ErrorCode::kCorruptData));
  }
}

// Largest memory of this process so far, in MiB.
size_t PeakMebibytes() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<size_t>(usage.ru_maxrss) >> 10;
}

// Sparse files: 6 GB that take no disk.
TEST_F(FolderFilesTest, SizesAreComparedBeforeAnythingIsRead) {
  const auto refused = [this](const std::string& name) {
    return InChild([&] {
      const size_t before = PeakMebibytes();
      const Status status = With(name, [](const std::string& file) {
        std::ofstream(file).close();
        fs::resize_file(file, uintmax_t{6} << 30);
      });
      if (status.code() != ErrorCode::kCorruptData) return 1;
      if (status.message().find(name) == std::string::npos) return 2;
      if (status.message().find("6442450944 bytes, wanted at most") == std::string::npos) return 3;
      return kSanitized || PeakMebibytes() < before + 100 ? 0 : 4;
    });
  };
  for (const std::string name : kFiles) {
    if (name.ends_with(".safetensors")) continue;  // those are mapped
    EXPECT_EQ(refused(name), 0) << name;
  }
  fs::remove(File("tokenizer.json"));
  std::ofstream(File("vocab.txt")).close();
  fs::resize_file(File("vocab.txt"), uintmax_t{6} << 30);
  EXPECT_TRUE(FailsWith(Opened(), {"vocab.txt", "6442450944 bytes"}, ErrorCode::kCorruptData));
}

std::string Zeros(size_t count) {
  std::string text = "0,";
  while (text.size() < 2 * count) text += text;
  text.resize(2 * count);
  text.back() = ']';
  return "[" + text;
}

TEST_F(FolderFilesTest, WhatIsParsedIsBounded) {
  const auto refused = [this](const std::string& name, size_t values, size_t mebibytes) {
    const std::string text = Zeros(values);
    return InChild([&] {
      const size_t before = PeakMebibytes();
      const Status status =
          With(name, [&](const std::string& file) { std::ofstream(file) << text; });
      if (status.code() != ErrorCode::kCorruptData) return 1;
      if (status.message().find("JSON has more than") == std::string::npos) return 2;
      return kSanitized || PeakMebibytes() < before + mebibytes ? 0 : 3;
    });
  };
  EXPECT_EQ(refused("modules.json", size_t{4} << 20, 100), 0);
  if (kSanitized) return;  // takes minutes
  // 64 MiB; the largest of all files.
  EXPECT_EQ(refused("tokenizer.json", size_t{32} << 20, 1000), 0);
}

// 500 000 tokens and as many merges twice, as pairs: larger than any that is published. A tenth of
// it where it would take minutes.
TEST_F(FolderFilesTest, LargeVocabulariesAreNot) {
  constexpr size_t kTokens = kSlow ? 50000 : 500000;
  std::string text = R"({"vocab": {"-": 0)";
  for (size_t i = 1; i < kTokens; ++i) {
    text += ", \"token" + std::to_string(i) + "\": " + std::to_string(i);
  }
  text += R"(}, "merges": [["a", "b"])";
  for (size_t i = 1; i < 2 * kTokens; ++i) text += R"(, ["token", "n"])";
  std::ofstream(File("tokenizer.json")) << text << "]}";
  const internal::Folder folder = Taken(internal::Folder::Open(path()));
  const auto json = folder.ReadJson("tokenizer.json");
  ASSERT_TRUE(json.ok() && json->has_value()) << json.status().message();
  EXPECT_EQ((*json)->Find("vocab")->members().size(), kTokens);
  EXPECT_EQ((*json)->Find("merges")->items().size(), 2 * kTokens);
}

// A host's loop that empties a file before its first task: in the middle of a call.
struct Truncating {
  std::string file;
  template <typename F>
  void parallel_for(size_t count, F body) {
    if (!file.empty()) fs::resize_file(std::exchange(file, ""), 0);
    for (size_t i = 0; i < count; ++i) body(i);
  }
};

std::vector<float> VectorsOf(const TextEncoder& model, const Executor& executor) {
  const std::vector<std::vector<int32_t>> ids(400, {1, 5, 9, 13, 17, 21, 25, 29});
  const Result<Embeddings> found = model.EncodeIds(ids, {.executor = executor});
  if (!found.ok()) return {};
  const auto* floats = static_cast<const float*>(found->vectors.data());
  return {floats, floats + found->vectors.size_bytes() / sizeof(float)};
}

TEST_F(FolderFilesTest, CopiedWeightsOutliveTheirFile) {
  // 0: the right vectors. 2: an error. 3: others.
  const auto encode = [this](FileMemory memory, bool during) {
    const Result<TextEncoder> model = TextEncoder::Open(path(), {.weights = memory});
    if (!model.ok()) return 4;
    const std::vector<float> wanted = VectorsOf(*model, {});
    if (wanted.empty()) return 5;
    Truncating loop{during ? File("model.safetensors") : ""};
    if (!during) fs::resize_file(File("model.safetensors"), 0);
    const std::vector<float> found = VectorsOf(*model, Executor::HostPool(2, loop));
    if (!loop.file.empty()) return 6;  // no task was shared
    return found == wanted ? 0 : found.empty() ? 2 : 3;
  };
  const std::vector<std::byte> bytes = ReadBytes(File("model.safetensors"));
  for (const bool during : {true, false}) {
    const auto in_child = [&](FileMemory memory) {
      const int status = InChild([&] { return encode(memory, during); });
      WriteBytes(File("model.safetensors"), bytes);
      return status;
    };
    EXPECT_EQ(in_child(FileMemory::kCopied), 0) << during;
    // Mapped: found before the call. During it the process ends; sanitizers catch the signal.
    const int mapped = in_child(FileMemory::kMapped);
    if (!during) {
      EXPECT_EQ(mapped, 2);
    } else if (!kSanitized) {
      EXPECT_EQ(mapped, 1000 + SIGBUS);
    }
  }
}

TEST(HeaderLimits, KeysAreBounded) {
  const auto header = [](size_t keys) {
    std::string text = "{\"__metadata__\":{\"0\":\"\"";
    for (size_t i = 1; i < keys; ++i) text += ",\"" + std::to_string(i) + "\":\"\"";
    return SafetensorsBytes(text + "}}");
  };
  constexpr size_t kMost = (size_t{1} << 18) - 1;  // and __metadata__ itself
  EXPECT_TRUE(SafetensorsFile::FromBytes(header(kMost)).ok());
  EXPECT_TRUE(FailsWith(SafetensorsFile::FromBytes(header(kMost + 1)),
                        {"more than 262144 tensors and metadata keys"}, ErrorCode::kCorruptData));
}

}  // namespace
}  // namespace encore
