// SPDX-License-Identifier: Apache-2.0
//
// A latency-critical loop: a vector for each line of standard input as it comes, on the program's
// own thread pool and into memory that is allocated once.
//
//   latency_loop FOLDER [THREADS] < texts.txt

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "encore/text_encoder.h"
#include "host_pool.h"

namespace {

int Fail(const encore::Status& status) {
  std::fprintf(stderr, "latency_loop: %s\n", status.message().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: latency_loop FOLDER [THREADS] < texts.txt\n");
    return 2;
  }
  const int threads = argc == 3 ? std::atoi(argv[2]) : 2;
  if (threads < 1 || threads > 256) {
    std::fprintf(stderr, "latency_loop: found %s threads, wanted 1 to 256\n", argv[2]);
    return 2;
  }

  // The pool is the program's. encore starts no thread of its own.
  HostPool pool(threads);
  const encore::Executor executor = encore::Executor::HostPool(pool.threads(), pool);

  const auto model = encore::TextEncoder::Open(argv[1], {.executor = executor});
  if (!model.ok()) return Fail(model.status());

  // One row, written again by each call.
  std::vector<float> row(model->dimensions());
  const encore::MutableView vector(row.data(), {1, row.size()});

  std::vector<double> milliseconds;
  for (std::string text; std::getline(std::cin, text);) {
    const auto begin = std::chrono::steady_clock::now();
    const encore::Status status = model->Encode({text}, vector, nullptr, {.executor = executor});
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    if (!status.ok()) return Fail(status);
    milliseconds.push_back(took.count());
    std::printf("%.4f %.4f ...  %s\n", row[0], row[1], text.c_str());
  }
  if (milliseconds.empty()) {
    std::fprintf(stderr, "latency_loop: found no text on standard input\n");
    return 2;
  }
  std::sort(milliseconds.begin(), milliseconds.end());
  std::printf("%zu texts, median %.3f ms, slowest %.3f ms\n", milliseconds.size(),
              milliseconds[milliseconds.size() / 2], milliseconds.back());
  return 0;
}
