// SPDX-License-Identifier: Apache-2.0
//
// A checksum of bytes at the speed of memory: XXH64.

#ifndef ENCORE_ENGINE_BASE_CHECKSUM_H_
#define ENCORE_ENGINE_BASE_CHECKSUM_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace encore::inline v0_1::internal {

// XXH64 (the xxHash specification, 0.1.1) of all bytes added, in any pieces. It detects damage, not
// intent: two texts with the same checksum are easy to make.
class Checksum {
 public:
  explicit Checksum(uint64_t seed = 0);

  void Add(std::span<const std::byte> bytes);
  void Add(std::string_view text) { Add(std::as_bytes(std::span(text.data(), text.size()))); }
  // Of all bytes so far; more may follow.
  uint64_t value() const;

 private:
  static constexpr size_t kStripe = 32;

  std::array<uint64_t, 4> lanes_;
  uint64_t seed_;
  uint64_t size_ = 0;                            // of all bytes
  std::array<std::byte, kStripe> waiting_ = {};  // the size_ % kStripe last ones
};

inline uint64_t ChecksumOf(std::span<const std::byte> bytes, uint64_t seed = 0) {
  Checksum checksum(seed);
  checksum.Add(bytes);
  return checksum.value();
}

inline uint64_t ChecksumOf(std::string_view text, uint64_t seed = 0) {
  return ChecksumOf(std::as_bytes(std::span(text.data(), text.size())), seed);
}

// 16 digits of base 16.
std::string ChecksumText(uint64_t value);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_BASE_CHECKSUM_H_
