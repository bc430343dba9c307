// SPDX-License-Identifier: Apache-2.0
//
// Tensors by the names of a family.

#include "engine/models/model_tensors.h"

#include <algorithm>

#include "engine/base/quoted.h"

namespace encore::internal {
namespace {

// The name that files converted from TensorFlow have for a LayerNorm's tensors, or "".
std::string OldName(std::string_view name) {
  constexpr std::string_view kWeight = "LayerNorm.weight";
  constexpr std::string_view kBias = "LayerNorm.bias";
  for (const auto& [now, then] : {std::pair(kWeight, "gamma"), std::pair(kBias, "beta")}) {
    if (!name.ends_with(now)) continue;
    return std::string(name.substr(0, name.rfind('.') + 1)) + then;
  }
  return {};
}

bool IsFloatingPoint(DType type) {
  return type == DType::kF32 || type == DType::kF64 || type == DType::kF16 || type == DType::kBF16;
}

}  // namespace

Result<ModelTensors> ModelTensors::Create(const WeightFiles& files,
                                          std::span<const std::string_view> prefixes,
                                          std::string_view probe) {
  ModelTensors tensors(files);
  bool found = false;
  for (const std::string_view prefix : prefixes) {
    const std::string name = std::string(prefix) + std::string(probe);
    if (files.Find(name).tensor == nullptr) continue;
    if (found) {
      return InvalidArgument(files.name() + ": tensor " + Quoted(name) + ": found also " +
                             Quoted(tensors.Base(probe)) + "; wanted one of them");
    }
    found = true;
    tensors.prefix_ = prefix;
  }
  if (found) return tensors;
  std::string with;
  for (const std::string_view prefix : prefixes) {
    if (!prefix.empty()) with += (with.empty() ? "" : " or ") + Quoted(prefix);
  }
  return InvalidArgument(files.name() + ": tensor " + Quoted(probe) +
                         ": found none; wanted it as such, or after " + with);
}

WeightFiles::Found ModelTensors::Lookup(std::string_view name) const {
  const WeightFiles::Found found = files_.Find(name);
  if (found.tensor != nullptr) return found;
  const std::string old_name = OldName(name);
  return old_name.empty() ? found : files_.Find(old_name);
}

Result<WeightFiles::Found> ModelTensors::Require(std::string_view name, const Shape& wanted,
                                                 bool may_be_int8) {
  const WeightFiles::Found found = Lookup(name);
  if (found.tensor == nullptr) {
    return InvalidArgument(files_.name() + ": tensor " + Quoted(name) + ": found none; wanted " +
                           wanted.ToString());
  }
  const std::string where = found.file->name() + ": tensor " + Quoted(found.tensor->name) + ": ";
  if (!(found.tensor->shape == wanted)) {
    return InvalidArgument(where + "found shape " + found.tensor->shape.ToString() + "; wanted " +
                           wanted.ToString() + ", as config.json has it");
  }
  const DType type = found.tensor->dtype;
  if (!IsFloatingPoint(type) && !(may_be_int8 && type == DType::kI8)) {
    return InvalidArgument(where + "found dtype " + std::string(DTypeName(type)) + "; wanted " +
                           (may_be_int8 ? "F32, F64, F16, BF16 or I8" : "F32, F64, F16 or BF16"));
  }
  used_.insert(found.tensor->name);
  types_.insert(found.tensor->dtype);
  return found;
}

Result<WeightView> ModelTensors::View(std::string_view name, const Shape& wanted) {
  const Result<WeightFiles::Found> found = Require(name, wanted);
  if (!found.ok()) return found.status();
  return found->tensor->View();
}

Result<WeightView> ModelTensors::ViewMatrix(std::string_view name, const Shape& wanted) {
  const Result<WeightFiles::Found> found = Require(name, wanted, /*may_be_int8=*/true);
  if (!found.ok()) return found.status();
  return found->tensor->View();
}

Result<Tensor> ModelTensors::Read(std::string_view name, const Shape& wanted) {
  const Result<WeightFiles::Found> found = Require(name, wanted);
  if (!found.ok()) return found.status();
  return found->file->ReadAsF32(found->tensor->name);
}

std::vector<std::string> ModelTensors::Unused(std::span<const std::string_view> harmless) const {
  std::vector<std::string> names;
  for (const SafetensorsFile& file : files_.files()) {
    for (const SafetensorsEntry& entry : file.tensors()) {
      if (used_.contains(entry.name)) continue;
      const std::string_view name = entry.name;
      const std::string_view in_base =
          name.starts_with(prefix_) ? name.substr(prefix_.size()) : name;
      const bool known = std::any_of(harmless.begin(), harmless.end(), [&](std::string_view start) {
        return name.starts_with(start) || in_base.starts_with(start);
      });
      if (!known) names.push_back(entry.name);
    }
  }
  return names;
}

std::string ModelTensors::Types() const {
  std::string types;
  for (const DType type : types_) {
    types += (types.empty() ? "" : " and ") + std::string(DTypeName(type));
  }
  return types;
}

}  // namespace encore::internal
