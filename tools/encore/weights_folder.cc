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
#include "engine/models/layer_weights.h"
#include "tools/encore/failure.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOneFile = "model.safetensors";

// Removes a folder that was not finished.
class NewFolder {
 public:
  explicit NewFolder(fs::path path) : path_(std::move(path)) {
    std::error_code error;
    if (!fs::create_directory(path_, error) || error) {
      throw Failure("OUT " + Printable(path_.string()) + ": cannot make this folder" +
                    (error ? ": " + error.message() : ""));
    }
  }
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;
  ~NewFolder() {
    std::error_code error;
    if (!finished_) fs::remove_all(path_, error);
  }
  void Finish() { finished_ = true; }

 private:
  fs::path path_;
  bool finished_ = false;
};

// Links become what they lead to.
void CopyOthers(const fs::path& in, const fs::path& out, const std::set<std::string>& left_out) {
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(in)) {
      const fs::path name = entry.path().filename();
      if (left_out.contains(name.string())) continue;
      fs::copy(entry.path(), out / name, fs::copy_options::recursive);
    }
  } catch (const fs::filesystem_error& error) {
    throw Failure("IN " + Printable(error.path1().string()) +
                  ": cannot be copied: " + error.code().message());
  }
}

// A folder cannot be copied into itself.
void WantElsewhere(const std::string& in, const std::string& out) {
  std::error_code error;
  fs::path at = fs::weakly_canonical(out, error);
  for (; at.has_relative_path(); at = at.parent_path()) {
    if (!fs::equivalent(at, in, error)) continue;
    throw Failure("OUT " + Printable(out) + ": lies in IN, wanted it elsewhere");
  }
}

}  // namespace

void WantNothingAt(const std::string& out) {
  std::error_code error;
  if (fs::exists(fs::symlink_status(out, error))) {
    throw Failure("OUT " + Printable(out) + ": exists already, wanted a new name");
  }
}

WeightsFolder OpenWeightsFolder(const std::string& path) {
  const internal::Folder folder = Take(internal::Folder::Open(path), "IN");
  std::vector<Decision> decisions;
  internal::ModelConfig config =
      Take(internal::ReadModelConfig(folder, /*ignore_unknown_keys=*/true, &decisions), "IN");
  internal::WeightFiles files = Take(internal::WeightFiles::Open(folder), "IN");
  SafetensorsMetadata metadata;
  for (const SafetensorsFile& file : files.files()) {
    if (file.metadata().contains(std::string(internal::kPrecisionKey))) {
      throw Failure("IN: " + file.name() + " has been converted already, wanted weights of floats");
    }
    metadata.insert(file.metadata().begin(), file.metadata().end());
  }
  internal::ModelTensors tensors = Take(internal::ModelTensors::Create(files, config.plan), "IN");
  EncoderWeights weights = Take(internal::ViewLayers(config.plan, &tensors), "IN");
  return {std::move(config), std::move(files), std::move(tensors), std::move(weights),
          std::move(metadata)};
}

void WriteWeightsFolder(const std::string& in, const std::string& out, const WeightsFolder& folder,
                        std::span<const internal::StreamedTensor> tensors,
                        const SafetensorsMetadata& metadata) {
  std::set<std::string> left_out = {folder.files.name()};
  for (const SafetensorsFile& file : folder.files.files()) {
    left_out.insert(fs::path(file.name()).filename().string());
  }
  WantElsewhere(in, out);
  NewFolder made(out);
  Check(internal::WriteSafetensorsStream((fs::path(out) / kOneFile).string(), tensors, metadata),
        "OUT");
  CopyOthers(in, out, left_out);
  made.Finish();
}

}  // namespace encore::tool
