// SPDX-License-Identifier: Apache-2.0
//
// Sparse vectors to a file of JSON lines, or of arrays as scipy.sparse.save_npz writes them.

#include "tools/encore/embed_sparse.h"

#include <cmath>
#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/platform/file_writer.h"
#include "tools/encore/failure.h"
#include "tools/encore/npz_file.h"
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

// A file of sparse vectors, which appears whole or not at all.
class SparseWriter {
 public:
  SparseWriter() = default;
  SparseWriter(const SparseWriter&) = delete;
  SparseWriter& operator=(const SparseWriter&) = delete;
  virtual ~SparseWriter() = default;
  // The vectors of the input's texts.
  virtual void Write(const SparseVectors& vectors, const TextChunks& input) = 0;
  virtual void Commit() = 0;
};

class SparseLines : public SparseWriter {
 public:
  explicit SparseLines(const std::string& path)
      : file_(Take(internal::FileWriter::Create(path), "--output")) {}

  void Write(const SparseVectors& vectors, const TextChunks& input) override {
    std::string lines;
    for (size_t i = 0; i < input.texts().size(); ++i) {
      for (size_t at = vectors.row_starts[i]; at < vectors.row_starts[i + 1]; ++at) {
        if (std::isfinite(vectors.values[at])) continue;
        throw Failure(input.Where(i) +
                      ": its vector has nan or inf, which JSON cannot hold; .npz can");
      }
      lines += Line(vectors, i, input.ids()[i]);
    }
    Check(file_.Write(std::as_bytes(std::span(lines))), "--output");
  }
  void Commit() override { CheckWritten(file_.Commit(), "--output"); }

 private:
  internal::FileWriter file_;
};

// Values are written as they come; indices and row starts wait for the end.
class SparseArrays : public SparseWriter {
 public:
  SparseArrays(const std::string& path, size_t columns) : file_(path), columns_(columns) {
    file_.Begin("data", "<f4");
  }

  void Write(const SparseVectors& vectors, const TextChunks& /*input*/) override {
    file_.Append(std::span<const float>(vectors.values));
    indices_.insert(indices_.end(), vectors.indices.begin(), vectors.indices.end());
    const int64_t first = row_starts_.back();
    for (size_t i = 1; i < vectors.row_starts.size(); ++i) {
      row_starts_.push_back(first + static_cast<int64_t>(vectors.row_starts[i]));
    }
  }
  void Commit() override {
    const auto list = [](size_t count) { return "(" + std::to_string(count) + ",)"; };
    file_.End(list(indices_.size()));
    // scipy wants one type for both.
    const bool small = row_starts_.back() <= INT32_MAX;
    if (small) {
      const std::vector<int32_t> starts(row_starts_.begin(), row_starts_.end());
      file_.Add("indices", "<i4", list(indices_.size()), std::span<const int32_t>(indices_));
      file_.Add("indptr", "<i4", list(starts.size()), std::span<const int32_t>(starts));
    } else {
      const std::vector<int64_t> indices(indices_.begin(), indices_.end());
      file_.Add("indices", "<i8", list(indices.size()), std::span<const int64_t>(indices));
      file_.Add("indptr", "<i8", list(row_starts_.size()), std::span<const int64_t>(row_starts_));
    }
    const int64_t shape[] = {static_cast<int64_t>(row_starts_.size()) - 1,
                             static_cast<int64_t>(columns_)};
    file_.Add("shape", "<i8", "(2,)", std::span<const int64_t>(shape));
    file_.Add("format", "|S3", "()", std::span<const char>("csr", 3));
    file_.Commit();
  }

 private:
  NpzWriter file_;
  size_t columns_;
  std::vector<int32_t> indices_;
  std::vector<int64_t> row_starts_ = {0};
};

std::unique_ptr<SparseWriter> SparseWriterFor(const std::string& output, size_t columns) {
  if (output.ends_with(".jsonl")) return std::make_unique<SparseLines>(output);
  if (output.ends_with(".npz")) return std::make_unique<SparseArrays>(output, columns);
  throw Failure("--output: found '" + Printable(output) +
                "', wanted a name that ends in .jsonl or .npz, as the vectors are sparse");
}

}  // namespace

int EmbedSparse(const TextEncoder& model, const SparseOptions& options, const std::string& output,
                TextChunks* input) {
  const std::unique_ptr<SparseWriter> file = SparseWriterFor(output, model.sparse_dimensions());
  Check(model.EncodeSparse(Texts(), options).status());
  TextProgress progress(*input);
  const auto compute = [&](const Texts& texts) { return model.EncodeSparse(texts, options); };
  progress.ForAll(input, compute, [&](const SparseVectors& found) { file->Write(found, *input); });
  if (StopRequested()) throw Failure("stopped; nothing was written");
  file->Commit();
  const size_t max_length = options.max_length > 0 ? options.max_length : model.max_length();
  std::cout << progress.Summary(max_length) << "\n";
  return kExitOk;
}

}  // namespace encore::tool
