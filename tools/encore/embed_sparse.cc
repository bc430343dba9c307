// SPDX-License-Identifier: Apache-2.0
//
// Sparse vectors to a file of JSON lines.

#include "tools/encore/embed_sparse.h"

#include <cmath>
#include <iostream>
#include <span>

#include "engine/platform/file_writer.h"
#include "tools/encore/failure.h"
#include "tools/encore/progress.h"
#include "tools/encore/stop_signal.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

std::string Line(const SparseVectors& vectors, size_t row, const std::string& id) {
  std::string indices;
  std::string values;
  for (size_t i = vectors.row_starts[row]; i < vectors.row_starts[row + 1]; ++i) {
    const char* const comma = i == vectors.row_starts[row] ? "" : ", ";
    indices += comma + std::to_string(vectors.indices[i]);
    values += comma + ShortestText(vectors.values[i]);
  }
  return (id.empty() ? "{" : "{\"id\": " + id + ", ") + "\"indices\": [" + indices +
         "], \"values\": [" + values + "]}\n";
}

}  // namespace

int EmbedSparse(const TextEncoder& model, const SparseOptions& options, const std::string& output,
                TextChunks* input) {
  if (!output.ends_with(".jsonl")) {
    throw Failure("--output: found '" + Printable(output) +
                  "', wanted a name that ends in .jsonl, as the model's vectors are sparse");
  }
  Check(model.EncodeSparse(Texts(), options).status());
  internal::FileWriter file = Take(internal::FileWriter::Create(output), "--output");
  TextProgress progress(*input);
  while (input->Next(progress.NextCount()) && !StopRequested()) {
    progress.Begin();
    const Result<SparseVectors> found = model.EncodeSparse(input->texts(), options);
    input->Check(found.status());
    std::string lines;
    for (size_t i = 0; i < input->texts().size(); ++i) {
      for (size_t at = found->row_starts[i]; at < found->row_starts[i + 1]; ++at) {
        if (std::isfinite(found->values[at])) continue;
        throw Failure(input->Where(i) + ": its vector has nan or inf, which JSON cannot hold");
      }
      lines += Line(*found, i, input->ids()[i]);
    }
    Check(file.Write(std::as_bytes(std::span(lines))), "--output");
    progress.Add(found->counts);
  }
  progress.Clear();
  if (StopRequested()) throw Failure("stopped; nothing was written");
  Check(file.Commit(), "--output");
  const size_t max_length = options.max_length > 0 ? options.max_length : model.max_length();
  std::cout << progress.Summary(max_length) << "\n";
  return kExitOk;
}

}  // namespace encore::tool
