// SPDX-License-Identifier: Apache-2.0
//
// A system that is made to be another. What it refuses, refused on purpose: each mapping, opened
// file, new thread, sync and new name, and each large piece of memory, the n-th of them or all from
// the n-th on, for every n until the call gets all it wants. Each time there is a Status that names
// it or the right result; nothing stays open, no thread is left, no file is there by half. And a
// CPU quota that is not there, under which threads must not spin.
//
// The functions of the C library are replaced in the executable, and so for the C++ library too.
// Linux only, and not with sanitizers, which replace them themselves.

#if defined(__linux__)

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "encore/encore.h"
#include "engine/base/aligned_buffer.h"
#include "engine/platform/cpu_info.h"
#include "engine/platform/worker_threads.h"
#include "gtest/gtest.h"
#include "reference/encoder_model.h"
#include "tests/support/safetensors_bytes.h"
#include "tests/support/text_case.h"
#include "tests/support/weights_file.h"

namespace {

enum class Kind { kMemory, kMapping, kOpen, kThread, kSync, kName };
constexpr const char* kKindNames[] = {"memory", "mapping", "open", "thread", "sync", "name"};

// What is refused, on any thread.
struct Plan {
  // In place of /proc, where the C library opens it by a stream; empty for the real one.
  std::string proc;
  // A kernel for so many cores, of which threads may use the first and the last; 0 for the real
  // one.
  size_t cores = 0;
  std::atomic<bool> armed{false};
  Kind kind = Kind::kMemory;
  bool once = false;
  std::atomic<ptrdiff_t> allowed{0};
  std::atomic<bool> hit{false};
};
Plan plan;

bool Refused(Kind kind) {
  if (!plan.armed.load() || plan.kind != kind) return false;
  const ptrdiff_t left = plan.allowed.fetch_sub(1);
  if (left > 0 || (plan.once && left < 0)) return false;
  plan.hit = true;
  return true;
}

// The C library's own.
template <typename Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

void* mmap(void* address, size_t size, int protection, int flags, int file, off_t offset) noexcept {
  static auto* const next = Next<void*(void*, size_t, int, int, int, off_t)>("mmap");
  if (Refused(Kind::kMapping)) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return next(address, size, protection, flags, file, offset);
}

int open(const char* path, int flags, ...) {
  static auto* const next = Next<int(const char*, int, mode_t)>("open");
  if (Refused(Kind::kOpen)) {
    errno = EMFILE;
    return -1;
  }
  va_list list;
  va_start(list, flags);
  const mode_t mode = va_arg(list, mode_t);
  va_end(list);
  return next(path, flags, mode);
}

std::FILE* fopen(const char* path, const char* mode) {
  static auto* const next = Next<std::FILE*(const char*, const char*)>("fopen");
  if (Refused(Kind::kOpen)) {
    errno = EMFILE;
    return nullptr;
  }
  if (!plan.proc.empty() && std::strncmp(path, "/proc", 5) == 0) {
    return next((plan.proc + (path + 5)).c_str(), mode);
  }
  return next(path, mode);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) noexcept {
  static auto* const next =
      Next<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create");
  return Refused(Kind::kThread) ? EAGAIN : next(thread, attributes, start, argument);
}

int sched_getaffinity(pid_t thread, size_t bytes, cpu_set_t* cores) noexcept {
  static auto* const next = Next<int(pid_t, size_t, cpu_set_t*)>("sched_getaffinity");
  if (plan.cores == 0) return next(thread, bytes, cores);
  if (8 * bytes < plan.cores) {
    errno = EINVAL;
    return -1;
  }
  CPU_ZERO_S(bytes, cores);
  CPU_SET_S(0, bytes, cores);
  CPU_SET_S(plan.cores - 1, bytes, cores);
  return 0;
}

int fsync(int file) {
  static auto* const next = Next<int(int)>("fsync");
  if (Refused(Kind::kSync)) {
    errno = EIO;
    return -1;
  }
  return next(file);
}

int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) noexcept {
  static auto* const next = Next<int(int, const char*, int, const char*, int)>("linkat");
  if (Refused(Kind::kName)) {
    errno = ENOSPC;
    return -1;
  }
  return next(from_folder, from, to_folder, to, flags);
}

int rename(const char* from, const char* to) noexcept {
  static auto* const next = Next<int(const char*, const char*)>("rename");
  if (Refused(Kind::kName)) {
    errno = ENOSPC;
    return -1;
  }
  return next(from, to);
}

}  // extern "C"

namespace encore::inline v0_1::internal {

// In place of engine/base/aligned_buffer.cc, which a static library then leaves out.
void* AllocateAligned(size_t bytes) {
  if (Refused(Kind::kMemory)) return nullptr;
  void* memory = nullptr;
  const size_t size = std::max(bytes, kMemoryAlignment);
  return posix_memalign(&memory, kMemoryAlignment, size) == 0 ? memory : nullptr;
}
void FreeAligned(void* memory) { std::free(memory); }

}  // namespace encore::internal

namespace encore {
namespace {

size_t Entries(const char* folder) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

// A thread that was joined may still be listed for a moment.
size_t ThreadsNow(size_t wanted) {
  size_t found = 0;
  for (int i = 0; i < 1000; ++i) {
    found = Entries("/proc/self/task");
    if (found <= wanted) break;
    usleep(1000);
  }
  return found;
}

template <typename T>
Status StatusOf(const Result<T>& result) {
  return result.status();
}

class FaultInjection : public testing::Test {
 protected:
  // Runs `call` with refusals of every kind, each n of them until none is met; returns how many
  // were met. After each, check() looks at what is left.
  size_t Inject(
      const std::string& name, const std::function<Status()>& call,
      const std::function<void()>& check = [] {}) {
    const size_t before = Entries("/proc/self/task");
    const Status first = call();
    EXPECT_TRUE(first.ok()) << name << " with all it wants: " << first;
    check();
    const size_t files = Entries("/proc/self/fd");
    // The system may list a thread that was joined for a moment more.
    const size_t threads = ThreadsNow(before);
    size_t met = 0;
    for (const Kind kind :
         {Kind::kMemory, Kind::kMapping, Kind::kOpen, Kind::kThread, Kind::kSync, Kind::kName}) {
      for (const bool once : {true, false}) {
        for (ptrdiff_t n = 0; n < 10000; ++n) {
          plan.kind = kind;
          plan.once = once;
          plan.allowed = n;
          plan.hit = false;
          plan.armed = true;
          const Status status = call();
          plan.armed = false;
          SCOPED_TRACE(name + " without " + kKindNames[static_cast<size_t>(kind)] + " " +
                       std::to_string(n) + (once ? "" : " and all after it"));
          check();
          if (!plan.hit) {
            EXPECT_TRUE(status.ok()) << status;
            break;
          }
          ++met;
          if (!status.ok()) {
            EXPECT_TRUE(status.code() == ErrorCode::kOutOfMemory ||
                        status.code() == ErrorCode::kIo || status.code() == ErrorCode::kUnsupported)
                << status;
            EXPECT_NE(status.message(), "");
          }
          EXPECT_EQ(Entries("/proc/self/fd"), files) << "files stay open";
          EXPECT_LE(ThreadsNow(threads), threads) << "threads are left";
          if (HasFailure()) return met;
        }
      }
    }
    std::printf("%s: %zu refusals\n", name.c_str(), met);
    return met;
  }
};

TEST_F(FaultInjection, Encoders) {
  const EncoderModel model({.d_model = 24, .num_heads = 3, .d_ff = 40, .num_layers = 2});
  const std::vector<float> x(5 * 24, 0.5f);
  const std::vector<float> wanted = Forward(model.Make(), Batch{{0, 2, 5}}, x);
  for (const Precision precision : {Precision::kF32, Precision::kInt8, Precision::kInt4}) {
    EXPECT_GT(Inject("Encoder::Create",
                     [&] {
                       EncoderOptions options;
                       options.precision = precision;
                       return StatusOf(Encoder::Create(model.config(), model.weights(), options));
                     }),
              0u);
  }
  const Encoder encoder = model.Make();
  std::vector<float> y(x.size());
  EXPECT_GT(Inject("MakeWorkspace and Forward",
                   [&]() -> Status {
                     const Batch batch{{0, 2, 5}};
                     const Result<Workspace> workspace = encoder.MakeWorkspace(batch);
                     if (!workspace.ok()) return workspace.status();
                     return encoder.Forward(batch, ConstView(x.data(), {5, 24}),
                                            MutableView(y.data(), {5, 24}), *workspace);
                   }),
            0u);
  EXPECT_EQ(y, wanted);
}

TEST_F(FaultInjection, ThreadPools) {
  EXPECT_GT(
      Inject("ThreadPool::Create", [] { return StatusOf(ThreadPool::Create({.threads = 4})); }),
      3u);
}

TEST_F(FaultInjection, TheMachine) {
  const CacheSizes all = Caches();
  EXPECT_GT(Inject("Caches",
                   [&] {
                     const CacheSizes found = Caches();
                     EXPECT_TRUE(plan.hit || (found.l1d == all.l1d && found.l2 == all.l2 &&
                                              found.l3 == all.l3));
                     return Status();
                   }),
            0u);
  EXPECT_GT(Inject("UsableCores",
                   [] {
                     EXPECT_GE(UsableCores(), 1);
                     return Status();
                   }),
            0u);
}

// A /proc of a process in a group with a quota, for as long as it lives.
class QuotaOf {
 public:
  explicit QuotaOf(const std::string& cpu_max) {
    std::filesystem::create_directories(folder_.File("self"));
    std::filesystem::create_directories(folder_.File("groups/job"));
    std::ofstream(folder_.File("self/cgroup")) << "0::/job\n";
    std::ofstream(folder_.File("self/mountinfo"))
        << "5 4 0:29 / " << folder_.File("groups") << " rw - cgroup2 cgroup2 rw\n";
    std::ofstream(folder_.File("groups/job/cpu.max")) << cpu_max << "\n";
    plan.proc = folder_.path().string();
  }
  ~QuotaOf() { plan.proc.clear(); }

 private:
  TemporaryFolder folder_;
};

// Two threads that share one CPU's time must not spend it on waiting for each other, whatever the
// host asked for.
TEST_F(FaultInjection, PoolsUnderAQuotaDoNotSpin) {
  using std::chrono::microseconds;
  const ThreadPoolOptions options{.threads = 2, .idle_spin = microseconds(500)};
  {
    const QuotaOf quota("100000 100000");
    EXPECT_EQ(Cores().cgroup_quota, 1);
    EXPECT_EQ(UsableCores(), 1);
    EXPECT_EQ(internal::OnlineCores(), 1);
    const internal::WorkerThreads workers(options);
    for (const bool in_a_call : {false, true}) {
      EXPECT_EQ(workers.SpinOf(1, in_a_call), microseconds(0)) << in_a_call;
    }
  }
  {
    const QuotaOf wide("100000000 100000");
    EXPECT_EQ(internal::OnlineCores(), Cores().online);
    EXPECT_EQ(Cores().cgroup_quota, 1000);
  }
  EXPECT_TRUE(plan.proc.empty());
  if (UsableCores() < 2) return;
  const internal::WorkerThreads workers(options);
  EXPECT_EQ(workers.SpinOf(1, false), options.idle_spin);
  EXPECT_GT(workers.SpinOf(1, true), microseconds(0));
}

// Which refuses masks that are shorter than its own.
TEST_F(FaultInjection, AKernelForManyCores) {
  for (const size_t cores : {size_t{1024}, size_t{1025}, size_t{4096}, size_t{50000}}) {
    SCOPED_TRACE(cores);
    const int last = static_cast<int>(cores) - 1;
    plan.cores = cores;
    const CoreCount count = Cores();
    const std::vector<CoreDomain> domains = CoreDomains();
    const Status pinned = StatusOf(ThreadPool::Create({.threads = 2, .cores = {last}}));
    const Status other = StatusOf(ThreadPool::Create({.threads = 2, .cores = {last - 1}}));
    plan.cores = 0;
    EXPECT_EQ(count.affinity, 2);
    std::vector<int> seen;
    for (const CoreDomain& domain : domains) {
      seen.insert(seen.end(), domain.cores.begin(), domain.cores.end());
    }
    std::sort(seen.begin(), seen.end());
    EXPECT_EQ(seen, (std::vector<int>{0, last}));
    EXPECT_TRUE(pinned.ok()) << pinned;
    EXPECT_EQ(other.code(), ErrorCode::kInvalidArgument);
  }
}

TEST_F(FaultInjection, ReadingWeights) {
  const TemporaryFolder folder;
  const std::string path = folder.File("weights.safetensors");
  WriteWeightsFile(path);
  EXPECT_GT(Inject("SafetensorsFile",
                   [&]() -> Status {
                     const Result<SafetensorsFile> file = SafetensorsFile::Open(path);
                     if (!file.ok()) return file.status();
                     return StatusOf(file->ReadAsF32(file->tensors()[0].name));
                   }),
            2u);
  EXPECT_GT(Inject("TorchWeights", [&] { return StatusOf(TorchWeights::Open(path)); }), 1u);
}

TEST_F(FaultInjection, WritingAFile) {
  const TemporaryFolder folder;
  const std::string path = folder.File("out.safetensors");
  Result<Tensor> tensor = Tensor::Create(DType::kF32, {20, 30});
  ASSERT_TRUE(tensor.ok());
  std::fill_n(tensor->View<float>().data(), 600, 1.0f);
  const std::vector<SafetensorsEntry> entries = {MakeSafetensorsEntry("new", *tensor)};
  const std::vector<SafetensorsEntry> old = {MakeSafetensorsEntry("old", *tensor)};
  // Where there was nothing there is nothing or the whole, and where there was a file that or the
  // new one.
  for (const bool replaces : {false, true}) {
    const auto prepare = [&] {
      std::filesystem::remove(path);
      if (replaces) {
        EXPECT_TRUE(WriteSafetensors(path, old).ok());
      }
    };
    prepare();
    Status last;
    EXPECT_GT(Inject(
                  replaces ? "replacing a file" : "a new file",
                  [&] {
                    last = WriteSafetensors(path, entries);
                    return last;
                  },
                  [&] {
                    const bool there = last.ok() || replaces;
                    EXPECT_EQ(folder.List().size(), there ? 1u : 0u);
                    if (there) {
                      const Result<SafetensorsFile> file = SafetensorsFile::Open(path);
                      ASSERT_TRUE(file.ok()) << file.status();
                      EXPECT_NE(file->Find(last.ok() ? "new" : "old"), nullptr);
                    }
                    prepare();
                  }),
              4u);
  }
}

TEST_F(FaultInjection, FromAFolderToVectors) {
  const TextFolder folder;
  folder.WriteModules();
  const std::vector<std::string> texts = {"The cat sat on the mat.", "dogs"};
  std::optional<std::vector<float>> wanted;
  EXPECT_GT(Inject("TextEncoder",
                   [&]() -> Status {
                     const Result<TextEncoder> encoder = TextEncoder::Open(folder.path());
                     if (!encoder.ok()) return encoder.status();
                     const Result<Embeddings> found = encoder->Encode(texts);
                     if (!found.ok()) return found.status();
                     const auto view = found->vectors.View<float>();
                     const std::vector<float> values(view.data(),
                                                     view.data() + view.dim(0) * view.dim(1));
                     if (!wanted) wanted = values;
                     EXPECT_EQ(values, *wanted);
                     return Status();
                   }),
            5u);
}

}  // namespace
}  // namespace encore

#endif  // defined(__linux__)
