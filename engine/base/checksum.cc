// SPDX-License-Identifier: Apache-2.0
//
// XXH64 in the words of its specification: stripes of 32 bytes in four lanes, then what is left.

#include "engine/base/checksum.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace encore::inline v0_1::internal {
namespace {

static_assert(std::endian::native == std::endian::little, "words are read as they are stored");

constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87u;
constexpr uint64_t kPrime2 = 0xC2B2AE3D27D4EB4Fu;
constexpr uint64_t kPrime3 = 0x165667B19E3779F9u;
constexpr uint64_t kPrime4 = 0x85EBCA77C2B2AE63u;
constexpr uint64_t kPrime5 = 0x27D4EB2F165667C5u;

template <typename Word>
Word Load(const std::byte* at) {
  Word word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

uint64_t Round(uint64_t lane, uint64_t word) {
  return std::rotl(lane + word * kPrime2, 31) * kPrime1;
}

// All whole stripes of the bytes. The lanes are local ones meanwhile: they stay in registers.
void AddStripes(const std::byte* at, size_t count, std::array<uint64_t, 4>* lanes) {
  auto [a, b, c, d] = *lanes;
  for (; count > 0; --count, at += 32) {
    a = Round(a, Load<uint64_t>(at));
    b = Round(b, Load<uint64_t>(at + 8));
    c = Round(c, Load<uint64_t>(at + 16));
    d = Round(d, Load<uint64_t>(at + 24));
  }
  *lanes = {a, b, c, d};
}

}  // namespace

Checksum::Checksum(uint64_t seed)
    : lanes_{seed + kPrime1 + kPrime2, seed + kPrime2, seed, seed - kPrime1}, seed_(seed) {}

void Checksum::Add(std::span<const std::byte> bytes) {
  const size_t waiting = size_ % kStripe;
  size_ += bytes.size();
  if (waiting > 0) {
    const size_t taken = std::min(kStripe - waiting, bytes.size());
    std::copy_n(bytes.begin(), taken, waiting_.begin() + static_cast<ptrdiff_t>(waiting));
    if (waiting + taken < kStripe) return;
    AddStripes(waiting_.data(), 1, &lanes_);
    bytes = bytes.subspan(taken);
  }
  const size_t stripes = bytes.size() / kStripe;
  AddStripes(bytes.data(), stripes, &lanes_);
  bytes = bytes.subspan(stripes * kStripe);
  std::copy(bytes.begin(), bytes.end(), waiting_.begin());
}

uint64_t Checksum::value() const {
  uint64_t hash = seed_ + kPrime5;
  if (size_ >= kStripe) {
    constexpr int kTurns[] = {1, 7, 12, 18};
    hash = 0;
    for (size_t i = 0; i < 4; ++i) hash += std::rotl(lanes_[i], kTurns[i]);
    for (const uint64_t lane : lanes_) hash = (hash ^ Round(0, lane)) * kPrime1 + kPrime4;
  }
  hash += size_;
  const std::byte* at = waiting_.data();
  size_t left = size_ % kStripe;
  for (; left >= 8; left -= 8, at += 8) {
    hash = std::rotl(hash ^ Round(0, Load<uint64_t>(at)), 27) * kPrime1 + kPrime4;
  }
  for (; left >= 4; left -= 4, at += 4) {
    hash = std::rotl(hash ^ Load<uint32_t>(at) * kPrime1, 23) * kPrime2 + kPrime3;
  }
  for (; left > 0; --left, ++at) {
    hash = std::rotl(hash ^ Load<uint8_t>(at) * kPrime5, 11) * kPrime1;
  }
  hash = (hash ^ hash >> 33) * kPrime2;
  hash = (hash ^ hash >> 29) * kPrime3;
  return hash ^ hash >> 32;
}

std::string ChecksumText(uint64_t value) {
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[value >> shift & 15];
  return text;
}

}  // namespace encore::internal
