// SPDX-License-Identifier: Apache-2.0
//
// Semantic search: the lines of a file that are closest in meaning to a query.
//
//   semantic_search FOLDER DOCUMENTS.txt QUERY

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "encore/text_encoder.h"
#include "encore/thread_pool.h"

namespace {

constexpr size_t kShown = 3;

int Fail(const encore::Status& status) {
  std::fprintf(stderr, "semantic_search: %s\n", status.message().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: semantic_search FOLDER DOCUMENTS.txt QUERY\n");
    return 2;
  }
  std::ifstream file(argv[2]);
  std::vector<std::string> documents;
  for (std::string line; std::getline(file, line);) documents.push_back(line);
  if (documents.empty()) {
    std::fprintf(stderr, "semantic_search: %s: found no text, wanted one per line\n", argv[2]);
    return 2;
  }

  const auto pool = encore::ThreadPool::Create();  // one thread per usable core
  if (!pool.ok()) return Fail(pool.status());
  const auto model = encore::TextEncoder::Open(argv[1], {.executor = pool->executor()});
  if (!model.ok()) return Fail(model.status());

  // Vectors of length 1: their dot product is the cosine of the angle between them. Some models
  // have prompts for queries and documents; then set EncodeOptions::prompt_name for each.
  const encore::EncodeOptions options = {.executor = pool->executor(), .normalize = true};
  const auto index = model->Encode(documents, options);
  if (!index.ok()) return Fail(index.status());
  const auto query = model->Encode({argv[3]}, options);
  if (!query.ok()) return Fail(query.status());

  const encore::ConstView rows = index->vectors.View<float>();  // [documents, dimensions]
  const encore::ConstView q = query->vectors.View<float>();     // [1, dimensions]
  std::vector<float> scores(documents.size(), 0.0f);
  for (size_t i = 0; i < rows.dim(0); ++i) {
    for (size_t j = 0; j < rows.dim(1); ++j) scores[i] += rows(i, j) * q(0, j);
  }

  std::vector<size_t> order(documents.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const size_t shown = std::min(kShown, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(shown), order.end(),
                    [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  for (size_t i = 0; i < shown; ++i) {
    std::printf("%.4f  %s\n", scores[order[i]], documents[order[i]].c_str());
  }
  if (index->counts.texts_cut > 0) {
    std::printf("%zu documents were longer than %zu tokens and were cut\n", index->counts.texts_cut,
                model->max_length());
  }
  return 0;
}
