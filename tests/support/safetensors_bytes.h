// SPDX-License-Identifier: Apache-2.0
//
// Safetensors files made by hand, for tests: from a header's text and the data. Independent of
// encore's writer.

#ifndef ENCORE_TESTS_SUPPORT_SAFETENSORS_BYTES_H_
#define ENCORE_TESTS_SUPPORT_SAFETENSORS_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/results.h"  // IWYU pragma: export

namespace encore {

// The 8 bytes of `length`, the header, the data; exactly as many bytes as that, so that a sanitizer
// sees one too many.
inline std::vector<std::byte> SafetensorsBytes(uint64_t length, std::string_view header,
                                               std::string_view data) {
  std::vector<std::byte> bytes(8 + header.size() + data.size());
  for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<std::byte>((length >> (8 * i)) & 0xFF);
  if (!header.empty()) std::memcpy(bytes.data() + 8, header.data(), header.size());
  if (!data.empty()) std::memcpy(bytes.data() + 8 + header.size(), data.data(), data.size());
  return bytes;
}

inline std::vector<std::byte> SafetensorsBytes(std::string_view header,
                                               std::string_view data = {}) {
  return SafetensorsBytes(header.size(), header, data);
}

// A folder of this test alone, gone afterwards with all that is in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::random_device random;
    do {
      path_ = std::filesystem::temp_directory_path() / ("encore-test-" + std::to_string(random()));
    } while (!std::filesystem::create_directory(path_));
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }

  std::string File(std::string_view name) const { return (path_ / name).string(); }
  const std::filesystem::path& path() const { return path_; }

  // Names of everything in it.
  std::vector<std::string> List() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }

 private:
  std::filesystem::path path_;
};

inline void WriteBytes(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

inline std::vector<std::byte> ReadBytes(const std::string& path) {
  std::vector<std::byte> bytes(std::filesystem::file_size(path));
  std::ifstream(path, std::ios::binary)
      .read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

}  // namespace encore

#endif  // ENCORE_TESTS_SUPPORT_SAFETENSORS_BYTES_H_
