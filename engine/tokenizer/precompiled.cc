// SPDX-License-Identifier: Apache-2.0
//
// The normalizer Precompiled: sentencepiece's map of characters, applied as `tokenizers` does. A
// grapheme cluster of less than 6 bytes is replaced as a whole by what its shortest start that the
// map has becomes; otherwise that happens character by character.

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "engine/tokenizer/charsmap.h"
#include "engine/tokenizer/normalizer.h"
#include "engine/tokenizer/unicode.h"

namespace encore::inline v0_1::internal {
namespace {

constexpr size_t kMaxClusterBytes = 5;

// Keeps back the last character: its change may still grow.
class LateWriter {
 public:
  LateWriter(TextView from, TextBuffer* out) : writer_(from, out) {}

  void Put(Written written) {
    Flush();
    last_ = written;
    has_last_ = true;
  }
  // ASCII, at least one character.
  void Copy(const char* bytes, size_t size) {
    Flush();
    writer_.Copy(bytes, size - 1);
    Put({static_cast<unsigned char>(bytes[size - 1]), 0});
  }
  // The replacement of `old_count` characters.
  void Replace(std::string_view with, int old_count) {
    const char* const end = with.data() + with.size();
    int count = 0;
    for (const char* at = with.data(); at < end; ++count) {
      Put({NextCodePoint(at), count < old_count ? 0 : 1});
    }
    if (count < old_count && has_last_) last_.change += count - old_count;
  }
  void Flush() {
    if (has_last_) writer_.Put(last_);
    has_last_ = false;
  }

 private:
  AlignedWriter writer_;
  Written last_ = {};
  bool has_last_ = false;
};

class Precompiled : public NormalizerStep {
 public:
  explicit Precompiled(Charsmap map) : map_(std::move(map)) {
    for (size_t c = 0; c < 128; ++c) {
      const char byte = static_cast<char>(c);
      stays_[c] = byte != '\r' && !map_.Find({&byte, 1});
    }
  }

  void Apply(TextView text, MarkRun*, TextBuffer* out) const override {
    LateWriter writer(text, out);
    const char* const end = text.data + text.size;
    for (const char* at = text.data; at < end;) {
      // ASCII characters are clusters by themselves, but for the last one of a run.
      const char* run = at;
      while (run < end && IsAscii(*run) && stays_[static_cast<unsigned char>(*run)]) ++run;
      if (run < end && run > at && !IsAscii(*run)) --run;
      if (run > at) {
        writer.Copy(at, static_cast<size_t>(run - at));
        at = run;
        continue;
      }
      const char* const cluster_end = ClusterEnd(at, end);
      PutCluster({at, static_cast<size_t>(cluster_end - at)}, &writer);
      at = cluster_end;
    }
    writer.Flush();
  }
  double Growth() const override { return map_.growth(); }

 private:
  void PutCluster(std::string_view cluster, LateWriter* writer) const {
    if (cluster.size() <= kMaxClusterBytes && Replace(cluster, writer)) return;
    const char* const end = cluster.data() + cluster.size();
    for (const char* at = cluster.data(); at < end;) {
      const std::string_view character(at, Utf8Length(*at));
      const char32_t c = NextCodePoint(at);
      if (!Replace(character, writer)) writer->Put({c, 0});
    }
  }
  // Puts what some characters become; false if they stay.
  bool Replace(std::string_view characters, LateWriter* writer) const {
    const auto found = map_.Find(characters);
    if (found) writer->Replace(*found, static_cast<int>(CountCodePoints(characters)));
    return found.has_value();
  }

  const Charsmap map_;
  std::array<bool, 128> stays_;
};

}  // namespace

Result<std::unique_ptr<const NormalizerStep>> MakePrecompiled(std::string_view charsmap,
                                                              const std::string& where) {
  Charsmap map;
  std::string problem;
  if (!map.Read(charsmap, &problem)) {
    return Status(ErrorCode::kCorruptData,
                  where + " " + problem + "; wanted sentencepiece's map of characters");
  }
  return std::unique_ptr<const NormalizerStep>(std::make_unique<Precompiled>(std::move(map)));
}

}  // namespace encore::internal
