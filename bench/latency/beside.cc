// SPDX-License-Identifier: Apache-2.0
//
// Queries at 60 Hz beside a thread that indexes, on one pool:
//   beside FOLDER [SECONDS] [THREADS]
// Prints how long queries took and how many texts a second were indexed, each alone and both
// together, without and with Executor::InBackground().

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "bench/latency/latency.h"
#include "encore/text_encoder.h"
#include "encore/thread_pool.h"

namespace encore::latency {
namespace {

constexpr size_t kTexts = 32;  // of a call that indexes

struct Run {
  const TextEncoder& model;
  Executor queries;
  Executor indexing;
  double seconds;

  void Measure(const char* name, bool asks, bool indexes) const {
    std::atomic<bool> stop = false;
    std::atomic<size_t> indexed = 0;
    std::thread thread([&] {
      while (indexes && !stop) indexed += Index();
    });
    const Clock::time_point begin = Clock::now();
    const Clock::time_point end =
        begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    std::vector<double> took;
    std::vector<double> late;
    if (asks) Ask(begin, end, &took, &late);
    std::this_thread::sleep_until(end);
    const auto count = static_cast<double>(indexed.load());
    stop = true;
    thread.join();
    std::printf("%s: %.0f texts/s indexed\n", name, count / seconds);
    PrintPercentiles("  query", took);
    PrintPercentiles("  tick to answer", late);
  }

 private:
  size_t Index() const {
    thread_local std::mt19937 random(3);
    std::vector<std::string> texts;
    for (size_t i = 0; i < kTexts; ++i) texts.push_back(Sentence(8 + random() % 16, random));
    return model.Encode(texts, {.executor = indexing}).ok() ? kTexts : 0;
  }

  void Ask(Clock::time_point begin, Clock::time_point end, std::vector<double>* took,
           std::vector<double>* late) const {
    std::mt19937 random(5);
    std::vector<float> out(model.dimensions());
    for (Clock::time_point tick = begin; tick < end;
         tick = std::max(tick + std::chrono::microseconds(16667), Clock::now())) {
      const std::string query = Sentence(17, random);
      std::this_thread::sleep_until(tick);
      const Clock::time_point start = Clock::now();
      const Status status = model.Encode({query}, MutableView(out.data(), {1, out.size()}), nullptr,
                                         {.executor = queries});
      if (!status.ok()) std::puts(status.message().c_str());
      took->push_back(Milliseconds(Clock::now() - start));
      late->push_back(Milliseconds(Clock::now() - tick));
    }
  }
};

int Measure(const std::string& folder, double seconds, int threads) {
  const Result<ThreadPool> pool = ThreadPool::Create({.threads = threads});
  if (!pool.ok()) return std::puts(pool.status().message().c_str()), 1;
  const Executor executor = pool->executor();
  const Result<TextEncoder> model =
      TextEncoder::Open(folder, {.executor = executor, .weights = FileMemory::kCopied});
  if (!model.ok()) return std::puts(model.status().message().c_str()), 1;
  const Run plain{*model, executor, executor, seconds};
  const Run background{*model, executor, executor.InBackground(), seconds};
  plain.Measure("queries alone", true, false);
  background.Measure("indexing alone", false, true);
  plain.Measure("both", true, true);
  background.Measure("both, indexing in the background", true, true);
  return 0;
}

}  // namespace
}  // namespace encore::latency

int main(int argc, char** argv) {
  if (argc < 2) return std::fputs("usage: beside FOLDER [SECONDS] [THREADS]\n", stderr), 2;
  return encore::latency::Measure(argv[1], argc > 2 ? std::atof(argv[2]) : 10,
                                  argc > 3 ? std::atoi(argv[3]) : 0);
}
