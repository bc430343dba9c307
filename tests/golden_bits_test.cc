// SPDX-License-Identifier: Apache-2.0
//
// The numeric contract across machines, compilers and time: hashes of outputs that every SIMD
// target with FMA must hit (AVX2, AVX-512, NEON). They were made by this test on x86-64 and hold
// for AArch64 as well. A change of the contract (an order of sums, a polynomial) changes them, and
// must be meant. Not here: equal bits within one run (encoder_contract_test.cc), accuracy.

#include <cstdint>
#include <cstdio>
#include <ios>
#include <map>
#include <string>
#include <vector>

#include "encore/encoder.h"
#include "encore/ops.h"
#include "gtest/gtest.h"
#include "tests/compare.h"
#include "tests/encoder_model.h"
#include "tests/guarded.h"
#include "tests/reference/accuracy.h"
#include "tests/targets.h"

namespace encore {
namespace {

// Lengths around the blocks of 64 queries and tiles of 512 keys; K around the slices of a product.
uint64_t HashOfEncoder(Activation activation, bool norm_first, size_t head_size) {
  const EncoderModel model({.d_model = 2 * head_size,
                            .num_heads = 2,
                            .d_ff = 1100,
                            .num_layers = 2,
                            .activation = activation,
                            .norm_first = norm_first,
                            .final_norm = norm_first});
  const std::vector<size_t> starts = Starts({1, 17, 65, 530});
  const std::vector<float> x = RandomFloats(starts.back() * 2 * head_size, 99, 2);
  return HashBits(
      Forward(model.Make(), Batch{.seq_starts = starts, .mask = {.causal = norm_first}}, x));
}

uint64_t HashOfFunction(Status (*function)(ConstView, MutableView)) {
  const std::vector<float> x = RandomFloats(20000, 5, 30);
  std::vector<float> y(x.size());
  EXPECT_TRUE(function(ConstView(x.data(), {x.size()}), MutableView(y.data(), {y.size()})).ok());
  return HashBits(y);
}

std::map<std::string, uint64_t> Hashes() {
  return {{"relu post 14", HashOfEncoder(Activation::kRelu, false, 14)},
          {"gelu post 64", HashOfEncoder(Activation::kGelu, false, 64)},
          {"gelu_tanh pre 72", HashOfEncoder(Activation::kGeluTanh, true, 72)},
          {"silu pre 32", HashOfEncoder(Activation::kSilu, true, 32)},
          {"exp", HashOfFunction(Exp)},
          {"tanh", HashOfFunction(Tanh)},
          {"gelu", HashOfFunction(Gelu)}};
}

const std::map<std::string, uint64_t> kGolden = {
    {"relu post 14", 0x1a7c668a3ca38b43},
    {"gelu post 64", 0x11c60fe2d6f9f1db},
    {"gelu_tanh pre 72", 0x4086bb0b2aa784d9},
    {"silu pre 32", 0x5ed5e117626cb1d0},
    {"exp", 0x106baac77fa8fa8d},
    {"tanh", 0x4f6475601f5f2a8d},
    {"gelu", 0x982b8f643eca1d91},
};

TEST(GoldenBits, EveryTargetWithFmaGivesThem) {
  size_t with_fma = 0;
  ForEachTarget([&](const std::string& target) {
    if (!reference::TargetHasFma(target)) return;
    ++with_fma;
    for (const auto& [name, hash] : Hashes()) {
      EXPECT_EQ(hash, kGolden.at(name)) << name << " gave 0x" << std::hex << hash;
    }
  });
  // Elsewhere (old x86, or a build of portable code alone) there is nothing to compare.
  std::printf("%zu targets with FMA\n", with_fma);
}

}  // namespace
}  // namespace encore
