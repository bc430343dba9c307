// SPDX-License-Identifier: Apache-2.0
//
// A reranker: scores how well each line of a file answers a query, and prints the lines best first.
// FOLDER is a model with a head of one output, such as a cross-encoder.
//
//   reranker FOLDER DOCUMENTS.txt QUERY

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "encore/text_encoder.h"
#include "encore/thread_pool.h"

namespace {

int Fail(const encore::Status& status) {
  std::fprintf(stderr, "reranker: %s\n", status.message().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: reranker FOLDER DOCUMENTS.txt QUERY\n");
    return 2;
  }
  std::ifstream file(argv[2]);
  std::vector<std::string> documents;
  for (std::string line; std::getline(file, line);) documents.push_back(line);
  if (documents.empty()) {
    std::fprintf(stderr, "reranker: %s: found no text, wanted one per line\n", argv[2]);
    return 2;
  }

  const auto pool = encore::ThreadPool::Create();  // one thread per usable core
  if (!pool.ok()) return Fail(pool.status());
  // A reranker keeps most of its ranking in int8, and is several times as fast.
  const auto model = encore::TextEncoder::Open(
      argv[1], {.executor = pool->executor(), .precision = encore::Precision::kInt8});
  if (!model.ok()) return Fail(model.status());

  const auto scores = model->Score(argv[3], documents, {.executor = pool->executor()});
  if (!scores.ok()) return Fail(scores.status());

  std::vector<size_t> order(documents.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return scores->values[a] > scores->values[b]; });
  for (const size_t i : order) {
    std::printf("%.4f  %s\n", scores->values[i], documents[i].c_str());
  }
  return 0;
}
