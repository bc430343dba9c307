// SPDX-License-Identifier: Apache-2.0
//
// Opens a folder as the models do, and copies it but for its weights.

#include "tools/encore/converted_tensors.h"

#include <filesystem>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "engine/base/stored_precision.h"
#include "engine/io/folder.h"
#include "engine/models/embeddings.h"
#include "engine/platform/path.h"
#include "tools/encore/failure.h"
#include "tools/encore/new_folder.h"
#include "tools/encore/shared_options.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOneFile = "model.safetensors";

// Links become what they lead to.
void CopyOthers(const fs::path& in, const fs::path& out, const std::set<std::string>& left_out) {
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(in)) {
      const fs::path name = entry.path().filename();
      if (left_out.contains(internal::PathText(name))) continue;
      if (NewFolder::Interrupted()) throw Failure("ended by a signal");
      fs::copy(entry.path(), out / name, fs::copy_options::recursive);
    }
  } catch (const fs::filesystem_error& error) {
    throw Failure("IN " + Printable(internal::PathText(error.path1())) +
                  ": cannot be copied: " + error.code().message());
  }
}

// The same tensors, whose writing fails once a signal wants the process to end.
std::vector<internal::StreamedTensor> Interruptible(
    std::span<const internal::StreamedTensor> tensors) {
  std::vector<internal::StreamedTensor> wrapped(tensors.begin(), tensors.end());
  for (internal::StreamedTensor& tensor : wrapped) {
    tensor.write = [write = tensor.write](const internal::ByteSink& sink) {
      return write([&](std::span<const std::byte> bytes) {
        if (NewFolder::Interrupted()) return Status(ErrorCode::kIo, "ended by a signal");
        return sink(bytes);
      });
    };
  }
  return wrapped;
}

// A folder cannot be copied into itself.
void WantElsewhere(const std::string& in, const std::string& out) {
  std::error_code error;
  fs::path at = fs::weakly_canonical(internal::ToPath(out), error);
  for (; at.has_relative_path(); at = at.parent_path()) {
    if (!fs::equivalent(at, internal::ToPath(in), error)) continue;
    throw Failure("OUT " + Printable(out) + ": lies in IN, wanted it elsewhere");
  }
}

}  // namespace

void WantNothingAt(const std::string& out) {
  std::error_code error;
  const fs::path path = internal::ToPath(out);
  if (fs::exists(fs::symlink_status(path, error))) {
    throw Failure("OUT " + Printable(out) + ": exists already, wanted a new name");
  }
  ClearFolderOf(path.has_filename() ? out : internal::PathText(path.parent_path()));
}

WeightsFolder OpenWeightsFolder(const std::string& path, const std::string& option) {
  const internal::Folder folder = Take(internal::Folder::Open(path), option);
  std::vector<Decision> decisions;
  internal::ModelSpec config =
      Take(internal::ReadModelConfig(folder, /*ignore_unknown_keys=*/true, &decisions), option);
  if (config.tasks.in_file) {
    throw Failure(option + ": " + Printable(path) +
                  " has adapters for tasks among its weights, "
                  "wanted a model without them");
  }
  internal::WeightFiles files = Take(internal::WeightFiles::Open(folder), option);
  SafetensorsMetadata metadata;
  Precision precision = Precision::kF32;
  for (const SafetensorsFile& file : files.files()) {
    const Precision stored =
        Take(internal::StoredPrecision(file.metadata()), option + ": " + file.name());
    if (stored != Precision::kF32) precision = stored;
    metadata.insert(file.metadata().begin(), file.metadata().end());
  }
  internal::ModelTensors tensors = Take(internal::ModelTensors::Create(files, config), option);
  EncoderWeights weights = Take(internal::ViewLayers(config, &tensors), option);
  return {std::move(config),  std::move(files),    std::move(tensors),
          std::move(weights), std::move(metadata), precision};
}

WeightsFolder OpenUnconvertedFolder(const std::string& path) {
  WeightsFolder folder = OpenWeightsFolder(path);
  if (folder.precision == Precision::kF32) return folder;
  throw Failure("IN: " + folder.files.name() + " has been converted already, wanted weights of " +
                "floats");
}

std::set<std::string> WeightsFolder::EmbeddingNames() const {
  std::set<std::string> names;
  for (const std::string& name : internal::EmbeddingTables(config.embeddings)) {
    const SafetensorsEntry* const entry = tensors.Find(tensors.Base(name));
    if (entry != nullptr) names.insert(entry->name);
  }
  return names;
}

void WriteWeightsFolder(const std::string& in, const std::string& out, const WeightsFolder& folder,
                        std::span<const internal::StreamedTensor> tensors,
                        const SafetensorsMetadata& metadata) {
  std::set<std::string> left_out = {folder.files.name()};
  for (const SafetensorsFile& file : folder.files.files()) {
    left_out.insert(internal::PathText(internal::ToPath(file.name()).filename()));
  }
  WantElsewhere(in, out);
  NewFolder made(out);
  const std::vector<internal::StreamedTensor> until_a_signal = Interruptible(tensors);
  Check(internal::WriteSafetensorsStream(internal::PathText(made.temporary() / kOneFile),
                                         until_a_signal, metadata),
        "OUT");
  CopyOthers(in, made.temporary(), left_out);
  made.Commit();
}

}  // namespace encore::tool
