// SPDX-License-Identifier: Apache-2.0
//
// The tokens of many texts, made by several threads at once.

#ifndef ENCORE_ENGINE_TEXT_TOKEN_STORE_H_
#define ENCORE_ENGINE_TEXT_TOKEN_STORE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "encore/executor.h"
#include "encore/status.h"
#include "encore/text_encoder.h"
#include "encore/tokenizer.h"
#include "engine/models/text_model.h"
#include "engine/text/chat_template.h"
#include "engine/text/model2vec.h"

namespace encore::inline v0_1::internal {

// Texts get tokens of this id until they have so many: queries of late interaction, and texts of
// models that were trained on padded ones.
struct Expansion {
  size_t length = 0;
  int32_t id = 0;
  bool attend = false;  // other tokens see them; else they see the others, and nobody sees them

  void Apply(Tokens* tokens) const;
};

// The text around a query and a document, in place of a tokenizer's own template.
struct PairChatTemplate {
  ChatParts parts = {};
  std::vector<int32_t> suffix =
      {};  // tokens that take the place of the last ones where texts are cut
  // What the parts were rendered from, for calls with another prompt.
  std::string source = {};
  std::string file = {};
  bool structured = false;
};

// What a call was given: texts, pairs, one text with each of many, or ids.
struct TextInputs {
  Texts texts = {};                         // of pairs, the first ones
  const Texts* second = nullptr;            // of pairs: as many
  const std::string_view* query = nullptr;  // in place of texts' part as the first of each pair
  std::string_view prompt = {};             // before each text, of pairs before the first
  std::string_view name = "texts";          // before a text's index in errors; empty: neither
  const Expansion* expansion = nullptr;     // of each text
  const Model2VecTexts* model2vec = nullptr;
  const PairChatTemplate* pair_template = nullptr;  // of pairs; it has the prompt
  // In place of all these: tokens as they are, and their type ids, one list each or none at all.
  std::optional<std::span<const std::vector<int32_t>>> ids = {};
  std::span<const std::vector<uint8_t>> type_ids = {};

  size_t size() const { return ids ? ids->size() : texts.size(); }
  bool pairs() const { return second != nullptr || query != nullptr; }
};

class Team;

// What a TokenStore is made large enough for.
struct TokenStoreSizes {
  size_t texts = 0;
  size_t tokens = 0;    // of them all
  size_t type_ids = 0;  // likewise
  size_t threads = 1;
  const Tokenizer* tokenizer = nullptr;       // null: there is none
  std::span<const std::string> samples = {};  // texts that take as much memory as any
  bool pairs = false;                         // tokenized as pairs too
  bool offsets = false;                       // of TokenizeOptions
};

// Its memory is kept from call to call.
class TokenStore {
 public:
  // Tokenizes inputs [begin, end) and checks the tokens against the model; few texts on the calling
  // thread. An error names the first text that is at fault.
  Status Fill(const Tokenizer& tokenizer, const TextModel& model, bool use_type_ids,
              const TokenizeOptions& options, const TextInputs& inputs, size_t begin, size_t end,
              const Executor& executor);
  // Refers to the ids of inputs that have them. Checked too.
  Status Refer(const TextModel& model, const TextInputs& inputs, size_t max_length);

  // Makes room for so many texts of so many tokens in all, tokenized by so many threads, each of
  // which tokenizes `samples` too, and as pairs. All of it is touched.
  void Prepare(const TokenStoreSizes& sizes);

  size_t size() const { return entries_.size(); }
  bool has_type_ids() const { return has_type_ids_; }
  size_t length(size_t i) const { return entries_[i].length; }
  size_t cut(size_t i) const { return entries_[i].cut; }
  // Tokens of the text itself, before those of an expansion.
  size_t own_length(size_t i) const { return entries_[i].own_length; }
  std::span<const int32_t> ids(size_t i) const {
    const Entry& entry = entries_[i];
    const int32_t* data = lists_.empty() ? workers_[entry.worker].ids.data() : lists_[i].data();
    return {data + entry.offset, entry.length};
  }
  // With has_type_ids() only.
  std::span<const uint8_t> type_ids(size_t i) const {
    const Entry& entry = entries_[i];
    const uint8_t* data =
        lists_.empty() ? workers_[entry.worker].type_ids.data() : type_lists_[i].data();
    return {data + entry.offset, entry.length};
  }
  // With TokenizeOptions::offsets only: as the tokenizer gave them, and any expansion.
  Tokens& tokens(size_t i) { return tokens_[i]; }
  size_t size_bytes() const;

 private:
  struct Entry {
    size_t worker = 0;
    size_t offset = 0;
    size_t length = 0;
    size_t own_length = 0;
    size_t cut = 0;
  };
  // What one thread at a time uses.
  struct Worker {
    Tokens tokens;
    std::string joined;  // prompt and text
    std::vector<int32_t> ids;
    std::vector<uint8_t> type_ids;
    size_t failed = 0;  // the text of `status`
    Status status;
  };
  struct Job;

  // Texts [from, from + kBlock) or up to the last one.
  void TokenizeBlock(const Job& job, size_t from, size_t worker, const Team& team);
  Status EncodeByTemplate(const Job& job, std::string_view query, std::string_view document,
                          Worker* worker);
  // By Model2Vec's rules.
  static Status EncodeKnown(const Job& job, std::string_view text, Worker* worker);
  Status TokenizeOne(const Job& job, size_t i, Worker* worker, Entry* entry);

  std::vector<Worker> workers_;
  std::vector<Entry> entries_;
  std::vector<Tokens> tokens_;
  bool has_type_ids_ = false;
  std::span<const std::vector<int32_t>> lists_;
  std::span<const std::vector<uint8_t>> type_lists_;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TEXT_TOKEN_STORE_H_
