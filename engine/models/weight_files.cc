// SPDX-License-Identifier: Apache-2.0
//
// The weights of a folder, in one file or in shards.

#include "engine/models/weight_files.h"

#include <functional>
#include <optional>
#include <utility>

#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/io/json_members.h"

namespace encore::inline v0_1::internal {
namespace {

constexpr std::string_view kOneFile = "model.safetensors";
constexpr std::string_view kIndexFile = "model.safetensors.index.json";

// Nothing to open: says what to do about it.
Status NoWeights(const Folder& folder) {
  const std::string wanted = "; wanted " + std::string(kOneFile) + " or " + std::string(kIndexFile);
  for (const auto* bin : {"pytorch_model.bin", "pytorch_model.bin.index.json"}) {
    ENCORE_ASSIGN_OR_RETURN(const bool is_there, folder.Has(bin));
    if (!is_there) continue;
    return Status(
        ErrorCode::kUnsupported,
        QuotedPath(folder.path()) + " has its weights in " + bin + " only" + wanted +
            ". To convert, in that folder: python -c \"import glob, torch; from safetensors.torch "
            "import save_file; save_file({k: v.clone().contiguous() for f in "
            "glob.glob('pytorch_model*.bin') for k, v in torch.load(f, 'cpu', "
            "weights_only=True).items()}, 'model.safetensors')\"");
  }
  return Status(ErrorCode::kNotFound, QuotedPath(folder.path()) + " has no weights" + wanted);
}

// A shard is in the folder itself: its name has no path.
bool IsPlainName(std::string_view name) {
  return name.ends_with(".safetensors") && !name.starts_with('.') &&
         name.find_first_of(std::string_view("/\\:\0", 4)) == std::string_view::npos;
}

}  // namespace

WeightFiles::Found WeightFiles::Find(std::string_view tensor) const {
  const auto found = file_of_.find(tensor);
  if (found == file_of_.end()) return {};
  const SafetensorsFile& file = files_[found->second];
  return {&file, file.Find(tensor)};
}

size_t WeightFiles::mapped_bytes() const {
  size_t bytes = 0;
  for (const auto& one : bytes_) bytes += one->file.mapped_bytes();
  return bytes;
}

void WeightFiles::ReleasePages() const {
  for (const auto& bytes : bytes_) bytes->file.ReleasePages();
}

std::string WeightFiles::Identity() const {
  std::string all;
  for (const auto& bytes : bytes_) {
    const std::string one = bytes->file.Identity();
    if (one.empty()) return "";
    all += one;
  }
  return all;
}

Status WeightFiles::CheckUnchanged(const Executor& executor) const {
  for (size_t i = 0; i < files_.size(); ++i) {
    const FileBytes& bytes = *bytes_[i];
    const auto same = [&]() -> Result<bool> {
      ENCORE_ASSIGN_OR_RETURN(const uint64_t now,
                              bytes.file.FileChecksum(files_[i].name(), executor));
      return now == bytes.checksum.load();
    };
    ENCORE_RETURN_IF_ERROR(bytes.noted
                               ? bytes.file.CheckUnchanged(files_[i].name(), std::cref(same))
                               : bytes.file.CheckUnchanged(files_[i].name()));
  }
  return {};
}

Status WeightFiles::NoteBytes(const Executor& executor) const {
  for (size_t i = 0; i < files_.size(); ++i) {
    FileBytes* const bytes = bytes_[i].get();
    if (bytes->noted || bytes->file.mapped_bytes() == 0) continue;
    ENCORE_ASSIGN_OR_RETURN(const uint64_t checksum,
                            bytes->file.FileChecksum(files_[i].name(), executor));
    // The bytes were those of the opening until here: only now may they be what others are.
    ENCORE_RETURN_IF_ERROR(bytes->file.CheckUnchanged(files_[i].name()));
    bytes->checksum = checksum;
    bytes->noted = true;
  }
  return CheckUnchanged(executor);
}

Status WeightFiles::Add(const std::string& path, FileMemory memory) {
  Result<MappedFile> opened =
      memory == FileMemory::kCopied ? MappedFile::OpenCopy(path) : MappedFile::Open(path);
  if (!opened.ok()) return opened.status();
  auto bytes = std::make_shared<FileBytes>(*std::move(opened));
  ENCORE_ASSIGN_OR_RETURN(SafetensorsFile file,
                          SafetensorsFile::FromBytes(bytes->file.bytes(), path));
  bytes_.push_back(std::move(bytes));
  files_.push_back(std::move(file));
  return {};
}

Status WeightFiles::ReadShards(const Folder& folder, const JsonValue& index, FileMemory memory) {
  JsonMembers members(index, std::string(kIndexFile));
  const JsonValue& map = members.RequiredObject("weight_map");
  ENCORE_RETURN_IF_ERROR(members.status());
  const std::string where = std::string(kIndexFile) + ": weight_map: ";
  std::map<std::string_view, size_t> shards;  // file name to its number
  for (const auto& [tensor, shard] : map.members()) {
    if (!shard.is_string() || !IsPlainName(shard.text())) {
      return Status(ErrorCode::kCorruptData,
                    where + Quoted(tensor) + " is in " + shard.Described() +
                        "; wanted the name of a .safetensors file in the same folder");
    }
    const auto [at, is_new] = shards.emplace(shard.text(), files_.size());
    if (is_new) {
      if (const Status status = Add(folder.PathOf(shard.text()), memory); !status.ok()) {
        return Status(status.code(), status.message() + " (" + where + Quoted(tensor) + " is in " +
                                         Quoted(shard.text()) + ")");
      }
    }
    if (files_[at->second].Find(tensor) == nullptr) {
      return Status(
          ErrorCode::kCorruptData,
          where + Quoted(tensor) + " is in " + Quoted(shard.text()) + ", which has no such tensor");
    }
  }
  return {};
}

Result<WeightFiles> WeightFiles::Open(const Folder& folder, FileMemory memory) {
  WeightFiles weights;
  ENCORE_ASSIGN_OR_RETURN(const bool is_one, folder.Has(kOneFile));
  if (is_one) {
    weights.name_ = kOneFile;
    ENCORE_RETURN_IF_ERROR(weights.Add(folder.PathOf(kOneFile), memory));
  } else {
    ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> index, folder.ReadJson(kIndexFile));
    if (!index) return NoWeights(folder);
    weights.name_ = kIndexFile;
    ENCORE_RETURN_IF_ERROR(weights.ReadShards(folder, *index, memory));
  }
  for (size_t i = 0; i < weights.files_.size(); ++i) {
    for (const SafetensorsEntry& entry : weights.files_[i].tensors()) {
      const auto [at, is_new] = weights.file_of_.emplace(entry.name, i);
      if (is_new) continue;
      return Status(ErrorCode::kCorruptData, "tensor " + Quoted(entry.name) + ": found in " +
                                                 Quoted(weights.files_[at->second].name()) +
                                                 " and in " + Quoted(weights.files_[i].name()) +
                                                 "; wanted it once");
    }
  }
  return weights;
}

}  // namespace encore::internal
