// SPDX-License-Identifier: Apache-2.0
//
// From hidden states to finished vectors: pooling, dense layers, normalization, the first columns.

#ifndef ENCORE_ENGINE_TEXT_AFTER_ENCODER_H_
#define ENCORE_ENGINE_TEXT_AFTER_ENCODER_H_

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "encore/encoder.h"
#include "encore/executor.h"
#include "encore/status.h"
#include "encore/tensor.h"
#include "encore/text_encoder.h"
#include "engine/text/folder_files.h"
#include "engine/text/scratch.h"

namespace encore::inline v0_1::internal {

// Which rows of the last layer the modes read.
OutputRows RowsOf(std::span<const PoolingMode> modes);

// From the hidden states of one text's tokens to one vector: out [modes, width] from hidden [rows,
// width], contiguous, rows >= 1. Each column is summed up in double, first row to last, divided in
// double and rounded once. Where RowsOf(modes) is kFirst or kLast, `hidden` has that row alone.
// sums is scratch, [width]. The first `skip` rows are left out, but a later row keeps its place,
// which is its weight in kWeightedMean. Where no row is left, kCls gives the first row, kMax -inf
// and the others 0, as in sentence-transformers.
void PoolRows(std::span<const PoolingMode> modes, const float* hidden, size_t rows, size_t width,
              double* sums, float* out, size_t skip = 0);

// row / max(sqrt(sum row^2), 1e-12), as torch.nn.functional.normalize: computed in double, element
// i summed up in virtual lane i mod 8, the lanes in order; rounded once. In place.
void NormalizeRow(float* row, size_t width);

// (row - mean) / sqrt(variance + epsilon) * weight + bias in double, rounded once. In place.
void NormRow(const LoadedNorm& norm, float* row, size_t width);

// What a call wants otherwise than the modules say.
struct EncodeSettings {
  std::optional<bool> normalize;
  size_t dimensions = 0;  // at most width()
};

// The hidden states of a batch, contiguous: [tokens, d_model], or where pooled_rows(skip) says so
// the first or last row of each sequence.
struct HiddenBatch {
  const float* hidden = nullptr;
  std::span<const size_t> starts;   // as Batch's; not read where there is one row of each
  std::span<const size_t> outputs;  // [sequences]: which row of `vectors` is whose
  size_t skip = 0;                  // first tokens of each that the pooling leaves out
};

// Immutable.
class AfterEncoder {
 public:
  // The pooling, and then the dense layers and norms among the modules. `normalize` is
  // OpenOptions', which is noted.
  static Result<AfterEncoder> Read(PoolingSettings pooling, std::span<const ModuleEntry> modules,
                                   size_t d_model, std::optional<bool> normalize,
                                   const FolderReading& reading,
                                   VectorsOf what = VectorsOf::kTexts);
  // Of late interaction, without such modules: a linear layer where there is one.
  static AfterEncoder OfTokens(std::optional<PackedLinear> projection, size_t d_model);
  // Behind all others.
  void AddNormalization() {
    steps_.push_back({std::nullopt, NormalizeRow});
    ++trailing_normalizations_;
  }

  size_t width() const { return width_; }  // of the vectors, before any column is left out
  OutputRows pooled_rows(size_t skip = 0) const {
    return skip == 0 ? RowsOf(pooling_.modes) : OutputRows::kAll;
  }
  bool includes_prompt() const { return pooling_.include_prompt; }
  bool normalizes() const { return trailing_normalizations_ > 0; }

  // Bytes of the products' packed matrices; and what Run takes of the scratch for so many rows of
  // outputs.
  size_t packed_bytes() const;
  void AddSizes(size_t rows, int threads, FloatSizes* sizes) const;

  // vectors [any, dimensions], rows contiguous. A row's bits depend on its sequence alone.
  Status Run(const HiddenBatch& batch, const EncodeSettings& options, MutableView vectors,
             CallScratch* scratch, const Executor& executor) const;

 private:
  // What follows the pooling: a linear layer or none, then a function of each row.
  struct Step {
    std::optional<PackedLinear> linear;
    void (*apply)(float* row, size_t width) = nullptr;
    bool use_residual = false;  // as Dense's
    std::optional<PackedLinear> residual = {};
    std::optional<LoadedNorm> norm = {};  // in place of `apply`
  };
  struct Call;
  Status Pool(const Call& call, size_t row_steps) const;
  Status ApplyDense(const Call& call, size_t m, size_t row_steps, size_t width, FloatBuffer* from,
                    FloatBuffer* to) const;
  // The steps from `from` on that have no linear layer, up to `end`; and their functions in turn.
  size_t RowSteps(size_t from, size_t end) const;
  void ApplyRowSteps(size_t from, size_t count, float* row, size_t width) const;

  size_t d_model_ = 0;
  size_t width_ = 0;
  PoolingSettings pooling_;
  std::vector<Step> steps_;
  size_t trailing_normalizations_ = 0;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TEXT_AFTER_ENCODER_H_
