// SPDX-License-Identifier: Apache-2.0
//
// What the fuzz targets share: a target is a function that takes any bytes and ends the process if
// encore breaks a promise on them.

#ifndef ENCORE_TESTS_FUZZ_TARGET_H_
#define ENCORE_TESTS_FUZZ_TARGET_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "encore/status.h"

namespace encore::fuzz {

struct Target {
  std::string_view name;  // seeds lie in tests/data/fuzz/<name>
  void (*run)(std::string_view input);
};

// All targets; each is a file here.
std::span<const Target> Targets();
// Null if there is none of this name.
const Target* FindTarget(std::string_view name);

void RunJson(std::string_view input);
void RunSafetensors(std::string_view input);
void RunTokenizerJson(std::string_view input);
void RunVocab(std::string_view input);
void RunSpiece(std::string_view input);
void RunTexts(std::string_view input);
void RunFolder(std::string_view input);
void RunTorchFile(std::string_view input);
void RunImageProcessor(std::string_view input);
void RunPictureFiles(std::string_view input);
void RunHeads(std::string_view input);
void RunWeights(std::string_view input);
void RunEncoder(std::string_view input);
void RunOperations(std::string_view input);
void RunServe(std::string_view input);  // where there is Boost, ENCORE_HAVE_SERVER

// Ends the process with the place and what should have held.
#define ENCORE_FUZZ_CHECK(condition, ...)                                             \
  do {                                                                                \
    if (!(condition)) {                                                               \
      ::encore::fuzz::Fail(__FILE__, __LINE__, #condition, std::string(__VA_ARGS__)); \
    }                                                                                 \
  } while (false)
[[noreturn]] void Fail(const char* file, int line, const char* condition,
                       const std::string& details);

// An error has a code and a sentence without control characters.
void CheckError(const Status& status);

// The parts of an input that stands for several files: they are divided by lines of "====", and
// missing ones at the end are empty.
std::vector<std::string_view> Parts(std::string_view input, size_t count);

}  // namespace encore::fuzz

#endif  // ENCORE_TESTS_FUZZ_TARGET_H_
