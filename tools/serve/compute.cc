// SPDX-License-Identifier: Apache-2.0
//
// The call that each kind of work is.

#include "tools/serve/compute.h"

#include <numeric>
#include <span>
#include <string_view>

namespace encore::serve {
namespace {

size_t SumOf(const std::vector<size_t>& counts, size_t begin, size_t end) {
  return std::accumulate(counts.begin() + static_cast<ptrdiff_t>(begin),
                         counts.begin() + static_cast<ptrdiff_t>(end), size_t{0});
}

template <typename Options>
Options TextOptionsOf(const Work& work, const Executor& executor) {
  Options options;
  options.executor = executor;
  options.prompt_name = work.options.prompt_name;
  options.on_long = work.options.on_long;
  return options;
}

EncodeOptions EncodeOptionsOf(const Work& work, const Executor& executor) {
  auto options = TextOptionsOf<EncodeOptions>(work, executor);
  options.normalize = work.options.normalize;
  options.dimensions = work.options.dimensions;
  return options;
}

ScoreOptions ScoreOptionsOf(const Work& work, const Executor& executor) {
  auto options = TextOptionsOf<ScoreOptions>(work, executor);
  options.activation = work.options.activation;
  return options;
}

std::vector<std::string_view> TextsOf(const Batch& batch) {
  std::vector<std::string_view> texts;
  for (const Part& part : batch.parts) {
    for (size_t i = part.begin; i < part.end; ++i) texts.emplace_back(part.work->texts[i]);
  }
  return texts;
}

// Rows of a tensor to the parts that they are of.
void Deal(const Batch& batch, const Tensor& rows, const TextCounts& counts) {
  const ConstView view = rows.View<float>();
  const size_t width = view.dim(1);
  size_t row = 0;
  for (const Part& part : batch.parts) {
    const size_t count = part.end - part.begin;
    const float* const first = view.data() + row * width;
    part.work->width = width;
    part.work->values.insert(part.work->values.end(), first, first + count * width);
    part.work->computed_tokens += SumOf(counts.tokens, row, row + count);
    row += count;
  }
}

Status Embed(const Batch& batch) {
  const Work& work = *batch.parts[0].work;
  const EncodeOptions options = EncodeOptionsOf(work, batch.executor);
  const TextEncoder& model = work.model->encoder;
  Result<Embeddings> made = Status();
  if (work.kind == WorkKind::kEmbedIds) {
    const Part& part = batch.parts[0];
    made = model.EncodeIds(std::span(work.ids).subspan(part.begin, part.end - part.begin), options);
  } else {
    made = model.Encode(TextsOf(batch), options);
  }
  if (made.ok()) Deal(batch, made->vectors, made->counts);
  return made.status();
}

Status Sparse(const Batch& batch) {
  Work& work = *batch.parts[0].work;
  const auto options = TextOptionsOf<SparseOptions>(work, batch.executor);
  const Result<SparseVectors> made = work.model->encoder.EncodeSparse(TextsOf(batch), options);
  if (!made.ok()) return made.status();
  for (size_t i = 0; i + 1 < made->row_starts.size(); ++i) {
    auto& row = work.sparse.emplace_back();
    for (size_t at = made->row_starts[i]; at < made->row_starts[i + 1]; ++at) {
      row.emplace_back(made->indices[at], made->values[at]);
    }
  }
  work.computed_tokens += SumOf(made->counts.tokens, 0, made->counts.tokens.size());
  return {};
}

Status TokenVectorsOf(const Batch& batch) {
  Work& work = *batch.parts[0].work;
  const auto options = TextOptionsOf<EncodeOptions>(work, batch.executor);
  for (const std::string_view text : TextsOf(batch)) {
    const Result<TokenVectors> made = work.model->encoder.EncodeTokens(text, options);
    if (!made.ok()) return made.status();
    const ConstView view = made->vectors.View<float>();
    work.width = view.dim(1);
    work.values.insert(work.values.end(), view.data(), view.data() + view.dim(0) * view.dim(1));
    work.row_starts.push_back(work.row_starts.back() + view.dim(0));
    work.computed_tokens += view.dim(0);
  }
  return {};
}

Status Score(const Batch& batch) {
  Work& work = *batch.parts[0].work;
  const Result<Scores> made =
      work.model->encoder.Score(work.query, TextsOf(batch), ScoreOptionsOf(work, batch.executor));
  if (!made.ok()) return made.status();
  work.width = 1;
  work.values.insert(work.values.end(), made->values.begin(), made->values.end());
  work.computed_tokens += SumOf(made->counts.tokens, 0, made->counts.tokens.size());
  return {};
}

Status Classify(const Batch& batch) {
  Work& work = *batch.parts[0].work;
  const Part& part = batch.parts[0];
  const TextEncoder& model = work.model->encoder;
  const ScoreOptions options = ScoreOptionsOf(work, batch.executor);
  const std::span seconds = std::span<const std::string>(work.seconds);
  const std::vector<std::string_view> texts = TextsOf(batch);
  const Result<Predictions> made =
      seconds.empty()
          ? model.Classify(texts, options)
          : model.Classify(texts, seconds.subspan(part.begin, part.end - part.begin), options);
  if (made.ok()) Deal(batch, made->values, made->counts);
  return made.status();
}

}  // namespace

Status ComputeBatch(const Batch& batch) {
  switch (batch.parts[0].work->kind) {
    case WorkKind::kEmbed:
    case WorkKind::kEmbedIds:
      return Embed(batch);
    case WorkKind::kSparse:
      return Sparse(batch);
    case WorkKind::kTokens:
      return TokenVectorsOf(batch);
    case WorkKind::kScore:
      return Score(batch);
    case WorkKind::kClassify:
      return Classify(batch);
  }
  return {};
}

}  // namespace encore::serve
