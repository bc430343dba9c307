// SPDX-License-Identifier: Apache-2.0
//
// Simple random changes of inputs.

#include "tests/fuzz/mutate.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <utility>

namespace encore::fuzz {
namespace {

// What parsers of these formats stumble over.
constexpr std::string_view kPieces[] = {"{",
                                        "}",
                                        "[",
                                        "]",
                                        "\"",
                                        "\\",
                                        "null",
                                        "true",
                                        "-1",
                                        "1e999",
                                        "4294967296",
                                        "18446744073709551616",
                                        "0",
                                        "\xff",
                                        "\xed\xa0\x80",
                                        "\xe2",
                                        "\n",
                                        "\r\n",
                                        ",",
                                        ":",
                                        "\\ud800",
                                        "\n====\n",
                                        "[SEP]",
                                        "##",
                                        "\xcc\x81",
                                        "\xe1\x84\x80",
                                        "\xf0\x9f\x91\x8d",
                                        "\xe3\x80\x80"};

}  // namespace

Mutator::Mutator(std::vector<std::string> seeds, uint64_t random_seed)
    : seeds_(std::move(seeds)), random_(random_seed) {
  if (seeds_.empty()) seeds_.emplace_back();
}

std::string Mutator::Next() {
  std::string input = seeds_[Below(seeds_.size())];
  const size_t changes = 1 + Below(8);
  for (size_t i = 0; i < changes; ++i) Change(&input);
  return input;
}

void Mutator::Splice(std::string* input) {
  const std::string& other = seeds_[Below(seeds_.size())];
  const size_t begin = Below(other.size());
  const std::string piece = other.substr(begin, Below(64));
  input->insert(Below(input->size() + 1), piece);
}

void Mutator::Change(std::string* input) {
  const size_t at = Below(input->size());
  const size_t length = std::min(input->size() - at, 1 + Below(16));
  switch (Below(7)) {
    case 0:
      if (!input->empty()) (*input)[at] = static_cast<char>(random_() & 0xFF);
      break;
    case 1:
      if (!input->empty()) (*input)[at] ^= static_cast<char>(1u << Below(8));
      break;
    case 2:
      input->erase(at, length);
      break;
    case 3:
      input->insert(at, input->substr(at, length));
      break;
    case 4:
      input->insert(at, kPieces[Below(std::size(kPieces))]);
      break;
    case 5:
      input->replace(at, length, kPieces[Below(std::size(kPieces))]);
      break;
    default:
      Splice(input);
      break;
  }
}

std::vector<std::string> ReadSeeds(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> seeds;
  for (const std::filesystem::path& path : paths) {
    std::ifstream file(path, std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return seeds;
}

}  // namespace encore::fuzz
