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
#include "engine/base/checksum.h"
#include "engine/platform/file_writer.h"
#include "engine/platform/mapped_file.h"

namespace encore::tool {

enum class VectorFormat : uint8_t {
  kNpy,          // numpy.load: [rows, columns]
  kSafetensors,  // one tensor "vectors" [rows, columns]
  kJsonLines,    // an array of numbers a line, each the shortest that reads back as the same f32
};

enum class VectorType : uint8_t {
  kF32,
  kF16,
  kInt8,  // from -1 to 1 in 255 steps, as quantize_embeddings of sentence-transformers with these
          // ranges: for vectors of length 1
  kUbinary,  // a bit for each number, 1 above 0: eight in a byte, the first one highest
};

// What a file holds, but for the number of its rows.
struct VectorLayout {
  // From the name's ending. Throws Failure for another than .npy, .safetensors and .jsonl, and for
  // a field of another than .jsonl.
  VectorLayout(const std::string& path, const std::string& type_name, const std::string& field);

  size_t columns() const;    // of the file: a byte is one where numbers are bits
  size_t row_bytes() const;  // of npy and safetensors
  // Whether a row can be written: JSON has no NaN and no infinity, nor have integers.
  bool CanHold(std::span<const float> vector) const;
  // A row as the file has it. `id`: that of its text as JSON, or empty.
  std::string Row(std::span<const float> vector, const std::string& id) const;
  // Empty for JSON lines.
  std::string Header(size_t rows) const;

  VectorFormat format;
  VectorType type;
  // Of JSON lines: the member of an object that is the array, beside "id"; empty: no object.
  std::string field;
  size_t dimensions = 0;
};

// The rows of a file that VectorWriter made.
class WrittenVectors {
 public:
  // Throws Failure, naming --resume, unless it is a file of this layout.
  WrittenVectors(const std::string& path, const VectorLayout& layout);

  size_t rows() const { return rows_; }
  // Of the rows' bytes, as VectorWriter has it.
  uint64_t checksum() const;
  // Whether this row of the file is that of this vector, to the bit.
  bool Holds(size_t row, std::span<const float> vector, const std::string& id) const;

 private:
  friend class VectorWriter;
  std::string_view bytes() const;
  std::string_view row_bytes() const;

  VectorLayout layout_;
  internal::MappedFile file_;
  std::vector<size_t> row_starts_;  // and the end of the last one
  size_t rows_ = 0;
};

// Writes a file whose number of rows is known at the end: it appears whole, by Commit(), or not at
// all.
class VectorWriter {
 public:
  // Throws Failure if the file cannot be made.
  VectorWriter(const std::string& path, const VectorLayout& layout);

  // The rows that an earlier run has written, before any other.
  void Append(const WrittenVectors& written);

  // The first row of [any, dimensions] that cannot be held; rows.dim(0) if there is none.
  size_t FirstUnwritable(ConstView rows) const;

  // rows [any, dimensions], dense, with the ids of their texts as JSON, which may be empty.
  void Write(ConstView rows, const std::vector<std::string>& ids);

  size_t rows() const { return rows_; }
  uint64_t checksum() const { return checksum_.value(); }  // of the rows' bytes

  // Makes the file appear.
  void Commit();

 private:
  void Append(std::span<const std::byte> bytes);

  VectorLayout layout_;
  size_t rows_ = 0;
  internal::Checksum checksum_;
  internal::FileWriter file_;
};

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_VECTOR_FILE_H_
