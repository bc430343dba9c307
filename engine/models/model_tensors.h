// SPDX-License-Identifier: Apache-2.0
//
// Tensors by the names of a family: finds them under any of its prefixes and under the names of
// older files, checks type and shape, and knows which were never asked for.

#ifndef ENCORE_ENGINE_MODELS_MODEL_TENSORS_H_
#define ENCORE_ENGINE_MODELS_MODEL_TENSORS_H_

#include <deque>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "encore/encoder.h"
#include "encore/ops.h"
#include "encore/safetensors.h"
#include "encore/status.h"
#include "encore/tensor.h"
#include "engine/models/family.h"
#include "engine/models/task_adapter.h"
#include "engine/models/weight_files.h"

namespace encore::inline v0_1::internal {

// A LayerNorm in F32.
struct LoadedNorm {
  Status Apply(MutableView x) const {
    return LayerNorm(x, weight.View<float>(), bias.View<float>(), epsilon, x);
  }

  Tensor weight = {};  // [width]
  Tensor bias = {};    // [width], or none
  double epsilon = 0;
};

// Views and entries are valid as long as a copy of the files is.
class ModelTensors {
 public:
  // The base model's prefix is that one of the spec's under which the file has the table of words,
  // by its name or its alias. kInvalidArgument if it has it under none or under several.
  static Result<ModelTensors> Create(const WeightFiles& files, const ModelSpec& spec);

  // The name of the base model's tensor in the file: with the prefix before it.
  std::string Base(std::string_view name) const { return prefix_ + std::string(name); }

  // By the name in the file, the name that older files have for it, or the alias of the table of
  // words; null if there is none.
  const SafetensorsEntry* Find(std::string_view name) const { return Lookup(name).tensor; }
  // Why there is no matrix `name`, where the table of words is not in its place.
  Status NotTied(std::string_view name) const;
  // A view of the file. kInvalidArgument names the file, the tensor, what was found and what was
  // wanted: it is missing, has another shape, or no floats.
  Result<WeightView> View(std::string_view name, const Shape& wanted);
  // The same of a matrix, which may be I8.
  Result<WeightView> ViewMatrix(std::string_view name, const Shape& wanted);
  // The same of the matrix of `module`, a name in the base model, with what the adapter adds. That
  // is as valid as this object.
  Result<WeightView> ViewMerged(std::string_view module, const Shape& wanted);
  // The same of a convolution [width, width / groups, kernel] as a matrix [width, width kernel].
  // Groups are blocks along its diagonal, with zeros around them.
  Result<WeightView> ViewConvolution(std::string_view module, size_t width, size_t groups,
                                     size_t kernel);
  // From here on. It must outlive the calls.
  void UseAdapter(TaskAdapter* adapter) { adapter_ = adapter; }
  TaskAdapter* adapter() const { return adapter_; }
  // The same as a copy in F32.
  Result<Tensor> Read(std::string_view name, const Shape& wanted);
  // The same of a module's `name`.weight and, if it has one, `name`.bias.
  Result<LoadedNorm> ReadNorm(const std::string& name, size_t width, double epsilon, bool has_bias);
  Result<PackedLinear> ReadLinear(const std::string& name, size_t outputs, size_t inputs,
                                  bool has_bias);

  // What was never viewed or read, without the family's harmless tensors.
  std::vector<std::string> Unused(const Family& family) const;
  // "F32", or "F16 and F32": of all that was viewed or read.
  std::string Types() const;
  const WeightFiles& files() const { return files_; }

 private:
  explicit ModelTensors(WeightFiles files) : files_(std::move(files)) {}
  WeightFiles::Found Lookup(std::string_view name) const;
  Result<WeightFiles::Found> Require(std::string_view name, const Shape& wanted,
                                     bool may_be_int8 = false);

  WeightFiles files_;
  std::string prefix_;
  std::string word_, word_alias_;  // names in the file
  std::set<std::string, std::less<>> used_;
  std::set<DType> types_;
  bool has_bank_ = false;  // matrices have the names of a bank of adapters
  TaskAdapter* adapter_ = nullptr;
  std::deque<Tensor> merged_;
};

// Sets the layers' rotary frequencies where the file has them (Family::frequencies).
Status ReadFrequencies(ModelTensors* tensors, ModelSpec* spec);

// Views of the layers' weights by the spec's names, with shapes checked against its configuration.
Result<EncoderWeights> ViewLayers(const ModelSpec& spec, ModelTensors* tensors);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_MODELS_MODEL_TENSORS_H_
