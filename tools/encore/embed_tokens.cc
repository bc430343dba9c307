// SPDX-License-Identifier: Apache-2.0
//
// Vectors of tokens, some hundred texts at a time; only row starts and scales wait for the end.

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
namespace {

struct TokenFormat {
  DType type;
  const char* numpy;  // its name there: numpy has no bf16, so the bits
};

TokenFormat TokenFormatOf(const std::string& output_type) {
  if (output_type == "bf16") return {DType::kBF16, "<u2"};
  if (output_type == "int8") return {DType::kI8, "|i1"};
  if (output_type == "f32") return {DType::kF32, "<f4"};
  throw Failure("--output-type: found '" + Printable(output_type) +
                "', wanted f32, bf16 or int8, as each token has a vector");
}

std::span<const std::byte> BytesOf(const Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.data()), tensor.size_bytes()};
}

}  // namespace

int EmbedTokens(const MultiVectorEncoder& model, const EncodeOptions& options, TextTask task,
                const std::string& output, const std::string& output_type, TextChunks* input) {
  if (!output.ends_with(".npz")) {
    throw Failure("--output: found '" + Printable(output) +
                  "', wanted a name that ends in .npz, as each token has a vector");
  }
  const TokenFormat format = TokenFormatOf(output_type);
  Check(model.Encode(Texts(), options, task).status());
  NpzWriter file(output);
  file.Begin("vectors", format.numpy);
  std::vector<int64_t> row_starts = {0};
  std::vector<float> scales;
  TextProgress progress(*input);
  const auto compute = [&](const Texts& texts) { return model.Encode(texts, options, task); };
  progress.ForAll(input, compute, [&](const MultiVectors& found) {
    if (format.type == DType::kF32) {
      file.Append(BytesOf(found.vectors));
    } else {
      const StoredVectors stored =
          Take(StoreVectors(found.vectors.View<float>(), format.type, options.executor));
      file.Append(BytesOf(stored.vectors));
      const ConstView own = stored.scales.View<float>();
      if (!own.empty()) scales.insert(scales.end(), own.data(), own.data() + own.dim(0));
    }
    const int64_t first = row_starts.back();
    for (size_t i = 1; i < found.row_starts.size(); ++i) {
      row_starts.push_back(first + static_cast<int64_t>(found.row_starts[i]));
    }
  });
  if (StopRequested()) throw Failure("stopped; nothing was written");
  file.End("(" + std::to_string(row_starts.back()) + ", " + std::to_string(model.dimensions()) +
           ")");
  file.Add("row_starts", "<i8", "(" + std::to_string(row_starts.size()) + ",)",
           std::span<const int64_t>(row_starts));
  if (format.type == DType::kI8) {
    file.Add("scales", "<f4", "(" + std::to_string(scales.size()) + ",)",
             std::span<const float>(scales));
  }
  file.Commit();
  const size_t max_length = options.max_length > 0 ? options.max_length : model.max_length(task);
  std::cout << progress.Summary(max_length) << "\n";
  return kExitOk;
}

}  // namespace encore::tool
