// SPDX-License-Identifier: Apache-2.0
//
// TextEncoder's sparse vectors. Of the product with the vocabulary nothing is kept but what pooling
// needs: a task takes a block of the vocabulary through all rows of some texts, some rows at a
// time, and keeps the maximum or sum of each column.

#include "engine/text/sparse_vectors.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "engine/base/double_math.h"
#include "engine/base/first_failure.h"
#include "engine/base/guarded.h"
#include "engine/base/int_math.h"
#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/platform/fp_env.h"
#include "engine/platform/thread_team.h"
#include "engine/text/text_encoder_impl.h"

namespace encore::inline v0_1 {
namespace internal {
namespace {

// Rows of logits at a time: with LanguageHead::kBlock columns 128 KiB, for the L2 cache.
constexpr size_t kLogitRows = 128;
// Floats of the pooled vectors of texts that are computed together: 32 MiB.
constexpr size_t kPooledFloats = size_t{1} << 23;

// ln(1 + y), y >= 0, with W. Kahan's correction of 1 + y. NaN and infinity stay.
double Log1p(double y) {
  const double sum = 1 + y;
  if (sum == 1 || !std::isfinite(sum)) return y;
  return PortableLog(sum) * (y / (sum - 1));
}

float Activated(float logit, const SpladePooling& pooling) {
  if (logit <= 0) return 0;
  const double once = Log1p(logit);
  return static_cast<float>(pooling.twice ? Log1p(once) : once);
}

// Logits of one text's rows [rows, columns] into its pooled [columns], which holds 0 or earlier
// rows': the maximum of logits above 0, or the sum of what becomes of them. NaN stays.
void PoolLogits(const float* logits, size_t rows, size_t columns, const SpladePooling& pooling,
                float* pooled) {
  for (size_t r = 0; r < rows; ++r) {
    const float* row = logits + r * columns;
    if (!pooling.sum) {
      for (size_t c = 0; c < columns; ++c) {
        const float before = pooled[c];
        pooled[c] = row[c] <= before || before != before ? before : row[c];
      }
      continue;
    }
    for (size_t c = 0; c < columns; ++c) {
      if (!(row[c] <= 0)) pooled[c] += Activated(row[c], pooling);
    }
  }
}

// The pooled vectors [texts, vocabulary] of texts whose rows begin at starts.
class Pooler {
 public:
  Pooler(const LanguageHead& head, const SpladePooling& pooling) : head_(head), pooling_(pooling) {}

  Status Run(const float* transformed, std::span<const size_t> starts, float* pooled,
             const Executor& executor) const {
    FirstFailure failure;
    ENCORE_RETURN_IF_ERROR(RunParallel(executor, head_.blocks(), [&](size_t block) {
      failure.Keep(Guarded("the logits of a block of the vocabulary",
                           [&] { return RunBlock(block, transformed, starts, pooled); }));
    }));
    return failure.status();
  }

 private:
  Status RunBlock(size_t block, const float* transformed, std::span<const size_t> starts,
                  float* pooled) const {
    const size_t columns = head_.block_size(block);
    const size_t end = starts.back();
    ENCORE_ASSIGN_OR_RETURN(Tensor memory, Tensor::Create(DType::kF32, {kLogitRows, columns}));
    auto* const logits = static_cast<float*>(memory.data());
    size_t text = 0;
    for (size_t row = starts.front(); row < end; row += kLogitRows) {
      const size_t stop = std::min(end, row + kLogitRows);
      ENCORE_RETURN_IF_ERROR(
          head_.Block(block,
                      ConstView(transformed + (row - starts.front()) * head_.width(),
                                Shape(stop - row, head_.width())),
                      MutableView(logits, Shape(stop - row, columns))));
      for (size_t begin = row; begin < stop;) {
        while (starts[text + 1] <= begin) ++text;
        const size_t until = std::min(stop, starts[text + 1]);
        PoolLogits(logits + (begin - row) * columns, until - begin, columns, pooling_,
                   pooled + text * head_.vocab_size() + block * LanguageHead::kBlock);
        begin = until;
      }
    }
    return {};
  }

  const LanguageHead& head_;
  const SpladePooling& pooling_;
};

// Leaves `most` entries, those of the largest magnitude, in the order of their indices. NaN is
// larger than all else.
void KeepLargest(size_t most, std::vector<SparseEntry>* entries) {
  if (most == 0 || entries->size() <= most) return;
  const auto size = [](float value) {
    return std::isnan(value) ? std::numeric_limits<float>::infinity() : std::fabs(value);
  };
  const auto larger = [&](const SparseEntry& a, const SparseEntry& b) {
    const float x = size(a.value);
    const float y = size(b.value);
    return x != y ? x > y : a.index < b.index;
  };
  std::nth_element(entries->begin(), entries->begin() + static_cast<ptrdiff_t>(most),
                   entries->end(), larger);
  entries->resize(most);
  std::sort(entries->begin(), entries->end(),
            [](const SparseEntry& a, const SparseEntry& b) { return a.index < b.index; });
}

// Texts of a model that are pooled at once.
size_t PooledTexts(const LanguageHead& head) {
  return std::max<size_t>(1, kPooledFloats / head.vocab_size());
}

Status EncodeByModel(const TextEncoder::Impl& impl, TextInputs inputs, const SparseOptions& options,
                     size_t most, CallWatch* watch, SparseRows* rows, TextCounts* counts) {
  const LanguageHead& head = *impl.model.language_head();
  const SpladePooling& pooling = *impl.sparse.pooling;
  const Pooler pooler(head, pooling);
  ENCORE_ASSIGN_OR_RETURN(const StreamOptions stream,
                          MakeStreamOptions(impl, options, false, OutputRows::kAll, watch));
  const auto take = [&](const float* hidden, std::span<const size_t> texts,
                        CallScratch* scratch) -> Status {
    const size_t width = head.width();
    const std::span<const size_t> starts = scratch->starts;
    size_t values = 0;
    if (!CheckedMul(starts.back(), width, &values)) return OutOfMemory();
    ENCORE_ASSIGN_OR_RETURN(float* const transformed, scratch->projected.Get<float>(values));
    ENCORE_RETURN_IF_ERROR(
        head.Transform(ConstView(hidden, Shape(starts.back(), impl.model.d_model())),
                       MutableView(transformed, Shape(starts.back(), width)), options.executor));
    const size_t group = PooledTexts(head);
    for (size_t begin = 0; begin < texts.size(); begin += group) {
      const size_t count = std::min(group, texts.size() - begin);
      ENCORE_ASSIGN_OR_RETURN(float* const pooled,
                              scratch->pooled.Get<float>(count * head.vocab_size()));
      std::fill_n(pooled, count * head.vocab_size(), 0.0f);
      ENCORE_RETURN_IF_ERROR(pooler.Run(transformed + starts[begin] * width,
                                        starts.subspan(begin, count + 1), pooled,
                                        options.executor));
      const FpEnvScope modes;
      for (size_t i = 0; i < count; ++i) {
        std::vector<SparseEntry>& row = (*rows)[texts[begin + i]];
        const float* const vector = pooled + i * head.vocab_size();
        for (size_t c = 0; c < head.vocab_size(); ++c) {
          if (vector[c] == 0) continue;
          const float value = pooling.sum ? vector[c] : Activated(vector[c], pooling);
          if (value != 0) row.push_back({static_cast<int32_t>(c), value});
        }
        KeepLargest(most, &row);
      }
    }
    return {};
  };
  return StreamTexts(impl, inputs, stream, std::ref(take), counts);
}

// By the calling thread alone.
Status EncodeByWeights(const SparseStatic& side, const TextInputs& inputs,
                       const TokenizeOptions& tokenize, const Team& team, size_t most,
                       CallScratch* scratch, CallWatch* watch, SparseRows* rows,
                       TextCounts* counts) {
  constexpr size_t kBatch = 256;
  watch->Begin(inputs.size());
  size_t tokens_of_batch = 0;
  counts->tokens.assign(inputs.size(), 0);
  counts->cut.assign(inputs.size(), 0);
  const auto* const weights = static_cast<const float*>(side.weights.data());
  const size_t vocabulary = side.weights.shape()[0];
  Tokens& tokens = scratch->words;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!team.MayGoOn(0)) return {};
    watch->Enter(&CallStats::tokenizing);
    scratch->joined.assign(inputs.prompt).append(inputs.texts[i]);
    const Status status = side.tokenizer.Encode(scratch->joined, &tokens, tokenize);
    if (!status.ok()) {
      return Status(status.code(), "texts[" + std::to_string(i) + "]: " + status.message());
    }
    counts->tokens[i] = tokens.ids.size();
    counts->cut[i] = tokens.cut;
    counts->texts_cut += tokens.cut > 0 ? 1 : 0;
    tokens_of_batch += tokens.ids.size();
    watch->Enter(&CallStats::pooling);
    std::sort(tokens.ids.begin(), tokens.ids.end());
    tokens.ids.erase(std::unique(tokens.ids.begin(), tokens.ids.end()), tokens.ids.end());
    for (const int32_t id : tokens.ids) {
      if (static_cast<size_t>(id) >= vocabulary) {
        return InvalidArgument("texts[" + std::to_string(i) + "]: id " + std::to_string(id) +
                               "; wanted 0 .. " + std::to_string(vocabulary - 1) +
                               ", as there are weights");
      }
      if (weights[id] != 0) (*rows)[i].push_back({id, weights[id]});
    }
    KeepLargest(most, &(*rows)[i]);
    if ((i + 1) % kBatch != 0 && i + 1 != inputs.size()) continue;
    watch->AddTokenized(tokens_of_batch);
    watch->AddDone(i % kBatch + 1, tokens_of_batch);
    tokens_of_batch = 0;
  }
  if (watch->WantsBytes()) watch->NoteBytes(scratch->size_bytes());
  return {};
}

// Whether texts take the query's side.
Result<bool> IsQuery(const SparseSide& sparse, const std::optional<std::string>& task) {
  if (task && *task != "query" && *task != "document") {
    return InvalidArgument("task is " + Quoted(*task) + "; wanted 'query' or 'document'");
  }
  if (!sparse.query || !sparse.pooling) return sparse.query.has_value();
  const std::string& route = task ? *task : sparse.default_task;
  if (!route.empty()) return route == "query";
  return InvalidArgument(
      "found no task; wanted 'query' or 'document', as the folder's Router has no default route");
}

SparseVectors Compressed(const SparseRows& rows, size_t columns) {
  SparseVectors vectors;
  vectors.columns = columns;
  vectors.row_starts.push_back(0);
  for (const std::vector<SparseEntry>& row : rows) {
    for (const SparseEntry& entry : row) {
      vectors.indices.push_back(entry.index);
      vectors.values.push_back(entry.value);
    }
    vectors.row_starts.push_back(vectors.indices.size());
  }
  return vectors;
}

Result<SparseVectors> EncodeSparseTexts(const TextEncoder::Impl& impl, Texts texts,
                                        const SparseOptions& options) {
  CallWatch watch(options);
  if (!impl.sparse.any()) {
    if (impl.sparse.by_token) return impl.sparse.by_token->status();
    return Status(ErrorCode::kUnsupported,
                  "the folder gives no sparse vectors; wanted a masked language model with "
                  "SpladePooling (without modules.json: OpenOptions::language_head), or BGE-M3's "
                  "sparse_linear.pt");
  }
  ENCORE_ASSIGN_OR_RETURN(const bool query, IsQuery(impl.sparse, options.task));
  TextInputs inputs{.texts = texts};
  ENCORE_ASSIGN_OR_RETURN(inputs.prompt, ResolvePrompt(impl, options.prompt_name, options.prompt));
  const size_t most =
      options.max_active_dims > 0 ? options.max_active_dims : impl.config.max_active_dims;
  SparseRows rows(texts.size());
  TextCounts counts;
  if (query) {
    const size_t limit = impl.sparse.pooling
                             ? impl.sparse.query->tokenizer.model_max_length().value_or(0)
                             : impl.max_length;
    const TokenizeOptions tokenize = MakeTokenizeOptions(
        options, options.max_length > 0 ? options.max_length : limit, /*special=*/false);
    const ScratchOfCall scratch(options.scratch, &impl.scratch);
    ENCORE_RETURN_IF_ERROR(scratch.status());
    Status status;
    ENCORE_RETURN_IF_ERROR(RunTeam(options.executor, 1, [&](const Team& team) {
      status = Guarded("the vectors", [&] {
        return EncodeByWeights(*impl.sparse.query, inputs, tokenize, team, most, scratch.get(),
                               &watch, &rows, &counts);
      });
    }));
    ENCORE_RETURN_IF_ERROR(status);
  } else if (impl.sparse.by_token) {
    ENCORE_RETURN_IF_ERROR(EncodeByTokens(impl, inputs, options, &watch, &rows, &counts));
    for (std::vector<SparseEntry>& row : rows) KeepLargest(most, &row);
  } else {
    ENCORE_RETURN_IF_ERROR(EncodeByModel(impl, inputs, options, most, &watch, &rows, &counts));
  }
  SparseVectors vectors = Compressed(rows, impl.model.vocab_size());
  vectors.counts = std::move(counts);
  return vectors;
}

}  // namespace

void AddSparseSizes(const TextEncoder::Impl& impl, const BatchLimits& batch, FloatSizes* sizes) {
  const auto fit = [](size_t floats, size_t* size) {
    *size = std::max(*size, floats * sizeof(float));
  };
  if (impl.sparse.by_token) fit(batch.tokens, &sizes->projected);
  if (!impl.sparse.pooling) return;
  const LanguageHead& head = *impl.model.language_head();
  fit(batch.tokens * head.width(), &sizes->projected);
  fit(std::min(batch.sequences, PooledTexts(head)) * head.vocab_size(), &sizes->pooled);
}

}  // namespace internal

Result<SparseVectors> TextEncoder::EncodeSparse(Texts texts, const SparseOptions& options) const {
  return internal::Guarded("the sparse vectors",
                           [&] { return internal::EncodeSparseTexts(*impl_, texts, options); });
}

size_t TextEncoder::sparse_dimensions() const {
  return impl_->sparse.any() ? impl_->model.vocab_size() : 0;
}

}  // namespace encore
