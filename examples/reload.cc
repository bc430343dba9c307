// SPDX-License-Identifier: Apache-2.0
//
// A model is replaced while it serves: one thread makes a vector every 1/60 s, another opens the
// folder again and puts the new model in the place of the old one. Prints how long calls took with
// and without that.
//
//   reload FOLDER [SECONDS [CACHE]] < texts.txt

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "encore/text_encoder.h"

namespace {

using Clock = std::chrono::steady_clock;
using Model = std::shared_ptr<const encore::TextEncoder>;

double MillisecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

int Fail(const encore::Status& status) {
  std::fprintf(stderr, "reload: %s\n", status.message().c_str());
  return 1;
}

// The model that serves. A call takes it with load() and keeps it until the call is over.
#if defined(__cpp_lib_atomic_shared_ptr)
using LiveModel = std::atomic<Model>;
#else  // libc++ has no std::atomic of shared pointers
class LiveModel {
 public:
  explicit LiveModel(Model model) : model_(std::move(model)) {}
  Model load() const {
    const std::lock_guard lock(mutex_);
    return model_;
  }
  Model exchange(Model model) {
    const std::lock_guard lock(mutex_);
    return std::exchange(model_, std::move(model));
  }

 private:
  mutable std::mutex mutex_;
  Model model_;
};
#endif

// Opens the folder and makes its first call, which is slower than the next ones.
encore::Result<Model> OpenModel(const std::string& folder, const std::string& cache,
                                const std::string& text) {
  const auto model = encore::TextEncoder::Open(folder, {.cache = cache});
  if (!model.ok()) return model.status();
  const auto first = model->Encode({text});
  if (!first.ok()) return first.status();
  return std::make_shared<const encore::TextEncoder>(*model);
}

struct Serving {
  std::vector<double> milliseconds;  // of each call
  encore::Status status;
};

// A vector of one text after the other, 60 a second, by whatever model is live.
Serving Serve(const LiveModel& live, const std::vector<std::string>& texts, double seconds) {
  Serving serving;
  std::vector<float> row(live.load()->dimensions());
  Clock::time_point frame = Clock::now();
  for (int i = 0; i < static_cast<int>(seconds * 60); ++i) {
    frame += std::chrono::microseconds(16667);
    std::this_thread::sleep_until(frame);
    const Clock::time_point begin = Clock::now();
    const Model model = live.load();
    serving.status = model->Encode({texts[static_cast<size_t>(i) % texts.size()]},
                                   encore::MutableView(row.data(), {1, row.size()}));
    serving.milliseconds.push_back(MillisecondsSince(begin));
    if (!serving.status.ok()) break;
  }
  return serving;
}

struct Reloads {
  std::vector<double> milliseconds;  // of each opening
  encore::Status status;
};

// Opens the folder again and again until the flag is set.
Reloads Reload(const std::string& folder, const std::string& cache, const std::string& text,
               const std::atomic<bool>& stop, LiveModel* live) {
  Reloads reloads;
  while (!stop) {
    const Clock::time_point begin = Clock::now();
    const encore::Result<Model> opened = OpenModel(folder, cache, text);
    reloads.status = opened.status();
    if (!opened.ok()) break;  // the old model serves on
    reloads.milliseconds.push_back(MillisecondsSince(begin));
    const Model old = live->exchange(*opened);
    // The old model's memory is given back by this thread, once no call has it.
    while (old.use_count() > 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  return reloads;
}

void Print(const char* what, std::vector<double> milliseconds) {
  if (milliseconds.empty()) return;
  std::sort(milliseconds.begin(), milliseconds.end());
  const size_t count = milliseconds.size();
  std::printf("%-12s %6zu calls   p50 %8.3f   p99 %8.3f   max %8.3f ms\n", what, count,
              milliseconds[count / 2], milliseconds[count * 99 / 100], milliseconds.back());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 4) {
    std::fprintf(stderr, "usage: reload FOLDER [SECONDS [CACHE]] < texts.txt\n");
    return 2;
  }
  const double seconds = argc > 2 ? std::atof(argv[2]) : 5;
  if (!(seconds > 0 && seconds <= 3600)) {
    std::fprintf(stderr, "reload: found %s seconds, wanted more than 0, at most 3600\n", argv[2]);
    return 2;
  }
  const std::string folder = argv[1], cache = argc > 3 ? argv[3] : "";
  std::vector<std::string> texts;
  for (std::string text; std::getline(std::cin, text);) texts.push_back(text);
  if (texts.empty()) {
    std::fprintf(stderr, "reload: found no text on standard input\n");
    return 2;
  }

  encore::Result<Model> first = OpenModel(folder, cache, texts[0]);
  if (!first.ok()) return Fail(first.status());
  LiveModel live(*std::move(first));
  const Serving alone = Serve(live, texts, seconds);
  if (!alone.status.ok()) return Fail(alone.status);

  std::atomic<bool> stop = false;
  Reloads reloads;
  std::thread reloading([&] { reloads = Reload(folder, cache, texts[0], stop, &live); });
  const Serving beside = Serve(live, texts, seconds);
  stop = true;
  reloading.join();
  if (!beside.status.ok()) return Fail(beside.status);
  if (!reloads.status.ok()) return Fail(reloads.status);

  Print("alone", alone.milliseconds);
  Print("reloading", beside.milliseconds);
  Print("reloads", reloads.milliseconds);
  return 0;
}
