// SPDX-License-Identifier: Apache-2.0
//
// What is wanted of a file before it is gone on with, and the order of writing it and its record.

#include "tools/encore/resumable_output.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "engine/platform/path.h"
#include "tools/encore/failure.h"
#include "tools/encore/stop_signal.h"
#include "tools/encore/text.h"

namespace encore::tool {

ResumableOutput::ResumableOutput(const std::string& path, const VectorLayout& layout,
                                 ResumeSettings settings, bool resume, const std::string& what)
    : path_(path),
      what_(what),
      with_ids_(!layout.field.empty()),
      writer_(path, layout),
      file_(path),
      record_{.settings = std::move(settings)} {
  std::error_code error;
  if (!resume || !std::filesystem::exists(internal::ToPath(path), error)) return;
  written_.emplace(path, layout);
  before_ = file_.Find(written_->rows(), written_->checksum());
  if (!before_) {
    throw Failure("--resume: " + path + ".resume has no record of " + path +
                  " as it is now: the file was changed, or another command made it; without "
                  "--resume all " +
                  what + "s are computed again");
  }
  WantSameSettings(before_->settings, record_.settings, path);
}

void ResumableOutput::Add(const std::string& input, const std::string& id) {
  checksum_.Add(input);
  if (with_ids_) checksum_.Add(id);
}

bool ResumableOutput::IsSample(size_t row) const {
  constexpr size_t kSamples = 16;
  return row % std::max<size_t>(1, written() / kSamples) == 0 || row + 1 == written();
}

void ResumableOutput::WantVector(size_t row, ConstView vectors, const std::string& id,
                                 const std::string& where) const {
  if (written_->Holds(row, {vectors.data(), vectors.dim(1)}, id)) return;
  throw Failure("--resume: row " + std::to_string(row) + " of --output is not the vector of " +
                where + ": the " + what_ + " is another, or the machine computes others");
}

void ResumableOutput::WantSameInputs() const {
  if (checksum_.value() == before_->texts) return;
  throw Failure("--resume: the first " + Counted(written(), what_) +
                " of --input are not those of --output: one was changed, moved, added or removed");
}

void ResumableOutput::Write(ConstView rows, const std::vector<std::string>& ids) {
  if (written_ && writer_.rows() == 0) writer_.Append(*written_);
  writer_.Write(rows, ids);
}

void ResumableOutput::Commit() {
  if (rows() == 0 && StopRequested()) {
    throw Failure("stopped before a " + what_ + " was done; nothing was written");
  }
  if (rows() == 0 && written_) return;
  record_.rows = rows();
  record_.texts = checksum_.value();
  record_.output = writer_.checksum();
  const Status noted = file_.Write(record_, before_);
  writer_.Commit();
  if (noted.ok()) file_.DropOthers(record_);
  Check(noted, "--output is written, and --resume cannot go on with it");
}

int ResumableOutput::ExitStatus() const {
  if (!StopRequested()) return kExitOk;
  throw Failure("stopped; " + path_ + " has the vectors of the first " + Counted(rows(), what_) +
                    ", and the same command with --resume goes on from there",
                kExitIncomplete);
}

}  // namespace encore::tool
