// SPDX-License-Identifier: Apache-2.0
//
// Weights for commands that write them again. The tensors of a file in another precision: the
// numbers that packing would make of them, one tensor at a time; which tensors are matrices of an
// encoder's layers; and the folder of a model, written again with other tensors.

#ifndef ENCORE_TOOLS_ENCORE_CONVERTED_TENSORS_H_
#define ENCORE_TOOLS_ENCORE_CONVERTED_TENSORS_H_

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "encore/encoder.h"
#include "encore/executor.h"
#include "encore/safetensors.h"
#include "engine/io/safetensors_stream.h"
#include "engine/models/family.h"
#include "engine/models/model_tensors.h"
#include "engine/models/weight_files.h"
#include "engine/nn/prepared_encoder.h"
#include "engine/ops/weight_source.h"

namespace encore::tool {

struct MatrixTensor {
  size_t index;  // in PreparedEncoder::matrices
  bool first;    // of the tensors that are packed into this matrix
};

class MatrixTensors {
 public:
  // Throws Failure where two places of the encoder have one tensor, unless they may.
  explicit MatrixTensors(const EncoderWeights& weights, bool may_share = false);
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
  std::set<std::string> embeddings = {};  // names of tables in the files
};

struct ConversionSettings {
  Precision precision = Precision::kInt8;  // of matrices; kF32: they stay as they are
  std::vector<MatrixOfLayer> keep = {};    // of kInt8: bf16 instead
  std::optional<DType> embeddings = {};    // F32, F16, BF16 or I8; else they stay as they are
  Executor executor = {};
};

// Tensors of one kind, before and after.
struct ConvertedKind {
  size_t tensors = 0;  // before
  size_t bytes_before = 0;
  size_t bytes_after = 0;
  std::map<DType, size_t> types = {};  // how many tensors have which after
};

struct ConversionSizes {
  ConvertedKind matrices, embeddings, others;
  size_t scale_bytes = 0;  // new: of integers' rows, and of smoothed inputs
};

// All tensors of the files in their order. A matrix of the encoder becomes BF16; or I8, with its
// row scales behind it and, where packing smooths its inputs and the file has no scales for that,
// theirs. A table of embeddings becomes what the settings say, I8 with its row scales behind it.
// The others stay as they are.
class ConvertedTensors {
 public:
  // Finds smoothing. Throws Failure: a matrix or a table is I8 already, or two layers share it.
  ConvertedTensors(ConversionSource source, const ConversionSettings& settings);
  ConvertedTensors(const ConvertedTensors&) = delete;
  ConvertedTensors& operator=(const ConvertedTensors&) = delete;

  // They read this object. An error names the tensor and the row that has a number which is not
  // finite, or is none in bf16 or f16.
  const std::vector<internal::StreamedTensor>& tensors() const { return tensors_; }
  const ConversionSizes& sizes() const { return sizes_; }

 private:
  // `put` gives the tensor's bytes to the sink; then the files' pages are given back.
  void Add(const std::string& name, DType type, const Shape& shape,
           std::function<Status(const internal::ByteSink& sink)> put);
  void AddMatrix(const SafetensorsEntry& entry, const MatrixTensor& matrix);
  void AddIntegers(const SafetensorsEntry& entry, const internal::WeightSource& rows);
  void AddTable(const SafetensorsEntry& entry, DType type);

  ConversionSource source_;
  internal::PreparedEncoder prepared_;
  std::vector<internal::StreamedTensor> tensors_;
  ConversionSizes sizes_;
};

// ---- Folders (weights_folder.cc) ----------------------------------------------------------------

struct WeightsFolder {
  internal::ModelSpec config;
  internal::WeightFiles files;
  internal::ModelTensors tensors;
  EncoderWeights weights;                 // views of the files
  SafetensorsMetadata metadata;           // of all files
  Precision precision = Precision::kF32;  // that the weights were made for

  // The tables of embeddings, by their names in the files.
  std::set<std::string> EmbeddingNames() const;
};

// Throws Failure, which names the option: what TextEncoder would refuse of the model.
WeightsFolder OpenWeightsFolder(const std::string& path, const std::string& option = "IN");
// The same, and weights that have been converted.
WeightsFolder OpenUnconvertedFolder(const std::string& path);

// Throws Failure where something is at `out`.
void WantNothingAt(const std::string& out);

// Makes the folder `out`: these tensors in one model.safetensors, and copies of all other files of
// `in`. Throws Failure, and then there is no `out`; a signal that ends the process leaves none
// either (new_folder.h).
void WriteWeightsFolder(const std::string& in, const std::string& out, const WeightsFolder& folder,
                        std::span<const internal::StreamedTensor> tensors,
                        const SafetensorsMetadata& metadata);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_CONVERTED_TENSORS_H_
