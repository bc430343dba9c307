// SPDX-License-Identifier: Apache-2.0
//
// From text to token ids, as the Hugging Face `tokenizers` library gives them. Part of the library
// encore::text.

#ifndef ENCORE_TOKENIZER_H_
#define ENCORE_TOKENIZER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "encore/export.h"
#include "encore/status.h"

namespace encore::inline v0_1 {

namespace internal {
class TokenizerFactory;
}

// A decision that was taken when a folder was opened: what it is about, what holds, and which file
// (or option, or default) says so.
struct Decision {
  std::string what;    // "pooling"
  std::string value;   // "mean"
  std::string source;  // "1_Pooling/config.json"
};

struct TokenizerOptions {
  // Lower case before the normalizer, whatever the folder's tokenizer says: what
  // sentence-transformers does if sentence_bert_config.json has "do_lower_case": true. Each
  // character by itself, without rules for final letters; nothing changes if the normalizer has a
  // Lowercase step.
  bool lowercase = false;
};

// What to do with a text of more than max_length tokens.
enum class OnLong : uint8_t {
  kCut,    // leave out its last tokens, or its first (see Tokenizer::Open); how many comes back
  kError,  // kInvalidArgument
};

// What to do with bytes that are not UTF-8.
enum class OnInvalidUtf8 : uint8_t {
  kError,    // kInvalidArgument with the byte's place
  kReplace,  // each longest invalid part becomes U+FFFD (as Unicode recommends)
};

struct TokenizeOptions {
  // Tokens of a text or pair, those of the template ([CLS], [SEP]) included; 0: no limit. Cutting
  // leaves out text before the template is applied. Of a pair, the longer text is cut first.
  size_t max_length = 0;
  OnLong on_long = OnLong::kCut;
  OnInvalidUtf8 on_invalid_utf8 = OnInvalidUtf8::kError;
  // The template's tokens around the text.
  bool add_special_tokens = true;
  // false, as in `tokenizers`: "[SEP]" written in a text is the token [SEP], so whoever writes the
  // text can place it. true: special tokens in texts are ordinary text.
  bool plain_text = false;
  // Whether Tokens::offsets is filled in.
  bool offsets = false;
};

// Bytes [begin, end) of a text.
struct ByteRange {
  size_t begin = 0;
  size_t end = 0;
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

// The tokens of one text or pair. Its memory is reused from call to call: once warm, tokenizing
// allocates nothing. One call at a time may use it.
struct ENCORE_API Tokens {
  std::vector<int32_t> ids;
  std::vector<uint8_t> type_ids;  // as the template says: 1 for most models' second text, else 0
  // With TokenizeOptions::offsets: where a token came from in its text, as `tokenizers` tells it,
  // in bytes; {0, 0} for the template's tokens.
  std::vector<ByteRange> offsets;
  // The second text's tokens of a pair: [second_begin, second_end) of ids. Type ids do not say
  // which these are: RoBERTa, T5 and XLM-R have type 0 everywhere.
  size_t second_begin = 0;
  size_t second_end = 0;
  size_t cut = 0;  // tokens of the texts that were left out

  Tokens();
  Tokens(Tokens&&) noexcept;
  Tokens& operator=(Tokens&&) noexcept;
  ~Tokens();

  struct Scratch;
  std::unique_ptr<Scratch> scratch;  // encore's own
};

// A tokenizer. Immutable: any number of threads may use it at once, with Tokens each. Copying
// shares it.
class ENCORE_API Tokenizer {
 public:
  // To move is to copy: what was moved from stays as it is.
  Tokenizer(const Tokenizer&) = default;
  Tokenizer& operator=(const Tokenizer&) = default;

  // From a folder: tokenizer.json; else vocab.txt, or vocab.json with merges.txt. DeBERTa v2's
  // class reads spm.model in place of these two. ESM's reads vocab.txt, even beside a
  // tokenizer.json. What counts is decided as by AutoTokenizer of transformers 5.23:
  //
  // 1. The class is tokenizer_class of tokenizer_config.json, else of config.json, else the one of
  //    config.json's model_type. A few types (modernbert, qwen2) have one class whatever is named.
  // 2. TokenizersBackend, PreTrainedTokenizerFast and classes that nobody knows take tokenizer.json
  //    as it is. BERT's, MPNet's, Funnel's, RoBERTa's, GPT-2's, Qwen2's, XLM-R's, CamemBERT's,
  //    ALBERT's, DeBERTa v2's, T5's, LLaMA's, Gemma's, SigLIP 2's, HerBERT's and CLIP's take its
  //    vocabulary, merges and map of characters, ESM's takes vocab.txt. The rest they make
  //    themselves, by the keys of tokenizer_config.json (do_lower_case, strip_accents,
  //    tokenize_chinese_chars, add_prefix_space, unk_token, cls_token ...) or the class's defaults:
  //    BertTokenizer lowercases unless do_lower_case is false. Of GPT-2's, Qwen2's, ALBERT's,
  //    LLaMA's, Gemma's and SigLIP 2's the template is tokenizer.json's.
  // 3. Special and added tokens of tokenizer_config.json join tokenizer.json's, those of
  //    special_tokens_map.json and added_tokens.json only without added_tokens_decoder. Ids are the
  //    vocabulary's, else the next free ones.
  // 4. truncation_side, else the direction of tokenizer.json's truncation, says which end of a text
  //    that is too long is kept. split_special_tokens is TokenizeOptions::plain_text for all calls.
  //    Lengths of truncation, and padding, are ignored in tokenizer.json.
  //
  // Other than there, and told in Describe(): classes that encore does not follow, and classes that
  // make another model than tokenizer.json has, take that file as it is. kNotFound if there is no
  // vocabulary; kUnsupported names a component that encore has not, or a class whose code is Python
  // (BertJapaneseTokenizer); kCorruptData or kInvalidArgument names the file, the key, what was
  // found and what was wanted; kIo; kOutOfMemory.
  static Result<Tokenizer> Open(const std::string& folder, const TokenizerOptions& options = {});

  // Replaces what is in `tokens`. kInvalidArgument for invalid UTF-8 (with kError), for a text that
  // is too long (with kError), and for a max_length that leaves no room for the template's tokens.
  // kOutOfMemory.
  Status Encode(std::string_view text, Tokens* tokens, const TokenizeOptions& options = {}) const;
  Status EncodePair(std::string_view first, std::string_view second, Tokens* tokens,
                    const TokenizeOptions& options = {}) const;

  // Ids are below this; added tokens are counted.
  size_t vocab_size() const;
  // Of a token as the vocabulary spells it ("[SEP]", "##ing"); nothing if it has none.
  std::optional<int32_t> TokenToId(std::string_view token) const;
  // The reverse; empty for an id that no token has. Valid as long as this object or a copy of it.
  std::string_view IdToToken(int32_t id) const&;
  std::string_view IdToToken(int32_t id) const&& = delete;
  // The template's tokens around one text, and around a pair.
  size_t special_tokens_of_text() const;
  size_t special_tokens_of_pair() const;
  // model_max_length of tokenizer_config.json; nothing where it is absent or "no limit" (1e30).
  std::optional<size_t> model_max_length() const;

  // Every decision taken: model, normalizer (lower case, accents, Chinese characters),
  // pre-tokenizer, template, unknown token, added tokens, and what was ignored.
  const std::vector<Decision>& Describe() const&;
  const std::vector<Decision>& Describe() const&& = delete;

 private:
  friend class internal::TokenizerFactory;
  struct Impl;
  explicit Tokenizer(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

}  // namespace encore

#endif  // ENCORE_TOKENIZER_H_
