// SPDX-License-Identifier: Apache-2.0
//
// AMX's instructions (engine/kernels/amx_tiles-inl.h) in plain C++, for machines without them, as
// Intel's manual defines them. A use at which the processor would raise an exception throws, and so
// does one of tiles without a configuration. They count what they do. Included once for each SIMD
// target.

#ifndef ENCORE_TESTS_SUPPORT_AMX_STAND_IN_STATE_
#define ENCORE_TESTS_SUPPORT_AMX_STAND_IN_STATE_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace encore::inline v0_1::internal::amx_stand_in {

struct Tile {
  size_t rows = 0;
  size_t row_bytes = 0;
  alignas(64) uint8_t bytes[16][64];
};

struct State {
  bool configured = false;
  Tile tiles[8];
  size_t loads = 0;
  size_t products = 0;
};
inline thread_local State state;

inline Tile& TileOf(int tile) {
  if (!state.configured) throw std::logic_error("a tile is used that was not configured");
  return state.tiles[tile];
}

inline void LoadConfiguration(const void* configuration) {
  const auto* const bytes = static_cast<const uint8_t*>(configuration);
  if (bytes[0] != 1 || bytes[1] != 0) throw std::logic_error("another palette or first row");
  for (int i = 2; i < 64; ++i) {
    const bool used = (i >= 16 && i < 32) || (i >= 48 && i < 56);
    if (!used && bytes[i] != 0) throw std::logic_error("a reserved byte is not 0");
  }
  state.configured = true;
  for (int i = 0; i < 8; ++i) {
    uint16_t row_bytes;
    std::memcpy(&row_bytes, bytes + 16 + 2 * i, sizeof row_bytes);
    const size_t rows = bytes[48 + i];
    if (rows > 16 || row_bytes > 64 || (rows == 0) != (row_bytes == 0)) {
      throw std::logic_error("a tile of another size than there is");
    }
    state.tiles[i] = {rows, row_bytes, {}};
  }
}

inline void Release() {
  if (!state.configured) throw std::logic_error("tiles are released that were not configured");
  state.configured = false;
}

inline void Load(int tile, const void* from, size_t stride) {
  Tile& to = TileOf(tile);
  std::memset(to.bytes, 0, sizeof to.bytes);
  for (size_t r = 0; r < to.rows; ++r) {
    std::memcpy(to.bytes[r], static_cast<const char*>(from) + r * stride, to.row_bytes);
  }
  ++state.loads;
}

inline void Store(int tile, void* to, size_t stride) {
  const Tile& from = TileOf(tile);
  for (size_t r = 0; r < from.rows; ++r) {
    std::memcpy(static_cast<char*>(to) + r * stride, from.bytes[r], from.row_bytes);
  }
}

// Subnormal numbers are zeros, in and out.
inline float Flushed(float x) {
  return std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x;
}
inline float FromBf16(const uint8_t* at) {
  uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  const uint32_t word = uint32_t{bits} << 16;
  float value;
  std::memcpy(&value, &word, sizeof value);
  return Flushed(value);
}

// A word of the sums and one each of A and B: tdpbusd, tdpbf16ps.
inline uint32_t Product(uint32_t sum, const uint8_t* a, const uint8_t* b, size_t groups,
                        bool integer) {
  if (integer) {
    for (size_t i = 0; i < 4 * groups; ++i) {
      sum += static_cast<uint32_t>(int32_t{a[i]} * static_cast<int8_t>(b[i / 4 * 64 + i % 4]));
    }
    return sum;
  }
  float even = 0;
  float odd = 0;
  for (size_t g = 0; g < groups; ++g) {
    even = Flushed(std::fma(FromBf16(a + 4 * g), FromBf16(b + 64 * g), even));
    odd = Flushed(std::fma(FromBf16(a + 4 * g + 2), FromBf16(b + 64 * g + 2), odd));
  }
  float value;
  std::memcpy(&value, &sum, sizeof value);
  value = Flushed(Flushed(value) + Flushed(even + odd));
  std::memcpy(&sum, &value, sizeof sum);
  return sum;
}

inline void MulAdd(int sums, bool integer) {
  Tile& c = TileOf(sums);
  const Tile& a = TileOf(6);
  const Tile& b = TileOf(7);
  if (c.rows != a.rows || c.row_bytes != b.row_bytes || a.row_bytes != 4 * b.rows) {
    throw std::logic_error("a product of tiles whose sizes do not fit");
  }
  for (size_t r = 0; r < c.rows; ++r) {
    for (size_t at = 0; at < c.row_bytes; at += 4) {
      uint32_t sum;
      std::memcpy(&sum, c.bytes[r] + at, sizeof sum);
      sum = Product(sum, a.bytes[r], &b.bytes[0][at], b.rows, integer);
      std::memcpy(c.bytes[r] + at, &sum, sizeof sum);
    }
  }
  ++state.products;
}

}  // namespace encore::internal::amx_stand_in

#endif  // ENCORE_TESTS_SUPPORT_AMX_STAND_IN_STATE_

#if defined(ENCORE_TESTS_SUPPORT_AMX_STAND_IN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ENCORE_TESTS_SUPPORT_AMX_STAND_IN_INL_H_
#undef ENCORE_TESTS_SUPPORT_AMX_STAND_IN_INL_H_
#else
#define ENCORE_TESTS_SUPPORT_AMX_STAND_IN_INL_H_
#endif

namespace encore::inline v0_1::internal::HWY_NAMESPACE {
namespace amx {
namespace {

template <class Configuration>
void LoadConfiguration(const Configuration& configuration) {
  static_assert(sizeof(configuration) == 64);
  amx_stand_in::LoadConfiguration(&configuration);
}
inline void Release() { amx_stand_in::Release(); }
template <int kTile>
void Load(const void* from, size_t stride) {
  amx_stand_in::Load(kTile, from, stride);
}
template <int kTile>
void Store(void* to, size_t stride) {
  amx_stand_in::Store(kTile, to, stride);
}
template <int kSum, bool kInteger>
void MulAdd() {
  amx_stand_in::MulAdd(kSum, kInteger);
}

}  // namespace
}  // namespace amx
}  // namespace encore::internal::HWY_NAMESPACE

#endif  // per-target include guard
