// SPDX-License-Identifier: Apache-2.0
//
// A host's parallel_for that throws: the exception passes through the library's call, which leaves
// everything fit for the next one.

#include <gtest/gtest.h>

#include <cstddef>
#include <new>
#include <stdexcept>
#include <vector>

#include "encore/encoder.h"
#include "encore/executor.h"
#include "encore/ops.h"
#include "reference/caller_modes.h"
#include "reference/encoder_model.h"
#include "tests/support/results.h"

namespace encore {
namespace {

// Throws in its loop `bad_loop`, after so many of its calls.
template <typename Exception>
struct ThrowingHost {
  size_t bad_loop = 0;
  size_t calls = 0;
  size_t loops = 0;
  template <typename F>
  void parallel_for(size_t count, F body) {
    const bool bad = loops++ == bad_loop;
    for (size_t i = 0; i < (bad ? calls : count); ++i) body(i);
    if (bad) throw Exception();
  }
};

struct HostStopped : std::runtime_error {
  HostStopped() : std::runtime_error("the host's pool has stopped") {}
};

TEST(HostExceptionTest, PassesThroughAnOperation) {
  const std::vector<float> a(512 * 64, 1.0f);
  const std::vector<float> b(64 * 64, 1.0f);
  std::vector<float> c(512 * 64);
  const auto multiply = [&](const Executor& executor) {
    return MatMul(ConstView(a.data(), {512, 64}), ConstView(b.data(), {64, 64}),
                  MutableView(c.data(), {512, 64}), {.executor = executor});
  };
  for (const size_t calls : {0, 1, 2}) {
    ThrowingHost<HostStopped> stopped{.calls = calls};
    EXPECT_THROW((void)multiply(Executor::HostPool(2, stopped)), HostStopped);
    EXPECT_EQ(stopped.loops, 1u);
    EXPECT_TRUE(multiply(Executor::HostPool(2, stopped)).ok());
    ThrowingHost<std::bad_alloc> starved{.calls = calls};
    EXPECT_EQ(multiply(Executor::HostPool(2, starved)).code(), ErrorCode::kOutOfMemory);
  }
  for (const float element : c) ASSERT_EQ(element, 64.0f);
}

TEST(HostExceptionTest, LeavesEncoderAndWorkspaceAsTheyWere) {
  constexpr size_t kTokens = 400;
  const EncoderModel model(EncoderConfig::Uniform(32, 2, {.num_heads = 2, .d_ff = 64}));
  const Encoder encoder = model.Make();
  const Batch batch{.seq_starts = {0, 100, 390, kTokens}};
  const std::vector<float> x(kTokens * 32, 0.5f);
  std::vector<float> y(x.size());
  ThrowingHost<HostStopped> host;
  const Executor executor = Executor::HostPool(3, host);
  Workspace workspace = Taken(encoder.MakeWorkspace(batch, executor));
  const auto forward = [&] {
    return encoder.Forward(batch, ConstView(x.data(), {kTokens, size_t{32}}),
                           MutableView(y.data(), {kTokens, size_t{32}}), workspace, executor);
  };
  const std::vector<float> want = Forward(encoder, batch, x);
  for (size_t loop = 0;; ++loop) {
    host = {.bad_loop = loop, .calls = loop % 3};
    const uint64_t before = reference::CallerState();
    bool thrown = false;
    try {
      EXPECT_TRUE(forward().ok());
    } catch (const HostStopped&) {
      thrown = true;
    }
    EXPECT_EQ(reference::CallerState() & ~reference::kStickyFlags,
              before & ~reference::kStickyFlags);
    if (!thrown) {  // it has no more loops than that
      EXPECT_GT(loop, 0u);
      break;
    }
  }
  EXPECT_EQ(y, want);
}

}  // namespace
}  // namespace encore
