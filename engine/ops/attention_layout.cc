// SPDX-License-Identifier: Apache-2.0
//
// Packing keys and values of one head, some rows at a time.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "engine/base/bf16.h"
#include "engine/base/check.h"
#include "engine/ops/attention.h"

namespace encore::inline v0_1::internal {
namespace {

// The groups of values from key `begin` on, a multiple of kr, in panel p.
std::byte* GroupsFrom(const PackedView& values, size_t p, size_t begin, void* packed) {
  const GemmKernel& kernel = *values.kernel;
  return static_cast<std::byte*>(packed) + p * values.panel_bytes(values.nr()) +
         kernel.GroupsOf(begin) * values.panel_ld(p) * kernel.group_bytes();
}

// One key of a bf16 pair, whose other one another thread may be packing.
void PackOneValue(const PackedView& values, const float* v, size_t key, void* packed) {
  ENCORE_DCHECK(values.kernel->kr == 2 && values.kernel->b_bytes == 2);  // bf16
  for (size_t p = 0; p < values.panels(); ++p) {
    auto* const group = reinterpret_cast<uint16_t*>(GroupsFrom(values, p, key / 2 * 2, packed));
    for (size_t c = 0; c < values.panel_cols(p); ++c) {
      group[2 * c + key % 2] = F32ToBf16(v[p * values.nr() + c]);
    }
  }
}

}  // namespace

void PackKeys(const PackedView& keys, ConstRows k, size_t begin, size_t end, void* packed) {
  const GemmKernel& kernel = *keys.kernel;
  const size_t nr = keys.nr();
  for (size_t key = begin; key < end;) {
    const size_t panel = key / nr * nr;
    const size_t count = std::min(end, panel + nr) - key;
    std::byte* out = static_cast<std::byte*>(packed) + panel * keys.column_bytes();
    kernel.transpose(k.row(key), k.ld, count, keys.k, out + (key - panel) * kernel.group_bytes(),
                     keys.panel_ld(key / nr));
    key += count;
  }
}

void PackValues(const PackedView& values, ConstRows v, size_t begin, size_t end, void* packed) {
  const GemmKernel& kernel = *values.kernel;
  if (begin == end) return;  // and value_size may be beyond counting
  if (begin % kernel.kr != 0) {
    PackOneValue(values, v.row(begin), begin, packed);
    ++begin;
  }
  if (begin < end && end % kernel.kr != 0 && end != values.k) {
    --end;
    PackOneValue(values, v.row(end), end, packed);
  }
  if (begin == end) return;
  for (size_t p = 0; p < values.panels(); ++p) {
    kernel.pack(v.row(begin) + p * values.nr(), static_cast<ptrdiff_t>(v.ld), 1, end - begin,
                values.panel_cols(p), values.panel_ld(p), GroupsFrom(values, p, begin, packed));
  }
}

}  // namespace encore::internal
