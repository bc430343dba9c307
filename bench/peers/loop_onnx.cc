// SPDX-License-Identifier: Apache-2.0
//
// ONNX Runtime in the frames of `encore bench --loop`: a BERT's last hidden state of given ids,
// their mean, and its length made 1.
//
//   loop_onnx MODEL.onnx HZ FRAMES THREADS ID...
//
// Prints JSON: the seconds of each frame's call and control, what was counted, and the vector.
// loop.py compiles it, with bench/measure/frames.cc and what counts allocations.

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <onnxruntime_cxx_api.h>

#include "bench/measure/frames.h"

namespace {

constexpr size_t kWarmUps = 50;

template <typename T>
void Print(const char* name, const std::vector<T>& values) {
  std::printf("\"%s\": [", name);
  for (size_t i = 0; i < values.size(); ++i) std::printf("%s%.9g", i > 0 ? ", " : "", values[i]);
  std::printf("], ");
}

class Peer {
 public:
  Peer(const char* path, int threads, std::vector<int64_t> ids)
      : ids_(std::move(ids)), ones_(ids_.size(), 1), zeros_(ids_.size(), 0) {
    Ort::SessionOptions options;
    options.SetGraphOptimizationLevel(ORT_ENABLE_ALL);
    options.SetIntraOpNumThreads(threads);
    options.SetInterOpNumThreads(1);
    session_ = Ort::Session(env_, path, options);
    const auto shape = session_.GetOutputTypeInfo(0).GetTensorTypeAndShapeInfo().GetShape();
    vector_.resize(static_cast<size_t>(shape[2]));
    hidden_.resize(ids_.size() * vector_.size());
    const std::array<int64_t, 2> of_ids = {1, static_cast<int64_t>(ids_.size())};
    const std::array<int64_t, 3> of_hidden = {1, of_ids[1], shape[2]};
    for (std::vector<int64_t>* values : {&ids_, &ones_, &zeros_}) {
      inputs_.push_back(Ort::Value::CreateTensor<int64_t>(memory_, values->data(), values->size(),
                                                          of_ids.data(), of_ids.size()));
    }
    output_ = Ort::Value::CreateTensor<float>(memory_, hidden_.data(), hidden_.size(),
                                              of_hidden.data(), of_hidden.size());
  }

  void Run() {
    static constexpr std::array kIn = {"input_ids", "attention_mask", "token_type_ids"};
    static constexpr std::array kOut = {"last_hidden_state"};
    session_.Run(Ort::RunOptions{nullptr}, kIn.data(), inputs_.data(), inputs_.size(), kOut.data(),
                 &output_, 1);
    vector_.assign(vector_.size(), 0);
    for (size_t i = 0; i < hidden_.size(); ++i) vector_[i % vector_.size()] += hidden_[i];
    float squares = 0;
    for (const float value : vector_) squares += value * value;
    for (float& value : vector_) value /= std::sqrt(squares);
  }

  const std::vector<float>& vector() const { return vector_; }

 private:
  std::vector<int64_t> ids_, ones_, zeros_;
  std::vector<float> hidden_, vector_;
  Ort::Env env_{ORT_LOGGING_LEVEL_ERROR};
  Ort::MemoryInfo memory_ = Ort::MemoryInfo::CreateCpu(OrtDeviceAllocator, OrtMemTypeDefault);
  Ort::Session session_{nullptr};
  std::vector<Ort::Value> inputs_;
  Ort::Value output_{nullptr};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) return std::fputs("wanted MODEL.onnx HZ FRAMES THREADS ID...\n", stderr), 2;
  std::vector<int64_t> ids;
  for (int i = 5; i < argc; ++i) ids.push_back(std::stoll(argv[i]));
  Peer peer(argv[1], std::stoi(argv[4]), std::move(ids));
  for (size_t i = 0; i < kWarmUps; ++i) peer.Run();
  const encore::bench::FrameTimes times = encore::bench::RunFrames(
      {.hz = std::stoi(argv[2]), .frames = std::stoul(argv[3])}, [&](size_t) { peer.Run(); });
  std::printf("{");
  Print("calls", times.calls);
  Print("control", times.control);
  Print("vector", peer.vector());
  std::printf("\"allocations\": %.2f, \"minor_faults\": %.2f, \"voluntary_switches\": %.2f}\n",
              times.allocations.value_or(-1), times.counts.minor_faults,
              times.counts.voluntary_switches);
  return 0;
}
