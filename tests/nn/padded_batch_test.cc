// SPDX-License-Identifier: Apache-2.0
//
// PaddedBatch: [B, S, D] with a key-padding mask to packed rows and back, holes included, and what
// the encoder makes of it.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "encore/encoder.h"
#include "gtest/gtest.h"
#include "reference/encoder.h"
#include "reference/encoder_model.h"
#include "tests/support/attention_case.h"
#include "tests/support/compare.h"
#include "tests/support/guarded.h"
#include "tests/support/near_rounded.h"
#include "tests/support/sanitizers.h"
#include "tests/support/targets.h"

namespace encore {
namespace {

template <typename T>
std::vector<T> ToVector(std::span<const T> s) {
  return {s.begin(), s.end()};
}

// A mask from rows of '.' (a token) and 'x' (padding).
class PaddingMask {
 public:
  explicit PaddingMask(const std::vector<std::string>& rows) : shape_(rows.size(), rows[0].size()) {
    for (const std::string& row : rows) {
      for (const char c : row) flags_.push_back(c == 'x');
    }
  }
  TensorView<const bool> view() const {
    return {reinterpret_cast<const bool*>(flags_.data()), shape_};
  }

 private:
  Shape shape_;
  std::vector<uint8_t> flags_;
};

TEST(PaddedBatch, StartsRowsAndPositions) {
  const PaddingMask mask({".x..x", "xxxxx", ".....", "xx.xx"});
  const PaddedBatch padded = Taken(PaddedBatch::Create(4, 5, mask.view()));
  EXPECT_EQ(padded.tokens(), 9u);
  EXPECT_EQ(padded.sequences(), 4u);
  const Batch batch = padded.batch();
  EXPECT_EQ(ToVector(batch.seq_starts.get()), (std::vector<size_t>{0, 3, 3, 8, 9}));
  EXPECT_EQ(ToVector(batch.positions), (std::vector<size_t>{0, 2, 3, 0, 1, 2, 3, 4, 2}));
  EXPECT_EQ(ToVector(padded.rows()), (std::vector<size_t>{0, 2, 3, 10, 11, 12, 13, 14, 17}));
}

TEST(PaddedBatch, NoMaskAndNoTokens) {
  const PaddedBatch full = Taken(PaddedBatch::Create(2, 3));
  EXPECT_EQ(full.tokens(), 6u);
  EXPECT_EQ(ToVector(full.batch().seq_starts.get()), (std::vector<size_t>{0, 3, 6}));
  for (const auto& [b, s] : std::vector<std::pair<size_t, size_t>>{{0, 0}, {0, 5}, {5, 0}}) {
    const PaddedBatch none = Taken(PaddedBatch::Create(b, s));
    EXPECT_EQ(none.tokens(), 0u);
    EXPECT_EQ(none.sequences(), b);
    EXPECT_TRUE(none.Pack({nullptr, {b, s, 4}}, {nullptr, {0, 4}}).ok());
    EXPECT_TRUE(none.Unpack({nullptr, {0, 4}}, {nullptr, {b, s, 4}}).ok());
  }
}

TEST(PaddedBatch, FromTheMaskOfATokenizer) {
  const std::vector<int64_t> numbers = {1, 0, 1, 1, 0,   //
                                        0, 0, 0, 0, 0,   //
                                        1, 1, 1, 1, 1};  // rows of 5
  const std::vector<bool> flags(numbers.begin(), numbers.end());
  for (const Result<PaddedBatch>& padded :
       {PaddedBatch::FromAttentionMask({numbers.data(), {3, 5}}),
        PaddedBatch::FromAttentionMask(3, 5, flags)}) {
    ASSERT_TRUE(padded.ok()) << padded.status().message();
    const Batch batch = padded->batch();
    EXPECT_EQ(ToVector(batch.seq_starts.get()), (std::vector<size_t>{0, 3, 3, 8}));
    EXPECT_EQ(ToVector(batch.positions), (std::vector<size_t>{0, 2, 3, 0, 1, 2, 3, 4}));
    EXPECT_EQ(ToVector(padded->rows()), (std::vector<size_t>{0, 2, 3, 10, 11, 12, 13, 14}));
  }
  // Columns that lie apart.
  const PaddedBatch transposed =
      Taken(PaddedBatch::FromAttentionMask({numbers.data(), {5, 3}, {1, 5}}));
  EXPECT_EQ(ToVector(transposed.batch().seq_starts.get()), (std::vector<size_t>{0, 2, 3, 5, 7, 8}));
  for (const Result<PaddedBatch>& none :
       {PaddedBatch::FromAttentionMask({numbers.data(), {0, 5}}),
        PaddedBatch::FromAttentionMask(0, 5, {}), PaddedBatch::FromAttentionMask(2, 0, {})}) {
    ASSERT_TRUE(none.ok()) << none.status().message();
    EXPECT_EQ(none->tokens(), 0u);
  }
}

TEST(PaddedBatch, BadMasksOfATokenizer) {
  for (const int64_t bad : {int64_t{2}, int64_t{-1}, int64_t{1} << 32, INT64_MIN}) {
    const std::vector<int64_t> numbers = {1, 0, 1, 1, bad, 0};
    EXPECT_TRUE(FailsWith(PaddedBatch::FromAttentionMask({numbers.data(), {2, 3}}),
                          {"attention_mask[1, 1] is " + std::to_string(bad),
                           "wanted 1 for a token or 0 for padding"}));
  }
  const std::vector<int64_t> numbers(6, 1);
  EXPECT_TRUE(FailsWith(PaddedBatch::FromAttentionMask({numbers.data(), Shape(6)}),
                        {"attention_mask has shape [6]", "rank 2"}));
  EXPECT_TRUE(FailsWith(PaddedBatch::FromAttentionMask({nullptr, {2, 3}}), {"attention_mask"}));
  EXPECT_TRUE(FailsWith(PaddedBatch::FromAttentionMask(2, 3, std::vector<bool>(5)),
                        {"attention_mask has 5 entries; wanted 2 times 3"}));
  EXPECT_TRUE(FailsWith(PaddedBatch::FromAttentionMask(SIZE_MAX, 2, std::vector<bool>(5)),
                        {"attention_mask has 5 entries"}));
}

TEST(PaddedBatch, PackAndUnpackWithStrides) {
  const PaddingMask mask({".x.", "xxx", "..x"});
  const PaddedBatch padded = Taken(PaddedBatch::Create(3, 3, mask.view()));
  const std::vector<float> x = RandomFloats(27 * 4, 1);
  const ConstView from(x.data(), {3, 3, 3}, {4, 12, 36});  // every axis somewhere else
  Guarded packed({4, 3}, {5, 1});
  ASSERT_TRUE(padded.Pack(from, packed.view()).ok());
  EXPECT_TRUE(packed.Intact());
  const size_t rows[4][2] = {{0, 0}, {0, 2}, {2, 0}, {2, 1}};
  for (size_t t = 0; t < 4; ++t) {
    for (size_t c = 0; c < 3; ++c) {
      EXPECT_EQ(packed.view()(t, c), from(rows[t][0], rows[t][1], c));
    }
  }
  Guarded back({3, 3, 3}, {20, 6, 1});
  ASSERT_TRUE(padded.Unpack(packed.view(), back.view()).ok());
  EXPECT_TRUE(back.Intact());
  for (size_t b = 0; b < 3; ++b) {
    for (size_t s = 0; s < 3; ++s) {
      for (size_t c = 0; c < 3; ++c) {
        EXPECT_EQ(back.view()(b, s, c), mask.view()(b, s) ? 0.0f : from(b, s, c));
      }
    }
  }
}

// A sequence with holes is the compacted sequence, to the bit; what lies in the padding matters
// not.
TEST(PaddedBatch, HolesAreTheCompactedSequence) {
  const EncoderModel model({.d_model = 16, .num_heads = 2, .d_ff = 30});
  const PaddingMask mask({".x..xx.", "xxxxxxx", "......."});
  const PaddedBatch padded = Taken(PaddedBatch::Create(3, 7, mask.view()));
  std::vector<float> x = RandomFloats(21 * 16, 1);
  std::vector<float> compact;
  for (const size_t row : {0, 2, 3, 6}) {
    compact.insert(compact.end(), x.begin() + static_cast<ptrdiff_t>(row) * 16,
                   x.begin() + static_cast<ptrdiff_t>(row + 1) * 16);
  }
  x[1 * 16 + 3] = std::numeric_limits<float>::quiet_NaN();  // in a hole
  ForEachTarget([&](const std::string&) {
    const Encoder encoder = model.Make();
    std::vector<float> packed(padded.tokens() * 16);
    ASSERT_TRUE(padded.Pack({x.data(), {3, 7, 16}}, {packed.data(), {padded.tokens(), 16}}).ok());
    const std::vector<float> y = Forward(encoder, padded.batch(), packed);
    const std::vector<size_t> starts = {0, 4};
    EXPECT_TRUE(SameBits({y.data(), 4 * 16}, Forward(encoder, Batch{starts}, compact)));
  });
}

// Rows and columns of a mask are those of the padded sequence.
TEST(PaddedBatch, MasksGoByPaddedPositions) {
  const EncoderModel model({.d_model = 16, .num_heads = 2, .d_ff = 30});
  const PaddingMask holes({".x..xx.x.", "xx.......", "........."});
  const PaddedBatch padded = Taken(PaddedBatch::Create(3, 9, holes.view()));
  const Masks masks(9, 9);
  const size_t tokens = padded.tokens();
  const std::vector<float> x = RandomFloats(tokens * 16, 1);
  double worst = 0;
  for (const bool causal : {false, true}) {
    AttentionMask mask;
    mask.causal = causal;
    mask.blocked = masks.blocked();
    mask.additive = masks.additive();
    const Batch batch = padded.batch(mask);
    ForEachTarget([&](const std::string&) {
      const std::vector<float> y = Forward(model.Make(), batch, x);
      for (size_t b = 0; b < 3; ++b) {
        const size_t start = batch.seq_starts[b];
        const size_t length = batch.seq_starts[b + 1] - start;
        const auto want = reference::Encode<reference::Rounded>(
            model.config(), model.weights(), ConstView(x.data() + start * 16, {length, 16}), mask,
            batch.positions.subspan(start, length));
        ASSERT_TRUE(NearRounded({y.data() + start * 16, length * 16}, want.y, &worst)) << b;
      }
    });
  }
}

TEST(PaddedBatch, ErrorsNameTheView) {
  const PaddingMask mask({".x.", "xxx"});
  EXPECT_TRUE(FailsWith(PaddedBatch::Create(3, 2, mask.view()),
                        {"key_padding_mask has shape [2, 3]", "wanted [3, 2]"}));
  EXPECT_TRUE(
      FailsWith(PaddedBatch::Create(SIZE_MAX, 2), {"18446744073709551615 sequences", "addressed"}));
  // Sanitizers end the program where operator new would throw.
  if (!kSanitized) {
    EXPECT_TRUE(FailsWith(PaddedBatch::Create(size_t{1} << 40, size_t{1} << 20), {"no memory"},
                          ErrorCode::kOutOfMemory));
    EXPECT_TRUE(FailsWith(PaddedBatch::Create(SIZE_MAX, 0),
                          {"18446744073709551615 sequences", "addressed"}));
    EXPECT_TRUE(
        FailsWith(PaddedBatch::Create(SIZE_MAX - 1, 0), {"no memory"}, ErrorCode::kOutOfMemory));
  }

  const PaddedBatch padded = Taken(PaddedBatch::Create(2, 3, mask.view()));
  std::vector<float> x(100);
  Guarded packed({2, 4});
  Guarded back({2, 3, 4});
  EXPECT_TRUE(FailsWith(padded.Pack({x.data(), {3, 2, 4}}, packed.view()),
                        {"padded has shape [3, 2, 4]", "wanted [2, 3, 4]"}));
  EXPECT_TRUE(FailsWith(padded.Pack({x.data(), {6, 4}}, packed.view()),
                        {"padded has shape [6, 4]", "rank 3"}));
  EXPECT_TRUE(FailsWith(padded.Pack({x.data(), {2, 3, 5}}, packed.view()),
                        {"packed has shape [2, 4]", "wanted [2, 5]"}));
  EXPECT_TRUE(FailsWith(padded.Pack({x.data(), {2, 3, 4}}, {x.data(), {2, 4}, {0, 1}}),
                        {"packed is an output", "stride 0"}));
  EXPECT_TRUE(FailsWith(padded.Unpack({x.data(), {3, 4}}, back.view()),
                        {"packed has shape [3, 4]", "wanted [2, 4]"}));
  EXPECT_TRUE(FailsWith(padded.Unpack({x.data(), {2, 4}}, {x.data(), {2, 3, 4}, {0, 4, 1}}),
                        {"padded is an output", "stride 0"}));
  EXPECT_TRUE(packed.Untouched());
  EXPECT_TRUE(back.Untouched());
}

}  // namespace
}  // namespace encore
