// SPDX-License-Identifier: Apache-2.0
//
// Tokens a second of the tokenizer alone, one thread: English sentences, a long text, text with
// accents, a word without an end. The vocabulary is that of the folder that the environment
// variable ENCORE_BENCH_TOKENIZER names (a model's, e.g. all-MiniLM-L6-v2); without it one that is
// made here, of as many tokens.

#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/common.h"
#include "encore/tokenizer.h"
#include "engine/tokenizer/tokenizer_factory.h"

namespace encore::bench {
namespace {

constexpr std::string_view kSentences[] = {
    "A lighthouse keeper wrote down every ship that passed, its flag, its course and the weather.",
    "In 1987 the harbour was closed for eleven days; nobody had seen such ice since 1929.",
    "How do I replace the battery of a wireless keyboard without losing its pairing?",
    "The committee's report (page 14, section 3.2) recommends a smaller budget for maintenance.",
    "Photosynthesis converts carbon dioxide and water into glucose, releasing oxygen.",
    "\"You're late,\" she said, and closed the notebook before anyone could read it.",
    "Return true if the list contains no duplicates, otherwise raise a ValueError.",
    "Unbelievably, the refurbished microprocessors outperformed the manufacturer's newest ones.",
    "Best wishes from Reykjavik! We'll be back on Tuesday - don't forget to feed the cat.",
    "Rain again. The streets were empty, and the last tram to the river had already left.",
    "What is the difference between a list and a tuple, and when should each of them be used?",
    "Interest rates rose by 0.25 per cent, the third increase in as many months."};

constexpr std::string_view kAccents[] = {
    "L'été dernier, nous avons traversé la forêt où naît la rivière; le café était fermé.",
    "Größere Städte brauchen Straßenbahnen, Fußgängerzonen und schöne Plätze für alle.",
    "Příliš žluťoučký kůň úpěl ďábelské ódy, řekl učitel a všichni se zasmáli.",
    "El niño pidió más azúcar; mañana vendrán sus tíos de Perú y de España."};

// A vocabulary like BERT's: the words of the sentences, all characters, common pieces, and drawn
// words up to 30,000 tokens.
std::string MadeVocabulary() {
  std::string lines = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  for (char c = '!'; c <= '~'; ++c) {
    lines += std::string(1, c) + "\n##" + c + "\n";
  }
  const std::string_view syllables[] = {"ing", "ed", "er", "ly", "tion", "s", "es", "al", "re",
                                        "un",  "in", "or", "an", "the",  "a", "on", "ic", "ment"};
  for (const std::string_view syllable : syllables) lines += "##" + std::string(syllable) + "\n";
  std::string word;
  for (const std::string_view sentence : kSentences) {
    for (const char c : sentence) {
      if (c >= 'a' && c <= 'z') {
        word += c;
      } else if (!word.empty()) {
        lines += word + "\n";
        word.clear();
      }
    }
  }
  uint32_t state = 1;
  for (int i = 0; i < 30000; ++i) {
    word.clear();
    for (int part = 0; part < 3; ++part) {
      state = state * 1664525 + 1013904223;
      word += syllables[(state >> 16) % std::size(syllables)];
      word += static_cast<char>('a' + (state >> 24) % 26);
    }
    lines += word + "\n";
  }
  return lines;
}

const Tokenizer& TheTokenizer() {
  static const Tokenizer tokenizer = [] {
    const char* const folder = std::getenv("ENCORE_BENCH_TOKENIZER");
    if (folder != nullptr) return OrFail(Tokenizer::Open(folder));
    return OrFail(internal::TokenizerFactory::FromVocab(MadeVocabulary()));
  }();
  return tokenizer;
}

// All texts, one after another, again and again.
void Encode(benchmark::State& state, const std::vector<std::string>& texts,
            const TokenizeOptions& options) {
  const Tokenizer& tokenizer = TheTokenizer();
  encore::Tokens tokens;
  Work work;
  for (const std::string& text : texts) {
    const Status status = tokenizer.Encode(text, &tokens, options);
    if (!status.ok()) Fail(status);
    work.tokens += static_cast<double>(tokens.ids.size());
    work.bytes += static_cast<double>(text.size());
  }
  Measure(state, 1, work, [&](size_t) {
    Status status;
    for (const std::string& text : texts) status = tokenizer.Encode(text, &tokens, options);
    return status;
  });
}

std::string Joined(const std::vector<std::string>& texts, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) {
    for (const std::string& text : texts) all += text + " ";
  }
  return all;
}

void Add(const std::string& name, std::vector<std::string> texts, TokenizeOptions options = {}) {
  Register("tokenizer/" + name, [texts = std::move(texts), options](benchmark::State& state) {
    Encode(state, texts, options);
  });
}

}  // namespace

void RegisterBenchmarks() {
  const std::vector<std::string> sentences(std::begin(kSentences), std::end(kSentences));
  const std::vector<std::string> accents(std::begin(kAccents), std::end(kAccents));
  Add("sentences", sentences);
  Add("sentences_with_offsets", sentences, {.offsets = true});
  Add("one_query", {sentences[2]});
  Add("100_kb", {Joined(sentences, 100)});
  Add("accents", accents);
  Add("1_mb_without_space", {std::string(1 << 20, 'x')});
}

}  // namespace encore::bench
