// SPDX-License-Identifier: Apache-2.0
//
// Errors as exceptions, texts and arrays of Python as encore's views.

#include "python/src/bindings.h"

namespace pyencore {
namespace {

nb::object ExceptionOf(encore::ErrorCode code) {
  const char* name = "UnsupportedError";
  switch (code) {
    case encore::ErrorCode::kOk:
    case encore::ErrorCode::kInvalidArgument:
      return nb::borrow(PyExc_ValueError);
    case encore::ErrorCode::kNotFound:
      return nb::borrow(PyExc_FileNotFoundError);
    case encore::ErrorCode::kIo:
      return nb::borrow(PyExc_OSError);
    case encore::ErrorCode::kOutOfMemory:
      return nb::borrow(PyExc_MemoryError);
    case encore::ErrorCode::kCorruptData:
      name = "CorruptDataError";
      break;
    case encore::ErrorCode::kUnsupported:
      break;
  }
  return nb::module_::import_("pyencore._errors").attr(name);
}

}  // namespace

void Raise(const encore::Status& status) {
  const nb::object type = ExceptionOf(status.code());
  PyErr_SetString(type.ptr(), status.message().c_str());
  throw nb::python_error();
}

encore::Shape ShapeOf(const size_t* extents, size_t rank) {
  return Take(encore::Shape::Create(extents, rank));
}

std::string_view Utf8(nb::handle text, const char* name) {
  if (!PyUnicode_Check(text.ptr())) {
    const nb::str type = nb::str(text.type().attr("__name__"));
    PyErr_Format(PyExc_TypeError, "%s is of type %U; wanted str", name, type.ptr());
    throw nb::python_error();
  }
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (data == nullptr) throw nb::python_error();
  return {data, static_cast<size_t>(size)};
}

std::vector<std::string_view> Utf8OfRange(const TextList& texts, size_t begin, size_t end) {
  if (end > texts.size() || begin > end) {
    Raise(encore::InvalidArgument("found texts " + std::to_string(begin) + " to " +
                                  std::to_string(end) + " of " + std::to_string(texts.size())));
  }
  std::vector<std::string_view> views;
  views.reserve(end - begin);
  for (size_t i = begin; i < end; ++i) {
    const nb::handle text = texts[i];
    if (PyUnicode_Check(text.ptr())) {
      views.push_back(Utf8(text, ""));
    } else {
      Utf8(text, ("inputs[" + std::to_string(i) + "]").c_str());
    }
  }
  return views;
}

DecisionList DecisionsOf(const std::vector<encore::Decision>& decisions) {
  DecisionList list;
  for (const encore::Decision& decision : decisions) {
    list.append(nb::make_tuple(nb::str(decision.what.c_str(), decision.what.size()),
                               nb::str(decision.value.c_str(), decision.value.size()),
                               nb::str(decision.source.c_str(), decision.source.size())));
  }
  return list;
}

}  // namespace pyencore
