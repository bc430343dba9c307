// SPDX-License-Identifier: Apache-2.0
//
// From the folder and the text to the weights: tokens, embeddings, one pass with taps.

#include "tools/encore/model_attention.h"

#include <array>
#include <filesystem>
#include <map>

#include "encore/thread_pool.h"
#include "encore/tokenizer.h"
#include "engine/models/text_model.h"
#include "tools/encore/failure.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

// The folder's own name: "all-MiniLM-L6-v2" of "models/all-MiniLM-L6-v2/".
std::string NameOf(const std::string& folder) {
  std::filesystem::path path = std::filesystem::path(folder).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  return Printable(path.has_filename() ? path.filename().string() : folder);
}

Tokens Tokenize(const Tokenizer& tokenizer, const std::string& text,
                const std::optional<std::string>& pair, size_t max_tokens) {
  const TokenizeOptions options = {
      .max_length = max_tokens, .on_long = OnLong::kError, .offsets = true};
  Tokens tokens;
  Check(pair ? tokenizer.EncodePair(text, *pair, &tokens, options)
             : tokenizer.Encode(text, &tokens, options));
  return tokens;
}

// The template's tokens are those that come from no byte of a text.
std::vector<ModelToken> Describe(const Tokenizer& tokenizer, const Tokens& tokens,
                                 size_t first_size) {
  std::vector<ModelToken> described;
  size_t words = 0;
  for (size_t i = 0; i < tokens.ids.size(); ++i) {
    ModelToken token;
    token.id = tokens.ids[i];
    token.label = Printable(tokenizer.IdToToken(token.id));
    token.special = tokens.offsets[i].begin == tokens.offsets[i].end;
    token.second = words >= first_size;
    if (!token.special) ++words;
    described.push_back(std::move(token));
  }
  return described;
}

void Run(const internal::TextModel& model, const Tokens& tokens, const Executor& executor,
         ModelAttention* attention) {
  const size_t n = tokens.ids.size();
  const std::array<size_t, 2> starts = {0, n};
  const internal::TokenBatch batch = {.ids = tokens.ids,
                                      .type_ids = model.type_vocab_size() > 0
                                                      ? std::span<const uint8_t>(tokens.type_ids)
                                                      : std::span<const uint8_t>(),
                                      .seq_starts = starts};
  Check(model.CheckTokens(batch));
  const Encoder& encoder = model.encoder();
  const size_t layers = encoder.config().num_layers();
  attention->heads = encoder.config().layers[0].num_heads;
  std::vector<MutableView> taps;
  for (size_t i = 0; i < layers; ++i) {
    attention->weights.push_back(NewTensor({attention->heads, n, n}));
  }
  for (Tensor& weights : attention->weights) taps.push_back(weights.View<float>());
  Tensor x = NewTensor({n, model.d_model()});
  const Workspace workspace =
      Take(encoder.MakeWorkspace(Batch{.seq_starts = batch.seq_starts}, executor));
  Check(model.Embed(batch, x.View<float>(), executor));
  Check(model.Forward(batch, internal::HiddenRows::kAll, x.View<float>(), x.View<float>(),
                      workspace, executor, {.attention = taps}));
}

}  // namespace

std::vector<std::string> ModelAttention::Labels() const {
  std::map<std::string, size_t> count;
  std::vector<std::string> labels;
  for (const ModelToken& token : tokens) {
    const size_t seen = ++count[token.label];
    labels.push_back(seen == 1 ? token.label : token.label + "(" + std::to_string(seen) + ")");
  }
  return labels;
}

ModelAttention AttendWithModel(const std::string& folder, const PrecisionOptions& precision,
                               const std::string& text, const std::optional<std::string>& pair) {
  const std::vector<MatrixOfLayer> kept = precision.kept();
  const ThreadPool pool = Take(ThreadPool::Create());
  const Tokenizer tokenizer = Take(Tokenizer::Open(folder), "--model");
  std::vector<Decision> decisions;
  const internal::TextModel model =
      Take(internal::TextModel::Open(
               Take(internal::Folder::Open(folder), "--model"),
               {.executor = pool.executor(), .precision = precision.precision(), .keep = kept},
               &decisions),
           "--model");
  Tokens first;
  Check(tokenizer.Encode(text, &first, {.add_special_tokens = false}));
  const Tokens tokens = Tokenize(tokenizer, text, pair, model.max_tokens());
  if (tokens.ids.empty()) throw Failure("found no tokens in the text, wanted some");
  ModelAttention attention;
  attention.model = NameOf(folder);
  attention.precision = model.encoder().precision();
  attention.text = Printable(text) + (pair ? " | " + Printable(*pair) : "");
  attention.pair = pair.has_value();
  attention.tokens = Describe(tokenizer, tokens, first.ids.size());
  Run(model, tokens, pool.executor(), &attention);
  return attention;
}

Tensor MeanOfHeads(ConstView layer) {
  const size_t heads = layer.dim(0);
  const size_t n = layer.dim(1);
  Tensor mean = NewTensor({n, n});
  const MutableView out = mean.View<float>();
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) {
      double sum = 0;
      for (size_t h = 0; h < heads; ++h) sum += layer(h, i, j);
      out(i, j) = static_cast<float>(sum / static_cast<double>(heads));
    }
  }
  return mean;
}

}  // namespace encore::tool
