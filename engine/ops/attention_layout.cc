// SPDX-License-Identifier: Apache-2.0
//
// Keys and values of one head, packed as the right-hand sides of attention's products.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "engine/base/bf16.h"
#include "engine/base/check.h"
#include "engine/ops/attention.h"

namespace encore::inline v0_1::internal {

void KeyLayout::Pack(ConstRows k, size_t begin, size_t end, void* packed) const {
  const size_t nr = nv * kernel->lanes;
  for (size_t key = begin; key < end;) {
    const size_t panel = key / nr * nr;
    const size_t width = std::min(nr, RoundUp(keys - panel, kernel->lanes));
    const size_t count = std::min(end, panel + nr) - key;
    std::byte* out = static_cast<std::byte*>(packed) + panel * key_bytes();
    kernel->transpose(k.row(key), k.ld, count, head_size,
                      out + (key - panel) * kernel->group_bytes(), width);
    key += count;
  }
}

void KeyLayout::Pack(ConstView k, void* packed) const {
  PackedView view;
  view.kernel = kernel;
  view.k = head_size;
  view.panel_rows = head_size;
  view.n = keys;
  view.nv = nv;
  PackInto(view, k.data(), k.stride(1), k.stride(0), packed);
}

void ValueLayout::PackRows(const float* v, ptrdiff_t stride_key, ptrdiff_t stride_col, size_t begin,
                           size_t end, void* packed) const {
  if (begin == end) return;  // and value_size may be beyond counting
  if (begin % kernel->kr != 0) {
    PackOne(v, stride_col, begin, packed);
    v += stride_key;
    ++begin;
  }
  if (begin < end && end % kernel->kr != 0 && end != keys) {
    --end;
    PackOne(v + static_cast<ptrdiff_t>(end - begin) * stride_key, stride_col, end, packed);
  }
  if (begin < end) PackGroups(v, stride_key, stride_col, begin, end, packed);
}

void ValueLayout::PackOne(const float* v, ptrdiff_t stride_col, size_t key, void* packed) const {
  ENCORE_DCHECK(kernel->kr == 2 && kernel->b_bytes == 2);  // bf16
  for (size_t col = 0; col < value_size; col += nv * kernel->lanes) {
    auto* const group = reinterpret_cast<uint16_t*>(static_cast<std::byte*>(packed) +
                                                    PanelOffset(col, key / 2 * 2));
    for (size_t c = 0; c < PanelCols(col); ++c) {
      group[2 * c + key % 2] = F32ToBf16(v[static_cast<ptrdiff_t>(col + c) * stride_col]);
    }
  }
}

void ValueLayout::PackGroups(const float* v, ptrdiff_t stride_key, ptrdiff_t stride_col,
                             size_t begin, size_t end, void* packed) const {
  for (size_t col = 0; col < value_size; col += nv * kernel->lanes) {
    kernel->pack(v + static_cast<ptrdiff_t>(col) * stride_col, stride_key, stride_col, end - begin,
                 PanelCols(col), PanelVectors(col) * kernel->lanes,
                 static_cast<std::byte*>(packed) + PanelOffset(col, begin));
  }
}

}  // namespace encore::internal
