// SPDX-License-Identifier: Apache-2.0
//
// JSON as a stream of typed events, and JSON strings. Hides the JSON library from the rest of
// encore and lets no exception out.

#ifndef ENCORE_ENGINE_IO_JSON_H_
#define ENCORE_ENGINE_IO_JSON_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "encore/status.h"

namespace encore::inline v0_1::internal {

// Receives a text's pieces in order. A method that returns false stops the parse.
class JsonVisitor {
 public:
  virtual ~JsonVisitor() = default;
  virtual bool BeginObject() = 0;
  virtual bool Key(const std::string& key) = 0;
  virtual bool EndObject() = 0;
  virtual bool BeginArray() = 0;
  virtual bool EndArray() = 0;
  virtual bool String(const std::string& value) = 0;
  virtual bool Null() = 0;
  virtual bool Bool(bool value) = 0;
  virtual bool Unsigned(uint64_t value) = 0;
  virtual bool Negative(int64_t value) = 0;  // a whole number below 0
  // Every other number, rounded to nearest; `text` is its spelling in the file, for sentences.
  virtual bool Fraction(double value, std::string_view text) = 0;
};

// Parses exactly one JSON value in strict UTF-8 (no comments, no NUL bytes) with white space around
// it. Depth costs no stack. The caller's locale and rounding mode change no number; the visitor is
// called under the C locale. Success also if the visitor stopped it: the visitor knows.
// kCorruptData says where the text breaks; kOutOfMemory.
Status ParseJson(std::string_view text, JsonVisitor& visitor);

// text with quotes and escapes as JSON wants it; kInvalidArgument if it is not UTF-8.
Result<std::string> JsonString(std::string_view text);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_IO_JSON_H_
