// SPDX-License-Identifier: Apache-2.0
//
// Simple random changes of inputs, for where libFuzzer is not: no coverage guides them.

#ifndef ENCORE_TESTS_FUZZ_MUTATE_H_
#define ENCORE_TESTS_FUZZ_MUTATE_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace encore::fuzz {

// Draws inputs from some seeds: one to eight changes of bytes, stretches and numbers, or a stretch
// of another seed. The same generator draws the same inputs on every machine.
class Mutator {
 public:
  Mutator(std::vector<std::string> seeds, uint64_t random_seed);
  std::string Next();

 private:
  size_t Below(size_t n) { return n == 0 ? 0 : static_cast<size_t>(random_() % n); }
  void Change(std::string* input);
  void Splice(std::string* input);

  std::vector<std::string> seeds_;
  std::mt19937_64 random_;
};

// The contents of the files in a folder and below, in the order of their names.
std::vector<std::string> ReadSeeds(const std::string& folder);

}  // namespace encore::fuzz

#endif  // ENCORE_TESTS_FUZZ_MUTATE_H_
