// SPDX-License-Identifier: Apache-2.0
//
// Random names, and locks that end with their process.

#include "engine/platform/temporary_name.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <exception>
#include <random>
#include <string>
#include <string_view>
#include <system_error>

#include "engine/platform/descriptor.h"

namespace encore::inline v0_1::internal {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::system_clock;

constexpr std::string_view kTemporaryStart = ".encore-";
constexpr std::string_view kTemporaryEnd = ".tmp";

#if ENCORE_HAVE_DESCRIPTORS
bool IsTemporaryName(std::string_view name) {
  if (!name.starts_with(kTemporaryStart) || !name.ends_with(kTemporaryEnd)) return false;
  name.remove_prefix(kTemporaryStart.size());
  const size_t digits = name.find_first_not_of("0123456789");
  return digits > 0 && name.substr(digits) == kTemporaryEnd;
}

void RemoveIfAbandoned(const fs::path& path) {
  constexpr int kFlags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  // Some network file systems lock only what may be written.
  int descriptor = ::open(path.c_str(), O_RDWR | kFlags);
  if (descriptor < 0) descriptor = ::open(path.c_str(), O_RDONLY | kFlags);
  const Descriptor file(descriptor);
  struct stat status = {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0 || status.st_uid != ::geteuid()) return;
  if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) return;
  // What waits for its first lock, in HoldTemporary, finds this one and takes another name.
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) return;
  std::error_code ignored;
  fs::remove_all(path, ignored);
}
#endif

uint64_t RandomNumber() {
  try {
    std::random_device random;
    return (uint64_t{random()} << 32) | random();
  } catch (const std::exception&) {
    // A folder that is all there is, without /dev/urandom. Whoever finds the name taken asks again.
    static std::atomic<uint64_t> calls{0};
    const auto now = static_cast<uint64_t>(Clock::now().time_since_epoch().count());
    return (now + calls++) * 0x9E3779B97F4A7C15u;
  }
}

}  // namespace

fs::path TemporaryName(const fs::path& destination) {
  return destination.parent_path() / (std::string(kTemporaryStart) +
                                      std::to_string(RandomNumber()) + std::string(kTemporaryEnd));
}

bool HoldTemporary([[maybe_unused]] int descriptor) {
#if ENCORE_HAVE_DESCRIPTORS
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) return errno != EWOULDBLOCK;
  struct stat status = {};
  return ::fstat(descriptor, &status) != 0 || status.st_nlink > 0;
#else
  return true;
#endif
}

void RemoveAbandoned([[maybe_unused]] const fs::path& folder) {
#if ENCORE_HAVE_DESCRIPTORS
  std::error_code error;
  fs::directory_iterator entry(folder.empty() ? "." : folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (IsTemporaryName(entry->path().filename().native())) RemoveIfAbandoned(entry->path());
  }
#endif
}

}  // namespace encore::internal
