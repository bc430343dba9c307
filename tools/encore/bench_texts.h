// SPDX-License-Identifier: Apache-2.0
//
// Rows of `encore bench --model`: a folder's model, opened in some precisions, on one query and on
// many texts.

#ifndef ENCORE_TOOLS_ENCORE_BENCH_TEXTS_H_
#define ENCORE_TOOLS_ENCORE_BENCH_TEXTS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "encore/precision.h"
#include "encore/text_encoder.h"
#include "tools/encore/bench_measure.h"
#include "tools/encore/report_data.h"

namespace encore::tool {

struct TextWorkload {
  std::string name;  // "query", "64 texts"
  std::vector<std::string> texts;
};

// One query of 11 words; 64 texts of 3 to 100 words, 20 in the middle, the same ones everywhere, or
// those of the file, one a line, if a path is given. Throws Failure.
std::vector<TextWorkload> TextWorkloads(const std::string& path);

class BenchModel {
 public:
  // Throws Failure if the folder cannot be opened or has no tokenizer. Without precisions: f32,
  // bf16 and int8, or the one that the weights were made for.
  BenchModel(const std::string& folder, std::vector<Precision> precisions, bool amx_bf16);

  const std::vector<Precision>& precisions() const { return precisions_; }

  // Adds a row, or a visit to it, as BenchMeasurer::Measure. A call takes the texts to vectors, to
  // scores under the first workload's text where the model is a reranker, or to logits. What it
  // computes must be finite and, to the bit, what the calling thread alone computes. Throws
  // Failure.
  const ReportRow& Measure(const TextWorkload& workload, size_t precision, int threads,
                           BenchMeasurer* measurer);

 private:
  std::vector<Precision> precisions_;
  std::vector<TextEncoder> models_;  // one for each precision
  ReportModel about_;
};

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_BENCH_TEXTS_H_
