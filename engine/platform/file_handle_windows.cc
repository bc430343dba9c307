// SPDX-License-Identifier: Apache-2.0
//
// Files by Windows' handles. All are opened so that others may read, write, rename and remove them,
// as on POSIX systems. What is being written is held by a handle that does not let others remove
// it, as those of the C library's streams are.

#include <windows.h>
// After that one
#include <aclapi.h>
#include <io.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <system_error>
#include <vector>

#include "engine/platform/file_error.h"
#include "engine/platform/file_handle.h"
#include "engine/platform/path.h"
#include "engine/platform/temporary_name.h"

namespace encore::inline v0_1::internal {
namespace {

HANDLE Handle(FileHandle::Value file) { return reinterpret_cast<HANDLE>(file); }

int LastError() {
  return ErrorNumber({static_cast<int>(::GetLastError()), std::system_category()});
}

constexpr DWORD kShareAll = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;

FileHandle Open(const std::filesystem::path& path, DWORD access, DWORD more_flags = 0,
                DWORD share = kShareAll) {
  const HANDLE handle = ::CreateFileW(path.c_str(), access, share, nullptr, OPEN_EXISTING,
                                      FILE_FLAG_BACKUP_SEMANTICS | more_flags, nullptr);
  return FileHandle(reinterpret_cast<FileHandle::Value>(handle));
}

// From units of 100 ns, which begin in 1601.
int64_t Nanoseconds(int64_t time) { return (time - 116444736000000000) * 100; }

uint64_t Joined(DWORD high, DWORD low) { return uint64_t{high} << 32 | low; }

// Whether the file's owner is this process's user, the system or its administrators.
bool IsOwn(HANDLE file) {
  PSID owner = nullptr;
  PSECURITY_DESCRIPTOR descriptor = nullptr;
  if (::GetSecurityInfo(file, SE_FILE_OBJECT, OWNER_SECURITY_INFORMATION, &owner, nullptr, nullptr,
                        nullptr, &descriptor) != ERROR_SUCCESS) {
    return false;
  }
  bool own = ::IsWellKnownSid(owner, WinLocalSystemSid) != 0 ||
             ::IsWellKnownSid(owner, WinBuiltinAdministratorsSid) != 0;
  alignas(TOKEN_USER) std::array<char, sizeof(TOKEN_USER) + SECURITY_MAX_SID_SIZE> memory;
  DWORD size = 0;
  HANDLE token = nullptr;
  if (!own && ::OpenProcessToken(::GetCurrentProcess(), TOKEN_QUERY, &token) != 0) {
    own = ::GetTokenInformation(token, TokenUser, memory.data(), memory.size(), &size) != 0 &&
          ::EqualSid(owner, reinterpret_cast<TOKEN_USER*>(memory.data())->User.Sid) != 0;
    ::CloseHandle(token);
  }
  ::LocalFree(descriptor);
  return own;
}

}  // namespace

void FileHandle::Reset(Value value) {
  if (value_ != kNone) (void)::CloseHandle(Handle(value_));
  value_ = value;
}

Result<FileHandle> OpenToRead(const std::string& path, bool own) {
  FileHandle file = Open(ToPath(path), GENERIC_READ, own ? FILE_FLAG_OPEN_REPARSE_POINT : 0);
  if (file.get() == FileHandle::kNone) return SystemError(path, "cannot be opened", LastError());
  if (!own) return file;
  BY_HANDLE_FILE_INFORMATION info = {};
  if (::GetFileInformationByHandle(Handle(file.get()), &info) != 0 &&
      (info.dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT) != 0) {
    return SystemError(path, "cannot be opened", ELOOP);
  }
  if (IsOwn(Handle(file.get()))) return file;
  return Status(ErrorCode::kIo, path +
                                    ": found a file of another user, wanted one of this "
                                    "process's user or of an administrator");
}

int Examine(FileHandle::Value file, FileState* state) {
  *state = {};
  if (::GetFileType(Handle(file)) != FILE_TYPE_DISK) return 0;
  BY_HANDLE_FILE_INFORMATION info = {};
  FILE_BASIC_INFO times = {};
  if (::GetFileInformationByHandle(Handle(file), &info) == 0) return LastError();
  if (::GetFileInformationByHandleEx(Handle(file), FileBasicInfo, &times, sizeof times) == 0) {
    return LastError();
  }
  FILETIME now = {};
  ::GetSystemTimePreciseAsFileTime(&now);
  constexpr int64_t kSettled = 20000000;
  // A file system that keeps no time of changes to the entry has 0 there.
  const int64_t changed = std::max(times.ChangeTime.QuadPart, times.LastWriteTime.QuadPart);
  const auto time = static_cast<int64_t>(Joined(now.dwHighDateTime, now.dwLowDateTime));
  state->is_folder = (info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
  state->is_regular = !state->is_folder;
  state->size = Joined(info.nFileSizeHigh, info.nFileSizeLow);
  state->identity = {.device = info.dwVolumeSerialNumber,
                     .inode = Joined(info.nFileIndexHigh, info.nFileIndexLow),
                     .modified = Nanoseconds(times.LastWriteTime.QuadPart),
                     .changed = Nanoseconds(changed),
                     .settled = changed < time - kSettled};
  return 0;
}

int ReadAt(FileHandle::Value file, uint64_t offset, std::byte* memory, size_t size, size_t* got) {
  constexpr size_t kMostAtOnce = size_t{1} << 30;
  OVERLAPPED place = {};
  place.Offset = static_cast<DWORD>(offset);
  place.OffsetHigh = static_cast<DWORD>(offset >> 32);
  DWORD read = 0;
  const auto most = static_cast<DWORD>(std::min(size, kMostAtOnce));
  if (::ReadFile(Handle(file), memory, most, &read, &place) == 0 &&
      ::GetLastError() != ERROR_HANDLE_EOF) {
    return LastError();
  }
  *got = read;
  return 0;
}

int MapFile(FileHandle::Value file, size_t size, const std::byte** memory) {
  const HANDLE section = ::CreateFileMappingW(Handle(file), nullptr, PAGE_READONLY, 0, 0, nullptr);
  if (section == nullptr) return LastError();
  const void* const mapped = ::MapViewOfFile(section, FILE_MAP_READ, 0, 0, size);
  const int error = mapped == nullptr ? LastError() : 0;
  (void)::CloseHandle(section);  // the view keeps it
  *memory = static_cast<const std::byte*>(mapped);
  return error;
}

void UnmapFile(const std::byte* memory, size_t /*size*/) { (void)::UnmapViewOfFile(memory); }

// Of pages that were not locked it takes them out of the process's working set.
void ReleaseMappedPages(const std::byte* memory, size_t size) {
  (void)::VirtualUnlock(const_cast<std::byte*>(memory), size);
}

// There are none for files. What is left is to read ahead.
void PreferLargeMappedPages(const std::byte* memory, size_t size) {
  WIN32_MEMORY_RANGE_ENTRY range = {const_cast<std::byte*>(memory), size};
  (void)::PrefetchVirtualMemory(::GetCurrentProcess(), 1, &range, 0);
}

std::FILE* OpenStream(const std::filesystem::path& path, const char* mode) {
  // N: child processes do not inherit it.
  const std::wstring wide = std::wstring(mode, mode + std::strlen(mode)) + L"N";
  return ::_wfopen(path.c_str(), wide.c_str());
}

FileHandle::Value HandleOf(std::FILE* stream) { return ::_get_osfhandle(::_fileno(stream)); }

int SyncStream(std::FILE* stream) {
  return ::FlushFileBuffers(Handle(HandleOf(stream))) != 0 ? 0 : LastError();
}

// Windows has no way to do that for a folder.
int SyncPath(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path)) return 0;
  const FileHandle file = Open(path, GENERIC_WRITE);
  if (file.get() == FileHandle::kNone) return LastError();
  return ::FlushFileBuffers(Handle(file.get())) != 0 ? 0 : LastError();
}

int RenameOver(const std::filesystem::path& from, const std::filesystem::path& to) {
  // As POSIX has it, which file systems of Windows 10 can: whoever has the old file open or mapped
  // keeps it. Others replace it only while nobody has.
  const std::wstring& name = to.native();
  const FileHandle file = Open(from, DELETE);
  if (file.get() == FileHandle::kNone) return LastError();
  const size_t bytes = name.size() * sizeof(wchar_t);
  const auto memory = std::make_unique<std::byte[]>(sizeof(FILE_RENAME_INFO) + bytes);
  auto* const info = ::new (memory.get()) FILE_RENAME_INFO{};
  info->Flags = FILE_RENAME_FLAG_REPLACE_IF_EXISTS | FILE_RENAME_FLAG_POSIX_SEMANTICS;
  info->FileNameLength = static_cast<DWORD>(bytes);
  std::memcpy(info->FileName, name.c_str(), bytes);
  if (::SetFileInformationByHandle(Handle(file.get()), FileRenameInfoEx, info,
                                   static_cast<DWORD>(sizeof(FILE_RENAME_INFO) + bytes)) != 0) {
    return 0;
  }
  constexpr DWORD kFlags = MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH;
  return ::MoveFileExW(from.c_str(), to.c_str(), kFlags) != 0 ? 0 : LastError();
}

int SetPermissions(std::FILE* /*stream*/, const std::filesystem::path& name,
                   std::filesystem::perms permissions) {
  std::error_code error;
  std::filesystem::permissions(name, permissions, error);
  return error ? ErrorNumber(error) : 0;
}

// The folder's access list says who may.
void LetOnlyOwnerWrite(std::FILE* /*stream*/) {}

bool HoldTemporary(FileHandle::Value /*file*/) { return true; }

bool HoldTemporaryFolder(const std::filesystem::path& folder, FileHandle* held) {
  *held = Open(folder, FILE_LIST_DIRECTORY, FILE_FLAG_OPEN_REPARSE_POINT,
               FILE_SHARE_READ | FILE_SHARE_WRITE);
  return held->get() != FileHandle::kNone || ::GetLastError() != ERROR_FILE_NOT_FOUND;
}

FileHandle KeepHold(std::FILE* /*stream*/) { return {}; }

int RenameHeldFolder(const std::filesystem::path& from, const std::filesystem::path& to,
                     FileHandle* held) {
  held->Reset(FileHandle::kNone);
  std::error_code error;
  std::filesystem::rename(from, to, error);
  return error ? ErrorNumber(error) : 0;
}

void RemoveIfAbandoned(const std::filesystem::path& path) {
  // Between the last byte of a file and its rename nobody holds it, for a moment.
  std::error_code error;
  const auto modified = std::filesystem::last_write_time(path, error);
  const auto now = std::filesystem::file_time_type::clock::now();
  if (error || now - modified < std::chrono::minutes(1)) return;
  if (Open(path, DELETE, FILE_FLAG_OPEN_REPARSE_POINT).get() == FileHandle::kNone) return;
  std::filesystem::remove_all(path, error);
}

}  // namespace encore::internal
