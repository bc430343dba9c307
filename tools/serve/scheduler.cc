// SPDX-License-Identifier: Apache-2.0
//
// Taking slices, and what becomes of their work.

#include "tools/serve/scheduler.h"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "tools/serve/compute.h"
#include "tools/serve/memory.h"

namespace encore::serve {
namespace {

std::chrono::nanoseconds TimeOf(const Work& work, size_t tokens, double share) {
  const double ns = static_cast<double>(tokens) * work.model->token_ns / share;
  return std::chrono::nanoseconds(static_cast<int64_t>(ns));
}

bool IsLong(const Work& work) { return work.all_tokens > work.model->slice_tokens; }

bool Mergeable(const Work& a, const Work& b) {
  return a.kind == WorkKind::kEmbed && b.kind == WorkKind::kEmbed && a.model == b.model &&
         a.options == b.options;
}

// Of the last requests, some 16, those that met others: where they are fewer than this, a request
// that is alone has all threads. Else another would soon come and share a core with one of them.
constexpr double kMeetingsOver = 16;
constexpr double kFewMeetings = 0.25;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// What encore::text does not catch: memory for this program's own copies.
Status ComputeCaught(const Batch& batch) {
  try {
    const MemoryScope scope(NoMemory::kThrow);
    return ComputeBatch(batch);
  } catch (const std::bad_alloc&) {
    return Status(ErrorCode::kOutOfMemory, "out of memory");
  } catch (const std::exception& error) {
    return Status(ErrorCode::kUnsupported, std::string("unexpected error: ") + error.what());
  }
}

// The function refers to whoever has the work.
void CallFinished(Work* work) {
  const std::function<void()> finished = std::move(work->finished);
  work->finished = nullptr;
  finished();
}

// A status for each part. A text that fails must not fail other requests' texts in the same call.
std::vector<Status> Compute(const Batch& batch) {
  const Status all = ComputeCaught(batch);
  std::vector<Status> statuses(batch.parts.size(), all);
  if (all.ok() || batch.parts.size() == 1 || batch.stop) return statuses;
  for (size_t i = 0; i < batch.parts.size(); ++i) {
    Batch alone;
    alone.parts.push_back(batch.parts[i]);
    alone.executor = batch.executor;
    statuses[i] = ComputeCaught(alone);
  }
  return statuses;
}

}  // namespace

Scheduler::Scheduler(const Executor& executor, size_t queue_tokens, Metrics* metrics)
    : executor_(executor), queue_tokens_(queue_tokens), metrics_(metrics) {
  // One for long work, which leaves its cores to the others. They take none of each other's: where
  // more of them want work than there are cores, the system has two share one, and others idle.
  threads_.emplace_back([this] { Run(/*takes_long=*/true); });
  for (int i = 0; i < executor.threads(); ++i) {
    threads_.emplace_back([this] { Run(/*takes_long=*/false); });
  }
}

Scheduler::~Scheduler() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  wake_long_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool Scheduler::Submit(const std::shared_ptr<Work>& work) {
  const MemoryScope scope(NoMemory::kWait);
  bool is_free = false;
  {
    const std::lock_guard lock(mutex_);
    if (queued_ + work->all_tokens > queue_tokens_) return false;
    work->submitted = Clock::now();
    queued_ += work->all_tokens;
    queued_ns_ += static_cast<double>(work->all_tokens) * work->model->token_ns;
    const bool met = short_running_ > 0 || !short_.empty();
    if (!IsLong(*work)) meetings_ += ((met ? 1.0 : 0.0) - meetings_) / kMeetingsOver;
    Insert(work);
    metrics_->SetQueue(queued_);
    is_free = CanTake(IsLong(*work));
  }
  // Else a thread that is at work takes it next, on the core that it has.
  if (is_free) (IsLong(*work) ? wake_long_ : wake_).notify_one();
  return true;
}

void Scheduler::Cancel(const std::shared_ptr<Work>& work) {
  const MemoryScope scope(NoMemory::kWait);
  {
    const std::lock_guard lock(mutex_);
    if (work->cancelled) return;
    work->cancelled = true;
    if (work->running != nullptr) {
      if (--work->running->live == 0) work->running->stop = true;
      return;
    }
    const size_t before = short_.size() + long_.size();
    short_.remove(work);
    long_.remove(work);
    if (short_.size() + long_.size() == before) return;  // never submitted, or finished
    Forget(*work);
    work->status = Status(ErrorCode::kCancelled, "the client has gone");
  }
  CallFinished(work.get());
}

size_t Scheduler::queued_tokens() const {
  const std::lock_guard lock(mutex_);
  return queued_;
}

double Scheduler::SecondsOfQueue() const {
  const std::lock_guard lock(mutex_);
  return std::max(queued_ns_, 0.0) / 1e9;
}

bool Scheduler::CanTake(bool is_long) const {
  if (is_long) return !long_.empty();
  return !short_.empty() && short_running_ < static_cast<size_t>(executor_.threads());
}

void Scheduler::Insert(const std::shared_ptr<Work>& work) {
  const bool is_long = IsLong(*work);
  const size_t next = std::min(work->all_tokens - work->begun_tokens, work->model->slice_tokens);
  work->due = work->submitted + TimeOf(*work, work->begun_tokens + next, is_long ? 0.5 : 1.0);
  if (!is_long) short_waiting_ += work->all_tokens;
  WorkList& list = is_long ? long_ : short_;
  const auto later = [&](const std::shared_ptr<Work>& other) { return other->due > work->due; };
  list.insert(std::find_if(list.begin(), list.end(), later), work);
}

void Scheduler::Forget(const Work& work) {
  const size_t tokens = work.all_tokens - work.begun_tokens;
  queued_ -= tokens;
  queued_ns_ -= static_cast<double>(tokens) * work.model->token_ns;
  if (!IsLong(work)) short_waiting_ -= tokens;
  metrics_->SetQueue(queued_);
}

Scheduler::WorkList Scheduler::RemoveExpired() {
  WorkList expired;
  const Clock::time_point now = Clock::now();
  for (WorkList* const list : {&short_, &long_}) {
    for (auto at = list->begin(); at != list->end();) {
      const auto here = at++;
      if ((*here)->deadline > now) continue;
      Forget(**here);
      (*here)->status = Status(ErrorCode::kDeadlineExceeded, "the request's deadline has passed");
      expired.splice(expired.end(), *list, here);
    }
  }
  return expired;
}

void Scheduler::AddPart(const std::shared_ptr<Work>& work, size_t end, size_t tokens,
                        Batch* batch) {
  batch->parts.push_back({work, work->next, end, tokens});
  batch->tokens += tokens;
  ++batch->live;
  if (work->next == 0) work->queue_seconds = SecondsSince(work->submitted);
  work->next = end;
  work->begun_tokens += tokens;
  work->running = batch;
}

std::unique_ptr<Batch> Scheduler::TakeShort() {
  auto batch = std::make_unique<Batch>();
  const std::shared_ptr<Work> first = short_.front();
  // A share for each thread, also those that are at work: they soon come for theirs. A thread that
  // took all that waits would leave the others idle, and all of it would end late.
  const auto threads = static_cast<size_t>(executor_.threads());
  const size_t share = (short_waiting_ + threads - 1) / threads;
  const size_t most = std::min(share, first->model->slice_tokens);
  for (auto at = short_.begin(); at != short_.end();) {
    const auto here = at++;
    const std::shared_ptr<Work>& work = *here;
    const bool fits =
        work == first || (Mergeable(*first, *work) && batch->tokens + work->all_tokens <= most);
    if (!fits) continue;
    AddPart(work, work->size(), work->all_tokens, batch.get());
    short_waiting_ -= work->all_tokens;
    short_.erase(here);
    if (batch->tokens >= most) break;
  }
  const bool alone = short_running_ == 0 && short_.empty() && meetings_ < kFewMeetings;
  batch->executor = alone ? executor_ : executor_.WithAtMost(1);
  ++short_running_;
  return batch;
}

std::unique_ptr<Batch> Scheduler::TakeLong() {
  auto batch = std::make_unique<Batch>();
  batch->is_long = true;
  const std::shared_ptr<Work> work = long_.front();
  long_.pop_front();
  size_t end = work->next;
  size_t tokens = 0;
  do {
    tokens += work->tokens[end++];
  } while (end < work->size() && tokens + work->tokens[end] <= work->model->slice_tokens);
  AddPart(work, end, tokens, batch.get());
  batch->executor = Clock::now() > work->due ? executor_ : executor_.InBackground();
  return batch;
}

// What is finished now.
Scheduler::WorkList Scheduler::Settle(const Batch& batch, const std::vector<Status>& statuses,
                                      double seconds) {
  WorkList done;
  if (!batch.is_long) --short_running_;
  for (size_t i = 0; i < batch.parts.size(); ++i) {
    const Part& part = batch.parts[i];
    const std::shared_ptr<Work>& work = part.work;
    work->running = nullptr;
    work->compute_seconds += seconds;
    queued_ -= part.tokens;
    queued_ns_ -= static_cast<double>(part.tokens) * work->model->token_ns;
    work->status = statuses[i];
    if (work->cancelled) work->status = Status(ErrorCode::kCancelled, "the client has gone");
    if (work->status.ok() && work->next < work->size()) {
      Insert(work);
      continue;
    }
    if (work->next < work->size()) Forget(*work);
    done.push_back(work);
  }
  metrics_->SetQueue(queued_);
  return done;
}

void Scheduler::Run(bool takes_long) {
  const MemoryScope scope(NoMemory::kWait);
  std::condition_variable& wake = takes_long ? wake_long_ : wake_;
  std::unique_lock lock(mutex_);
  for (;;) {
    wake.wait(lock, [&] { return stop_ || CanTake(takes_long); });
    if (stop_) return;
    WorkList done = RemoveExpired();
    std::unique_ptr<Batch> batch;
    if (CanTake(takes_long)) batch = takes_long ? TakeLong() : TakeShort();
    const bool more = CanTake(takes_long);
    lock.unlock();
    if (more) wake.notify_one();
    for (const std::shared_ptr<Work>& work : done) CallFinished(work.get());
    if (batch == nullptr) {
      lock.lock();
      continue;
    }

    Clock::time_point deadline = Clock::time_point::min();
    for (const Part& part : batch->parts) deadline = std::max(deadline, part.work->deadline);
    batch->executor = batch->executor.WithStop(&batch->stop).WithDeadline(deadline);
    const Clock::time_point start = Clock::now();
    const std::vector<Status> statuses = Compute(*batch);
    const double seconds = SecondsSince(start);
    metrics_->CountBatch(*batch);

    lock.lock();
    done = Settle(*batch, statuses, seconds);
    lock.unlock();
    for (const std::shared_ptr<Work>& work : done) CallFinished(work.get());
    done.clear();
    batch.reset();
    lock.lock();
  }
}

}  // namespace encore::serve
