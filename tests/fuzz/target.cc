// SPDX-License-Identifier: Apache-2.0
//
// The list of fuzz targets, and what they share.

#include "tests/fuzz/target.h"

#include <cstdio>
#include <cstdlib>

namespace encore::fuzz {

std::span<const Target> Targets() {
  static constexpr Target kTargets[] = {
    {"json", RunJson},
    {"safetensors", RunSafetensors},
    {"tokenizer_json", RunTokenizerJson},
    {"vocab", RunVocab},
    {"spiece", RunSpiece},
    {"texts", RunTexts},
    {"folder", RunFolder},
    {"heads", RunHeads},
    {"torch_file", RunTorchFile},
    {"image_processor", RunImageProcessor},
    {"picture_files", RunPictureFiles},
    {"weights", RunWeights},
    {"encoder", RunEncoder},
    {"operations", RunOperations},
#if ENCORE_HAVE_SERVER
    {"serve", RunServe},
#endif
  };
  return kTargets;
}

const Target* FindTarget(std::string_view name) {
  for (const Target& target : Targets()) {
    if (target.name == name) return &target;
  }
  return nullptr;
}

void Fail(const char* file, int line, const char* condition, const std::string& details) {
  std::fprintf(stderr, "%s:%d: does not hold: %s%s%s\n", file, line, condition,
               details.empty() ? "" : ": ", details.c_str());
  std::abort();
}

void CheckError(const Status& status) {
  ENCORE_FUZZ_CHECK(!status.ok());
  ENCORE_FUZZ_CHECK(!status.message().empty());
  for (const char c : status.message()) {
    ENCORE_FUZZ_CHECK(static_cast<unsigned char>(c) >= 0x20, status.message());
  }
}

std::vector<std::string_view> Parts(std::string_view input, size_t count) {
  static constexpr std::string_view kDivider = "\n====\n";
  std::vector<std::string_view> parts;
  while (parts.size() + 1 < count) {
    const size_t end = input.find(kDivider);
    if (end == std::string_view::npos) break;
    parts.push_back(input.substr(0, end));
    input.remove_prefix(end + kDivider.size());
  }
  parts.push_back(input);
  parts.resize(count);
  return parts;
}

}  // namespace encore::fuzz
