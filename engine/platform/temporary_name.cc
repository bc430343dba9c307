// SPDX-License-Identifier: Apache-2.0
//
// Random names, and the search for those of killed processes.

#include "engine/platform/temporary_name.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <random>
#include <string>
#include <string_view>
#include <system_error>

#include "engine/platform/path.h"

namespace encore::inline v0_1::internal {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::system_clock;

constexpr std::string_view kTemporaryStart = ".encore-";
constexpr std::string_view kTemporaryEnd = ".tmp";

bool IsTemporaryName(std::string_view name) {
  if (!name.starts_with(kTemporaryStart) || !name.ends_with(kTemporaryEnd)) return false;
  name.remove_prefix(kTemporaryStart.size());
  const size_t digits = name.find_first_not_of("0123456789");
  return digits > 0 && name.substr(digits) == kTemporaryEnd;
}

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

void RemoveAbandoned(const fs::path& folder) {
  std::error_code error;
  fs::directory_iterator entry(folder.empty() ? "." : folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (IsTemporaryName(PathText(entry->path().filename()))) RemoveIfAbandoned(entry->path());
  }
}

}  // namespace encore::internal
