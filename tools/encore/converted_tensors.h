// SPDX-License-Identifier: Apache-2.0
//
// Weights for commands that write them again. The tensors of a file in another precision: the
// numbers that packing would make of them, one tensor at a time; which tensors are matrices of an
// encoder's layers; and the folder of a model, written again with other tensors. Not here: the
// commands (convert.cc, calibrate.cc), computing with a model (engine/models/text_model.h).

#ifndef ENCORE_TOOLS_ENCORE_CONVERTED_TENSORS_H_
#define ENCORE_TOOLS_ENCORE_CONVERTED_TENSORS_H_

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "encore/encoder.h"
#include "encore/executor.h"
#include "encore/safetensors.h"
#include "engine/io/safetensors_stream.h"
#include "engine/models/model_config.h"
#include "engine/models/model_tensors.h"
#include "engine/models/weight_files.h"
#include "engine/nn/prepared_encoder.h"

namespace encore::tool {

struct MatrixTensor {
  size_t index;  // 4 * layer + LayerMatrix
  bool first;    // of the tensors that are packed into this matrix
};

class MatrixTensors {
 public:
  // Throws Failure where two places of the encoder have one tensor.
  explicit MatrixTensors(const EncoderWeights& weights);
  // Null for what is no matrix.
  const MatrixTensor* Find(const SafetensorsEntry& entry) const;

 private:
  std::map<const void*, MatrixTensor> by_address_;
};

// Names of scales beside a matrix: linear1.weight has linear1.weight_scale and linear1.input_scale.
std::string RowScaleName(const std::string& weight);
std::string InputScaleName(const std::string& weight);

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
  // `put` gives the tensor's bytes to the sink; then the files' pages are given back.
  void Add(const std::string& name, DType type, const Shape& shape,
           std::function<Status(const internal::ByteSink& sink)> put);
  void AddInt8(const SafetensorsEntry& entry, const MatrixTensor& matrix);

  ConversionSource source_;
  internal::PreparedEncoder prepared_;
  std::vector<internal::StreamedTensor> tensors_;
  size_t matrices_ = 0;
};

// ---- Folders (weights_folder.cc) ----------------------------------------------------------------

struct WeightsFolder {
  internal::ModelConfig config;
  internal::WeightFiles files;
  internal::ModelTensors tensors;
  EncoderWeights weights;        // views of the files
  SafetensorsMetadata metadata;  // of all files
};

// Throws Failure: what TextEncoder would refuse of the model, and weights that have been converted.
WeightsFolder OpenWeightsFolder(const std::string& path);

// Throws Failure where something is at `out`.
void WantNothingAt(const std::string& out);

// Makes the folder `out`: these tensors in one model.safetensors, and copies of all other files of
// `in`. Throws Failure, and then there is no `out`.
void WriteWeightsFolder(const std::string& in, const std::string& out, const WeightsFolder& folder,
                        std::span<const internal::StreamedTensor> tensors,
                        const SafetensorsMetadata& metadata);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_CONVERTED_TENSORS_H_
