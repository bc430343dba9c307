// SPDX-License-Identifier: Apache-2.0
//
// Tokenizing on the caller's threads: each takes the next few texts when it is done with its last
// ones, and appends to arrays of its own.

#include "engine/text/token_store.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>

#include "engine/base/guarded.h"
#include "engine/base/int_math.h"
#include "engine/base/status_macros.h"
#include "engine/platform/thread_team.h"
#include "engine/tokenizer/tokenizer_parts.h"

namespace encore::inline v0_1::internal {
namespace {

// Texts that a thread takes at once.
constexpr size_t kBlock = 16;
// Bytes of text that take about as long as waking a thread: 5 million tokens a second, 4 bytes
// each, 50 us twice over.
constexpr size_t kFewBytes = 2048;

size_t Bytes(const TextInputs& inputs, size_t begin, size_t end) {
  size_t bytes = 0;
  for (size_t i = begin; i < end && bytes <= kFewBytes; ++i) {
    bytes += inputs.texts[i].size() + inputs.prompt.size();
    if (inputs.second != nullptr) bytes += (*inputs.second)[i].size();
    if (inputs.query != nullptr) bytes += inputs.query->size();
  }
  return bytes;
}

Status CheckOne(const TextModel& model, std::span<const int32_t> ids,
                std::span<const uint8_t> type_ids) {
  const std::array<size_t, 2> starts = {0, ids.size()};
  return model.CheckTokens({.ids = ids, .type_ids = type_ids, .seq_starts = starts});
}

void Copy(const Tokens& from, Tokens* to) {
  to->ids = from.ids;
  to->type_ids = from.type_ids;
  to->offsets = from.offsets;
  to->second_begin = from.second_begin;
  to->second_end = from.second_end;
  to->cut = from.cut;
}

Status Named(std::string_view name, size_t i, const Status& status) {
  if (name.empty()) return status;
  return Status(status.code(),
                std::string(name) + "[" + std::to_string(i) + "]: " + status.message());
}

}  // namespace

void Expansion::Apply(Tokens* tokens) const {
  if (tokens->ids.size() >= length) return;
  if (tokens->offsets.size() == tokens->ids.size()) tokens->offsets.resize(length);
  tokens->ids.resize(length, id);
  tokens->type_ids.resize(length, 0);
}

struct TokenStore::Job {
  const Tokenizer& tokenizer;
  const TextModel& model;
  const TokenizeOptions& options;
  const TextInputs& inputs;
  size_t begin;
  size_t end;
  std::atomic<size_t>* failed;  // the first text that is known to be at fault
};

// As sentence-transformers: what is too long is cut, and the template's end put over the last
// tokens that are left.
Status TokenStore::EncodeByTemplate(const Job& job, std::string_view query,
                                    std::string_view document, Worker* worker) {
  const PairChatTemplate& pair_template = *job.inputs.pair_template;
  JoinParts(pair_template.parts, query, document, &worker->joined);
  Tokens& tokens = worker->tokens;
  ENCORE_RETURN_IF_ERROR(job.tokenizer.Encode(worker->joined, &tokens, job.options));
  if (job.options.max_length == 0 || tokens.ids.size() < job.options.max_length) return {};
  const std::vector<int32_t>& suffix = pair_template.suffix;
  const auto kept = static_cast<ptrdiff_t>(std::min(suffix.size(), tokens.ids.size()));
  std::copy(suffix.end() - kept, suffix.end(), tokens.ids.end() - kept);
  return {};
}

// A text has so many characters at most that its tokens, were they all of the usual length, are as
// many as they may be.
Status TokenStore::EncodeKnown(const Job& job, std::string_view text, Worker* worker) {
  const Model2VecTexts& rules = *job.inputs.model2vec;
  size_t most = std::numeric_limits<size_t>::max();
  if (size_t product = 0; CheckedMul(job.options.max_length, rules.characters, &product)) {
    most = product;
  }
  size_t characters = 0;
  size_t end = 0;
  for (; job.options.max_length > 0 && end < text.size(); ++end) {
    const bool begins = (static_cast<unsigned char>(text[end]) & 0xC0) != 0x80;
    if (begins && characters++ == most) break;
  }
  const bool cuts = job.options.max_length > 0 && end < text.size();
  if (cuts && job.options.on_long == OnLong::kError) {
    return InvalidArgument("found more than " + std::to_string(most) + " characters; wanted " +
                           std::to_string(rules.characters) + " for each of " +
                           std::to_string(job.options.max_length) + " tokens at most");
  }
  Tokens& tokens = worker->tokens;
  ENCORE_RETURN_IF_ERROR(
      job.tokenizer.Encode(cuts ? text.substr(0, end) : text, &tokens, job.options));
  if (cuts) tokens.cut = std::max<size_t>(tokens.cut, 1);
  if (rules.unknown) std::erase(tokens.ids, *rules.unknown);
  return {};
}

Status TokenStore::TokenizeOne(const Job& job, size_t i, Worker* worker, Entry* entry) {
  const TextInputs& inputs = job.inputs;
  std::string_view first = inputs.query != nullptr ? *inputs.query : inputs.texts[i];
  if (!inputs.prompt.empty()) {
    worker->joined.assign(inputs.prompt).append(first);
    first = worker->joined;
  }
  Tokens& tokens = worker->tokens;
  Status status;
  if (inputs.pairs()) {
    const std::string_view second = inputs.query != nullptr ? inputs.texts[i] : (*inputs.second)[i];
    status = inputs.pair_template != nullptr
                 ? EncodeByTemplate(job, first, second, worker)
                 : job.tokenizer.EncodePair(first, second, &tokens, job.options);
  } else if (inputs.model2vec != nullptr) {
    status = EncodeKnown(job, first, worker);
  } else {
    status = job.tokenizer.Encode(first, &tokens, job.options);
  }
  if (!status.ok()) return status;
  const bool may_be_empty = job.model.is_static();
  if (tokens.ids.empty() && !may_be_empty) {
    return InvalidArgument("no tokens; the tokenizer adds none to an empty text");
  }
  entry->own_length = tokens.ids.size();
  if (inputs.expansion != nullptr) inputs.expansion->Apply(&tokens);
  const std::span<const uint8_t> types =
      has_type_ids_ ? std::span<const uint8_t>(tokens.type_ids) : std::span<const uint8_t>();
  if (!tokens.ids.empty()) status = CheckOne(job.model, tokens.ids, types);
  if (!status.ok()) return status;
  if (job.options.offsets) Copy(tokens, &tokens_[i - job.begin]);
  const size_t read = job.model.TokensRead(tokens.ids);
  entry->offset = worker->ids.size();
  entry->length = read;
  entry->cut = tokens.cut;
  const std::span<const int32_t> ids = std::span<const int32_t>(tokens.ids).first(read);
  worker->ids.insert(worker->ids.end(), ids.begin(), ids.end());
  const std::span<const uint8_t> kept = types.first(std::min(read, types.size()));
  worker->type_ids.insert(worker->type_ids.end(), kept.begin(), kept.end());
  return {};
}

void TokenStore::TokenizeBlock(const Job& job, size_t from, size_t index, const Team& team) {
  Worker& worker = workers_[index];
  const size_t to = std::min(from + kBlock, job.end);
  for (size_t i = from; i < to; ++i) {
    // Of several texts that are at fault the first is named.
    if (i > job.failed->load(std::memory_order_relaxed)) return;
    if (!team.MayGoOn(static_cast<int>(index))) return;
    Entry& entry = entries_[i - job.begin];
    entry.worker = index;
    Status status = Guarded("the tokens", [&] { return TokenizeOne(job, i, &worker, &entry); });
    if (status.ok()) continue;
    size_t known = job.failed->load(std::memory_order_relaxed);
    while (i < known && !job.failed->compare_exchange_weak(known, i)) {
    }
    if (i > known) return;
    worker.status = std::move(status);
    worker.failed = i;
    return;
  }
}

Status TokenStore::Fill(const Tokenizer& tokenizer, const TextModel& model, bool use_type_ids,
                        const TokenizeOptions& options, const TextInputs& inputs, size_t begin,
                        size_t end, const Executor& executor) {
  const size_t count = end - begin;
  const bool few = count == 1 || Bytes(inputs, begin, end) <= kFewBytes;
  const size_t blocks = (count + kBlock - 1) / kBlock;
  const size_t threads =
      few ? 1 : std::min(static_cast<size_t>(executor.threads()), std::max<size_t>(blocks, 1));
  lists_ = {};
  type_lists_ = {};
  has_type_ids_ = use_type_ids;
  entries_.resize(count);
  tokens_.resize(options.offsets ? count : 0);
  if (workers_.size() < threads) workers_.resize(threads);
  for (Worker& worker : workers_) {
    worker.ids.clear();
    worker.type_ids.clear();
    worker.status = {};
  }
  std::atomic<size_t> failed = std::numeric_limits<size_t>::max();
  const Job job{tokenizer, model, options, inputs, begin, end, &failed};
  ENCORE_RETURN_IF_ERROR(RunTeam(executor, static_cast<int>(threads), [&](Team& team) {
    team.ForEachInOrder(blocks, [&](size_t block, int thread) {
      TokenizeBlock(job, begin + block * kBlock, static_cast<size_t>(thread), team);
    });
  }));
  const size_t at = failed.load();
  for (const Worker& worker : workers_) {
    if (!worker.status.ok() && worker.failed == at) return Named(inputs.name, at, worker.status);
  }
  return {};
}

Status TokenStore::Refer(const TextModel& model, const TextInputs& inputs, size_t max_length) {
  const std::span<const std::vector<int32_t>> ids = *inputs.ids;
  const std::span<const std::vector<uint8_t>> type_ids = inputs.type_ids;
  lists_ = ids;
  type_lists_ = type_ids;
  has_type_ids_ = !type_ids.empty();
  entries_.resize(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::span<const uint8_t> types =
        has_type_ids_ ? std::span<const uint8_t>(type_ids[i]) : std::span<const uint8_t>();
    Status status;
    if (ids[i].empty()) {
      status = InvalidArgument("found no ids; wanted at least one");
    } else if (has_type_ids_ && types.size() != ids[i].size()) {
      status = InvalidArgument("found " + std::to_string(types.size()) + " type ids; wanted " +
                               std::to_string(ids[i].size()));
    } else if (ids[i].size() > max_length) {
      status = InvalidArgument("found " + std::to_string(ids[i].size()) + " ids; wanted at most " +
                               std::to_string(max_length));
    } else {
      status = CheckOne(model, ids[i], types);
    }
    if (!status.ok()) return Named("ids", i, status);
    const size_t read = model.TokensRead(ids[i]);
    entries_[i] = {.length = read, .own_length = read};
  }
  return {};
}

void TokenStore::Prepare(const TokenStoreSizes& sizes) {
  entries_.reserve(sizes.texts);
  entries_.resize(sizes.texts);
  if (sizes.offsets) tokens_.reserve(sizes.texts);
  if (workers_.size() < sizes.threads) workers_.resize(sizes.threads);
  for (Worker& worker : workers_) {
    worker.ids.reserve(sizes.tokens);
    worker.ids.resize(sizes.tokens);
    worker.type_ids.reserve(sizes.type_ids);
    worker.type_ids.resize(sizes.type_ids);
    if (sizes.tokenizer == nullptr) continue;
    for (const std::string& sample : sizes.samples) {
      worker.joined.reserve(sample.size());
      worker.joined = sample;
      // A status says that the text has no tokens, which are not wanted.
      const TokenizeOptions options{.offsets = sizes.offsets};
      (void)sizes.tokenizer->Encode(sample, &worker.tokens, options);
      if (sizes.pairs) (void)sizes.tokenizer->EncodePair(sample, sample, &worker.tokens, options);
    }
  }
}

size_t TokenStore::size_bytes() const {
  size_t bytes = entries_.capacity() * sizeof(Entry) + tokens_.capacity() * sizeof(Tokens);
  for (const Tokens& tokens : tokens_) bytes += MemoryOf(tokens);
  for (const Worker& worker : workers_) {
    bytes += sizeof(Worker) + worker.ids.capacity() * sizeof(int32_t) + worker.type_ids.capacity() +
             worker.joined.capacity() + MemoryOf(worker.tokens);
  }
  return bytes;
}

}  // namespace encore::internal
