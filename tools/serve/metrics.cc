// SPDX-License-Identifier: Apache-2.0
//
// The text format: https://prometheus.io/docs/instrumenting/exposition_formats.

#include "tools/serve/metrics.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>

#include "encore/version.h"
#include "tools/serve/models.h"
#include "tools/serve/scheduler.h"

namespace encore::serve {
namespace {

std::vector<double> SecondBounds() {
  return {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
          0.1,    0.25,    0.5,    1,     2.5,    5,     10,   30};
}

std::vector<double> Powers(size_t count, double factor) {
  std::vector<double> bounds;
  for (double bound = 1; bounds.size() < count; bound *= factor) bounds.push_back(bound);
  return bounds;
}

std::string NumberText(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof(text), value).ptr};
}

void Head(std::string_view name, std::string_view type, std::string_view help, std::string* out) {
  *out += "# HELP " + std::string(name) + " " + std::string(help) + "\n# TYPE " +
          std::string(name) + " " + std::string(type) + "\n";
}

void Line(std::string_view name, const std::string& labels, double value, std::string* out) {
  *out += std::string(name) + (labels.empty() ? "" : "{" + labels + "}") + " " + NumberText(value) +
          "\n";
}

void One(std::string_view name, std::string_view type, std::string_view help, double value,
         std::string* out) {
  Head(name, type, help, out);
  Line(name, "", value, out);
}

// A label's value, escaped.
std::string InQuotes(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

// Of this process, in bytes; 0 where the system does not say.
double ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  double pages = 0;
  double resident = 0;
  file >> pages >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

void Histogram::Add(double value) {
  const auto bound = std::lower_bound(bounds_.begin(), bounds_.end(), value);
  ++counts_[static_cast<size_t>(bound - bounds_.begin())];
  sum_ += value;
}

void Histogram::Write(std::string_view name, std::string_view help, std::string* out) const {
  Head(name, "histogram", help, out);
  const std::string bucket = std::string(name) + "_bucket";
  double count = 0;
  for (size_t i = 0; i < counts_.size(); ++i) {
    count += static_cast<double>(counts_[i]);
    const std::string bound = i < bounds_.size() ? NumberText(bounds_[i]) : "+Inf";
    Line(bucket, "le=\"" + bound + "\"", count, out);
  }
  Line(std::string(name) + "_sum", "", sum_, out);
  Line(std::string(name) + "_count", "", count, out);
}

Metrics::Metrics()
    : request_seconds_(SecondBounds()),
      queue_seconds_(SecondBounds()),
      tokenize_seconds_(SecondBounds()),
      compute_seconds_(SecondBounds()),
      request_tokens_(Powers(11, 4)),
      batch_tokens_(Powers(15, 2)),
      batch_requests_(Powers(9, 2)) {}

void Metrics::Count(const RequestRecord& request) {
  const std::lock_guard lock(mutex_);
  ++requests_[{std::string(request.route), request.code}];
  texts_ += request.texts;
  tokens_ += request.tokens;
  request_seconds_.Add(request.seconds);
  if (request.tokens == 0) return;
  tokenize_seconds_.Add(request.tokenize_seconds);
  queue_seconds_.Add(request.queue_seconds);
  compute_seconds_.Add(request.compute_seconds);
  request_tokens_.Add(static_cast<double>(request.tokens));
}

void Metrics::CountBatch(const Batch& batch) {
  const std::lock_guard lock(mutex_);
  ++batches_[batch.executor.threads()];
  batch_tokens_.Add(static_cast<double>(batch.tokens));
  batch_requests_.Add(static_cast<double>(batch.parts.size()));
}

std::string Metrics::Text(const std::vector<Model>& models) const {
  std::string out;
  const std::lock_guard lock(mutex_);
  Head("encore_build_info", "gauge", "The version of encore.", &out);
  Line("encore_build_info", "version=" + InQuotes(ENCORE_VERSION_STRING), 1, &out);
  Head("encore_requests_total", "counter", "Requests answered, by route and status.", &out);
  for (const auto& [key, count] : requests_) {
    const std::string labels =
        "route=" + InQuotes(key.first) + ",code=\"" + std::to_string(key.second) + "\"";
    Line("encore_requests_total", labels, static_cast<double>(count), &out);
  }
  One("encore_texts_total", "counter", "Texts computed.", static_cast<double>(texts_), &out);
  One("encore_tokens_total", "counter", "Tokens computed.", static_cast<double>(tokens_), &out);
  One("encore_vanished_total", "counter", "Requests whose client went away first.",
      static_cast<double>(vanished_), &out);
  One("encore_queue_tokens", "gauge", "Tokens that wait or are computed.",
      static_cast<double>(queue_tokens_), &out);
  One("encore_connections", "gauge", "Open connections.", static_cast<double>(connections_), &out);
  request_seconds_.Write("encore_request_seconds", "From a request's head to its answer.", &out);
  tokenize_seconds_.Write("encore_tokenize_seconds", "Reading and tokenizing a request.", &out);
  queue_seconds_.Write("encore_queue_seconds", "Until a request's first slice began.", &out);
  compute_seconds_.Write("encore_compute_seconds", "In the slices of a request.", &out);
  request_tokens_.Write("encore_request_tokens", "Tokens of a request.", &out);
  Head("encore_batches_total", "counter", "Slices computed, by the threads that they had.", &out);
  for (const auto& [threads, count] : batches_) {
    Line("encore_batches_total", "threads=\"" + std::to_string(threads) + "\"",
         static_cast<double>(count), &out);
  }
  batch_tokens_.Write("encore_batch_tokens", "Tokens of a slice.", &out);
  batch_requests_.Write("encore_batch_requests", "Requests that share a slice.", &out);
  One("process_resident_memory_bytes", "gauge", "Memory of the process.", ResidentBytes(), &out);
  Head("encore_model_memory_bytes", "gauge", "Memory of a model.", &out);
  for (const Model& model : models) {
    const ModelMemory memory = model.encoder.Memory();
    const std::pair<const char*, size_t> parts[] = {{"mapped", memory.mapped},
                                                    {"packed", memory.packed},
                                                    {"tables", memory.tables},
                                                    {"scratch", memory.scratch}};
    for (const auto& [part, bytes] : parts) {
      Line("encore_model_memory_bytes", "model=" + InQuotes(model.name) + ",part=" + InQuotes(part),
           static_cast<double>(bytes), &out);
    }
  }
  return out;
}

}  // namespace encore::serve
