// SPDX-License-Identifier: Apache-2.0
//
// Counters and histograms, and their text in Prometheus' format. Thread-safe.

#ifndef ENCORE_TOOLS_SERVE_METRICS_H_
#define ENCORE_TOOLS_SERVE_METRICS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace encore::serve {

struct Batch;
struct Model;

class Histogram {
 public:
  explicit Histogram(std::vector<double> bounds)  // upper ones, rising
      : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}
  void Add(double value);
  void Write(std::string_view name, std::string_view help, std::string* out) const;

 private:
  std::vector<double> bounds_;
  std::vector<uint64_t> counts_;
  double sum_ = 0;
};

// What a request was, once it is answered.
struct RequestRecord {
  std::string_view method;
  std::string_view route;  // one of a few: never what a client sent
  int code = 0;
  size_t texts = 0;
  size_t tokens = 0;
  size_t bytes_in = 0;
  size_t bytes_out = 0;
  double tokenize_seconds = 0;
  double queue_seconds = 0;
  double compute_seconds = 0;
  double seconds = 0;
};

class Metrics {
 public:
  Metrics();
  void Count(const RequestRecord& request);
  void CountBatch(const Batch& batch);
  void SetQueue(size_t tokens) { queue_tokens_ = tokens; }
  void AddConnections(int count) { connections_ += count; }
  void CountVanished() { ++vanished_; }

  std::string Text(const std::vector<Model>& models) const;

 private:
  std::atomic<size_t> queue_tokens_ = 0;
  std::atomic<int64_t> connections_ = 0;
  std::atomic<uint64_t> vanished_ = 0;
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, uint64_t> requests_;
  std::map<int, uint64_t> batches_;  // by threads
  uint64_t texts_ = 0;
  uint64_t tokens_ = 0;
  Histogram request_seconds_;
  Histogram queue_seconds_;
  Histogram tokenize_seconds_;
  Histogram compute_seconds_;
  Histogram request_tokens_;
  Histogram batch_tokens_;
  Histogram batch_requests_;
};

}  // namespace encore::serve

#endif  // ENCORE_TOOLS_SERVE_METRICS_H_
