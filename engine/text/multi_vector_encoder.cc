// SPDX-License-Identifier: Apache-2.0
//
// MultiVectorEncoder: the rows of a call's texts, chunk by chunk, and the public methods.

#include "encore/multi_vector_encoder.h"

#include <algorithm>
#include <cstring>

#include "engine/base/guarded.h"
#include "engine/base/int_math.h"
#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/text/open_folder.h"
#include "engine/text/prepare.h"

namespace encore::inline v0_1 {

struct MultiVectorEncoder::Impl {
  std::shared_ptr<const TextEncoder::Impl> text;
  const internal::LateModel& late() const { return *text->late; }
};

namespace {

// The rows of the texts that are tokenized together, which is where their number is known.
struct Chunk {
  size_t first_row;  // of all texts
  Tensor vectors;    // [rows, width]
};

// One call.
class Encoding {
 public:
  Encoding(const MultiVectorEncoder::Impl& impl, TextTask task, const EncodeOptions& options)
      : text_(*impl.text), late_(impl.late()), task_(task), options_(options), watch_(options) {}

  Result<MultiVectors> Run(Texts texts) {
    internal::TextInputs inputs{.texts = texts};
    ENCORE_ASSIGN_OR_RETURN(inputs.prompt, Prompt());
    ENCORE_ASSIGN_OR_RETURN(
        internal::StreamOptions stream,
        internal::MakeStreamOptions(text_, options_, /*of_ids=*/false, OutputRows::kAll, &watch_));
    ENCORE_ASSIGN_OR_RETURN(stream.tokenize.max_length, MaxLength(stream.tokenize.max_length));
    if (task_ == TextTask::kQuery && late_.expansion) inputs.expansion = &*late_.expansion;
    row_starts_.assign(1, 0);
    row_starts_.reserve(texts.size() + 1);
    MultiVectors result;
    ENCORE_RETURN_IF_ERROR(internal::StreamTexts(
        text_, inputs, stream,
        [this](const float* hidden, std::span<const size_t> batch, internal::CallScratch* scratch) {
          return Take(hidden, batch, scratch);
        },
        &result.counts, [this](const internal::TokenStore& tokens) { return TakeTokens(tokens); }));
    ENCORE_ASSIGN_OR_RETURN(result.vectors, Joined());
    result.row_starts = std::move(row_starts_);
    return result;
  }

 private:
  // What encode_query and encode_document of sentence-transformers put before a text.
  Result<std::string_view> Prompt() const {
    if (options_.dimensions > 0) {
      return InvalidArgument("dimensions is " + std::to_string(options_.dimensions) +
                             "; wanted 0, as vectors of tokens have all columns");
    }
    if (!options_.prompt && !options_.prompt_name && task_ != TextTask::kNone) {
      // sentence-transformers always has both names, empty without the folder's.
      const std::string* const prompt =
          text_.config.FindPrompt(task_ == TextTask::kQuery ? "query" : "document");
      return prompt != nullptr ? std::string_view(*prompt) : std::string_view();
    }
    return internal::ResolvePrompt(text_, options_.prompt_name, options_.prompt);
  }

  // `wanted` is the call's max_length where it has one; it was checked.
  Result<size_t> MaxLength(size_t wanted) const {
    const size_t usual = late_.max_length[static_cast<size_t>(task_)];
    if (options_.max_length == 0) return usual;
    if (task_ != TextTask::kQuery || !late_.fixed || wanted == usual) return wanted;
    return InvalidArgument("max_length is " + std::to_string(wanted) + "; wanted " +
                           std::to_string(usual) + ", as queries are expanded to so many tokens");
  }

  bool KeepsAll() const {
    return !late_.skips_first && late_.keep_ids.empty() &&
           !late_.skips[static_cast<size_t>(task_)] &&
           (task_ != TextTask::kQuery || !late_.expansion || late_.scores_expansion);
  }

  Status TakeTokens(const internal::TokenStore& tokens) {
    const size_t first_row = row_starts_.back();
    size_t rows = first_row;
    for (size_t i = 0; i < tokens.size(); ++i) {
      const std::span<const int32_t> ids = tokens.ids(i);
      const size_t own = tokens.own_length(i);
      for (size_t t = 0; t < ids.size(); ++t) {
        rows += late_.Keeps(task_, ids[t], t, t >= own) ? 1 : 0;
      }
      row_starts_.push_back(rows);
    }
    ENCORE_ASSIGN_OR_RETURN(Tensor vectors,
                            Tensor::Create(DType::kF32, {rows - first_row, text_.after->width()}));
    chunks_.push_back({first_row, std::move(vectors)});
    return {};
  }

  // `batch` are texts of the last chunk.
  Status Take(const float* hidden, std::span<const size_t> batch, internal::CallScratch* scratch) {
    const size_t width = text_.model.hidden_width();
    const Chunk& chunk = chunks_.back();
    outputs_.clear();
    float* gathered = nullptr;
    if (!KeepsAll()) {
      ENCORE_ASSIGN_OR_RETURN(gathered,
                              scratch->gathered.Get<float>(scratch->starts.back() * width));
    }
    for (size_t b = 0; b < batch.size(); ++b) {
      const size_t start = scratch->starts[b];
      const size_t own = scratch->tokens.own_length(batch[b] - scratch->first_text);
      size_t row = row_starts_[batch[b]] - chunk.first_row;
      for (size_t t = start; t < scratch->starts[b + 1]; ++t) {
        if (!late_.Keeps(task_, scratch->ids[t], t - start, t - start >= own)) continue;
        if (gathered != nullptr) {
          std::memcpy(gathered + outputs_.size() * width, hidden + t * width,
                      width * sizeof(float));
        }
        outputs_.push_back(row++);
      }
    }
    return text_.after->Run({gathered != nullptr ? gathered : hidden, scratch->starts, outputs_},
                            {.normalize = options_.normalize ? options_.normalize : text_.normalize,
                             .dimensions = text_.after->width()},
                            chunks_.back().vectors.View<float>(), scratch, options_.executor);
  }

  // The chunks' rows in one matrix.
  Result<Tensor> Joined() {
    if (chunks_.size() == 1) return std::move(chunks_[0].vectors);
    const size_t width = text_.after->width();
    ENCORE_ASSIGN_OR_RETURN(Tensor all, Tensor::Create(DType::kF32, {row_starts_.back(), width}));
    for (const Chunk& chunk : chunks_) {
      if (chunk.vectors.size_bytes() == 0) continue;
      std::memcpy(static_cast<float*>(all.data()) + chunk.first_row * width, chunk.vectors.data(),
                  chunk.vectors.size_bytes());
    }
    return all;
  }

  const TextEncoder::Impl& text_;
  const internal::LateModel& late_;
  const TextTask task_;
  const EncodeOptions& options_;
  internal::CallWatch watch_;
  std::vector<size_t> row_starts_;
  std::vector<Chunk> chunks_;
  std::vector<size_t> outputs_;
};

}  // namespace

Result<MultiVectorEncoder> MultiVectorEncoder::Open(const std::string& folder,
                                                    const OpenOptions& options) {
  return internal::Guarded("the model", [&]() -> Result<MultiVectorEncoder> {
    if (!options.pooling.empty()) {
      return InvalidArgument("found an option pooling; wanted none, as each token has a vector");
    }
    auto impl = std::make_shared<Impl>();
    ENCORE_ASSIGN_OR_RETURN(
        impl->text,
        internal::OpenFolder(folder, options, internal::FolderUse::kMultiVectorEncoder));
    return MultiVectorEncoder(std::move(impl));
  });
}

Result<MultiVectors> MultiVectorEncoder::Encode(Texts texts, const EncodeOptions& options,
                                                TextTask task) const {
  return internal::Guarded("the vectors",
                           [&] { return Encoding(*impl_, task, options).Run(texts); });
}

Status MultiVectorEncoder::Similarity(const RowGroups& queries, const RowGroups& documents,
                                      MutableView scores, const Executor& executor) const {
  return MaxSim(queries, documents, scores, {.mean = impl_->late().mean, .executor = executor});
}

Status MultiVectorEncoder::Similarity(const RowGroups& queries, const StoredRowGroups& documents,
                                      MutableView scores, const Executor& executor) const {
  return MaxSim(queries, documents, scores, {.mean = impl_->late().mean, .executor = executor});
}

Status MultiVectorEncoder::Prepare(size_t max_tokens, const Executor& executor,
                                   Scratch* scratch) const {
  const EncodeOptions options{.executor = executor, .scratch = scratch};
  return internal::Guarded("the preparation", [&] {
    return internal::PrepareModel(*impl_->text, max_tokens, executor, scratch,
                                  [&](const std::vector<std::string>& texts) -> Status {
                                    ENCORE_RETURN_IF_ERROR(EncodeQueries(texts, options).status());
                                    return EncodeDocuments(texts, options).status();
                                  });
  });
}

size_t MultiVectorEncoder::WorkspaceBytes(size_t tokens, int threads) const {
  return internal::WorkspaceBytes(*impl_->text, tokens, threads);
}
void MultiVectorEncoder::TrimMemory() const { impl_->text->scratch.Trim(); }
ModelMemory MultiVectorEncoder::Memory() const { return internal::MemoryOf(*impl_->text); }

bool MultiVectorEncoder::mean_similarity() const { return impl_->late().mean; }
size_t MultiVectorEncoder::dimensions() const { return impl_->text->after->width(); }
size_t MultiVectorEncoder::max_length(TextTask task) const {
  return impl_->late().max_length[static_cast<size_t>(task)];
}
bool MultiVectorEncoder::has_own_length(TextTask task) const {
  return impl_->late().own_length[static_cast<size_t>(task)];
}
const Tokenizer& MultiVectorEncoder::tokenizer() const& { return *impl_->text->tokenizer; }
const Encoder& MultiVectorEncoder::encoder() const& { return impl_->text->model.encoder(); }
const std::vector<std::pair<std::string, std::string>>& MultiVectorEncoder::prompts() const& {
  return impl_->text->config.prompts;
}
const std::vector<Decision>& MultiVectorEncoder::Describe() const& {
  return impl_->text->decisions;
}

}  // namespace encore
