// SPDX-License-Identifier: Apache-2.0
//
// Asks for the plan that the encoder will make, and runs it.

#include "tests/contract/plan_ways.h"

#include <chrono>
#include <thread>

#include "encore/thread_pool.h"
#include "engine/kernels/gemm_kernel.h"
#include "engine/nn/thread_plan.h"
#include "engine/ops/gemm_blocking.h"
#include "engine/platform/thread_team.h"
#include "gtest/gtest.h"
#include "reference/drawn.h"
#include "reference/encoder_model.h"
#include "tests/support/compare.h"
#include "tests/support/output_rows.h"
#include "tests/support/precisions.h"

namespace encore {
namespace {

using internal::ThreadPlan;
using internal::ThreadPlanKind;

// The plan that the encoder makes; its words are gone.
ThreadPlan PlanOf(const EncoderConfig& config, const std::vector<size_t>& lengths, size_t threads) {
  std::vector<size_t> words(internal::ThreadPlanWords(lengths.size(), threads));
  return internal::ChooseThreadPlan(internal::ModelSizes(config), Starts(lengths), threads,
                                    internal::MachineCaches(), words.data());
}

Way WayOf(const EncoderConfig& config, const ThreadPlan& plan, const std::vector<size_t>& lengths) {
  switch (plan.kind) {
    case ThreadPlanKind::kSequences: {
      // Windows are as long as the longest group's, rounded up to 16 rows.
      const size_t rows = (plan.max_task_rows + 15) / 16 * 16;
      const bool own = plan.threads * rows <= Starts(lengths).back() &&
                       plan.threads * (rows + 16 * plan.max_task_sequences) <=
                           Starts(lengths).back() + 16 * lengths.size();
      return own ? Way::kSequencesInOwnWindows : Way::kSequencesInPlace;
    }
    case ThreadPlanKind::kRows:
      return plan.attention_apart ? Way::kRowsAttentionApart : Way::kRowsWithAttention;
    case ThreadPlanKind::kColumns:
      return HeadsTogether(config, plan.threads) ? Way::kColumnsHeadsTogether
                                                 : Way::kColumnsInSteps;
  }
  return {};
}

// One of the pool's threads is late: the next plans are those for threads of unequal speed. Not
// where the threads have no core each.
void MakeUneven(const Executor& executor) {
  EXPECT_TRUE(internal::RunTeam(executor, [&](internal::Team& team) {
                for (int stage = 0; stage < 4; ++stage) {
                  team.ForEach(static_cast<size_t>(team.threads()), [](size_t task, int) {
                    std::this_thread::sleep_for(std::chrono::microseconds(task == 0 ? 1000 : 200));
                  });
                }
              }).ok());
}

// The precisions take turns, also where a test makes three calls for each of its models.
Precision NextPrecision() {
  static size_t calls = 0;
  const size_t call = calls++;
  return kPrecisions[(call + call / 3) % std::size(kPrecisions)];
}

}  // namespace

bool HeadsTogether(const EncoderConfig& config, size_t threads) {
  const internal::GemmKernel& kernel = internal::GetGemmKernelF32();
  const internal::LayerSizes sizes(config.d_model, config.layers[0]);
  return internal::HeadsTogether(
      sizes, threads, internal::ChoosePanelVectors(kernel, sizes.qkv_width()) * kernel.lanes);
}

void ExpectWay(Way way, const EncoderConfig& config, const std::vector<size_t>& lengths,
               int threads, const AttentionMask& mask) {
  const ThreadPlan plan = PlanOf(config, lengths, static_cast<size_t>(threads));
  ASSERT_EQ(plan.threads, static_cast<size_t>(threads));
  ASSERT_EQ(WayOf(config, plan, lengths), way) << ThreadPlanKindName(plan.kind);
  const EncoderModel model(config);
  const size_t width = config.d_model;
  const std::vector<size_t> starts = Starts(lengths);
  const std::vector<float> x = RandomFloats(starts.back() * width, 1);
  const ThreadPool pool = Taken(ThreadPool::Create({.threads = threads}));
  const Batch batch{.seq_starts = starts, .mask = mask};
  const Precision precision = NextPrecision();
  SCOPED_TRACE(PrecisionName(precision));
  const Encoder encoder = model.Make({.precision = precision});
  std::vector<float> want;
  for (const std::vector<float>& sequence : Split(x, starts, width)) {
    const Batch alone{.seq_starts = {0, sequence.size() / width}, .mask = mask};
    const std::vector<float> y = Forward(encoder, alone, sequence);
    want.insert(want.end(), y.begin(), y.end());
  }
  for (int run = 0; run < 2; ++run) {
    EXPECT_TRUE(SameBits(Forward(encoder, batch, x, pool.executor()), want)) << "run " << run;
  }
  MakeUneven(pool.executor());
  EXPECT_TRUE(SameBits(Forward(encoder, batch, x, pool.executor()), want)) << "uneven";
  EXPECT_TRUE(SameOutputRows(encoder, batch, x, want, pool.executor()));
}

}  // namespace encore
