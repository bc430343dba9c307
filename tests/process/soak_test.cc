// SPDX-License-Identifier: Apache-2.0
//
// One process that does for a while what a host does over months: opens models, makes vectors and
// scores, meets errors, writes and reads files, makes and ends pools and threads, and does it
// again. Resident memory, descriptors and threads are printed at intervals and must not grow. Some
// seconds unless ENCORE_SOAK_SECONDS says more (tools/soak.sh). Linux only.

#if defined(__linux__)

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "encore/c_api.h"
#include "encore/encore.h"
#include "encore/text_encoder.h"
#include "gtest/gtest.h"
#include "reference/encoder_model.h"
#include "reference/switched.h"
#include "tests/support/compare.h"
#include "tests/support/precisions.h"
#include "tests/support/safetensors_bytes.h"
#include "tests/support/sanitizers.h"
#include "tests/support/text_case.h"
#include "tests/support/weights_file.h"

namespace encore {
namespace {

// Short: a leak of a page a round shows after some thousand rounds, so in the long runs.
constexpr double kSeconds = kSlow ? 3 : 10;
// What an allocator keeps may move by as much, after the first rounds.
constexpr size_t kAllowedBytes = size_t{4} << 20;
// Rounds before the first sample: allocators, runtimes and static tables have what they need, and
// every executor was used, OpenMP's too, whose threads stay.
constexpr size_t kFirstRounds = kSlow ? 4 : 20;

struct Sample {
  double seconds;
  size_t rounds;
  size_t bytes;  // resident
  size_t descriptors;
  size_t threads;
};

size_t EntriesOf(const char* folder) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

size_t ResidentBytes() {
  size_t size = 0;
  size_t resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

// A thread that was joined may still be listed for a moment.
size_t Threads(size_t wanted) {
  size_t found = EntriesOf("/proc/self/task");
  for (int i = 0; i < 1000 && found > wanted; ++i) {
    usleep(1000);
    found = EntriesOf("/proc/self/task");
  }
  return found;
}

std::vector<float> Values(const Tensor& tensor) {
  const auto view = tensor.View<float>();
  return {view.data(), view.data() + view.dim(0) * view.dim(1)};
}

// All that one round does. Bits are those of the first round, whoever's threads they come from.
class Host {
 public:
  Host() {
    base_.WriteModules();
    broken_.Write("model.safetensors", "no tensors");
    WriteWeightsFile(weights_);
  }

  void Round(size_t number) {
    ThreadPool pool = Taken(
        ThreadPool::Create({.threads = 1 + static_cast<int>(number % 4),
                            .idle_spin = std::chrono::microseconds(number % 3 == 0 ? 100 : 0)}));
    const Executor executors[] = {Executor::Inline(), shared_->executor(), pool.executor(),
                                  Executor::OpenMP(2)};
    const Executor& executor = executors[number % 4];
    Texts(executor);
    std::thread([&] { Texts(pool.executor()); }).join();
    Engine(executor, kPrecisions[number % std::size(kPrecisions)]);
    Files();
    FromC();
    Errors();
  }

 private:
  void Texts(const Executor& executor) {
    const TextEncoder encoder = Taken(TextEncoder::Open(base_.path(), {.executor = executor}));
    const Embeddings vectors = Taken(encoder.Encode(texts_, {.executor = executor}));
    if (vectors_.empty()) vectors_ = Values(vectors.vectors);
    EXPECT_TRUE(SameBits(Values(vectors.vectors), vectors_));
    const TextEncoder reranker = Taken(TextEncoder::Open(reranker_.path()));
    EXPECT_TRUE(reranker.Score("the bread", texts_, {.executor = executor}).ok());
    const TextEncoder classifier = Taken(TextEncoder::Open(classifier_.path()));
    EXPECT_TRUE(classifier.Classify(texts_, {.executor = executor}).ok());
  }

  void Engine(const Executor& executor, Precision precision) {
    const Encoder encoder = model_.Make({.precision = precision, .executor = executor});
    const Encoder copy = encoder;
    const Batch batch{{0, 70, 71, 140}};
    const std::vector<float> x(140 * 32, 0.25f);
    std::vector<float>& wanted = outputs_[static_cast<size_t>(precision)];
    const std::vector<float> y = Forward(copy, batch, x, executor);
    if (wanted.empty()) wanted = y;
    EXPECT_TRUE(SameBits(y, wanted));
  }

  void Files() {
    const SafetensorsFile file = Taken(SafetensorsFile::Open(weights_));
    EXPECT_TRUE(file.ReadAsF32(file.tensors()[0].name).ok());
    EXPECT_TRUE(WriteSafetensors(folder_.File("copy.safetensors"), file.tensors()).ok());
    EXPECT_TRUE(TorchWeights::Open(weights_).ok());
  }

  void FromC() {
    encore_model* model = nullptr;
    encore_open_options options{};
    options.size = sizeof(options);
    options.threads = 2;
    ASSERT_EQ(encore_open(base_.path().c_str(), &options, &model), ENCORE_OK)
        << encore_last_error();
    std::vector<float> vector(encore_dimensions(model));
    const encore_text text = {texts_[0].data(), texts_[0].size()};
    EXPECT_EQ(
        encore_encode(model, &text, 1, nullptr, vector.data(), vector.size(), nullptr, nullptr),
        ENCORE_OK);
    EXPECT_NE(encore_encode(model, &text, 1, nullptr, vector.data(), 0, nullptr, nullptr),
              ENCORE_OK);
    encore_free(model);
  }

  void Errors() {
    EXPECT_FALSE(TextEncoder::Open(folder_.File("nowhere")).ok());
    EXPECT_FALSE(TextEncoder::Open(broken_.path()).ok());
    EXPECT_FALSE(SafetensorsFile::Open(broken_.File("model.safetensors")).ok());
    EXPECT_FALSE(ThreadPool::Create({.threads = -1}).ok());
    EXPECT_FALSE(WriteSafetensors(folder_.File("no/folder"), {}).ok());
    const Encoder encoder = model_.Make();
    float value = 0;
    EXPECT_FALSE(encoder.MakeWorkspace(BatchLimits{.tokens = SIZE_MAX}).ok());
    EXPECT_FALSE(encoder.Forward(Batch{{0, 1}}, {&value, {1, 1}}, {&value, {1, 1}}, {}).ok());
  }

  const std::vector<std::string> texts_ = {"The cat sat on the mat.", "dogs", "", "a baker"};
  const TextFolder base_;
  const TextFolder reranker_{"reranker"};
  const TextFolder classifier_{"classifier"};
  const TextFolder broken_;
  const TemporaryFolder folder_;
  const std::string weights_ = folder_.File("weights.safetensors");
  const EncoderModel model_{RotaryAndGate()};
  const Result<ThreadPool> shared_ = ThreadPool::Create({.threads = 3});
  std::vector<float> vectors_;
  std::vector<float> outputs_[std::size(kPrecisions)];
};

TEST(Soak, NothingGrows) {
  const char* given = std::getenv("ENCORE_SOAK_SECONDS");
  const double seconds = given != nullptr ? std::strtod(given, nullptr) : kSeconds;
  const double interval = seconds / 20;
  Host host;
  size_t rounds = 0;
  while (rounds < kFirstRounds) host.Round(rounds++);

  const auto start = std::chrono::steady_clock::now();
  std::vector<Sample> samples;
  std::printf("seconds  rounds  resident KiB  descriptors  threads\n");
  while (!HasFailure()) {
    const double now =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (now >= interval * static_cast<double>(samples.size())) {
      samples.push_back({now, rounds, ResidentBytes(), EntriesOf("/proc/self/fd"),
                         Threads(samples.empty() ? 0 : samples[0].threads)});
      const Sample& s = samples.back();
      std::printf("%7.1f %7zu %13zu %12zu %8zu\n", s.seconds, s.rounds, s.bytes / 1024,
                  s.descriptors, s.threads);
      std::fflush(stdout);
      EXPECT_EQ(s.descriptors, samples[0].descriptors);
      EXPECT_EQ(s.threads, samples[0].threads);
      if (now >= seconds) break;
    }
    host.Round(rounds++);
  }
  // The least of the last quarter beside the most of the first: allocators breathe.
  const auto less = [](const Sample& a, const Sample& b) { return a.bytes < b.bytes; };
  const auto quarter = static_cast<ptrdiff_t>(samples.size() / 4);
  if (quarter == 0 || kSanitized) return;  // sanitizers keep what is freed
  const auto most = std::max_element(samples.begin(), samples.begin() + quarter, less);
  const auto least = std::min_element(samples.end() - quarter, samples.end(), less);
  EXPECT_LE(least->bytes, most->bytes + kAllowedBytes);
}

}  // namespace
}  // namespace encore

#endif  // defined(__linux__)
