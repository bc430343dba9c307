// SPDX-License-Identifier: Apache-2.0
//
// Files of drawn weights with torch's names, and what encoders of files compute.

#ifndef ENCORE_TESTS_SUPPORT_WEIGHTS_FILE_H_
#define ENCORE_TESTS_SUPPORT_WEIGHTS_FILE_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "encore/encoder.h"
#include "encore/tensor.h"

namespace encore {

// A stack of two layers: d_model 64, 4 heads, d_ff 96.
inline constexpr size_t kFileModel = 64;
inline constexpr size_t kFileInner = 96;

struct WeightsFile {
  bool norm_first = false;
  // Changes the numbers of a tensor before they are written.
  std::function<void(const std::string& name, std::vector<float>& numbers)> change = {};
  std::map<std::string, std::vector<float>> more = {};  // further vectors
};

// F32, with the metadata that a TransformerEncoder needs. Fails the test on an error.
void WriteWeightsFile(const std::string& path, const WeightsFile& file = {});

// The output of the encoder in a file for drawn inputs, or for these [tokens, d_model]; empty, and
// the test fails, where there is none. Without a precision: as the file says.
std::vector<float> OutputOfFile(const std::string& path, const std::vector<float>& x = {});
std::vector<float> OutputOfFile(const std::string& path, Precision precision,
                                const std::vector<MatrixOfLayer>& keep = {},
                                const std::vector<float>& x = {});

// |y - exact|^2 / |exact|^2.
double RelativeSquare(const std::vector<float>& y, const std::vector<float>& exact);

}  // namespace encore

#endif  // ENCORE_TESTS_SUPPORT_WEIGHTS_FILE_H_
