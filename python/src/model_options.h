// SPDX-License-Identifier: Apache-2.0
//
// Options by their names, and encore's tensors as numpy arrays.

#ifndef ENCORE_PYTHON_SRC_MODEL_OPTIONS_H_
#define ENCORE_PYTHON_SRC_MODEL_OPTIONS_H_

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "encore/precision.h"
#include "encore/text_encoder.h"
#include "python/src/bindings.h"
#include "python/src/without_gil.h"

namespace pyencore {

// ValueError names the modes.
encore::PoolingMode PoolingFromName(const std::string& name);
// "0.linear1": a layer, counted from 0, and qkv, out_proj, linear1 or linear2. ValueError.
encore::MatrixOfLayer MatrixFromName(const std::string& name);

// __init__ of a class that is made of a folder, a number of threads and options.
template <typename Model>
void BindOpen(nb::class_<Model>& model) {
  const auto open = [](Model* self, const std::string& folder,
                       const std::optional<std::string>& compute, int threads,
                       const std::vector<std::string>& keep, std::optional<size_t> max_length,
                       const std::vector<std::string>& pooling, std::optional<bool> normalize,
                       bool ignore_unknown_keys, bool language_head, const std::string& cache,
                       bool compare_cache, bool trust_cache, const std::string& task) {
    encore::OpenOptions options;
    options.ignore_unknown_keys = ignore_unknown_keys;
    options.language_head = language_head;
    options.task = task;
    options.cache = cache;
    options.compare_cache = compare_cache;
    options.trust_cache = trust_cache;
    options.max_length = max_length;
    options.normalize = normalize;
    for (const std::string& name : pooling) options.pooling.push_back(PoolingFromName(name));
    if (compute) options.precision = Take(encore::PrecisionFromName(*compute));
    for (const std::string& name : keep) options.keep.push_back(MatrixFromName(name));
    new (self) Model(folder, threads, options);
  };
  model.def("__init__", open, nb::arg("folder"), nb::arg("compute").none(), nb::arg("threads"),
            nb::arg("keep"), nb::arg("max_length").none(), nb::arg("pooling"),
            nb::arg("normalize").none(), nb::arg("ignore_unknown_keys"), nb::arg("language_head"),
            nb::arg("cache"), nb::arg("compare_cache"), nb::arg("trust_cache"), nb::arg("task"));
}

// What a model's memory is, and making it ready for calls on the model's threads.
template <typename Model>
void BindMemory(nb::class_<Model>& bound) {
  bound.def(
      "prepare",
      [](const Model& model, size_t max_tokens) {
        const encore::Executor executor = model.executor();
        Check(WithoutGil([&] { return model.model().Prepare(max_tokens, executor); }));
      },
      nb::arg("max_tokens"));
  bound.def("trim_memory", [](const Model& model) { model.model().TrimMemory(); });
  bound.def("memory", [](const Model& model) {
    const encore::ModelMemory found = model.model().Memory();
    return nb::make_tuple(found.mapped, found.packed, found.tables, found.scratch);
  });
}

// A numpy array that owns the tensor's memory, nothing copied. T is the tensor's type (of BF16 its
// bits), rank 1 or more.
template <typename T = float>
nb::ndarray<nb::numpy, T> ArrayOf(encore::Tensor tensor) {
  auto owner = std::make_unique<encore::Tensor>(std::move(tensor));
  std::array<size_t, encore::Shape::kMaxRank> shape{};
  const size_t rank = owner->shape().rank();
  for (size_t i = 0; i < rank; ++i) shape[i] = owner->shape()[i];
  void* data = owner->data();
  const nb::capsule capsule(owner.get(),
                            [](void* p) noexcept { delete static_cast<encore::Tensor*>(p); });
  owner.release();
  return nb::ndarray<nb::numpy, T>(data, rank, shape.data(), capsule);
}
using Array = nb::ndarray<nb::numpy, float>;

// A numpy array that owns the numbers.
template <typename T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> ArrayOfVector(std::vector<T> numbers) {
  auto kept = std::make_unique<std::vector<T>>(std::move(numbers));
  std::vector<T>& owned = *kept;
  const nb::capsule owner(kept.get(),
                          [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  kept.release();
  return nb::ndarray<nb::numpy, T, nb::ndim<1>>(owned.data(), {owned.size()}, owner);
}

}  // namespace pyencore

#endif  // ENCORE_PYTHON_SRC_MODEL_OPTIONS_H_
