// SPDX-License-Identifier: Apache-2.0
//
// An adapter for a task (LoRA, Hu et al. 2021, arXiv:2106.09685): what is added to a model's
// matrices, W + scale B A, for instance for "retrieval.query" of Jina v3. Two kinds of files have
// them. A bank is in the model's own file, all tasks of a matrix in one tensor, as
// torch.nn.utils.parametrize names them:
//   X.parametrizations.weight.original  W
//   X.parametrizations.weight.0.lora_A  [tasks, rank, in], of embeddings [tasks, words, rank]
//   X.parametrizations.weight.0.lora_B  [tasks, out, rank], of embeddings [tasks, rank, width]
// PEFT's folders, one for each task, have
//   X.lora_A.weight [rank, in], X.lora_B.weight [out, rank]
//   X.lora_embedding_A [rank, words], X.lora_embedding_B [width, rank]

#ifndef ENCORE_ENGINE_MODELS_TASK_ADAPTER_H_
#define ENCORE_ENGINE_MODELS_TASK_ADAPTER_H_

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "encore/safetensors.h"
#include "encore/status.h"
#include "encore/tensor.h"
#include "encore/tokenizer.h"
#include "engine/io/folder.h"
#include "engine/models/family.h"
#include "engine/models/weight_files.h"

namespace encore::inline v0_1::internal {

// What the rows of a table of embeddings get: row v gets scale a[v] b.
struct LowRankRows {
  Tensor a;  // F32 [words, rank]; empty: nothing is added
  Tensor b;  // F32 [rank, width]
  double scale = 0;

  bool empty() const { return a.size_bytes() == 0; }
  // `value` of a row's column with what is added, rounded once.
  float Add(float value, size_t row, size_t column) const;
};

class TaskAdapter {
 public:
  // Nothing where `task` is empty. kInvalidArgument for an unknown task, which lists
  // those that it has; kUnsupported for an adapter that computes something else.
  static Result<std::optional<TaskAdapter>> Open(const Folder& folder, const WeightFiles& files,
                                                 const ModelSpec& spec, std::string_view task,
                                                 std::vector<Decision>* decisions);

  // Adds to weight, F32 [out, in]: computed in double and rounded once. `module` is the name in the
  // base model, `full_name` that in the file.
  Status Merge(std::string_view module, const std::string& full_name, Tensor* weight);
  // The same of a table of embeddings [words, width].
  Result<LowRankRows> RowsOf(std::string_view module, const std::string& full_name, size_t words,
                             size_t width);
  // kUnsupported where the adapter has a tensor that nothing asked for, but for the pooler's.
  Status CheckUsed() const;
  // For PackedCache::identity; empty if it has none.
  std::string Identity() const;

 private:
  // rows [first, first + b.dim(0)) of a matrix get scale b a.
  struct Part {
    size_t first = 0;
    Tensor a, b;  // F32 [rank, in], [rows, rank]
  };
  TaskAdapter() = default;
  Result<Tensor> ReadBank(const std::string& name, const Shape& wanted);
  Result<Tensor> ReadPeft(const std::string& name, const Shape& wanted);
  Status AddPeft(const std::string& module, size_t first, size_t rows, size_t columns,
                 std::vector<Part>* parts);
  Result<std::vector<Part>> PartsOf(std::string_view module, const std::string& full_name,
                                    size_t rows, size_t columns);

  std::string task_;
  double scale_ = 0;
  size_t rank_ = 0;
  std::optional<WeightFiles> bank_;  // or a file of PEFT's
  size_t tasks_ = 0, index_ = 0;     // of a bank
  std::optional<SafetensorsFile> peft_;
  std::string prefix_;  // of PEFT's names
  std::set<std::string> used_;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_MODELS_TASK_ADAPTER_H_
