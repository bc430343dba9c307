// SPDX-License-Identifier: Apache-2.0
//
// Rows of `encore bench --model`: a folder's model, opened in some precisions, on one query and on
// many texts.

#ifndef ENCORE_TOOLS_ENCORE_BENCH_TEXTS_H_
#define ENCORE_TOOLS_ENCORE_BENCH_TEXTS_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "bench/measure/peak.h"
#include "encore/executor.h"
#include "encore/precision.h"
#include "encore/text_encoder.h"
#include "tools/encore/bench_measure.h"
#include "tools/encore/report_data.h"

namespace encore::tool {

// What a call computes: numbers, and tokens of each text.
struct Answer {
  std::vector<float> values;
  std::vector<size_t> tokens;
};

struct TextWorkload {
  std::string name;  // "query", "64 texts"
  std::vector<std::string> texts;
};

inline constexpr size_t kMostTexts = 1024;  // that are taken of a file

// One query of 11 words; 64 texts of 3 to 100 words, 20 in the middle, the same ones everywhere, or
// those of the file, one a line, if a path is given. Throws Failure.
std::vector<TextWorkload> TextWorkloads(const std::string& path);

// So many common words, the same ones everywhere.
std::string TextOfWords(size_t words);

class BenchModel {
 public:
  // Throws Failure if the folder cannot be opened or has no tokenizer. Without precisions: all, or
  // the one that the weights were made for.
  BenchModel(const std::string& folder, std::vector<Precision> precisions, OpenOptions options);

  const std::vector<Precision>& precisions() const { return precisions_; }
  const TextEncoder& model(size_t precision) const { return models_[precision]; }
  bench::Products products(size_t precision) const {
    return {precisions_[precision], models_[precision].encoder().amx_bf16()};
  }

  // Texts to vectors, to scores under the query of TextWorkloads where the model is a reranker, or
  // to logits. max_length as EncodeOptions has it.
  static Answer Call(const TextEncoder& model, std::span<const std::string> texts,
                     const Executor& executor, size_t max_length = 0);
  // The same with what is computed checked: finite and, to the bit, what the calling thread alone
  // computes. Throws Failure.
  Answer CheckedCall(size_t precision, std::span<const std::string> texts, const Executor& executor,
                     size_t max_length = 0) const;
  // A row of texts with so many tokens each, without what is measured.
  ReportRow RowOf(const std::string& name, size_t precision,
                  const std::vector<size_t>& tokens) const;
  // The same of calls of one of these texts, checked: what a text has on average.
  ReportRow RowOfOne(const std::string& name, size_t precision, std::span<const std::string> texts,
                     const Executor& executor) const;
  // Opens each precision once more with a folder of packed weights, for the rows' opening. Throws
  // Failure.
  void MeasureCachedOpening();
  // One more, with weights of its own. Throws Failure.
  TextEncoder OpenCopy(size_t precision, const std::string& cache = "") const;

  // Adds a row, or a visit to it, as BenchMeasurer::Measure. What a call computes is checked.
  // Throws Failure.
  const ReportRow& Measure(const TextWorkload& workload, size_t precision, int threads,
                           BenchMeasurer* measurer);

 private:
  std::string folder_;
  OpenOptions options_;
  std::vector<Precision> precisions_;
  std::vector<TextEncoder> models_;      // one for each precision
  std::vector<ReportOpening> openings_;  // likewise
  ReportModel about_;
};

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_BENCH_TEXTS_H_
