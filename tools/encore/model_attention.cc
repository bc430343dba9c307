// SPDX-License-Identifier: Apache-2.0
//
// From the folder and the text to the weights: tokens, embeddings, one pass with taps. And sums of
// weights by kind of token.

#include "tools/encore/model_attention.h"

#include <algorithm>
#include <array>
#include <map>

#include "encore/thread_pool.h"
#include "encore/tokenizer.h"
#include "engine/models/text_model.h"
#include "tools/encore/failure.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

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

void RunModelTo(const internal::TextModel& model, const Tokens& tokens, const Executor& executor,
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
  internal::BatchScratch scratch;
  Check(model.Embed(batch, x.View<float>(), &scratch, executor));
  Tensor hidden = NewTensor({n, model.hidden_width()});
  Check(model.Forward(batch, OutputRows::kAll, x.View<float>(), hidden.View<float>(), workspace,
                      &scratch, executor, {.attention = taps}));
}

// What comes after the special tokens.
constexpr const char* kWordKinds[] = {"itself",    "previous",   "next",
                                      "same word", "other text", "other words"};
enum WordKind : size_t {
  kItself,
  kPrevious,
  kNext,
  kSameWord,
  kOtherText,
  kOtherWords,
  kWordKindCount
};

class Kinds {
 public:
  explicit Kinds(const ModelAttention& attention) : attention_(attention) {
    for (const ModelToken& token : attention.tokens) {
      if (token.special && std::find(names_.begin(), names_.end(), token.label) == names_.end()) {
        names_.push_back(token.label);
      }
    }
    specials_ = names_.size();
    names_.insert(names_.end(), std::begin(kWordKinds), std::end(kWordKinds));
  }

  const std::vector<std::string>& names() const { return names_; }

  // Of token `to`, as word `from` sees it.
  size_t Of(size_t from, size_t to) const {
    const ModelToken& a = attention_.tokens[from];
    const ModelToken& b = attention_.tokens[to];
    if (b.special) {
      return static_cast<size_t>(std::find(names_.begin(), names_.end(), b.label) - names_.begin());
    }
    return specials_ + WordKindOf(a, b, from, to);
  }

 private:
  static WordKind WordKindOf(const ModelToken& a, const ModelToken& b, size_t from, size_t to) {
    if (from == to) return kItself;
    if (to + 1 == from) return kPrevious;
    if (from + 1 == to) return kNext;
    if (a.id == b.id) return kSameWord;
    return a.second != b.second ? kOtherText : kOtherWords;
  }

  const ModelAttention& attention_;
  std::vector<std::string> names_;
  size_t specials_ = 0;
};

std::vector<size_t> Words(const ModelAttention& attention) {
  std::vector<size_t> words;
  for (size_t i = 0; i < attention.size(); ++i) {
    if (!attention.tokens[i].special) words.push_back(i);
  }
  return words;
}

// Leaves out the kinds that no word has.
void DropUnused(const std::vector<size_t>& words_with, AttentionHabits* habits) {
  const auto drop = [&](auto& list) {
    size_t kept = 0;
    for (size_t k = 0; k < words_with.size(); ++k) {
      if (words_with[k] == 0) continue;
      if (kept != k) list[kept] = std::move(list[k]);
      ++kept;
    }
    list.resize(kept);
  };
  drop(habits->kinds);
  for (auto& layer : habits->layers) drop(layer);
  for (auto& layer : habits->heads) {
    for (auto& head : layer) drop(head);
  }
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
  const Tokens tokens = Tokenize(tokenizer, text, pair, model.usual_tokens());
  if (tokens.ids.empty()) throw Failure("found no tokens in the text, wanted some");
  ModelAttention attention;
  attention.model = FolderName(folder);
  attention.precision = model.encoder().precision();
  attention.text = Printable(text) + (pair ? " | " + Printable(*pair) : "");
  attention.pair = pair.has_value();
  attention.tokens = Describe(tokenizer, tokens, first.ids.size());
  RunModelTo(model, tokens, pool.executor(), &attention);
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

AttentionHabits FindHabits(const ModelAttention& attention) {
  AttentionHabits habits;
  const std::vector<size_t> words = Words(attention);
  if (words.empty()) return habits;
  const Kinds kinds(attention);
  const size_t count = kinds.names().size();
  habits.kinds = kinds.names();
  // How many words have a token of each kind.
  std::vector<size_t> words_with(count, 0);
  for (size_t from : words) {
    std::vector<bool> has(count, false);
    for (size_t to = 0; to < attention.size(); ++to) has[kinds.Of(from, to)] = true;
    for (size_t k = 0; k < count; ++k) words_with[k] += has[k] ? 1 : 0;
  }
  const double all = static_cast<double>(words.size() * attention.heads);
  for (size_t layer = 0; layer < attention.layers(); ++layer) {
    const ConstView weights = attention.layer(layer);
    habits.layers.emplace_back(count, 0.0);
    habits.heads.emplace_back(attention.heads, std::vector<double>(count, 0.0));
    for (size_t head = 0; head < attention.heads; ++head) {
      std::vector<double>& shares = habits.heads[layer][head];
      for (size_t from : words) {
        for (size_t to = 0; to < attention.size(); ++to) {
          shares[kinds.Of(from, to)] += weights(head, from, to);
        }
      }
      for (size_t k = 0; k < count; ++k) {
        habits.layers[layer][k] += shares[k] / all;
        if (words_with[k] > 0) shares[k] /= static_cast<double>(words_with[k]);
      }
    }
  }
  DropUnused(words_with, &habits);
  return habits;
}

std::vector<HeadPlace> HeadsWithHabit(const AttentionHabits& habits, size_t kind, double least,
                                      size_t most) {
  std::vector<HeadPlace> found;
  for (size_t layer = 0; layer < habits.heads.size(); ++layer) {
    for (size_t head = 0; head < habits.heads[layer].size(); ++head) {
      const double share = habits.heads[layer][head][kind];
      if (share >= least) found.push_back({layer, head, share});
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const HeadPlace& a, const HeadPlace& b) { return a.share > b.share; });
  if (found.size() > most) found.resize(most);
  return found;
}

std::vector<Link> StrongestLinks(const ModelAttention& attention, ConstView weights, size_t most) {
  std::vector<Link> links;
  const std::vector<size_t> words = Words(attention);
  for (size_t from : words) {
    for (size_t to : words) {
      if (from != to) links.push_back({from, to, weights(from, to)});
    }
  }
  std::stable_sort(links.begin(), links.end(),
                   [](const Link& a, const Link& b) { return a.weight > b.weight; });
  if (links.size() > most) links.resize(most);
  return links;
}

}  // namespace encore::tool
