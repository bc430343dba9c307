// SPDX-License-Identifier: Apache-2.0
//
// What the files of the compiled module share: one function each that adds its classes, errors as
// Python exceptions, and arrays as encore's views.

#ifndef ENCORE_PYTHON_SRC_BINDINGS_H_
#define ENCORE_PYTHON_SRC_BINDINGS_H_

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "encore/status.h"
#include "encore/tensor.h"
#include "encore/tokenizer.h"

namespace pyencore {

namespace nb = nanobind;

void BindMachine(nb::module_& module);
void BindTextEncoder(nb::module_& module);
void BindWatch(nb::module_& module);
void BindMultiVectorEncoder(nb::module_& module);
void BindImageEncoder(nb::module_& module);
void BindTokenizer(nb::module_& module);
void BindEncoder(nb::module_& module);
void BindOps(nb::module_& module);

// Raises the exception of the Status's code with its sentence (pyencore/_errors.py has the
// classes). The caller has the GIL.
[[noreturn]] void Raise(const encore::Status& status);

inline void Check(const encore::Status& status) {
  if (!status.ok()) Raise(status);
}

template <typename T>
T Take(encore::Result<T> result) {
  if (!result.ok()) Raise(result.status());
  return *std::move(result);
}

// Arrays of any strides: read (converted from other types where needed), and written in place.
using FloatsIn = nb::ndarray<const float, nb::device::cpu>;
using FloatsOut = nb::ndarray<float, nb::device::cpu>;

// ValueError for more axes than a Shape has.
encore::Shape ShapeOf(const size_t* extents, size_t rank);

template <typename T, typename... Annotations>
encore::TensorView<T> ViewOf(const nb::ndarray<T, Annotations...>& array) {
  encore::Shape shape = ShapeOf(reinterpret_cast<const size_t*>(array.shape_ptr()), array.ndim());
  typename encore::TensorView<T>::Strides strides{};
  for (size_t i = 0; i < array.ndim(); ++i) strides[i] = array.stride(i);
  return encore::TensorView<T>(array.data(), shape, strides);
}

// The UTF-8 of a str, which must outlive it. TypeError with `name` for anything else, ValueError
// for a lone surrogate.
std::string_view Utf8(nb::handle text, const char* name);
using TextList = nb::typed<nb::list, nb::str>;
std::vector<std::string_view> Utf8OfAll(const TextList& texts);
// The same errors for texts that are a part of the caller's: text i is name[first + i], and `part`.
void CheckTexts(const TextList& texts, const std::string& name, size_t first,
                const std::string& part);

// [(what, value, source)].
using DecisionList = nb::typed<nb::list, nb::typed<nb::tuple, nb::str, nb::str, nb::str>>;
DecisionList DecisionsOf(const std::vector<encore::Decision>& decisions);

}  // namespace pyencore

#endif  // ENCORE_PYTHON_SRC_BINDINGS_H_
