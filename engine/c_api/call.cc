// SPDX-License-Identifier: Apache-2.0
//
// encore_call_options and encore_stop: how a call ends early, and what is seen of it.

#include "engine/c_api/call.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>

#include "engine/base/status_macros.h"
#include "engine/c_api/arguments.h"

namespace encore::inline v0_1::internal {

Status CallChoices::Read(const encore_model& model, const encore_call_options* given,
                         Executor* executor) {
  encore_call_options known;
  ENCORE_RETURN_IF_ERROR(ReadOptions(given, "encore_call_options", &known));
  // A year: time points of nanoseconds do not hold all doubles.
  constexpr double kMostSeconds = 366 * 86400.0;
  if (!(known.seconds >= 0 && known.seconds <= kMostSeconds)) {
    return InvalidArgument("call.seconds is " + std::to_string(known.seconds) + "; wanted 0 to " +
                           std::to_string(kMostSeconds));
  }
  ENCORE_RETURN_IF_ERROR(CheckChoice("call.background", known.background, 1));
  ENCORE_RETURN_IF_ERROR(CheckChoice("call.reserved", known.reserved, 0));
  if (known.stats != nullptr) {
    ENCORE_RETURN_IF_ERROR(CheckSize(known.stats, "call.stats", "encore_call_stats"));
  }
  known_ = known;
  *executor = model.executor;
  if (known.background != 0) *executor = executor->InBackground();
  if (known.stop != nullptr) *executor = executor->WithStop(&known.stop->flag);
  if (known.seconds == 0) return {};
  using Clock = std::chrono::steady_clock;
  const std::chrono::duration<double> most(known.seconds);
  *executor = executor->WithDeadline(Clock::now() + std::chrono::ceil<Clock::duration>(most));
  return {};
}

void CallChoices::Tell(const CallProgress& progress) const {
  const encore_call_progress told = {progress.texts, progress.all_texts, progress.tokens,
                                     progress.all_tokens};
  known_.progress(known_.progress_context, &told);
}

CallChoices::~CallChoices() {
  if (known_.stats == nullptr) return;
  WriteStruct({.size = 0,
               .tokenizing = found_.tokenizing,
               .embedding = found_.embedding,
               .layers = found_.layers,
               .pooling = found_.pooling,
               .waiting = found_.waiting,
               .texts = found_.texts,
               .tokens = found_.tokens,
               .helpers = found_.helpers,
               .scratch_bytes = found_.scratch_bytes},
              known_.stats);
}

}  // namespace encore::internal

extern "C" {

encore_status encore_stop_new(encore_stop** stop) {
  return encore::internal::CallInC([stop]() -> encore::Status {
    if (stop == nullptr) return encore::internal::NullArgument("stop");
    *stop = nullptr;
    *stop = new encore_stop;
    return {};
  });
}

void encore_stop_set(encore_stop* stop, int32_t stopped) {
  if (stop != nullptr) stop->flag.store(stopped != 0, std::memory_order_relaxed);
}

void encore_stop_free(encore_stop* stop) { delete stop; }

}  // extern "C"
