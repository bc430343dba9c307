// SPDX-License-Identifier: Apache-2.0
//
// The normalizer Precompiled: sentencepiece's map of characters, applied as `tokenizers` does. A
// grapheme cluster of less than 6 bytes is replaced as a whole by what its shortest start that the
// map has becomes; otherwise that happens character by character.
//
// The map: four bytes that say how long a double array is, the array (darts-clone's, of 32-bit
// units), and the replacements, each ending with a zero byte. All integers are little-endian.

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "engine/tokenizer/normalizer.h"
#include "engine/tokenizer/unicode.h"

namespace encore::inline v0_1::internal {
namespace {

constexpr size_t kMaxClusterBytes = 5;

uint32_t LittleEndian(std::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = 4; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

// A unit's fields.
uint32_t LabelOf(uint32_t unit) { return unit & 0x800000FFu; }  // the byte; no unit of a value
uint32_t OffsetOf(uint32_t unit) { return (unit >> 10) << ((unit & 1u << 9) >> 6); }
bool HasLeaf(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t ValueOf(uint32_t unit) { return unit & 0x7FFFFFFFu; }

class Charsmap {
 public:
  // False, and a sentence's end, for bytes that are no map.
  bool Read(std::string_view bytes, std::string* problem) {
    const auto fail = [&](std::string what) {
      *problem = std::move(what);
      return false;
    };
    if (bytes.size() < 4) return fail("has " + std::to_string(bytes.size()) + " bytes");
    const size_t size = LittleEndian(bytes);
    if (size % 4 != 0 || size == 0 || size > bytes.size() - 4) {
      return fail("says that its trie has " + std::to_string(size) + " bytes, of " +
                  std::to_string(bytes.size() - 4) + " that follow");
    }
    for (size_t i = 0; i < size; i += 4) units_.push_back(LittleEndian(bytes.substr(4 + i, 4)));
    replacements_ = bytes.substr(4 + size);
    if (ValidUtf8Length(replacements_) != replacements_.size()) {
      return fail("has replacements that are not UTF-8");
    }
    return CheckTrie() || fail("has a trie that leads out of it");
  }

  // What a string becomes: of its starts that the map has, the shortest one's replacement.
  std::optional<std::string_view> Find(std::string_view text) const {
    size_t at = OffsetOf(units_[0]);
    for (const char c : text) {
      if (c == 0) break;
      const auto byte = static_cast<unsigned char>(c);
      const size_t place = at ^ byte;
      const uint32_t unit = units_[place];
      if (LabelOf(unit) != byte) break;
      at = place ^ OffsetOf(unit);
      if (HasLeaf(unit)) return ReplacementAt(ValueOf(units_[at]));
    }
    return {};
  }

  // At most how many times as many bytes a string has afterwards.
  double growth() const { return growth_; }

 private:
  std::string_view ReplacementAt(size_t begin) const {
    const size_t end = replacements_.find('\0', begin);
    return std::string_view(replacements_)
        .substr(begin, end == std::string::npos ? end : end - begin);
  }

  // Every step from the root stays in the array, and every value is a place where text starts.
  // Finds the growth on the way.
  bool CheckTrie() {
    struct Node {
      size_t base;
      size_t depth;
    };
    std::vector<bool> seen(units_.size());
    std::vector<Node> nodes = {{OffsetOf(units_[0]), 0}};
    // The shortest strings come first: places that several lead to count for these.
    for (size_t i = 0; i < nodes.size(); ++i) {
      const auto [base, depth] = nodes[i];
      if ((base | 0xFF) >= units_.size()) return false;
      for (size_t byte = 1; byte < 256; ++byte) {
        const size_t place = base ^ byte;
        const uint32_t unit = units_[place];
        if (LabelOf(unit) != byte || seen[place]) continue;
        seen[place] = true;
        const size_t next = place ^ OffsetOf(unit);
        if (HasLeaf(unit)) {
          if (next >= units_.size()) return false;
          const size_t value = ValueOf(units_[next]);
          if (value >= replacements_.size() || Continues(replacements_[value])) return false;
          growth_ = std::max(growth_, static_cast<double>(ReplacementAt(value).size()) /
                                          static_cast<double>(depth + 1));
        }
        nodes.push_back({next, depth + 1});
      }
    }
    return true;
  }

  std::vector<uint32_t> units_;
  std::string replacements_;
  double growth_ = 1;
};

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
  // What stands for `old_count` characters.
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
