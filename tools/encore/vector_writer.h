// SPDX-License-Identifier: Apache-2.0
//
// Vectors to a file whose number of rows is known at the end: npy, safetensors or JSON lines. The
// file appears whole or not at all. Not here: the vectors.

#ifndef ENCORE_TOOLS_ENCORE_VECTOR_WRITER_H_
#define ENCORE_TOOLS_ENCORE_VECTOR_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "encore/ops.h"
#include "engine/platform/file_writer.h"

namespace encore::tool {

enum class VectorFormat : uint8_t {
  kNpy,          // numpy.load: f32 [rows, columns]
  kSafetensors,  // one tensor "vectors", F32 [rows, columns]
  kJsonLines,    // an array of numbers a line, each the shortest that reads back as the same f32
};

// From the name's ending. Throws Failure for another than .npy, .safetensors and .jsonl.
VectorFormat FormatOf(const std::string& path);

class VectorWriter {
 public:
  // Throws Failure if the file cannot be made.
  VectorWriter(const std::string& path, size_t columns);

  // rows [any, columns], dense.
  void Write(ConstView rows);
  // Makes the file appear.
  void Commit();

 private:
  std::string Header() const;
  void Append(const char* data, size_t bytes);

  VectorFormat format_;
  size_t columns_;
  size_t rows_ = 0;
  internal::FileWriter file_;
};

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_VECTOR_WRITER_H_
