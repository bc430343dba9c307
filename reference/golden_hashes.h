// SPDX-License-Identifier: Apache-2.0
//
// The published hashes: what some fixed inputs give on every SIMD target with FMA (AVX2, AVX-512,
// NEON), with every compiler, on every machine. A change of the contract (an order of sums, a
// polynomial) changes them, and must be meant: `encore verify --print-hashes` prints the lines of
// the table anew.

#ifndef ENCORE_REFERENCE_GOLDEN_HASHES_H_
#define ENCORE_REFERENCE_GOLDEN_HASHES_H_

#include <cstdint>
#include <string_view>

namespace encore::reference {

struct GoldenHash {
  std::string_view name;
  uint64_t hash;  // HashBits (drawn.h) of the output
};

inline constexpr GoldenHash kGoldenHashes[] = {
    {"relu post 14", 0x7dae323588557d63},
    {"gelu post 64", 0x93912d002796b2a6},
    {"gelu_tanh pre 72", 0xcd5aa8ab4e0cd494},
    {"silu pre 32", 0x7ea03682599832f3},
    {"modernbert", 0xfd7a6e05cc77efd1},
    {"gemma", 0x5d88ef302cc3023e},
    {"t5", 0x768b7a6bec44df79},
    {"qwen3", 0x76b0d4eccdf00f79},
    {"jina", 0xa6b7c22bb09c6507},
    {"dinov3", 0x73b8a8c7c55685c9},
    {"bf16 relu post 14", 0x4187497e136ea4d6},
    {"bf16 gelu post 64", 0x781d468489d8cfb8},
    {"bf16 silu pre 72", 0xd92e13581398c097},
    {"bf16 modernbert", 0x6b274fc7ba4249b2},
    {"bf16 gemma", 0xfa1608889b9b104b},
    {"int8 relu post 14", 0x55c66269db2dfd20},
    {"int8 gelu post 64", 0xddc312d7cef13338},
    {"int8 silu pre 72", 0xc8f17a00663a34cc},
    {"int8 modernbert", 0x36caf768b4b87045},
    {"int8 gemma", 0x91b5ccc9a004b616},
    {"int4 relu post 14", 0x3c99b89f177fb97c},
    {"int4 gelu post 64", 0x57b4f2676e988743},
    {"int4 silu pre 72", 0x03e3ac63f939f97a},
    {"int4 modernbert", 0x4b563036d576e972},
    {"int4 gemma", 0x94bf84b2c43be2ea},
    {"pictures", 0xb057b39a1ef64a62},
    {"bf16 pictures", 0x23e16344692dcf81},
    {"int8 pictures", 0x6cca8332e9ad69f1},
    {"int4 pictures", 0x350c773f1ea96c1d},
    {"exp", 0x71ccad2eff00d2db},
    {"tanh", 0x3e68faaa4c1320d1},
    {"gelu", 0xdf2a7599ed2ff36f},
    {"gelu_tanh", 0xc4586d6ac66b1178},
    {"silu", 0x104ff058e567a667},
    {"matmul", 0xb424fdb8783aa04b},
    {"softmax", 0xd7a465980b989c60},
    {"layer_norm", 0x41364005926e7617},
    {"attention", 0xf5eb62cdaffc068b},
    {"resize", 0xeaa39c6a1a6c16c1},
};

// The hash that the active SIMD target gives for the input of this name, which must be one of the
// table's. Inputs are drawn (drawn.h), so the table is all there is to publish.
uint64_t ComputeGoldenHash(std::string_view name);

}  // namespace encore::reference

#endif  // ENCORE_REFERENCE_GOLDEN_HASHES_H_
