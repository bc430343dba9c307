// SPDX-License-Identifier: Apache-2.0
//
// Calls through C that are stopped at random moments: how soon they return, and the ones after
// them.
//   ENCORE_STOPS=1000 build/release/tests/api_test --file=c_api_stop_test.cc
// prints the distribution.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "encore/c_api.h"
#include "tests/api/c_api_case.h"
#include "tests/support/environment.h"
#include "tests/support/text_case.h"

namespace encore {
namespace {

using Clock = std::chrono::steady_clock;

double Seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

// Sets a flag once a call has done some texts, on the thread that tells of them.
struct StopAtText {
  encore_stop* stop = nullptr;
  size_t at = 0;  // 0: never
  size_t reached = 0;
  Clock::time_point set{};

  static void Told(void* context, const encore_call_progress* progress) {
    auto& self = *static_cast<StopAtText*>(context);
    self.reached = progress->texts;
    if (self.at == 0 || progress->texts < self.at) return;
    self.set = Clock::now();
    encore_stop_set(self.stop, 1);
    self.at = 0;
  }
};

// Runs the call, whose flag is set after some time; seconds from there to its return.
template <typename F>
double RunStopped(encore_stop* stop, double after, const F& call) {
  std::atomic<bool> returned{false};
  Clock::time_point set;
  std::thread thread([&] {
    const std::chrono::duration<double> wait(after);
    const Clock::time_point at = Clock::now() + std::chrono::duration_cast<Clock::duration>(wait);
    while (Clock::now() < at && !returned.load()) {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    set = Clock::now();
    encore_stop_set(stop, 1);
  });
  call();
  const Clock::time_point end = Clock::now();
  returned = true;
  thread.join();
  return Seconds(end - set);
}

TEST_F(CApiTest, StoppedAtRandomMomentsTheNextCallIsRight) {
  const uint32_t count = FromEnvironment("ENCORE_STOPS", 100);
  auto open = Sized<encore_open_options>();
  open.threads = 2;
  const Model model(folder(), &open);
  const std::vector<std::string> few = TextCases::Read().texts;
  std::vector<std::string> texts;
  while (texts.size() < 400) texts.insert(texts.end(), few.begin(), few.end());
  const std::vector<encore_text> views = Views(texts);
  std::vector<float> right(texts.size() * kD), found(right.size());
  encore_stop* stop = nullptr;
  ASSERT_EQ(encore_stop_new(&stop), ENCORE_OK);
  auto call = Sized<encore_call_options>();
  call.stop = stop;
  auto options = Sized<encore_encode_options>();
  options.call = &call;
  options.batch_tokens = 512;  // progress between some texts
  const auto encode = [&](std::vector<float>* vectors) {
    return encore_encode(model, views.data(), views.size(), &options, vectors->data(),
                         vectors->size(), nullptr, nullptr);
  };
  ASSERT_EQ(encode(&right), ENCORE_OK) << encore_last_error();
  const Clock::time_point begin = Clock::now();
  ASSERT_EQ(encode(&right), ENCORE_OK) << encore_last_error();
  const double whole = Seconds(Clock::now() - begin);
  std::mt19937 random(7);
  std::uniform_real_distribution<double> part(0, 1);
  std::vector<double> late;
  StopAtText at_text{.stop = stop};
  call.progress = StopAtText::Told;
  call.progress_context = &at_text;
  for (uint32_t i = 0; i < count; ++i) {
    encore_status status = ENCORE_OK;
    if (i % 2 == 0) {
      at_text.at = 1 + random() % (texts.size() / 2);
      status = encode(&found);
      late.push_back(Seconds(Clock::now() - at_text.set));
      ASSERT_EQ(status, ENCORE_CANCELLED) << encore_last_error();
      EXPECT_LT(at_text.reached, texts.size()) << "it went on to its end";
    } else {  // at a moment that may be too late
      const double time = RunStopped(stop, part(random) * whole, [&] { status = encode(&found); });
      if (status != ENCORE_OK) {
        ASSERT_EQ(status, ENCORE_CANCELLED) << encore_last_error();
        late.push_back(time);
      }
    }
    encore_stop_set(stop, 0);
    if (i % 4 != 0 && status != ENCORE_OK) continue;
    if (status != ENCORE_OK) {
      ASSERT_EQ(encode(&found), ENCORE_OK) << encore_last_error();
    }
    ASSERT_EQ(std::memcmp(found.data(), right.data(), right.size() * sizeof(float)), 0);
  }
  encore_stop_free(stop);
  std::sort(late.begin(), late.end());
  if (std::getenv("ENCORE_STOPS") != nullptr) {
    std::printf(
        "%zu of %u calls of %.1f ms stopped: returned after %.3f ms (median), %.3f (99 %%), "
        "%.3f (last)\n",
        late.size(), count, 1e3 * whole, 1e3 * late[late.size() / 2],
        1e3 * late[late.size() * 99 / 100], 1e3 * late.back());
  }
}

}  // namespace
}  // namespace encore
