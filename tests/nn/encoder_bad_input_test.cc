// SPDX-License-Identifier: Apache-2.0
//
// Everything Forward refuses: each error names the thing, what was found and what was wanted, and
// leaves the outputs as they were. Configurations and weights are in layer_check_test.cc, errors of
// single operations in those operations' tests.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "encore/encoder.h"
#include "gtest/gtest.h"
#include "reference/encoder_model.h"
#include "tests/support/guarded.h"
#include "tests/support/near_rounded.h"

namespace encore {
namespace {

const TorchStack kStack = {
    .d_model = 8, .num_heads = 2, .d_ff = 12, .num_layers = 2, .final_norm = true};

// A good call, to be spoilt.
struct Call {
  Call() : y({9, 8}), x_memory(200, 1.0f), workspace(*Workspace::Create(1 << 20)) {
    batch.seq_starts = starts;
    x = {x_memory.data(), {9, 8}};
    out = y.view();
  }
  std::vector<size_t> starts = {0, 4, 4, 9};
  Batch batch;
  Guarded y;
  std::vector<float> x_memory;
  ConstView x;
  MutableView out;
  std::vector<MutableView> attention, hidden;
  Taps taps;
  Workspace workspace;
};

class ForwardBadInput : public testing::Test {
 protected:
  testing::AssertionResult Refuses(const std::function<void(Call&)>& change,
                                   const std::vector<std::string>& parts) {
    Call c;
    change(c);
    const Status status = encoder_.Forward(c.batch, c.x, c.out, c.workspace, {}, c.taps);
    if (!c.y.Untouched())
      return testing::AssertionFailure() << "y was written: " << status.message();
    return FailsWith(status, parts);
  }
  Encoder encoder_ = EncoderModel(kStack).Make();
  std::vector<float> memory_ = std::vector<float>(10000);
  std::vector<uint8_t> flags_ = std::vector<uint8_t>(10000);
};

TEST_F(ForwardBadInput, TheGoodCallIsGood) {
  Call c;
  const Status status = encoder_.Forward(c.batch, c.x, c.out, c.workspace, {}, c.taps);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_FALSE(c.y.Untouched());
}

TEST_F(ForwardBadInput, SequenceStarts) {
  const auto starts = [](std::vector<size_t> s) {
    return [s](Call& c) {
      c.starts = s;
      c.batch.seq_starts = c.starts;
    };
  };
  EXPECT_TRUE(Refuses(starts({}), {"seq_starts is empty", "wanted"}));
  EXPECT_TRUE(Refuses(starts({1, 9}), {"seq_starts[0] is 1", "wanted 0"}));
  EXPECT_TRUE(Refuses(starts({0, 5, 4, 9}), {"seq_starts[2] is 4 after 5", "never decrease"}));
  EXPECT_TRUE(Refuses(starts({0, 5, 8}), {"x has shape [9, 8]", "wanted [8, 8]", "seq_starts"}));
  EXPECT_TRUE(Refuses(starts({0, SIZE_MAX}), {"x has shape [9, 8]", "18446744073709551615"}));
  EXPECT_TRUE(Refuses(starts({0, SIZE_MAX, 9}), {"seq_starts[2] is 9"}));
  const Batch none;
  EXPECT_TRUE(FailsWith(encoder_.WorkspaceBytes(none, {}), {"seq_starts is empty"}));
  EXPECT_TRUE(FailsWith(encoder_.MakeWorkspace(none), {"seq_starts is empty"}));
}

TEST_F(ForwardBadInput, InputAndOutput) {
  EXPECT_TRUE(Refuses(
      [](Call& c) {
        c.x = {c.x.data(), {9, 7}};
      },
      {"x has shape [9, 7]", "wanted [9, 8]"}));
  EXPECT_TRUE(Refuses([](Call& c) { c.x = {c.x.data(), {3, 3, 8}}; }, {"x has shape [3, 3, 8]"}));
  EXPECT_TRUE(Refuses([](Call& c) { c.x = {nullptr, {9, 8}}; }, {"x of shape [9, 8] has no data"}));
  EXPECT_TRUE(Refuses([](Call& c) { c.x = {}; }, {"x has shape []", "wanted [9, 8]"}));
  EXPECT_TRUE(Refuses(
      [](Call& c) {
        c.x = {c.x.data(), {9, 8}, {16, 2}};
      },
      {"x has strides 16, 2", "wanted contiguous rows"}));
  EXPECT_TRUE(Refuses(
      [](Call& c) {
        c.x = {c.x.data() + 64, {9, 8}, {-8, 1}};
      },
      {"x has strides -8, 1", "wanted contiguous rows"}));
  EXPECT_TRUE(Refuses(
      [](Call& c) {
        c.out = {c.out.data(), {8, 8}};
      },
      {"y has shape [8, 8]", "wanted [9, 8]"}));
  EXPECT_TRUE(Refuses(
      [](Call& c) {
        c.out = {nullptr, {9, 8}};
      },
      {"y of shape [9, 8] has no data"}));
  EXPECT_TRUE(Refuses(
      [](Call& c) {
        c.out = {c.out.data(), {9, 8}, {1, 9}};
      },
      {"y has strides 1, 9", "wanted contiguous rows"}));
  EXPECT_TRUE(Refuses(
      [](Call& c) {
        c.out = {c.out.data(), {9, 8}, {7, 1}};
      },
      {"y has strides 7, 1", "do not overlap"}));
  EXPECT_TRUE(Refuses(
      [](Call& c) {
        c.out = {c.out.data(), {9, 8}, {0, 1}};
      },
      {"y has strides 0, 1"}));
  EXPECT_TRUE(Refuses(
      [](Call& c) {
        c.out = {c.x_memory.data() + 8, {9, 8}};
      },
      {"x and y overlap", "wanted"}));
  EXPECT_TRUE(Refuses(
      [](Call& c) {
        c.out = {c.x_memory.data() + 71, {9, 8}};
      },
      {"x and y overlap"}));
  EXPECT_TRUE(Refuses(
      [](Call& c) {
        c.out = {c.x_memory.data(), {9, 8}, {9, 1}};
      },
      {"x and y overlap"}));
  EXPECT_TRUE(Refuses(
      [](Call& c) {
        c.x = {c.x_memory.data() + 80, {9, 8}};
        c.out = {c.x_memory.data() + 60, {9, 8}};
      },
      {"x and y overlap"}));
}

TEST_F(ForwardBadInput, MaskAndPositions) {
  EXPECT_TRUE(Refuses(
      [&](Call& c) {
        c.batch.mask.additive = {memory_.data(), {4, 4}};
      },
      {"mask.additive has shape [4, 4]", "S at least 5"}));
  EXPECT_TRUE(Refuses(
      [&](Call& c) {
        c.batch.mask.additive = {memory_.data(), {5, 6}};
      },
      {"mask.additive has shape [5, 6]", "wanted [S, S]"}));
  EXPECT_TRUE(Refuses(
      [&](Call& c) {
        c.batch.mask.additive = {memory_.data(), {1, 5, 5}};
      },
      {"mask.additive has shape [1, 5, 5]", "wanted [S, S], or [H, S, S]", "which is 2"}));
  EXPECT_TRUE(Refuses(
      [&](Call& c) {
        c.batch.mask.additive = {memory_.data(), {2, 4, 5}};
      },
      {"mask.additive of a head has shape [4, 5]", "wanted [S, S]"}));
  EXPECT_TRUE(Refuses(
      [&](Call& c) {
        c.batch.mask.blocked = {reinterpret_cast<const bool*>(flags_.data()), {4, 5}};
      },
      {"mask.blocked has shape [4, 5]", "wanted [S, S]"}));
  EXPECT_TRUE(Refuses(
      [&](Call& c) {
        c.batch.mask.blocked = {reinterpret_cast<const bool*>(flags_.data()), {5, 5, 2}};
      },
      {"mask.blocked has shape [5, 5, 2]", "wanted rank 2"}));
  const std::vector<size_t> positions = {0, 1, 2, 3, 0, 1, 2, 3, 6};
  EXPECT_TRUE(Refuses(
      [&](Call& c) {
        c.batch.positions = std::span(positions.data(), 8);
        c.batch.mask.additive = {memory_.data(), {7, 7}};
      },
      {"positions has 8 entries", "9 tokens"}));
  EXPECT_TRUE(Refuses(
      [&](Call& c) {
        c.batch.positions = positions;
        c.batch.mask.additive = {memory_.data(), {6, 6}};
      },
      {"mask.additive has shape [6, 6]", "S at least 7"}));
  const std::vector<size_t> far(9, SIZE_MAX);
  EXPECT_TRUE(Refuses(
      [&](Call& c) {
        c.batch.positions = far;
        c.batch.mask.additive = {memory_.data(), {9, 9}};
      },
      {"mask.additive has shape [9, 9]", "S at least 18446744073709551615"}));
}

TEST_F(ForwardBadInput, MoreTokensThanAGridHas) {
  EncoderConfig config(kStack);
  config.layers[1].rotary = RotaryConfig{.grid = RotaryGrid{1, 1, 3}};
  encoder_ = EncoderModel(config).Make();
  EXPECT_TRUE(Refuses([](Call&) {}, {"a sequence has 5 tokens; wanted at most the 1 before "
                                     "rotary.grid and its 1 x 3"}));
}

TEST_F(ForwardBadInput, TapsThatDoNotFit) {
  const auto hidden = [&](const Shape& shape, size_t entries) {
    return [&, shape, entries](Call& c) {
      c.hidden.assign(entries, MutableView());
      c.hidden.back() = {memory_.data(), shape};
      c.taps.hidden = c.hidden;
    };
  };
  EXPECT_TRUE(Refuses(hidden({9, 8}, 1), {"taps.hidden has 1 entries", "2 layers"}));
  EXPECT_TRUE(Refuses(hidden({9, 7}, 2), {"taps.hidden[1] has shape [9, 7]", "wanted [9, 8]"}));
  EXPECT_TRUE(Refuses(
      [&](Call& c) {
        c.hidden.assign(2, MutableView(memory_.data(), {9, 8}, {0, 1}));
        c.taps.hidden = c.hidden;
      },
      {"taps.hidden[0] is an output", "stride 0"}));
  const auto attention = [&](const Shape& shape, size_t entries) {
    return [&, shape, entries](Call& c) {
      c.attention.assign(entries, MutableView());
      c.attention.back() = {memory_.data(), shape};
      c.taps.attention = c.attention;
    };
  };
  EXPECT_TRUE(Refuses(attention({2, 5, 5}, 3), {"taps.attention has 3 entries", "2 x 3"}));
  EXPECT_TRUE(Refuses(attention({2, 5, 4}, 6),
                      {"taps.attention[5] has shape [2, 5, 4]", "wanted [2, 5, 5]"}));
  EXPECT_TRUE(Refuses(attention({1, 5, 5}, 6), {"taps.attention[5] has shape [1, 5, 5]"}));
  EXPECT_TRUE(Refuses(
      [&](Call& c) {
        c.attention.assign(6, MutableView());
        c.attention[2] = {memory_.data(), {2, 5, 5}, {25, 0, 1}};
        c.taps.attention = c.attention;
      },
      {"taps.attention[2] is an output", "stride 0", "axis 1"}));
}

TEST_F(ForwardBadInput, TapsThatOverlapInputOrOutput) {
  EXPECT_TRUE(Refuses(
      [](Call& c) {
        c.hidden = {{}, {c.x_memory.data() + 8, {9, 8}}};
        c.taps.hidden = c.hidden;
      },
      {"taps.hidden[1]", "shares memory with x"}));
  EXPECT_TRUE(Refuses(
      [](Call& c) {
        c.attention.assign(6, MutableView());
        c.attention[0] = {c.out.data(), {2, 4, 4}};
        c.taps.attention = c.attention;
      },
      {"taps.attention[0]", "shares memory with y"}));
}

TEST_F(ForwardBadInput, MovedFromEncoder) {
  const Encoder taken = std::move(encoder_);
  EXPECT_TRUE(Refuses([](Call&) {}, {"this Encoder holds no weights"}));
  EXPECT_TRUE(
      FailsWith(encoder_.WorkspaceBytes({.tokens = 1}, 1), {"this Encoder holds no weights"}));
  encoder_ = taken;
}

TEST_F(ForwardBadInput, WorkspaceTooSmall) {
  Call good;
  const size_t wanted = *encoder_.WorkspaceBytes(good.batch, {});
  const std::string number = std::to_string(wanted);
  EXPECT_TRUE(Refuses(
      [](Call& c) { c.workspace = Workspace(); },
      {"workspace has 0 bytes", "wanted " + number, "9 tokens", "3 sequences", "1 threads"}));
  EXPECT_TRUE(
      Refuses([&](Call& c) { c.workspace = *Workspace::Create(wanted - 1); },
              {"workspace has " + std::to_string(wanted - 1) + " bytes", "wanted " + number}));
  for (const int threads : {0, -1}) {
    EXPECT_TRUE(FailsWith(encoder_.WorkspaceBytes({.tokens = 1}, threads),
                          {"threads is ", "wanted at least 1"}));
  }
  EXPECT_TRUE(FailsWith(encoder_.WorkspaceBytes({.tokens = SIZE_MAX}, 1),
                        {"18446744073709551615 tokens", "addressed"}));
  EXPECT_TRUE(
      FailsWith(encoder_.WorkspaceBytes({.tokens = SIZE_MAX / 64}, 1), {"tokens", "addressed"}));
  EXPECT_TRUE(FailsWith(encoder_.WorkspaceBytes({.tokens = 1, .sequences = SIZE_MAX}, 1),
                        {"18446744073709551615 sequences"}));
}

}  // namespace
}  // namespace encore
