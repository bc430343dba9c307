// SPDX-License-Identifier: Apache-2.0
//
// Vectors in a file of one of three formats: written row by row, and taken up again by a later run.

#ifndef ENCORE_TOOLS_ENCORE_VECTOR_FILE_H_
#define ENCORE_TOOLS_ENCORE_VECTOR_FILE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "encore/tensor.h"
#include "engine/platform/file_writer.h"
#include "engine/platform/mapped_file.h"

namespace encore::tool {

enum class VectorFormat : uint8_t {
  kNpy,          // numpy.load: f32 [rows, columns]
  kSafetensors,  // one tensor "vectors", F32 [rows, columns]
  kJsonLines,    // an array of numbers a line, each the shortest that reads back as the same f32
};

// From the name's ending. Throws Failure for another than .npy, .safetensors and .jsonl.
VectorFormat VectorFormatOf(const std::string& path);

// The rows of a file that VectorWriter made.
class WrittenVectors {
 public:
  // Throws Failure, naming --resume, unless it is such a file with this number of columns.
  WrittenVectors(const std::string& path, size_t columns);

  size_t rows() const { return rows_; }
  // Whether this row of the file is this vector, to the bit.
  bool Holds(size_t row, std::span<const float> vector) const;

 private:
  friend class VectorWriter;
  std::string_view bytes() const;

  VectorFormat format_;
  internal::MappedFile file_;
  size_t rows_ = 0;
  size_t row_bytes_ = 0;             // of npy and safetensors
  std::vector<size_t> line_starts_;  // of JSON lines, and their end
};

// Writes a file whose number of rows is known at the end: it appears whole, by Commit(), or not at
// all.
class VectorWriter {
 public:
  // Throws Failure if the file cannot be made.
  VectorWriter(const std::string& path, size_t columns);

  // The rows that an earlier run has written, before any other.
  void Append(const WrittenVectors& written);

  // The first row of [any, columns] that the format cannot hold: JSON has no NaN and no infinity.
  // rows.dim(0) if there is none.
  size_t FirstUnwritable(ConstView rows) const;

  // rows [any, columns], dense.
  void Write(ConstView rows);

  size_t rows() const { return rows_; }

  // Makes the file appear.
  void Commit();

 private:
  std::string Header() const;
  void Append(std::string_view bytes);

  VectorFormat format_;
  size_t columns_;
  size_t rows_ = 0;
  internal::FileWriter file_;
};

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_VECTOR_FILE_H_
