// SPDX-License-Identifier: Apache-2.0
//
// Many texts on a large machine: a model and a pool of bound threads for each NUMA node, so that
// weights and scratch lie in the memory of the cores that read them. Nodes take texts as they get
// free. The vectors have the same bits however the cores are grouped.
//
//   numa_nodes FOLDER TEXTS.txt [CORES]      CORES: at most so many cores share a model

#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#endif

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "encore/cpu.h"
#include "encore/text_encoder.h"
#include "encore/thread_pool.h"

namespace {

constexpr size_t kTextsAtOnce = 256;

// Cores of one node each, one hardware thread of each, at most `most` in a group.
std::vector<std::vector<int>> Groups(size_t most) {
  std::vector<std::vector<int>> groups;
  int node = -1;
  for (const encore::CoreDomain& domain : encore::CoreDomains()) {
    for (const int core : domain.cores) {
      if (groups.empty() || node != domain.node || groups.back().size() == most) {
        groups.emplace_back();
      }
      node = domain.node;
      groups.back().push_back(core);
    }
  }
  return groups;
}

void BindThisThread([[maybe_unused]] int core) {
#if defined(__linux__)
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(static_cast<size_t>(core), &cores);
  pthread_setaffinity_np(pthread_self(), sizeof(cores), &cores);
#endif
}

// What all groups share.
struct Work {
  const char* folder;
  std::vector<std::string_view> texts;
  std::atomic<size_t> next = 0;  // text
  std::mutex mutex;              // of what follows
  std::vector<float> vectors;    // [texts, dimensions]
  std::string error;             // the first one
};

void Fail(Work& work, const encore::Status& status) {
  const std::lock_guard lock(work.mutex);
  if (work.error.empty()) work.error = status.message();
  work.next = work.texts.size();
}

// One group, on a thread of its own. What it allocates lies in its node, since the threads that
// write memory first are bound there.
void Run(const std::vector<int>& cores, Work& work) {
  const auto pool = encore::ThreadPool::Create(
      {.threads = static_cast<int>(cores.size()), .cores = {cores.begin() + 1, cores.end()}});
  if (!pool.ok()) return Fail(work, pool.status());
  BindThisThread(cores.front());
  const encore::Executor executor = pool->executor();
  const auto model = encore::TextEncoder::Open(work.folder, {.executor = executor});
  if (!model.ok()) return Fail(work, model.status());
  const size_t dimensions = model->dimensions();
  {
    const std::lock_guard lock(work.mutex);
    work.vectors.resize(work.texts.size() * dimensions);
  }
  while (true) {
    const size_t begin = work.next.fetch_add(kTextsAtOnce);
    if (begin >= work.texts.size()) return;
    const size_t count = std::min(kTextsAtOnce, work.texts.size() - begin);
    const auto texts = std::span<const std::string_view>(work.texts).subspan(begin, count);
    const encore::MutableView rows(work.vectors.data() + begin * dimensions, {count, dimensions});
    const encore::Status status = model->Encode(texts, rows, nullptr, {.executor = executor});
    if (!status.ok()) return Fail(work, status);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) {
    std::fprintf(stderr, "usage: numa_nodes FOLDER TEXTS.txt [CORES]\n");
    return 2;
  }
  const int most = argc == 4 ? std::atoi(argv[3]) : encore::ThreadPool::kMaxThreads;
  if (most < 1 || most > encore::ThreadPool::kMaxThreads) {
    std::fprintf(stderr, "numa_nodes: found %s cores, wanted 1 to 1024\n", argv[3]);
    return 2;
  }
  std::ifstream file(argv[2]);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  if (lines.empty()) {
    std::fprintf(stderr, "numa_nodes: found no text in %s\n", argv[2]);
    return 2;
  }

  Work work;
  work.folder = argv[1];
  work.texts.assign(lines.begin(), lines.end());
  const std::vector<std::vector<int>> groups = Groups(static_cast<size_t>(most));
  std::vector<std::thread> threads;
  for (const std::vector<int>& cores : groups) {
    threads.emplace_back([&cores, &work] { Run(cores, work); });
  }
  for (std::thread& thread : threads) thread.join();
  if (!work.error.empty()) {
    std::fprintf(stderr, "numa_nodes: %s\n", work.error.c_str());
    return 1;
  }

  const size_t dimensions = work.vectors.size() / lines.size();
  for (size_t i = 0; i < lines.size(); ++i) {
    const float* vector = work.vectors.data() + i * dimensions;
    std::printf("%a %a ...  %s\n", double{vector[0]}, double{vector[1]}, lines[i].c_str());
  }
  std::fprintf(stderr, "%zu texts by %zu groups of cores\n", lines.size(), groups.size());
  return 0;
}
