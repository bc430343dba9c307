// SPDX-License-Identifier: Apache-2.0
//
// The files of one folder.

#include "engine/io/folder.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/platform/file_error.h"
#include "engine/platform/path.h"

namespace encore::inline v0_1::internal {
namespace {

namespace fs = std::filesystem;

// What a file of this name may have, in bytes and in values of JSON.
struct FileLimits {
  std::string_view name;
  size_t bytes;
  size_t values;
};
constexpr size_t kMiB = size_t{1} << 20;
// Ten times the largest published ones that we know: tokenizer.json of 33 MB, vocabularies of 5 MB.
constexpr FileLimits kLargeFiles[] = {{"tokenizer.json", 256 * kMiB, JsonValue::kMaxValues},
                                      {"vocab.json", 64 * kMiB, JsonValue::kMaxValues},
                                      {"vocab.txt", 64 * kMiB, 0},
                                      {"merges.txt", 64 * kMiB, 0},
                                      {"colbert_linear.pt", 256 * kMiB, 0}};
// Configurations have some KiB; maps of 100 000 labels or tensors fit.
constexpr FileLimits kOtherFiles = {"", 16 * kMiB, kMiB / 2};

const FileLimits& LimitsOf(std::string_view name) {
  const std::string_view last = name.substr(name.find_last_of('/') + 1);
  for (const FileLimits& limits : kLargeFiles) {
    if (limits.name == last) return limits;
  }
  return kOtherFiles;
}

// kIo where the path is a link that leads nowhere, or cannot be examined.
Status CheckNoLostLink(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (status.type() == fs::file_type::not_found) return {};
  if (!fs::exists(status)) {
    return SystemError(PathText(path), "cannot be examined", error);
  }
  if (!fs::is_symlink(status) || fs::exists(path, error)) return {};
  const std::string target = PathText(fs::read_symlink(path, error));
  return Status(ErrorCode::kIo, QuotedPath(PathText(path)) + " is a link to " + QuotedPath(target) +
                                    ", which is not there; wanted a link that leads to a file");
}

}  // namespace

Result<Folder> Folder::Open(const std::string& path) {
  return GuardedFile(path, [&]() -> Result<Folder> {
    ENCORE_RETURN_IF_ERROR(CheckPath(path));
    std::error_code error;
    const fs::file_status status = fs::status(ToPath(path), error);
    if (status.type() == fs::file_type::not_found) {
      ENCORE_RETURN_IF_ERROR(CheckNoLostLink(ToPath(path)));
      return Status(ErrorCode::kNotFound, "there is no folder " + QuotedPath(path));
    }
    if (!fs::exists(status)) return SystemError(path, "cannot be examined", error);
    if (!fs::is_directory(status)) {
      return InvalidArgument(QuotedPath(path) + " is not a folder; wanted a model's folder");
    }
    // Without the permission to search it every file would seem to be absent.
    if (!fs::exists(fs::status(ToPath(path + "/."), error))) {
      return SystemError(path, "the folder cannot be searched", error);
    }
    return Folder(path);
  });
}

Status Folder::CheckAbsent(std::string_view name) const {
  fs::path path = ToPath(path_);
  for (const fs::path& part : ToPath(name)) {
    path /= part;
    ENCORE_RETURN_IF_ERROR(CheckNoLostLink(path));
  }
  return {};
}

Result<bool> Folder::Has(std::string_view name) const {
  return GuardedFile(path_, [&]() -> Result<bool> {
    std::error_code error;
    const fs::file_status status = fs::status(ToPath(PathOf(name)), error);
    if (fs::exists(status)) return true;
    if (status.type() != fs::file_type::not_found) {
      return SystemError(PathOf(name), "cannot be examined", error);
    }
    ENCORE_RETURN_IF_ERROR(CheckAbsent(name));
    return false;
  });
}

Result<std::optional<MappedFile>> Folder::Read(std::string_view name) const {
  return GuardedFile(path_, [&]() -> Result<std::optional<MappedFile>> {
    Result<MappedFile> file = MappedFile::OpenCopy(PathOf(name), LimitsOf(name).bytes);
    if (file.ok()) {
      ENCORE_RETURN_IF_ERROR(CheckNoGitLfsPointer(file->bytes(), QuotedPath(PathOf(name))));
      return std::optional<MappedFile>(*std::move(file));
    }
    if (file.status().code() != ErrorCode::kNotFound) return file.status();
    ENCORE_RETURN_IF_ERROR(CheckAbsent(name));
    return std::optional<MappedFile>();
  });
}

Result<JsonValue> Folder::ParseJson(std::string_view name, const MappedFile& file) const {
  return GuardedFile(path_, [&]() -> Result<JsonValue> {
    Result<JsonValue> value = JsonValue::Parse(TextOf(file), LimitsOf(name).values);
    if (!value.ok()) {
      return Prefixed(QuotedPath(PathOf(name)), value.status());
    }
    return value;
  });
}

Result<std::optional<JsonValue>> Folder::ReadJson(std::string_view name) const {
  return GuardedFile(path_, [&]() -> Result<std::optional<JsonValue>> {
    ENCORE_ASSIGN_OR_RETURN(const std::optional<MappedFile> file, Read(name));
    if (!file.has_value()) return std::optional<JsonValue>();
    ENCORE_ASSIGN_OR_RETURN(JsonValue value, ParseJson(name, *file));
    return std::optional<JsonValue>(std::move(value));
  });
}

// https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md has the format.
Status CheckNoGitLfsPointer(std::span<const std::byte> bytes, const std::string& quoted) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  // Pointers have less than 1024 bytes, by that page.
  if (text.size() >= 1024 || !text.starts_with("version https://git-lfs.github.com/spec/")) {
    return {};
  }
  return Status(ErrorCode::kCorruptData,
                quoted +
                    " is a git-lfs pointer, which names the file and does not hold it; wanted "
                    "the file itself: `git lfs pull` in the folder's clone fetches it");
}

}  // namespace encore::internal
