// SPDX-License-Identifier: Apache-2.0
//
// What `encore embed` notes beside its output, so that --resume knows what the rows were made of.

#ifndef ENCORE_TOOLS_ENCORE_RESUME_RECORD_H_
#define ENCORE_TOOLS_ENCORE_RESUME_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/base/checksum.h"
#include "engine/platform/file_writer.h"

namespace encore::tool {

// By name what decides about vectors, as text; empty: not given.
using ResumeSettings = std::map<std::string, std::string>;

// Of some rows of an output. The checksums are those of checksum.h.
struct ResumeRecord {
  size_t rows = 0;
  uint64_t texts = 0;   // of the first `rows` texts of the input: see TextsChecksum
  uint64_t output = 0;  // of the rows' bytes
  ResumeSettings settings;
};

// Adds up texts in their order, each with its length before it.
class TextsChecksum {
 public:
  void Add(const std::string& text);
  uint64_t value() const { return checksum_.value(); }

 private:
  internal::Checksum checksum_;
};

// What tells a file from another one of its name: of up to 1 MiB a checksum, of larger ones size
// and time of modification.
std::string FileState(const std::string& path);

// The state of each file of a model's folder that may decide about vectors, by "file NAME": of
// configurations, tokenizers and weights, in folders of modules too. Throws Failure.
ResumeSettings ModelFiles(const std::string& folder);

// Throws Failure, naming the first setting that differs.
void WantSameSettings(const ResumeSettings& then, const ResumeSettings& now,
                      const std::string& output);

// The file "OUTPUT.resume": a JSON object a line, the newest at the end.
class ResumeFile {
 public:
  // Throws Failure if there is another file of this name, or it cannot be written.
  explicit ResumeFile(const std::string& output);

  // The newest record of so many rows with this checksum; none if there is no such.
  std::optional<ResumeRecord> Find(size_t rows, uint64_t output) const;

  // Before the output is written. Writes this record and, before it, the one of the output that is
  // still there: whichever of both outputs a killed command leaves has one. Without `before`, any
  // of those that were read may be its record, as killed commands leave several.
  Status Write(const ResumeRecord& record, const std::optional<ResumeRecord>& before);
  // Once the output is written: leaves this record alone. Where that fails, the others do no harm.
  void DropOthers(const ResumeRecord& record) const;

 private:
  std::string path_;
  std::vector<ResumeRecord> records_;
  internal::FileWriter file_;
};

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_RESUME_RECORD_H_
