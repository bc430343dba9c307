// SPDX-License-Identifier: Apache-2.0
//
// The golden files of tests/data/families, two layers of each family of encoders: configuration,
// weights, a batch, and what is expected of it. Their format is in tests/data/README.md.

#ifndef ENCORE_TESTS_CONTRACT_FAMILY_CASE_H_
#define ENCORE_TESTS_CONTRACT_FAMILY_CASE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "encore/encoder.h"
#include "encore/layer.h"
#include "encore/safetensors.h"
#include "nlohmann/json_fwd.hpp"

namespace encore {

// From JSON objects with the fields of the structure under their own names, enumerators as strings
// ("kPre"). A field that is not there keeps its default. Throws std::runtime_error for a field or
// an enumerator that the structure lacks, and nlohmann's exceptions for values of another type.
NormConfig NormFromJson(const nlohmann::json& json);
LayerConfig LayerFromJson(const nlohmann::json& json);

// The names of the files in a folder, without ".safetensors", sorted; none if it cannot be read.
std::vector<std::string> FamilyNames(const std::string& folder);

struct FamilyCase {
  // Throws std::runtime_error if the file cannot be read or has a tensor that no field is for.
  static FamilyCase Open(const std::string& folder, const std::string& name);

  SafetensorsFile file;  // the views below look into it
  EncoderConfig config = {};
  EncoderWeights weights = {};

  std::vector<size_t> starts = {};  // of the sequences, plus the end
  std::vector<float> x = {};        // [starts.back(), d_model]
  std::vector<size_t> rows = {};    // of the batch, those that are in the expected results
  std::vector<float> hidden0 = {};  // [rows, d_model], the output of layer 0
  std::vector<float> y = {};        // [rows, d_model]
};

}  // namespace encore

#endif  // ENCORE_TESTS_CONTRACT_FAMILY_CASE_H_
