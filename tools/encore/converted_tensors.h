// SPDX-License-Identifier: Apache-2.0
//
// The tensors of a file of weights in another precision: the numbers that packing would make of
// them, one tensor at a time. Not here: whose files they are (convert.cc).

#ifndef ENCORE_TOOLS_ENCORE_CONVERTED_TENSORS_H_
#define ENCORE_TOOLS_ENCORE_CONVERTED_TENSORS_H_

#include <string>
#include <vector>

#include "encore/encoder.h"
#include "encore/executor.h"
#include "encore/safetensors.h"
#include "engine/io/safetensors_stream.h"
#include "engine/nn/prepared_encoder.h"
#include "tools/encore/matrix_tensors.h"

namespace encore::tool {

// A tensor of the file as it is. Gives the file's pages back when it has been written.
internal::StreamedTensor CopiedTensor(const SafetensorsFile& file, const SafetensorsEntry& entry);

// What is converted: files of tensors, and the encoder whose weights are views of them.
struct ConversionSource {
  std::vector<SafetensorsFile> files;
  EncoderConfig config;
  EncoderWeights weights;
};

struct ConversionSettings {
  Precision precision = Precision::kInt8;  // or kBF16
  std::vector<MatrixOfLayer> keep = {};    // of kInt8: bf16 instead
  Executor executor = {};
};

// All tensors of the files in their order. A matrix of the encoder becomes BF16; or I8, with its
// row scales behind it and, where packing smooths its inputs and the file has no scales for that,
// theirs. The others stay as they are.
class ConvertedTensors {
 public:
  // Finds smoothing. Throws Failure: a matrix is I8 already, or two layers share it.
  ConvertedTensors(ConversionSource source, const ConversionSettings& settings);
  ConvertedTensors(const ConvertedTensors&) = delete;
  ConvertedTensors& operator=(const ConvertedTensors&) = delete;

  // They read this object. An error names the tensor and the row that has a number which is not
  // finite, or is none in bf16.
  const std::vector<internal::StreamedTensor>& tensors() const { return tensors_; }
  size_t matrices() const { return matrices_; }  // how many were converted

 private:
  void AddBf16(const SafetensorsEntry& entry);
  void AddInt8(const SafetensorsEntry& entry, const MatrixTensor& matrix);

  ConversionSource source_;
  internal::PreparedEncoder prepared_;
  std::vector<internal::StreamedTensor> tensors_;
  size_t matrices_ = 0;
};

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_CONVERTED_TENSORS_H_
