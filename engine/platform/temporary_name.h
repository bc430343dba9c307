// SPDX-License-Identifier: Apache-2.0
//
// Names of files and folders that are being written, and what killed processes have left of them.

#ifndef ENCORE_ENGINE_PLATFORM_TEMPORARY_NAME_H_
#define ENCORE_ENGINE_PLATFORM_TEMPORARY_NAME_H_

#include <cstdio>
#include <filesystem>

#include "engine/platform/file_handle.h"

namespace encore::inline v0_1::internal {

// ".encore-<64 random bits>.tmp" beside the destination: nobody has or can guess it.
std::filesystem::path TemporaryName(const std::filesystem::path& destination);

// Holds an open file or folder of such a name until its last handle is closed, so that
// RemoveAbandoned leaves it alone: by a lock (flock), or on Windows by the handle itself. false if
// that was faster: the name is gone or about to go. true where the file system has no locks:
// nothing is removed there.
bool HoldTemporary(FileHandle::Value file);
// Opens a folder and holds it. *held is none where it cannot be opened, which is true as well.
bool HoldTemporaryFolder(const std::filesystem::path& folder, FileHandle* held);
// Another handle of a stream's file, by which a hold outlives the stream. None on Windows, which
// gives no other name to a file that is held.
FileHandle KeepHold(std::FILE* stream);
// Gives a held folder its name, which is new. Windows lets go of it for that.
int RenameHeldFolder(const std::filesystem::path& from, const std::filesystem::path& to,
                     FileHandle* held);

// Removes files and folders of such names, of this user, that no process holds: whoever wrote them
// was killed. Errors are nobody's concern. Reads the names of the whole folder.
void RemoveAbandoned(const std::filesystem::path& folder);
// The same of one file or folder.
void RemoveIfAbandoned(const std::filesystem::path& path);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_PLATFORM_TEMPORARY_NAME_H_
