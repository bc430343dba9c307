// SPDX-License-Identifier: Apache-2.0
//
// Names of files and folders that are being written, and what killed processes have left of them.

#ifndef ENCORE_ENGINE_PLATFORM_TEMPORARY_NAME_H_
#define ENCORE_ENGINE_PLATFORM_TEMPORARY_NAME_H_

#include <filesystem>

namespace encore::inline v0_1::internal {

// ".encore-<64 random bits>.tmp" beside the destination: nobody has or can guess it.
std::filesystem::path TemporaryName(const std::filesystem::path& destination);

// Locks (flock) an open file or folder of such a name, until its last descriptor is closed, so that
// RemoveAbandoned leaves it alone. false if that was faster: the name is gone or about to go. true
// where the file system has no locks: nothing is removed there.
bool HoldTemporary(int descriptor);

// Removes files and folders of such names, of this user, that no process holds: whoever wrote them
// was killed. Errors are nobody's concern. Reads the names of the whole folder.
void RemoveAbandoned(const std::filesystem::path& folder);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_PLATFORM_TEMPORARY_NAME_H_
