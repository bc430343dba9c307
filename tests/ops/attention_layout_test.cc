// SPDX-License-Identifier: Apache-2.0
//
// Packed keys and values lie as engine/ops/attention.h draws them, for f32 and for a made-up kernel
// of pairs, and attention gives the same bits with values packed and in place. What attention
// computes is in attention_test.cc.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "encore/ops.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/int_math.h"
#include "engine/kernels/gemm_kernel.h"
#include "engine/kernels/softmax.h"
#include "engine/ops/attention.h"
#include "gtest/gtest.h"
#include "tests/support/attention_case.h"
#include "tests/support/compare.h"
#include "tests/support/guarded.h"
#include "tests/support/targets.h"

namespace encore {
namespace {

// Stands for a kernel of bf16: pairs along k, each element the upper half of a float.
constexpr size_t kPair = 2;

uint16_t Upper(float x) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16); }

void PackPairs(const float* b, ptrdiff_t stride_k, ptrdiff_t stride_n, size_t k, size_t cols,
               size_t nr, void* panel) {
  uint16_t* out = static_cast<uint16_t*>(panel);
  for (size_t i = 0; i < internal::RoundUp(k, kPair); ++i) {
    for (size_t n = 0; n < nr; ++n) {
      const ptrdiff_t at =
          static_cast<ptrdiff_t>(i) * stride_k + static_cast<ptrdiff_t>(n) * stride_n;
      out[(i / kPair * nr + n) * kPair + i % kPair] = i < k && n < cols ? Upper(b[at]) : 0;
    }
  }
}

void TransposePairs(const float* in, size_t ld_in, size_t rows, size_t cols, void* panel,
                    size_t ld_out) {
  uint16_t* out = static_cast<uint16_t*>(panel);
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < internal::RoundUp(cols, kPair); ++c) {
      out[(c / kPair * ld_out + r) * kPair + c % kPair] = c < cols ? Upper(in[r * ld_in + c]) : 0;
    }
  }
}

internal::GemmKernel PairKernel() {
  internal::GemmKernel kernel = internal::GetGemmKernelF32();
  kernel.a_bytes = kernel.b_bytes = sizeof(uint16_t);
  kernel.kr = kPair;
  kernel.pack = PackPairs;
  kernel.transpose = TransposePairs;
  return kernel;
}

// The bits of element (k, n) of a matrix [depth, .] that is packed into panels of nr columns,
// `columns` of them in all.
uint32_t Packed(const internal::GemmKernel& kernel, const float* data, size_t depth, size_t nr,
                size_t columns, size_t k, size_t n) {
  const size_t panel = n / nr * nr;
  const size_t width = std::min(nr, internal::RoundUp(columns, kernel.lanes) - panel);
  const size_t group = kernel.GroupsOf(depth) * panel + k / kernel.kr * width + (n - panel);
  if (kernel.kr == 1) return std::bit_cast<uint32_t>(data[group]);
  uint16_t upper;
  std::memcpy(&upper, reinterpret_cast<const std::byte*>(data) + 2 * (group * kPair + k % kPair),
              sizeof(upper));
  return upper;
}

// What a kernel makes of a float.
uint32_t Element(const internal::GemmKernel& kernel, float x) {
  return kernel.kr == 1 ? std::bit_cast<uint32_t>(x) : Upper(x);
}

// [rows, cols] of random numbers, rows apart: what is not the matrix's is NaN.
void FillRows(Guarded& rows, uint32_t seed) {
  const std::vector<float> drawn = RandomFloats(rows.view().dim(0) * rows.view().dim(1), seed);
  for (size_t i = 0; i < drawn.size(); ++i) {
    rows.view()(i / rows.view().dim(1), i % rows.view().dim(1)) = drawn[i];
  }
}

void CheckValueLayout(const internal::GemmKernel& kernel, size_t keys, size_t size) {
  SCOPED_TRACE(testing::Message() << keys << " keys, size " << size << ", kr " << kernel.kr);
  const internal::PackedView layout = internal::ValuePanels(kernel, keys, size);
  EXPECT_EQ(internal::ShouldPackValues(layout),
            kernel.kr > 1 || (size % kernel.lanes != 0 && keys >= 256));
  const size_t columns = internal::RoundUp(size, kernel.lanes);
  ASSERT_EQ(layout.packed_bytes(), kernel.GroupsOf(keys) * columns * kernel.kr * kernel.b_bytes);
  const size_t ld = size + 3;
  Guarded v({keys, size}, {static_cast<ptrdiff_t>(ld), 1});
  FillRows(v, 4);
  Guarded whole(Shape(layout.packed_bytes() / sizeof(float)));
  PackValues(layout, {v.view().data(), ld}, 0, keys, whole.view().data());
  ASSERT_TRUE(whole.Intact());
  for (size_t k = 0; k < internal::RoundUp(keys, kernel.kr); ++k) {
    for (size_t n = 0; n < columns; ++n) {
      const uint32_t want = k < keys && n < size ? Element(kernel, v.view()(k, n)) : 0;
      ASSERT_EQ(Packed(kernel, whole.view().data(), keys, layout.nv * kernel.lanes, size, k, n),
                want)
          << k << ", " << n;
    }
  }
  // In parts, the last one first; and from columns that lie apart.
  for (const size_t part : {64, 192, 6}) {
    Guarded parts(whole.view().shape());
    for (size_t begin = (keys - 1) / part * part;; begin -= part) {
      PackValues(layout, {v.view().data(), ld}, begin, std::min(keys, begin + part),
                 parts.view().data());
      if (begin == 0) break;
    }
    ASSERT_TRUE(parts.Intact());
    ASSERT_TRUE(SameBits(parts.memory(), whole.memory())) << "in parts of " << part;
  }
  Guarded turned({keys, size}, {1, static_cast<ptrdiff_t>(keys + 5)});
  FillRows(turned, 4);
  Guarded again(whole.view().shape());
  PackInto(layout, turned.view().data(), turned.view().stride(0), turned.view().stride(1),
           again.view().data());
  ASSERT_TRUE(again.Intact());
  ASSERT_TRUE(SameBits(again.memory(), whole.memory())) << "columns that lie apart";
}

void CheckKeyLayout(const internal::GemmKernel& kernel, size_t keys, size_t size) {
  SCOPED_TRACE(testing::Message() << keys << " keys, size " << size << ", kr " << kernel.kr);
  const internal::PackedView layout = internal::KeyPanels(kernel, keys, size);
  const size_t columns = internal::RoundUp(keys, kernel.lanes);
  ASSERT_EQ(layout.packed_bytes(), kernel.GroupsOf(size) * columns * kernel.kr * kernel.b_bytes);
  const size_t ld = size + 3;
  Guarded k({keys, size}, {static_cast<ptrdiff_t>(ld), 1});
  FillRows(k, 5);
  for (const size_t part : {keys, size_t{64}, size_t{7}}) {
    Guarded packed(Shape(layout.packed_bytes() / sizeof(float)));
    for (size_t begin = 0; begin < keys; begin += part) {
      PackKeys(layout, {k.view().data(), ld}, begin, std::min(keys, begin + part),
               packed.view().data());
    }
    ASSERT_TRUE(packed.Intact());
    for (size_t c = 0; c < internal::RoundUp(size, kernel.kr); ++c) {
      for (size_t key = 0; key < keys; ++key) {
        const uint32_t want = c < size ? Element(kernel, k.view()(key, c)) : 0;
        ASSERT_EQ(
            Packed(kernel, packed.view().data(), size, layout.nv * kernel.lanes, keys, c, key),
            want)
            << c << ", " << key;
      }
    }
  }
}

TEST(AttentionLayouts, AreAsDocumented) {
  ForEachTarget([&](const std::string&) {
    const internal::GemmKernel pairs = PairKernel();
    for (const internal::GemmKernel* kernel : {&internal::GetGemmKernelF32(), &pairs}) {
      for (const size_t keys : {1, 2, 63, 64, 65, 200, 601}) {
        for (const size_t size : {1, 14, 16, 72, 80}) {
          CheckValueLayout(*kernel, keys, size);
          CheckKeyLayout(*kernel, keys, size);
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  });
}

// Values may stay where they are if vectors divide their size; no bit tells.
TEST(AttentionLayouts, ValuesInPlaceOrPackedGiveTheSameBits) {
  const size_t queries = 70, size = 16;
  ForEachTarget([&](const std::string&) {
    const internal::GemmKernel& kernel = internal::GetGemmKernelF32();
    for (const size_t keys : {1, 64, 600}) {
      for (const size_t value_size : {16, 80, 128}) {
        const AttentionCase c(queries, keys, size, value_size);
        internal::AttentionHead head{};
        head.keys = internal::KeyPanels(kernel, keys, size);
        head.values = internal::ValuePanels(kernel, keys, value_size);
        ASSERT_FALSE(internal::ShouldPackValues(head.values));
        internal::AlignedBuffer<std::byte> packed_keys, packed_values;
        internal::AlignedBuffer<float> scratch;
        ASSERT_TRUE(packed_keys.Allocate(head.keys.packed_bytes()) &&
                    packed_values.Allocate(head.values.packed_bytes()) &&
                    scratch.Allocate(internal::AttentionScratchFloats(keys, value_size, false)));
        PackInto(head.keys, c.k.data(), 1, static_cast<ptrdiff_t>(size), packed_keys.data());
        PackInto(head.values, c.v.data(), static_cast<ptrdiff_t>(value_size), 1,
                 packed_values.data());
        const size_t ld = value_size + 5;
        Guarded v({keys, value_size}, {static_cast<ptrdiff_t>(ld), 1});
        for (size_t i = 0; i < keys * value_size; ++i) {
          v.view()(i / value_size, i % value_size) = c.v[i];
        }
        head.softmax = &internal::GetSoftmaxKernels();
        head.q = {c.q.data(), size};
        head.keys.data = packed_keys.data();
        head.scale = 0.25f;
        Guarded in_place({queries, value_size}), from_packed({queries, value_size});
        head.v = {v.view().data(), ld};
        head.out = {in_place.view().data(), value_size};
        internal::Attend(head, 0, queries, scratch.data());
        head.v = {nullptr, 0};
        head.values.data = packed_values.data();
        head.out = {from_packed.view().data(), value_size};
        internal::Attend(head, 0, queries, scratch.data());
        EXPECT_TRUE(in_place.Intact() && from_packed.Intact());
        ASSERT_TRUE(SameBits(in_place.memory(), from_packed.memory()))
            << keys << ", " << value_size;
        std::vector<float> out(queries * value_size);
        ASSERT_TRUE(Attention(c.q_view(), c.k_view(), c.v_view(),
                              {out.data(), {queries, value_size}}, {.scale = 0.25})
                        .ok());
        ASSERT_TRUE(SameBits(out, {in_place.view().data(), out.size()})) << "the public operation";
      }
    }
  });
}

}  // namespace
}  // namespace encore
