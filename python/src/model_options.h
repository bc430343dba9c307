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
#include "python/src/threads.h"
#include "python/src/without_gil.h"

namespace pyencore {

// ValueError names the modes.
encore::PoolingMode PoolingFromName(const std::string& name);
// "0.linear1": a layer, counted from 0, and qkv, out_proj, linear1 or linear2. ValueError.
encore::MatrixOfLayer MatrixFromName(const std::string& name);

// TextEncoder, MultiVectorEncoder or ImageEncoder, with its threads.
template <typename Encoder>
class Opened {
 public:
  Opened(const std::string& folder, int threads, const encore::OpenOptions& options)
      : threads_(threads), model_(Open(folder, options)) {}

  const Encoder& model() const { return model_; }
  encore::Executor executor() const { return Take(threads_.executor()); }
  int threads() const { return threads_.count(); }
  void ForgetAfterFork() { threads_.ForgetAfterFork(); }

 private:
  Encoder Open(const std::string& folder, encore::OpenOptions options) const {
    options.executor = executor();
    return Take(WithoutGil([&] { return Encoder::Open(folder, options); }));
  }

  Threads threads_;
  Encoder model_;
};

// A static model has no matrix products.
template <typename Encoder>
std::string_view PrecisionOf(const Encoder& encoder) {
  if constexpr (requires { encoder.has_encoder(); }) {
    if (!encoder.has_encoder()) return encore::PrecisionName(encore::Precision::kF32);
  }
  return encore::PrecisionName(encoder.encoder().precision());
}

// What all of them have.
template <typename Model>
void BindOpened(nb::class_<Model>& model) {
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
  model
      .def(
          "prepare",
          [](const Model& self, size_t max_tokens) {
            const encore::Executor executor = self.executor();
            Check(WithoutGil([&] { return self.model().Prepare(max_tokens, executor); }));
          },
          nb::arg("max_tokens"))
      .def("trim_memory", [](const Model& self) { self.model().TrimMemory(); })
      .def("memory",
           [](const Model& self) {
             const encore::ModelMemory found = self.model().Memory();
             return nb::make_tuple(found.mapped, found.packed, found.tables, found.scratch);
           })
      .def("forget_after_fork", [](Model& self) { self.ForgetAfterFork(); })
      .def("describe", [](const Model& self) { return DecisionsOf(self.model().Describe()); })
      .def_prop_ro("threads", [](const Model& self) { return self.threads(); })
      .def_prop_ro("dimensions", [](const Model& self) { return self.model().dimensions(); })
      .def_prop_ro("precision", [](const Model& self) { return PrecisionOf(self.model()); });
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
