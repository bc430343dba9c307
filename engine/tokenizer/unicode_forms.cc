// SPDX-License-Identifier: Apache-2.0
//
// NFC, NFD, NFKC and NFKD (Unicode Standard Annex 15), with the tables of `tokenizers`.

#include <algorithm>
#include <vector>

#include "engine/tokenizer/normalizer.h"
#include "engine/tokenizer/unicode.h"

namespace encore::inline v0_1::internal {
namespace {

// Composes characters in canonical order.
class Composer {
 public:
  Composer(AlignedWriter* out, std::vector<Mark>* blocked) : out_(out), blocked_(blocked) {}

  void Add(Written next, unsigned rank) {
    if (!has_starter_) {
      if (rank != 0) return out_->Put(next);
      starter_ = next;
      has_starter_ = true;
      return;
    }
    const bool reaches = blocked_->empty() || blocked_->back().rank < rank;
    if (reaches) {
      if (const char32_t composed = Compose(starter_.c, next.c)) {
        starter_ = {composed, starter_.change + next.change - 1};
        return;
      }
    }
    if (rank != 0) return blocked_->push_back({next.c, rank, next.change, 0});
    Flush();
    starter_ = next;
    has_starter_ = true;
  }
  void Flush() {
    if (has_starter_) out_->Put(starter_);
    has_starter_ = false;
    for (const Mark& mark : *blocked_) out_->Put({mark.c, mark.change});
    blocked_->clear();
  }

 private:
  AlignedWriter* const out_;
  Written starter_ = {};
  bool has_starter_ = false;
  std::vector<Mark>* const blocked_;  // marks behind the starter that stay
};

class UnicodeForm : public NormalizerStep {
 public:
  explicit UnicodeForm(const UnicodeFormSettings& settings) : settings_(settings) {}

  void Apply(TextView text, MarkRun* marks, TextBuffer* out) const override {
    AlignedWriter writer(text, out);
    std::vector<Mark>* const run = &marks->marks;
    Composer composer(&writer, &marks->blocked);
    const auto put = [&](Written written, unsigned rank) {
      if (settings_.compose) {
        composer.Add(written, rank);
      } else {
        writer.Put(written);
      }
    };
    const auto flush_run = [&] {
      PutInOrder(run);
      for (const Mark& mark : *run) put({mark.c, mark.change}, mark.rank);
      run->clear();
    };
    const auto add = [&](char32_t c, int change) {
      const unsigned rank = OrderRank(PropertiesOf(c));
      if (rank != 0) return run->push_back({c, rank, change, run->size()});
      flush_run();
      put({c, change}, 0);
    };
    const char* const end = text.data + text.size;
    for (const char* at = text.data; at < end;) {
      const char* ascii = at;
      while (ascii < end && IsAscii(*ascii)) ++ascii;
      // The last one may compose with what follows.
      if (ascii - at > 1) {
        flush_run();
        composer.Flush();
        writer.Copy(at, static_cast<size_t>(ascii - at) - 1);
        at = ascii - 1;
      }
      const char32_t c = NextCodePoint(at);
      Decompose(c, add);
    }
    flush_run();
    composer.Flush();
  }
  // U+FDFA: from 3 bytes to 33. U+0390, or U+1D160 in NFC: three times as many.
  double Growth() const override { return settings_.compatibility ? 11 : 3; }

 private:
  template <typename Add>
  void Decompose(char32_t c, const Add& add) const {
    if (settings_.compatibility) {
      const std::span<const char32_t> parts = CompatibleParts(c);
      for (size_t i = 0; i < parts.size(); ++i) add(parts[i], i == 0 ? 0 : 1);
      if (!parts.empty()) return;
    }
    if ((PropertiesOf(c) & kDecomposes) == 0) return add(c, 0);
    const Decomposition parts = internal::Decompose(c);
    for (size_t i = 0; i < parts.size; ++i) add(parts.parts[i], i == 0 ? 0 : 1);
  }

  const UnicodeFormSettings settings_;
};

}  // namespace

std::unique_ptr<const NormalizerStep> MakeUnicodeForm(const UnicodeFormSettings& settings) {
  return std::make_unique<UnicodeForm>(settings);
}

}  // namespace encore::internal
