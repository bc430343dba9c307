// SPDX-License-Identifier: Apache-2.0
//
// The small text that a clone without git-lfs has in place of a large file.

#ifndef ENCORE_ENGINE_IO_GIT_LFS_H_
#define ENCORE_ENGINE_IO_GIT_LFS_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "encore/status.h"

namespace encore::inline v0_1::internal {

// kCorruptData where a file's bytes are a pointer of git-lfs; `quoted` names the file.
// https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md has the format.
inline Status CheckNoGitLfsPointer(std::span<const std::byte> bytes, const std::string& quoted) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  // Pointers have less than 1024 bytes, by that page.
  if (text.size() >= 1024 || !text.starts_with("version https://git-lfs.github.com/spec/")) {
    return Status();
  }
  return Status(ErrorCode::kCorruptData,
                quoted +
                    " is a git-lfs pointer, which names the file and does not hold it; wanted "
                    "the file itself: `git lfs pull` in the folder's clone fetches it");
}

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_IO_GIT_LFS_H_
