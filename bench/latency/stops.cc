// SPDX-License-Identifier: Apache-2.0
//
// How soon a call returns once its stop flag is set, on every executor, and whether the next call
// has the right bits:
//   stops FOLDER [STOPS] [THREADS]
// For each executor up to THREADS threads (4), STOPS calls (1,000) are stopped at random moments.
// Exits with 1 if a later call's bits differ.

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "bench/latency/latency.h"
#include "encore/text_encoder.h"
#include "encore/thread_pool.h"
#include "reference/host_pool.h"

namespace encore::latency {
namespace {

// Sets a flag at a given time, on a thread of its own.
class Stopper {
 public:
  Stopper() : thread_([this] { Loop(); }) {}
  ~Stopper() {
    end_ = true;
    SetAt(Clock::now());
    thread_.join();
  }
  Stopper(const Stopper&) = delete;
  Stopper& operator=(const Stopper&) = delete;

  void SetAt(Clock::time_point when) {
    flag_ = false;
    when_ = when;
    calls_.fetch_add(1);
    calls_.notify_one();
  }
  // Waits until it has set the flag, and says when.
  Clock::time_point WasSet() {
    flag_.wait(false);
    return set_at_;
  }
  const std::atomic<bool>* flag() const { return &flag_; }

 private:
  void Loop() {
    for (int seen = 0; !end_;) {
      calls_.wait(seen);
      ++seen;
      std::this_thread::sleep_until(when_.load());
      set_at_ = Clock::now();
      flag_ = true;
      flag_.notify_one();
    }
  }

  std::atomic<int> calls_{0};
  std::atomic<Clock::time_point> when_{};
  std::atomic<Clock::time_point> set_at_{};
  std::atomic<bool> flag_{false};
  std::atomic<bool> end_{false};
  std::thread thread_;
};

// A call on texts of many lengths, and one on a single text.
struct Calls {
  const TextEncoder* model;
  std::vector<std::string> texts;
  std::vector<float> out;
  std::vector<float> want;

  MutableView Rows(size_t count) { return MutableView(out.data(), {count, model->dimensions()}); }
  Status EncodeAll(const Executor& executor) {
    return model->Encode(texts, Rows(texts.size()), nullptr, {.executor = executor});
  }
  // Whether some texts have the bits that they should.
  bool AreRight(size_t first, size_t count, const Executor& executor) {
    const std::vector<std::string> some(texts.begin() + static_cast<ptrdiff_t>(first),
                                        texts.begin() + static_cast<ptrdiff_t>(first + count));
    const size_t width = model->dimensions();
    return model->Encode(some, Rows(count), nullptr, {.executor = executor}).ok() &&
           std::memcmp(out.data(), want.data() + first * width, count * width * sizeof(float)) == 0;
  }
};

bool Stop(const std::string& name, const Executor& executor, int stops, Calls* calls) {
  std::mt19937 random(7);
  const Clock::time_point begin = Clock::now();
  if (!calls->EncodeAll(executor).ok()) return false;
  const double whole = Milliseconds(Clock::now() - begin);
  std::uniform_real_distribution<double> moment(0, whole);
  Stopper stopper;
  std::vector<double> took;
  bool right = true;
  for (int i = 0; i < stops && right; ++i) {
    stopper.SetAt(Clock::now() +
                  std::chrono::nanoseconds(static_cast<int64_t>(moment(random) * 1e6)));
    const Status status = calls->EncodeAll(executor.WithStop(stopper.flag()));
    const Clock::time_point end = Clock::now();
    const Clock::time_point set = stopper.WasSet();
    if (status.code() == ErrorCode::kCancelled) took.push_back(Milliseconds(end - set));
    right = calls->AreRight(static_cast<size_t>(i) % calls->texts.size(), 1, executor);
    if (i % 50 == 49) right = right && calls->AreRight(0, calls->texts.size(), executor);
  }
  PrintPercentiles(name.c_str(), took);
  std::fflush(stdout);
  if (!right) std::printf("%s: the call after a stop has other bits\n", name.c_str());
  return right;
}

int Run(const std::string& folder, int stops, int threads) {
  const Result<TextEncoder> model = TextEncoder::Open(folder);
  if (!model.ok()) return std::puts(model.status().message().c_str()), 1;
  Calls calls{&*model, {}, {}, {}};
  std::mt19937 random(7);
  for (size_t i = 0; i < 20; ++i) calls.texts.push_back(Sentence(1 + random() % 40, random));
  calls.texts.push_back(Sentence(400, random));    // as long as a sequence may be
  calls.texts.push_back(Sentence(20000, random));  // long to tokenize
  calls.out.resize(calls.texts.size() * model->dimensions());
  if (const Status status = calls.EncodeAll(Executor::Inline()); !status.ok()) {
    return std::puts(status.message().c_str()), 1;
  }
  calls.want = calls.out;

  bool right = Stop("inline", Executor::Inline(), stops, &calls);
  for (int n = 1; n <= threads; ++n) {
    const std::string count = " " + std::to_string(n);
    const Result<ThreadPool> pool = ThreadPool::Create({.threads = n});
    if (!pool.ok()) return std::puts(pool.status().message().c_str()), 1;
    HostPool host(n);
    right = Stop("pool" + count, pool->executor(), stops, &calls) && right;
    right = Stop("background" + count, pool->executor().InBackground(), stops, &calls) && right;
    right = Stop("OpenMP" + count, Executor::OpenMP(n), stops, &calls) && right;
    right = Stop("host pool" + count, Executor::HostPool(n, host), stops, &calls) && right;
  }
  return right ? 0 : 1;
}

}  // namespace
}  // namespace encore::latency

int main(int argc, char** argv) {
  if (argc < 2) return std::fputs("usage: stops FOLDER [STOPS] [THREADS]\n", stderr), 2;
  return encore::latency::Run(argv[1], argc > 2 ? std::atoi(argv[2]) : 1000,
                              argc > 3 ? std::atoi(argv[3]) : 4);
}
