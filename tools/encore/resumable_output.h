// SPDX-License-Identifier: Apache-2.0
//
// A file of vectors with the record beside it, by which --resume goes on with the file.

#ifndef ENCORE_TOOLS_ENCORE_RESUMABLE_OUTPUT_H_
#define ENCORE_TOOLS_ENCORE_RESUMABLE_OUTPUT_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "encore/tensor.h"
#include "tools/encore/resume_record.h"
#include "tools/encore/vector_file.h"

namespace encore::tool {

class ResumableOutput {
 public:
  // With `resume`, goes on with the file, where it is there. `what` is a row's input: "text".
  // Throws Failure where the file was made with other settings, or changed.
  ResumableOutput(const std::string& path, const VectorLayout& layout, ResumeSettings settings,
                  bool resume, const std::string& what);

  size_t written() const { return written_ ? written_->rows() : 0; }  // by earlier commands
  size_t rows() const { return writer_.rows(); }                      // with those

  // The next input with its id as JSON, of each row in their order, written ones included.
  void Add(const std::string& input, const std::string& id);
  // Whether this row is one of some written ones that are to be computed again and compared.
  bool IsSample(size_t row) const;
  // Throws Failure unless the written row has this vector: a processor without FMA computes others.
  // `where` is the input's place.
  void WantVector(size_t row, ConstView vectors, const std::string& id,
                  const std::string& where) const;
  // After the inputs of all written rows: throws Failure unless they are those of then.
  void WantSameInputs() const;

  // The first row of [any, dimensions] that cannot be held; rows.dim(0) if there is none.
  size_t FirstUnwritable(ConstView rows) const { return writer_.FirstUnwritable(rows); }
  // As VectorWriter; written rows come before the first.
  void Write(ConstView rows, const std::vector<std::string>& ids);

  // Makes the file and its record appear, unless all rows were there already. Throws Failure where
  // a stop came before the first.
  void Commit();
  // After Commit(): kExitOk; after a stop throws Failure, which says how to go on.
  int ExitStatus() const;

 private:
  std::string path_, what_;
  bool with_ids_;
  VectorWriter writer_;
  ResumeFile file_;
  ResumeRecord record_ = {};
  TextsChecksum checksum_;
  std::optional<WrittenVectors> written_;
  std::optional<ResumeRecord> before_;  // of these
};

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_RESUMABLE_OUTPUT_H_
