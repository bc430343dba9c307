// SPDX-License-Identifier: Apache-2.0
//
// Sizes are sums over the buffers of CallScratch, each for the largest batch that texts of so many
// tokens may make: one long text, or many of the fewest tokens.

#include "engine/text/prepare.h"

#include <algorithm>
#include <limits>

#include "engine/base/guarded.h"
#include "engine/base/int_math.h"
#include "engine/base/status_macros.h"
#include "engine/tokenizer/tokenizer_parts.h"

namespace encore::inline v0_1 {
namespace internal {
namespace {

// Of a text, at most: no usual text has so many for each of its tokens.
constexpr size_t kBytesPerToken = 8;
// Tokens whose sizes can be multiplied without an overflow, and samples be made of.
constexpr size_t kMostTokens = size_t{1} << 24;

// Tokens of a text: the fewest, and the most that a call of `tokens` may have.
struct TextTokens {
  size_t least = 1;
  size_t most = 1;
};

TextTokens TokensOfText(const TextEncoder::Impl& impl, size_t tokens) {
  size_t least = 1;
  size_t expanded = 0;
  size_t most = impl.max_length > 0 ? impl.max_length : tokens;
  if (impl.tokenizer.ok() && !impl.model.is_static()) {
    least = std::max<size_t>(1, impl.tokenizer->special_tokens_of_text());
  }
  if (impl.padding) least = impl.padding->length;
  if (impl.late) {
    most = *std::max_element(std::begin(impl.late->max_length), std::end(impl.late->max_length));
    if (impl.late->expansion) expanded = impl.late->expansion->length;
  }
  return {least, std::max({least, expanded, std::min(most, tokens)})};
}

Result<ScratchSizes> SizesOf(const TextEncoder::Impl& impl, size_t tokens, int threads) {
  if (tokens > kMostTokens) {
    return InvalidArgument("max_tokens is " + std::to_string(tokens) + "; wanted at most " +
                           std::to_string(kMostTokens));
  }
  const TextTokens text = TokensOfText(impl, tokens);
  tokens = std::max(tokens, text.most);
  ScratchSizes sizes;
  sizes.tokens = tokens;
  const size_t texts = tokens / text.least;
  sizes.texts = std::min(texts, kChunkTexts);
  FloatSizes& floats = sizes.floats;
  if (impl.model.is_static()) {
    const size_t batch = kStaticTexts * static_cast<size_t>(threads);
    sizes.batch = {.tokens = std::min(tokens, batch * text.most),
                   .sequences = std::min(batch, sizes.texts)};
    floats.hidden = sizes.batch.sequences * impl.model.d_model() * sizeof(float);
  } else {
    const size_t most = std::min(tokens, std::max(BatchTokens(0, threads), text.most));
    sizes.batch = {.tokens = most, .sequences = std::min(sizes.texts, most / text.least)};
    const size_t hidden_rows =
        impl.model.has_projection() ? sizes.batch.tokens : sizes.batch.sequences;
    floats.x = most * impl.model.d_model() * sizeof(float);
    floats.hidden = hidden_rows * impl.model.hidden_width() * sizeof(float);
    ENCORE_ASSIGN_OR_RETURN(const TextModel::ScratchBytes model,
                            impl.model.ScratchOf(sizes.batch, threads));
    sizes.workspace = model.workspace;
    sizes.narrow = model.narrow;
    sizes.states = model.states;
    sizes.positions = model.positions;
    sizes.factors = model.factors;
    if (impl.use_type_ids) sizes.type_ids = most;
    const bool marks = (impl.padding && !impl.padding->attend) ||
                       (impl.late && impl.late->expansion && !impl.late->expansion->attend);
    if (marks) sizes.unseen = most;
  }
  if (impl.late) floats.gathered = sizes.batch.tokens * impl.model.hidden_width() * sizeof(float);
  if (impl.after) {
    impl.after->AddSizes(impl.late ? sizes.batch.tokens : sizes.batch.sequences, threads, &floats);
  }
  AddSparseSizes(impl, sizes.batch, &floats);
  return sizes;
}

// Two texts that take as much of a tokenizer's memory as any of so many tokens: many words, and a
// long one.
std::vector<std::string> Samples(size_t tokens) {
  const size_t bytes = std::max<size_t>(256, kBytesPerToken * tokens);
  std::string words;
  while (words.size() < bytes) words += "a \xC3\xA9 1, ";
  words.resize(bytes, ' ');
  while ((static_cast<unsigned char>(words.back()) & 0x80) != 0) words.pop_back();
  return {std::move(words), std::string(bytes, 'e')};
}

// What texts take before they are tokens, and these.
void PrepareTexts(const TextEncoder::Impl& impl, size_t tokens, const ScratchSizes& sizes,
                  int threads, CallScratch* scratch) {
  std::vector<std::string> samples = Samples(TokensOfText(impl, tokens).most);
  // Prompts may have added tokens, which a tokenizer keeps a list of.
  for (const auto& [name, prompt] : impl.config.prompts) samples.push_back(prompt + "a");
  if (impl.pair_template.ok() && *impl.pair_template) {
    std::string pair;
    JoinParts((*impl.pair_template)->parts, samples[0], "a", &pair);
    samples.push_back(std::move(pair));
  }
  scratch->tokens.Prepare({.texts = sizes.texts,
                           .tokens = sizes.tokens,
                           .type_ids = impl.use_type_ids ? sizes.tokens : 0,
                           .threads = static_cast<size_t>(threads),
                           .tokenizer = impl.tokenizer.ok() ? &*impl.tokenizer : nullptr,
                           .samples = samples,
                           .pairs = impl.model.has_head(),
                           .offsets = impl.model.labels_tokens()});
  if (!impl.sparse.query) return;
  for (const std::string& sample : samples) {
    scratch->joined = sample;
    (void)impl.sparse.query->tokenizer.Encode(sample, &scratch->words);
  }
}

// Bytes of a scratch for so many tokens.
Result<size_t> BytesOf(const TextEncoder::Impl& impl, size_t tokens, int threads) {
  ENCORE_ASSIGN_OR_RETURN(const ScratchSizes sizes, SizesOf(impl, tokens, threads));
  CallScratch shared;
  PrepareTexts(impl, tokens, sizes, 0, &shared);
  CallScratch with_one;  // of the threads
  PrepareTexts(impl, tokens, sizes, 1, &with_one);
  const size_t of_one = with_one.size_bytes() - shared.size_bytes();
  // What a TokenStore keeps of tokens whose places are asked for.
  constexpr size_t kOfPlace = sizeof(int32_t) + sizeof(uint8_t) + sizeof(ByteRange);
  const size_t places = impl.model.labels_tokens() ? sizes.tokens * kOfPlace : 0;
  size_t bytes = 0;
  if (!CheckedMul(of_one, static_cast<size_t>(threads), &bytes) ||
      !CheckedAdd(bytes, shared.size_bytes() + sizes.bytes() + places, &bytes)) {
    return OutOfMemory();
  }
  return bytes;
}

// Texts of words of one letter, which are a token each, of so many tokens in all.
std::vector<std::string> TextsOf(const TextEncoder::Impl& impl, size_t tokens) {
  const TextTokens text = TokensOfText(impl, tokens);
  const size_t special = text.least;
  const size_t words = text.most > special + 8 ? text.most - special - 8 : 1;
  std::string one;
  for (size_t i = 0; i < words; ++i) one += "a ";
  one.pop_back();
  return std::vector<std::string>(std::max<size_t>(1, tokens / text.most), one);
}

}  // namespace

size_t WorkspaceBytes(const TextEncoder::Impl& impl, size_t tokens, int threads) {
  const Result<size_t> bytes =
      Guarded("the sizes", [&] { return BytesOf(impl, tokens, std::max(threads, 1)); });
  return bytes.ok() ? *bytes : std::numeric_limits<size_t>::max();
}

ModelMemory MemoryOf(const TextEncoder::Impl& impl) {
  const internal::SparseSide& sparse = impl.sparse;
  ModelMemory memory{.mapped = impl.model.mapped_bytes(),
                     .packed = impl.model.packed_bytes(),
                     .tables = impl.model.table_bytes(),
                     .scratch = impl.scratch.idle_bytes()};
  if (impl.after) memory.packed += impl.after->packed_bytes();
  if (sparse.by_token && sparse.by_token->ok()) {
    memory.packed += PackedBytes((*sparse.by_token)->linear);
  }
  if (sparse.query) memory.tables += sparse.query->weights.size_bytes();
  return memory;
}

Status PrepareModel(const TextEncoder::Impl& impl, size_t max_tokens, const Executor& executor,
                    Scratch* scratch,
                    const std::function<Status(const std::vector<std::string>& texts)>& compute) {
  if (max_tokens == 0) return InvalidArgument("max_tokens is 0; wanted at least 1");
  const int threads = executor.threads();
  ENCORE_ASSIGN_OR_RETURN(const ScratchSizes sizes, SizesOf(impl, max_tokens, threads));
  {
    const ScratchOfCall own(scratch, &impl.scratch);
    ENCORE_RETURN_IF_ERROR(own.status());
    ENCORE_RETURN_IF_ERROR(own->Prepare(sizes));
    PrepareTexts(impl, max_tokens, sizes, threads, own.get());
    const size_t bytes = own->size_bytes();
    if (scratch == nullptr && bytes > impl.scratch.max_idle_bytes()) {
      return InvalidArgument("kept_bytes is " + std::to_string(impl.scratch.max_idle_bytes()) +
                             "; wanted at least " + std::to_string(bytes) + " for " +
                             std::to_string(max_tokens) + " tokens, or a scratch");
    }
    // Else what others left here might take its place.
    if (scratch == nullptr && bytes > impl.scratch.max_idle_bytes() - impl.scratch.idle_bytes()) {
      impl.scratch.Trim();
    }
  }
  ENCORE_RETURN_IF_ERROR(impl.model.ReadFiles(executor));
  ENCORE_RETURN_IF_ERROR(compute(TextsOf(impl, max_tokens)));
  return compute({"a"});
}

}  // namespace internal

namespace {

// What the folder has no part for is left out.
Status IfSupported(const Status& status) {
  return status.code() == ErrorCode::kUnsupported ? Status() : status;
}

// Ids in place of texts, where there is no tokenizer.
Status ComputeIds(const TextEncoder& model, const std::vector<std::string>& texts,
                  const Executor& executor, Scratch* scratch) {
  std::vector<std::vector<int32_t>> ids;
  for (const std::string& text : texts) ids.emplace_back(text.size() / 2 + 1, 1);
  if (model.dimensions() > 0) {
    return model.EncodeIds(ids, {.executor = executor, .scratch = scratch}).status();
  }
  return model.ClassifyIds(ids, {}, {.executor = executor, .scratch = scratch}).status();
}

Status ComputeTexts(const TextEncoder& model, const std::vector<std::string>& texts,
                    const Executor& executor, Scratch* scratch) {
  bool any = false;
  const auto add = [&](const Status& status) {
    any = any || status.ok();
    return IfSupported(status);
  };
  if (model.sparse_dimensions() > 0) {
    ENCORE_RETURN_IF_ERROR(
        add(model.EncodeSparse(texts, {.executor = executor, .scratch = scratch}).status()));
  }
  if (model.labels_tokens()) {
    ENCORE_RETURN_IF_ERROR(
        add(model.FindEntities(texts, {.executor = executor, .scratch = scratch}).status()));
  } else if (model.labels().size() == 1) {
    ENCORE_RETURN_IF_ERROR(add(model
                                   .Score("a", texts,
                                          {.executor = executor,
                                           .activation = ScoreActivation::kIdentity,
                                           .scratch = scratch})
                                   .status()));
  } else if (!model.labels().empty()) {
    ENCORE_RETURN_IF_ERROR(add(model
                                   .Classify(texts, {.executor = executor,
                                                     .activation = ScoreActivation::kIdentity,
                                                     .scratch = scratch})
                                   .status()));
  }
  if (model.dimensions() > 0) {
    ENCORE_RETURN_IF_ERROR(
        add(model.Encode(texts, {.executor = executor, .scratch = scratch}).status()));
  }
  if (any) return {};
  return IfSupported(
      model.EncodeTokens(texts[0], {.executor = executor, .scratch = scratch}).status());
}

}  // namespace

Status TextEncoder::Prepare(size_t max_tokens, const Executor& executor, Scratch* scratch) const {
  return internal::Guarded("the preparation", [&] {
    return internal::PrepareModel(
        *impl_, max_tokens, executor, scratch, [&](const std::vector<std::string>& texts) {
          return has_tokenizer() ? ComputeTexts(*this, texts, executor, scratch)
                                 : ComputeIds(*this, texts, executor, scratch);
        });
  });
}

size_t TextEncoder::WorkspaceBytes(size_t tokens, int threads) const {
  return internal::WorkspaceBytes(*impl_, tokens, threads);
}
void TextEncoder::TrimMemory() const { impl_->scratch.Trim(); }
ModelMemory TextEncoder::Memory() const { return internal::MemoryOf(*impl_); }

}  // namespace encore
