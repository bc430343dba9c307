// SPDX-License-Identifier: Apache-2.0
//
// A file of named arrays that numpy.load reads: a zip of .npy files, of which each may be written
// before its length is known.

#ifndef ENCORE_TOOLS_ENCORE_NPZ_FILE_H_
#define ENCORE_TOOLS_ENCORE_NPZ_FILE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/platform/file_writer.h"

namespace encore::tool {

// Arrays one after the other. The file appears whole, by Commit(), or not at all. Throws Failure.
class NpzWriter {
 public:
  explicit NpzWriter(const std::string& path);

  // An array of numbers of this type ("<f4"), whose bytes follow.
  void Begin(const std::string& name, const std::string& type);
  template <typename T>
  void Append(std::span<const T> numbers) {
    AppendBytes(std::as_bytes(numbers));
  }
  // Its shape, as Python writes it: "(3,)".
  void End(const std::string& shape);
  // All three.
  template <typename T>
  void Add(const std::string& name, const std::string& type, const std::string& shape,
           std::span<const T> numbers) {
    Begin(name, type);
    Append(numbers);
    End(shape);
  }

  void Commit();

 private:
  struct Entry {
    std::string name;
    size_t place;      // of its header
    size_t bytes = 0;  // of the .npy file
    uint32_t crc = 0;  // of these
  };
  void AppendBytes(std::span<const std::byte> bytes);
  void Write(std::string_view bytes);
  static std::string LocalHeader(const Entry& entry);
  static std::string DirectoryEntry(const Entry& entry);

  internal::FileWriter file_;
  size_t written_ = 0;
  std::vector<Entry> entries_;
  std::string type_;      // of the last one
  uint32_t numbers_ = 0;  // checksum of its numbers
};

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_NPZ_FILE_H_
