// SPDX-License-Identifier: Apache-2.0
//
// Vectors of tokens, some hundred texts at a time; only the row starts wait for the end.

#include "tools/encore/embed_tokens.h"

#include <cstdint>
#include <iostream>
#include <span>
#include <vector>

#include "tools/encore/failure.h"
#include "tools/encore/npz_file.h"
#include "tools/encore/progress.h"
#include "tools/encore/stop_signal.h"
#include "tools/encore/text.h"

namespace encore::tool {

int EmbedTokens(const MultiVectorEncoder& model, const EncodeOptions& options, TextTask task,
                const std::string& output, TextChunks* input) {
  if (!output.ends_with(".npz")) {
    throw Failure("--output: found '" + Printable(output) +
                  "', wanted a name that ends in .npz, as each token has a vector");
  }
  Check(model.Encode(Texts(), options, task).status());
  NpzWriter file(output);
  file.Begin("vectors", "<f4");
  std::vector<int64_t> row_starts = {0};
  TextProgress progress(*input);
  while (input->Next(progress.NextCount()) && !StopRequested()) {
    progress.Begin();
    const Result<MultiVectors> found = model.Encode(input->texts(), options, task);
    input->Check(found.status());
    const ConstView rows = found->vectors.View<float>();
    file.Append(std::span(rows.data(), rows.dim(0) * rows.dim(1)));
    const int64_t first = row_starts.back();
    for (size_t i = 1; i < found->row_starts.size(); ++i) {
      row_starts.push_back(first + static_cast<int64_t>(found->row_starts[i]));
    }
    progress.Add(found->counts);
  }
  progress.Clear();
  if (StopRequested()) throw Failure("stopped; nothing was written");
  file.End("(" + std::to_string(row_starts.back()) + ", " + std::to_string(model.dimensions()) +
           ")");
  file.Add("row_starts", "<i8", "(" + std::to_string(row_starts.size()) + ",)",
           std::span<const int64_t>(row_starts));
  file.Commit();
  const size_t max_length = options.max_length > 0 ? options.max_length : model.max_length(task);
  std::cout << progress.Summary(max_length) << "\n";
  return kExitOk;
}

}  // namespace encore::tool
