// SPDX-License-Identifier: Apache-2.0
//
// Python's handlers of signals, and functions of the caller's, run on the thread that made the
// call, which waits for encore meanwhile and has the GIL every few ms.

#include "python/src/watch.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <string>

#include "python/src/bindings.h"

namespace pyencore {
namespace {

using Clock = std::chrono::steady_clock;

double Seconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

template <int64_t encore::CallStats::*member>
double SecondsOf(const encore::CallStats& stats) {
  return Seconds(stats.*member);
}

std::string Shown(const encore::CallStats& stats) {
  std::string shown = "CallStats(";
  const std::pair<const char*, int64_t> times[] = {{"tokenizing", stats.tokenizing},
                                                   {"embedding", stats.embedding},
                                                   {"layers", stats.layers},
                                                   {"pooling", stats.pooling},
                                                   {"waiting", stats.waiting}};
  for (const auto& [name, time] : times) {
    shown += std::string(name) + "=" + std::to_string(Seconds(time)) + ", ";
  }
  return shown + "texts=" + std::to_string(stats.texts) +
         ", tokens=" + std::to_string(stats.tokens) + ", helpers=" + std::to_string(stats.helpers) +
         ", scratch_bytes=" + std::to_string(stats.scratch_bytes) + ")";
}

// function(arguments ...).
template <typename... Arguments>
nb::object Called(const nb::object& function, Arguments... arguments) {
  const nb::tuple given = nb::make_tuple(arguments...);
  PyObject* const result = CallPython(function.ptr(), given.ptr());
  if (result == nullptr) throw nb::python_error();
  return nb::steal(result);
}

bool IsTrue(const nb::object& object) {
  const int is_true = PyObject_IsTrue(object.ptr());
  if (is_true < 0) throw nb::python_error();
  return is_true != 0;
}

}  // namespace

Watch::Watch(nb::object cancel, std::optional<double> seconds, bool background, nb::object progress,
             encore::CallStats* stats, bool signals)
    : cancel_(std::move(cancel)),
      background_(background),
      progress_(std::move(progress)),
      has_progress_(!progress_.is_none()),
      stats_(stats),
      signals_(signals) {
  if (nb::isinstance<Stop>(cancel_)) {
    stop_ = nb::cast<const Stop*>(cancel_);
  } else if (!cancel_.is_none()) {
    event_ = cancel_.attr("is_set");
  }
  if (seconds) {
    deadline_ =
        Clock::now() + std::chrono::ceil<Clock::duration>(std::chrono::duration<double>(*seconds));
  }
  if (stats_ != nullptr) *stats_ = {};
}

encore::Executor Watch::Limited(encore::Executor executor) const {
  if (background_) executor = executor.InBackground();
  if (deadline_) executor = executor.WithDeadline(*deadline_);
  if (Waits()) return executor.WithStop(&end_);
  return stop_ != nullptr ? executor.WithStop(stop_->flag()) : executor;
}

void Watch::Tell(const encore::CallProgress& progress) {
  const std::lock_guard lock(mutex_);
  news_ = progress;
  changed_.notify_one();
}

void Watch::Add(const encore::CallStats& found) {
  stats_->tokenizing += found.tokenizing;
  stats_->embedding += found.embedding;
  stats_->layers += found.layers;
  stats_->pooling += found.pooling;
  stats_->waiting += found.waiting;
  stats_->texts += found.texts;
  stats_->tokens += found.tokens;
  stats_->helpers = std::max(stats_->helpers, found.helpers);
  stats_->scratch_bytes = std::max(stats_->scratch_bytes, found.scratch_bytes);
}

bool Watch::Wait() {
  // Ctrl-C and events are looked at every 10 ms, a Stop, for which no GIL is needed, every 2.
  constexpr std::chrono::milliseconds kTick(2);
  constexpr int kTicks = 5;
  const ReleasedGil released;
  std::unique_lock lock(mutex_);
  for (int tick = 0; tick < kTicks; ++tick) {
    if (changed_.wait_for(lock, kTick, [this] { return is_done_ || news_; })) break;
    if (stop_ != nullptr && stop_->IsSet()) end_.store(true, std::memory_order_relaxed);
  }
  return is_done_;
}

void Watch::Look() {
  if (error_) return;
  try {
    if (signals_ && PyErr_CheckSignals() != 0) throw nb::python_error();
    if (event_.is_valid() && IsTrue(Called(event_))) end_.store(true, std::memory_order_relaxed);
    CallProgressFunction();
  } catch (...) {
    error_ = std::current_exception();
    end_.store(true, std::memory_order_relaxed);
  }
}

void Watch::CallProgressFunction() {
  std::optional<encore::CallProgress> news;
  {
    const std::lock_guard lock(mutex_);
    news.swap(news_);
  }
  if (!news) return;
  last_ = *news;
  Called(progress_, before_.texts + last_.texts, before_.all_texts + last_.all_texts,
         before_.tokens + last_.tokens, before_.all_tokens + last_.all_tokens);
}

void Watch::GoOn() {
  before_.texts += last_.texts;
  before_.all_texts += last_.all_texts;
  before_.tokens += last_.tokens;
  before_.all_tokens += last_.all_tokens;
  last_ = {};
}

void BindWatch(nb::module_& module) {
  nb::class_<Stop>(module, "Stop",
                   "A flag that ends calls early: their argument cancel. Any thread may set it and "
                   "take it back, and any number of calls may have it.")
      .def(nb::init<>())
      .def("set", &Stop::Set, "Ends the calls that have it, with CancelledError.")
      .def("clear", &Stop::Clear, "Takes it back, for later calls.")
      .def("is_set", &Stop::IsSet);
  using Stats = encore::CallStats;
  nb::class_<Stats>(module, "CallStats",
                    "What a call did, which has it as its argument stats. Times are seconds, and "
                    "together about those of the call.")
      .def(nb::init<>())
      .def("__repr__", &Shown)
      .def_prop_ro("tokenizing", &SecondsOf<&Stats::tokenizing>, "Texts to ids and batches.")
      .def_prop_ro("embedding", &SecondsOf<&Stats::embedding>, "Rows of the embedding tables.")
      .def_prop_ro("layers", &SecondsOf<&Stats::layers>, "The encoder's; 0 where it has none.")
      .def_prop_ro("pooling", &SecondsOf<&Stats::pooling>, "And what follows it, heads included.")
      .def_prop_ro("waiting", &SecondsOf<&Stats::waiting>, "To wake other threads, and for them.")
      .def_ro("texts", &Stats::texts)
      .def_ro("tokens", &Stats::tokens)
      .def_ro("helpers", &Stats::helpers, "Threads beside the first that computed something.")
      .def_ro("scratch_bytes", &Stats::scratch_bytes, "Memory that the call worked in.");
  nb::class_<Watch>(module, "Watch")
      .def(nb::init<nb::object, std::optional<double>, bool, nb::object, Stats*, bool>(),
           nb::arg("cancel").none(), nb::arg("seconds").none(), nb::arg("background"),
           nb::arg("progress").none(), nb::arg("stats").none(), nb::arg("signals"),
           nb::keep_alive<1, 6>());
}

}  // namespace pyencore
