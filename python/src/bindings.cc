// SPDX-License-Identifier: Apache-2.0
//
// Errors as exceptions, texts and arrays of Python as encore's views.

#include "python/src/bindings.h"

#include <array>
#include <cstdio>

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
    case encore::ErrorCode::kCancelled:
      return nb::module_::import_("concurrent.futures").attr("CancelledError");
    case encore::ErrorCode::kDeadlineExceeded:
      return nb::borrow(PyExc_TimeoutError);
  }
  return nb::module_::import_("pyencore._errors").attr(name);
}

// Turns Python's error about a str without a form in UTF-8 into ours.
[[noreturn]] void RaiseNoUtf8(nb::handle text, const std::string& name) {
  nb::python_error error;
  Py_ssize_t place = 0;
  if (!error.matches(PyExc_UnicodeEncodeError) ||
      PyUnicodeEncodeError_GetStart(error.value().ptr(), &place) != 0) {
    throw error;
  }
  std::array<char, 16> found{};
  std::snprintf(found.data(), found.size(), "U+%04X",
                static_cast<unsigned>(PyUnicode_ReadChar(text.ptr(), place)));
  Raise(encore::InvalidArgument(name + " has a lone surrogate, " + found.data() +
                                ", at character " + std::to_string(place) +
                                "; wanted text that UTF-8 can encode"));
}

// `name` gives the text's name, for an error.
template <typename Name>
std::string_view Utf8Of(nb::handle text, Name name) {
  if (!PyUnicode_Check(text.ptr())) {
    const nb::str type = nb::str(text.type().attr("__name__"));
    PyErr_Format(PyExc_TypeError, "%s is of type %U; wanted str", name().c_str(), type.ptr());
    throw nb::python_error();
  }
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (data == nullptr) RaiseNoUtf8(text, name());
  return {data, static_cast<size_t>(size)};
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
  return Utf8Of(text, [name] { return std::string(name); });
}

std::vector<std::string_view> Utf8OfAll(const TextList& texts) {
  std::vector<std::string_view> views;
  views.reserve(texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    views.push_back(Utf8Of(texts[i], [i] { return "inputs[" + std::to_string(i) + "]"; }));
  }
  return views;
}

void CheckTexts(const TextList& texts, const std::string& name, size_t first,
                const std::string& part) {
  for (size_t i = 0; i < texts.size(); ++i) {
    Utf8Of(texts[i], [&] { return name + "[" + std::to_string(first + i) + "]" + part; });
  }
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
