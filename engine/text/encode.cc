// SPDX-License-Identifier: Apache-2.0
//
// TextEncoder's vectors of texts, ids and tokens.

#include "engine/base/guarded.h"
#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/text/text_encoder_impl.h"
#include "engine/tokenizer/tokenizer_factory.h"

namespace encore::inline v0_1 {

namespace internal {

Status WantTokenizer(const TextEncoder::Impl& impl) {
  if (impl.tokenizer.ok()) return {};
  return Status(ErrorCode::kUnsupported, "the folder's tokenizer cannot be used, ids can: " +
                                             impl.tokenizer.status().message());
}

Result<std::string_view> ResolvePrompt(const TextEncoder::Impl& impl,
                                       const std::optional<std::string>& prompt_name,
                                       const std::optional<std::string>& prompt) {
  if (prompt && prompt_name) {
    return InvalidArgument("found both prompt and prompt_name; wanted at most one of them");
  }
  if (prompt) return std::string_view(*prompt);
  if (!prompt_name && !impl.config.default_prompt_name) return std::string_view();
  const std::string& name = prompt_name ? *prompt_name : *impl.config.default_prompt_name;
  const std::string* text = impl.config.FindPrompt(name);
  if (text != nullptr) return std::string_view(*text);
  std::string known;
  for (const auto& entry : impl.config.prompts) {
    known += (known.empty() ? "" : ", ") + Quoted(entry.first);
  }
  return InvalidArgument((prompt_name
                              ? "prompt_name is "
                              : std::string(kSentenceConfigFile) + ": default_prompt_name is ") +
                         Quoted(name) + "; " +
                         (known.empty() ? "the folder has no prompts" : "wanted one of " + known));
}

Result<size_t> ResolveMaxLength(const TextEncoder::Impl& impl, size_t wanted, size_t absent) {
  if (wanted == 0) return absent;
  const size_t most = impl.model.max_tokens();
  if (wanted > most) {
    return InvalidArgument("max_length is " + std::to_string(wanted) + "; wanted at most " +
                           std::to_string(most) + ", the model's positions");
  }
  return wanted;
}

Result<EncodeSettings> ResolveSettings(const AfterEncoder& after, EncodeSettings wanted,
                                       size_t absent) {
  if (wanted.dimensions > after.width()) {
    return InvalidArgument("dimensions is " + std::to_string(wanted.dimensions) +
                           "; wanted at most " + std::to_string(after.width()));
  }
  if (wanted.dimensions == 0) wanted.dimensions = absent;
  return wanted;
}

Status CheckVectors(MutableView vectors, size_t texts, size_t dimensions) {
  const auto refuse = [&](const std::string& what, const std::string& wanted) {
    return InvalidArgument("vectors is " + vectors.shape().ToString() + what + "; wanted " +
                           wanted);
  };
  const auto wanted = [&] { return Shape(texts, dimensions).ToString(); };
  if (vectors.rank() != 2 || vectors.dim(0) != texts || vectors.dim(1) != dimensions) {
    return refuse("", wanted());
  }
  if (texts == 0) return {};
  if (vectors.data() == nullptr) return refuse(" at a null pointer", wanted());
  // Rows that overlap would be written by several threads at once.
  if ((dimensions > 1 && vectors.stride(1) != 1) ||
      (texts > 1 && vectors.stride(0) < static_cast<ptrdiff_t>(dimensions))) {
    return refuse(" with strides " + std::to_string(vectors.stride(0)) + ", " +
                      std::to_string(vectors.stride(1)),
                  "contiguous rows that do not overlap");
  }
  return {};
}

Result<TokenVectors> EncodeTokensOf(const TextEncoder::Impl& impl, std::string_view prompt,
                                    std::string_view text, StreamOptions options) {
  if (impl.model.is_static()) {
    return Status(ErrorCode::kUnsupported,
                  "the folder has static embeddings: its tokens have no hidden states");
  }
  if (impl.model.pools_text()) {
    return Status(ErrorCode::kUnsupported,
                  "the folder's model makes a vector of each text: its tokens have none");
  }
  options.tokenize.offsets = true;
  TokenVectors result;
  const auto take = [&](const float* hidden, std::span<const size_t>,
                        CallScratch* scratch) -> Status {
    result.tokens = std::move(scratch->tokens.tokens(0));
    const size_t tokens = scratch->starts.back();
    ENCORE_ASSIGN_OR_RETURN(result.vectors,
                            Tensor::Create(DType::kF32, {tokens, impl.model.hidden_width()}));
    std::copy_n(hidden, tokens * impl.model.hidden_width(),
                static_cast<float*>(result.vectors.data()));
    return {};
  };
  ENCORE_RETURN_IF_ERROR(StreamTexts(
      impl, {.texts = std::span<const std::string_view>(&text, 1), .prompt = prompt, .name = ""},
      options, std::ref(take), nullptr));
  return result;
}

}  // namespace internal

namespace {

Result<internal::EncodeSettings> MakeEncodeSettings(const TextEncoder::Impl& impl,
                                                    const EncodeOptions& options) {
  if (!impl.after) {
    if (impl.sparse.pooling) {
      return Status(ErrorCode::kUnsupported,
                    "modules.json lists SpladePooling, so the folder has sparse vectors "
                    "(EncodeSparse gives them)");
    }
    return Status(ErrorCode::kUnsupported,
                  "modules.json lists no Pooling module, so the folder has no vectors of texts "
                  "(OpenOptions::pooling gives them)");
  }
  return internal::ResolveSettings(
      *impl.after, {options.normalize ? options.normalize : impl.normalize, options.dimensions},
      impl.dimensions());
}

// Tokens at each text's start that the pooling leaves out: as sentence-transformers counts them,
// those of the prompt by itself, without a special token at its end. Ids have no prompt.
Result<size_t> TokensToSkip(const TextEncoder::Impl& impl, std::string_view prompt,
                            TokenizeOptions options) {
  if (impl.after->includes_prompt() || prompt.empty()) return size_t{0};
  ENCORE_RETURN_IF_ERROR(internal::WantTokenizer(impl));
  options.on_long = OnLong::kCut;
  Tokens tokens;
  ENCORE_RETURN_IF_ERROR(impl.tokenizer->Encode(prompt, &tokens, options));
  if (impl.padding) impl.padding->Apply(&tokens);
  const bool ends = !tokens.ids.empty() &&
                    internal::TokenizerFactory::IsSpecial(*impl.tokenizer, tokens.ids.back());
  return tokens.ids.size() - (ends ? 1 : 0);
}

// `vectors` was checked.
Status EncodeInto(const TextEncoder::Impl& impl, internal::TextInputs inputs,
                  const internal::EncodeSettings& finish, const EncodeOptions& options,
                  MutableView vectors, TextCounts* counts) {
  internal::CallWatch watch(options);
  const bool of_ids = inputs.ids.has_value();
  if (of_ids && (options.prompt || options.prompt_name)) {
    return InvalidArgument("found a prompt; wanted none, as ids are taken as they are");
  }
  if (!of_ids) {
    ENCORE_ASSIGN_OR_RETURN(inputs.prompt,
                            internal::ResolvePrompt(impl, options.prompt_name, options.prompt));
  }
  ENCORE_ASSIGN_OR_RETURN(
      internal::StreamOptions stream,
      internal::MakeStreamOptions(impl, options, of_ids, impl.after->pooled_rows(), &watch));
  ENCORE_ASSIGN_OR_RETURN(const size_t skip, TokensToSkip(impl, inputs.prompt, stream.tokenize));
  stream.rows = impl.after->pooled_rows(skip);
  const auto write = [&](const float* hidden, std::span<const size_t> texts,
                         internal::CallScratch* scratch) {
    return impl.after->Run({hidden, scratch->starts, texts, skip}, finish, vectors, scratch,
                           options.executor);
  };
  return internal::StreamTexts(impl, inputs, stream, std::ref(write), counts);
}

Result<Embeddings> EncodeInputs(const TextEncoder::Impl& impl, const internal::TextInputs& inputs,
                                const EncodeOptions& options) {
  ENCORE_ASSIGN_OR_RETURN(const internal::EncodeSettings finish, MakeEncodeSettings(impl, options));
  ENCORE_ASSIGN_OR_RETURN(Tensor vectors,
                          Tensor::Create(DType::kF32, {inputs.size(), finish.dimensions}));
  Embeddings embeddings{std::move(vectors), {}};
  ENCORE_RETURN_IF_ERROR(EncodeInto(impl, inputs, finish, options, embeddings.vectors.View<float>(),
                                    &embeddings.counts));
  return embeddings;
}

}  // namespace

Status TextEncoder::Encode(Texts texts, MutableView vectors, TextCounts* counts,
                           const EncodeOptions& options) const {
  return internal::Guarded("the vectors", [&]() -> Status {
    ENCORE_ASSIGN_OR_RETURN(const internal::EncodeSettings finish,
                            MakeEncodeSettings(*impl_, options));
    ENCORE_RETURN_IF_ERROR(internal::CheckVectors(vectors, texts.size(), finish.dimensions));
    return EncodeInto(*impl_, {.texts = texts}, finish, options, vectors, counts);
  });
}

Result<Embeddings> TextEncoder::Encode(Texts texts, const EncodeOptions& options) const {
  return internal::Guarded("the vectors",
                           [&] { return EncodeInputs(*impl_, {.texts = texts}, options); });
}

Result<Embeddings> TextEncoder::EncodeIds(std::span<const std::vector<int32_t>> ids,
                                          const EncodeOptions& options) const {
  return internal::Guarded("the vectors",
                           [&] { return EncodeInputs(*impl_, {.ids = ids}, options); });
}

Result<TokenVectors> TextEncoder::EncodeTokens(std::string_view text,
                                               const EncodeOptions& options) const {
  return internal::Guarded("the vectors", [&]() -> Result<TokenVectors> {
    internal::CallWatch watch(options);
    ENCORE_RETURN_IF_ERROR(internal::WantTokenizer(*impl_));
    if (options.dimensions > 0 || options.normalize.value_or(false)) {
      return InvalidArgument(
          "found dimensions or normalize; wanted neither, as these are for the "
          "vectors of texts");
    }
    ENCORE_ASSIGN_OR_RETURN(const std::string_view prompt,
                            internal::ResolvePrompt(*impl_, options.prompt_name, options.prompt));
    ENCORE_ASSIGN_OR_RETURN(
        const internal::StreamOptions stream,
        internal::MakeStreamOptions(*impl_, options, /*of_ids=*/false, OutputRows::kAll, &watch));
    return internal::EncodeTokensOf(*impl_, prompt, text, stream);
  });
}

}  // namespace encore
