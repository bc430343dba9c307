// SPDX-License-Identifier: Apache-2.0
//
// The published hashes: what some fixed inputs give on every SIMD target with FMA (AVX2, AVX-512,
// NEON), with every compiler, on every machine. A change of the contract (an order of sums, a
// polynomial) changes them, and must be meant: `encore verify --print-hashes` prints the lines of
// the table anew. Not here: who compares (golden_bits_test.cc, `encore verify`).

#ifndef ENCORE_TESTS_REFERENCE_GOLDEN_HASHES_H_
#define ENCORE_TESTS_REFERENCE_GOLDEN_HASHES_H_

#include <cstdint>
#include <string_view>

namespace encore::reference {

struct GoldenHash {
  std::string_view name;
  uint64_t hash;  // HashBits (drawn.h) of the output
};

inline constexpr GoldenHash kGoldenHashes[] = {
    {"relu post 14", 0x1a7c668a3ca38b43},
    {"gelu post 64", 0x11c60fe2d6f9f1db},
    {"gelu_tanh pre 72", 0x4086bb0b2aa784d9},
    {"silu pre 32", 0x5ed5e117626cb1d0},
    {"exp", 0x106baac77fa8fa8d},
    {"tanh", 0x4f6475601f5f2a8d},
    {"gelu", 0x982b8f643eca1d91},
    {"gelu_tanh", 0x89069da6852d7a6f},
    {"silu", 0x73476c9d90ef73f7},
    {"matmul", 0xb424fdb8783aa04b},
    {"softmax", 0x3aec8a02ba382a61},
    {"layer_norm", 0x74ceefa80ced54b2},
    {"attention", 0x98eb2513f2f17a64},
};

// The hash that the active SIMD target gives for the input of this name, which must be one of the
// table's. Inputs are drawn (drawn.h), so the table is all there is to publish.
uint64_t ComputeGoldenHash(std::string_view name);

}  // namespace encore::reference

#endif  // ENCORE_TESTS_REFERENCE_GOLDEN_HASHES_H_
