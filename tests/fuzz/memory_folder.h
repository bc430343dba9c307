// SPDX-License-Identifier: Apache-2.0
//
// A folder of files for a target, in memory if the system has one there, gone at the end of the
// process.

#ifndef ENCORE_TESTS_FUZZ_MEMORY_FOLDER_H_
#define ENCORE_TESTS_FUZZ_MEMORY_FOLDER_H_

#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <system_error>

namespace encore::fuzz {

// A new folder, in memory if the system has one there.
inline std::filesystem::path NewMemoryFolder() {
  namespace fs = std::filesystem;
  const fs::path memory = "/dev/shm";
  const fs::path parent = fs::exists(memory) ? memory : fs::temp_directory_path();
  std::random_device random;
  for (;;) {
    const fs::path path = parent / ("encore-fuzz-" + std::to_string(random()));
    if (fs::create_directory(path)) return path;
  }
}

class MemoryFolder {
 public:
  MemoryFolder() : path_(NewMemoryFolder()) {}
  ~MemoryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  MemoryFolder(const MemoryFolder&) = delete;
  MemoryFolder& operator=(const MemoryFolder&) = delete;

  std::string path() const { return path_.string(); }

  // An empty file is none. Nothing is written that is there already.
  void Write(std::string_view name, std::string_view content) {
    const std::filesystem::path file = path_ / name;
    const auto [entry, is_new] = written_.try_emplace(std::string(name));
    if (!is_new && entry->second == content) return;
    entry->second = content;
    if (content.empty()) {
      std::filesystem::remove(file);
      return;
    }
    std::filesystem::create_directories(file.parent_path());
    // Another file: the old one may be mapped.
    std::filesystem::remove(file);
    std::ofstream(file, std::ios::binary) << content;
  }

 private:
  std::filesystem::path path_;
  std::map<std::string, std::string> written_;
};

}  // namespace encore::fuzz

#endif  // ENCORE_TESTS_FUZZ_MEMORY_FOLDER_H_
