// SPDX-License-Identifier: Apache-2.0
//
// The scheduler: which texts of which requests are computed next, on which threads.
//
// Work is computed in slices, some 10 ms of the model's time each. A piece of work that fits into
// one slice is short, any other is long.
//
// - Short work is taken in the order of its due time: when it came, and what it costs. Embeddings
//   of several requests with equal options make one call: bits do not depend on the other texts.
//   Where short work is alone, and mostly was of late, it has all threads; else each thread takes
//   its share of what waits.
// - One slice of long work runs at a time, on all threads, in the background: short work takes its
//   cores as soon as their present tasks end. A slice is due when half the machine would have
//   computed it. One that is late runs as short work does, so that long work ends too.
//
// Tokens of all work that is waiting or computed are bounded. Work whose client has gone is
// dropped: waiting at once, computed as soon as the present tasks end, unless others share its
// call.

#ifndef ENCORE_TOOLS_SERVE_SCHEDULER_H_
#define ENCORE_TOOLS_SERVE_SCHEDULER_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "encore/executor.h"
#include "encore/status.h"
#include "tools/serve/metrics.h"
#include "tools/serve/work.h"

namespace encore::serve {

// Texts [begin, end) of a piece of work.
struct Part {
  std::shared_ptr<Work> work;
  size_t begin = 0;
  size_t end = 0;
  size_t tokens = 0;
};

// What one call computes.
struct Batch {
  std::vector<Part> parts;
  size_t tokens = 0;
  bool is_long = false;
  Executor executor;
  size_t live = 0;  // parts whose clients are there
  std::atomic<bool> stop = false;
};

class Scheduler {
 public:
  // `threads` are those of `executor`, which outlives this object as metrics do.
  Scheduler(const Executor& executor, size_t queue_tokens, Metrics* metrics);
  ~Scheduler();  // no work may be left
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Work with at least one text. False, and nothing is done, where the queue has no room for it.
  bool Submit(const std::shared_ptr<Work>& work);
  // It will finish with kCancelled, unless it just finishes otherwise. Work that was not submitted
  // is left alone.
  void Cancel(const std::shared_ptr<Work>& work);

  size_t queued_tokens() const;
  // Until what is queued now is done.
  double SecondsOfQueue() const;

 private:
  using WorkList = std::list<std::shared_ptr<Work>>;

  void Run(bool takes_long);
  // These need the lock.
  bool CanTake(bool is_long) const;
  std::unique_ptr<Batch> TakeShort();
  std::unique_ptr<Batch> TakeLong();
  void AddPart(const std::shared_ptr<Work>& work, size_t end, size_t tokens, Batch* batch);
  void Insert(const std::shared_ptr<Work>& work);
  void Forget(const Work& work);  // its texts that no slice has
  WorkList RemoveExpired();
  WorkList Settle(const Batch& batch, const std::vector<Status>& statuses, double seconds);

  Executor executor_;
  size_t queue_tokens_;
  Metrics* metrics_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;       // threads of short work
  std::condition_variable wake_long_;  // the thread of long work
  WorkList short_;                     // by due time
  WorkList long_;                      // by due time, without the one that runs
  size_t queued_ = 0;                  // tokens not computed yet
  double queued_ns_ = 0;               // what they take
  size_t short_waiting_ = 0;           // tokens in short_
  size_t short_running_ = 0;           // batches
  double meetings_ = 0;                // share of late short work that met other short work
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace encore::serve

#endif  // ENCORE_TOOLS_SERVE_SCHEDULER_H_
