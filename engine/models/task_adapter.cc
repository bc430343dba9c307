// SPDX-License-Identifier: Apache-2.0
//
// Adapters for tasks: which a folder has, and how they are added to a matrix.

#include "engine/models/task_adapter.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/models/config_keys.h"
#include "engine/platform/fp_env.h"

namespace encore::inline v0_1::internal {
namespace {

constexpr std::string_view kAdapterConfig = "adapter_config.json";
constexpr std::string_view kAdapterFile = "adapter_model.safetensors";

// Folders are named "retrieval_query".
std::string FolderOf(std::string_view task) {
  std::string name(task);
  std::replace(name.begin(), name.end(), '.', '_');
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::string AdapterFile(std::string_view task, std::string_view name) {
  return FolderOf(task) + "/" + std::string(name);
}

Result<std::vector<std::string>> TasksOf(const Folder& folder, const ModelSpec& spec) {
  if (spec.tasks.in_file) return spec.tasks.names;
  std::vector<std::string> names;
  for (const std::string& name : spec.tasks.names) {
    ENCORE_ASSIGN_OR_RETURN(const bool is_there, folder.Has(AdapterFile(name, kAdapterConfig)));
    if (is_there) names.push_back(name);
  }
  return names;
}

std::string List(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + Quoted(name);
  return all;
}

struct PeftSettings {
  size_t rank = 0;
  double scale = 0;
};

// What PEFT's LoRA may be set to beside rank and alpha changes what is computed.
Result<PeftSettings> ReadPeftConfig(const Folder& folder, const std::string& file) {
  ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> json, folder.ReadJson(file));
  if (!json) {
    return Status(ErrorCode::kNotFound, "there is no file " + QuotedPath(folder.PathOf(file)));
  }
  static constexpr SupportedValue kSupported[] = {
      {"bias", std::string_view("none")},
      {"fan_in_fan_out", false},
      {"use_dora", false},
      {"lora_bias", false},
      {"rank_pattern", {}},
      {"alpha_pattern", {}},
      {"layers_to_transform", {}},
      {"layer_replication", {}},
      {"use_qalora", false},
      {"modules_to_save", {}},
      {"target_parameters", {}},
      {"trainable_token_indices", {}},
  };
  JsonMembers members(*json, file);
  const std::string type = members.RequiredString("peft_type");
  const size_t rank = members.RequiredSize("r");
  const double alpha = members.Number("lora_alpha", 8);
  const bool by_root = members.Bool("use_rslora", false);
  if (type != "LORA") members.Refuse("peft_type", "'LORA'");
  if (rank == 0) members.Refuse("r", "at least 1");
  if (!std::isfinite(alpha)) members.Refuse("lora_alpha", "a number");
  ENCORE_RETURN_IF_ERROR(members.status());
  for (const SupportedValue& supported : kSupported) {
    if (const JsonValue* value = members.Find(supported.key)) {
      ENCORE_RETURN_IF_ERROR(CheckSupported(file, supported, *value));
    }
  }
  const auto ranks = static_cast<double>(rank);
  return PeftSettings{rank, alpha / (by_root ? std::sqrt(ranks) : ranks)};
}

// The names of transformers' modules, which PEFT's files have, of a module of the family's. A
// matrix of queries, keys and values is three there.
std::vector<std::string> PeftModules(std::string_view module) {
  std::string name(module);
  const auto replace = [&](std::string_view from, std::string_view to) {
    const size_t at = name.find(from);
    if (at != std::string::npos) name.replace(at, from.size(), to);
    return at != std::string::npos;
  };
  replace("encoder.layers.", "layers.");
  replace("mixer.out_proj", "self_attn.o_proj");
  const std::string whole = name;
  if (!replace("mixer.Wqkv", "self_attn.q_proj")) return {name};
  std::vector<std::string> three = {name};
  for (const char* const one : {"k_proj", "v_proj"}) {
    name = whole;
    replace("mixer.Wqkv", std::string("self_attn.") + one);
    three.push_back(name);
  }
  return three;
}

Result<Tensor> ReadShaped(const SafetensorsFile& file, const std::string& name,
                          const Shape& wanted) {
  const SafetensorsEntry* entry = file.Find(name);
  if (entry == nullptr || !(entry->shape == wanted)) {
    return InvalidArgument(file.name() + ": tensor " + Quoted(name) + ": found " +
                           (entry == nullptr ? "none" : "shape " + entry->shape.ToString()) +
                           "; wanted " + wanted.ToString());
  }
  return file.ReadAsF32(name);
}

// The task's part of a bank's tensor.
Result<Tensor> Slice(const Tensor& bank, size_t index) {
  const ConstView all = bank.View<float>();
  const Shape shape(all.dim(1), all.dim(2));
  ENCORE_ASSIGN_OR_RETURN(Tensor one, Tensor::Create(DType::kF32, shape));
  const size_t count = all.dim(1) * all.dim(2);
  std::copy_n(all.data() + index * count, count, one.View<float>().data());
  return one;
}

Result<Tensor> Transposed(const Tensor& tensor) {
  const ConstView in = tensor.View<float>();
  ENCORE_ASSIGN_OR_RETURN(Tensor out, Tensor::Create(DType::kF32, {in.dim(1), in.dim(0)}));
  float* to = out.View<float>().data();
  for (size_t r = 0; r < in.dim(0); ++r) {
    for (size_t c = 0; c < in.dim(1); ++c) to[c * in.dim(0) + r] = in.data()[r * in.dim(1) + c];
  }
  return out;
}

}  // namespace

float LowRankRows::Add(float value, size_t row, size_t column) const {
  const ConstView left = a.View<float>(), right = b.View<float>();
  const size_t rank = left.dim(1), width = right.dim(1);
  double sum = 0;
  for (size_t r = 0; r < rank; ++r) {
    sum += static_cast<double>(left.data()[row * rank + r]) * right.data()[r * width + column];
  }
  return static_cast<float>(static_cast<double>(value) + scale * sum);
}

Result<std::optional<TaskAdapter>> TaskAdapter::Open(const Folder& folder, const WeightFiles& files,
                                                     const ModelSpec& spec, std::string_view task,
                                                     std::vector<Decision>* decisions) {
  ENCORE_ASSIGN_OR_RETURN(const std::vector<std::string> names, TasksOf(folder, spec));
  if (task.empty()) {
    if (!names.empty()) {
      decisions->push_back(
          {"task", "none, without an adapter; there are " + List(names), "default"});
    }
    return std::optional<TaskAdapter>();
  }
  const auto found = std::find_if(names.begin(), names.end(), [&](const std::string& name) {
    return FolderOf(name) == FolderOf(task);
  });
  if (found == names.end()) {
    return InvalidArgument(
        "task is " + Quoted(task) + "; " +
        (names.empty() ? "the folder has no adapters for tasks" : "wanted one of " + List(names)));
  }
  TaskAdapter adapter;
  adapter.task_ = *found;
  if (spec.tasks.in_file) {
    adapter.bank_ = files;
    adapter.tasks_ = names.size();
    adapter.index_ = static_cast<size_t>(found - names.begin());
    adapter.rank_ = spec.tasks.rank;
    adapter.scale_ = spec.tasks.scale;
    decisions->push_back({"task", *found + ", by its adapter", "option task"});
    return std::optional(std::move(adapter));
  }
  ENCORE_ASSIGN_OR_RETURN(const PeftSettings settings,
                          ReadPeftConfig(folder, AdapterFile(*found, kAdapterConfig)));
  adapter.rank_ = settings.rank;
  adapter.scale_ = settings.scale;
  ENCORE_ASSIGN_OR_RETURN(SafetensorsFile file,
                          SafetensorsFile::Open(folder.PathOf(AdapterFile(*found, kAdapterFile))));
  constexpr std::string_view kPrefixes[] = {"base_model.model.roberta.", "base_model.model.model.",
                                            "base_model.model."};
  for (const std::string_view prefix : kPrefixes) {
    const auto& tensors = file.tensors();
    if (!adapter.prefix_.empty() || tensors.empty()) continue;
    if (std::all_of(tensors.begin(), tensors.end(),
                    [&](const auto& entry) { return entry.name.starts_with(prefix); })) {
      adapter.prefix_ = prefix;
    }
  }
  adapter.peft_ = std::move(file);
  decisions->push_back(
      {"task", *found + ", by its adapter", "option task, " + AdapterFile(*found, kAdapterFile)});
  return std::optional(std::move(adapter));
}

Result<Tensor> TaskAdapter::ReadBank(const std::string& name, const Shape& wanted) {
  const WeightFiles::Found found = bank_->Find(name);
  if (found.tensor == nullptr) {
    return InvalidArgument(bank_->name() + ": tensor " + Quoted(name) + ": found none; wanted " +
                           wanted.ToString());
  }
  ENCORE_ASSIGN_OR_RETURN(const Tensor all, ReadShaped(*found.file, name, wanted));
  return Slice(all, index_);
}

Result<Tensor> TaskAdapter::ReadPeft(const std::string& name, const Shape& wanted) {
  used_.insert(name);
  return ReadShaped(*peft_, name, wanted);
}

Status TaskAdapter::AddPeft(const std::string& module, size_t first, size_t rows, size_t columns,
                            std::vector<Part>* parts) {
  const std::string a_name = prefix_ + module + ".lora_A.weight";
  const std::string b_name = prefix_ + module + ".lora_B.weight";
  if (peft_->Find(a_name) == nullptr && peft_->Find(b_name) == nullptr) return {};
  Part part{.first = first, .a = {}, .b = {}};
  ENCORE_ASSIGN_OR_RETURN(part.a, ReadPeft(a_name, {rank_, columns}));
  ENCORE_ASSIGN_OR_RETURN(part.b, ReadPeft(b_name, {rows, rank_}));
  parts->push_back(std::move(part));
  return {};
}

Result<std::vector<TaskAdapter::Part>> TaskAdapter::PartsOf(std::string_view module,
                                                            const std::string& full_name,
                                                            size_t rows, size_t columns) {
  std::vector<Part> parts;
  if (bank_) {
    Part part;
    const std::string base = full_name + ".parametrizations.weight.0.lora_";
    ENCORE_ASSIGN_OR_RETURN(part.a, ReadBank(base + "A", {tasks_, rank_, columns}));
    ENCORE_ASSIGN_OR_RETURN(part.b, ReadBank(base + "B", {tasks_, rows, rank_}));
    parts.push_back(std::move(part));
    return parts;
  }
  const std::vector<std::string> modules = PeftModules(module);
  for (size_t i = 0; i < modules.size(); ++i) {
    const size_t some = rows / modules.size();
    ENCORE_RETURN_IF_ERROR(AddPeft(modules[i], i * some, some, columns, &parts));
  }
  return parts;
}

Status TaskAdapter::Merge(std::string_view module, const std::string& full_name, Tensor* weight) {
  const size_t rows = weight->shape()[0], columns = weight->shape()[1];
  ENCORE_ASSIGN_OR_RETURN(const std::vector<Part> parts, PartsOf(module, full_name, rows, columns));
  const FpEnvScope default_modes;
  std::vector<double> sums(columns);
  for (const Part& part : parts) {
    const ConstView a = part.a.View<float>(), b = part.b.View<float>();
    for (size_t o = 0; o < b.dim(0); ++o) {
      std::fill(sums.begin(), sums.end(), 0.0);
      for (size_t r = 0; r < rank_; ++r) {
        const double factor = b.data()[o * rank_ + r];
        const float* row = a.data() + r * columns;
        for (size_t i = 0; i < columns; ++i) sums[i] += factor * row[i];
      }
      float* out = weight->View<float>().data() + (part.first + o) * columns;
      for (size_t i = 0; i < columns; ++i) out[i] = static_cast<float>(out[i] + scale_ * sums[i]);
    }
  }
  return {};
}

Result<LowRankRows> TaskAdapter::RowsOf(std::string_view module, const std::string& full_name,
                                        size_t words, size_t width) {
  LowRankRows rows;
  rows.scale = scale_;
  if (bank_) {
    const std::string base = full_name + ".parametrizations.weight.0.lora_";
    ENCORE_ASSIGN_OR_RETURN(rows.a, ReadBank(base + "A", {tasks_, words, rank_}));
    ENCORE_ASSIGN_OR_RETURN(rows.b, ReadBank(base + "B", {tasks_, rank_, width}));
    return rows;
  }
  const std::string base = prefix_ + std::string(module) + ".lora_embedding_";
  if (peft_->Find(base + "A") == nullptr && peft_->Find(base + "B") == nullptr) return rows;
  ENCORE_ASSIGN_OR_RETURN(const Tensor a, ReadPeft(base + "A", {rank_, words}));
  ENCORE_ASSIGN_OR_RETURN(const Tensor b, ReadPeft(base + "B", {width, rank_}));
  ENCORE_ASSIGN_OR_RETURN(rows.a, Transposed(a));
  ENCORE_ASSIGN_OR_RETURN(rows.b, Transposed(b));
  return rows;
}

Status TaskAdapter::CheckUsed() const {
  if (!peft_) return {};
  for (const SafetensorsEntry& entry : peft_->tensors()) {
    if (used_.contains(entry.name) || entry.name.starts_with(prefix_ + "pooler.")) continue;
    return Status(ErrorCode::kUnsupported,
                  peft_->name() + ": tensor " + Quoted(entry.name) +
                      ": no module of the model has it; wanted lora_A and lora_B of linear layers, "
                      "lora_embedding_A and lora_embedding_B of embeddings");
  }
  return {};
}

std::string TaskAdapter::Identity() const {
  std::string own = "task " + task_;
  if (!peft_) return own;
  const std::string file = peft_->identity();
  return file.empty() ? "" : own + file;
}

}  // namespace encore::internal
