// SPDX-License-Identifier: Apache-2.0
//
// A tokenizer's tables as bytes, in the order in which they are put and taken.
//
//   TableWriter writer;                     TableReader reader(bytes);
//   writer.Put(scores);                     if (!reader.Take(&scores)) ...

#ifndef ENCORE_ENGINE_TOKENIZER_PACKED_TABLES_H_
#define ENCORE_ENGINE_TOKENIZER_PACKED_TABLES_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace encore::inline v0_1::internal {

// What has no padding: each value has one spelling in bytes.
template <typename T>
concept TableValue = std::has_unique_object_representations_v<T> || std::floating_point<T>;

// Appends tables: each its number of values, 8 bytes, and the values. Throws std::bad_alloc.
class TableWriter {
 public:
  template <TableValue T>
  void Put(const std::vector<T>& values) {
    PutBytes(values.size(), values.data(), values.size() * sizeof(T));
  }
  void Put(const std::string& text) { PutBytes(text.size(), text.data(), text.size()); }
  void Put(uint64_t number) { PutBytes(number, nullptr, 0); }
  const std::string& bytes() const { return bytes_; }

 private:
  void PutBytes(uint64_t count, const void* data, size_t size) {
    bytes_.append(reinterpret_cast<const char*>(&count), sizeof count);
    if (size != 0) bytes_.append(static_cast<const char*>(data), size);
  }

  std::string bytes_;
};

// Takes them back as copies, which no change of the bytes reaches. False where fewer bytes are left
// than a table says: what was taken then is to be thrown away. Throws std::bad_alloc.
class TableReader {
 public:
  explicit TableReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <TableValue T>
  [[nodiscard]] bool Take(std::vector<T>* values) {
    uint64_t count = 0;
    if (!Take(&count) || count > bytes_.size() / sizeof(T)) return false;
    values->resize(static_cast<size_t>(count));
    TakeBytes(values->data(), values->size() * sizeof(T));
    return true;
  }
  [[nodiscard]] bool Take(std::string* text) {
    uint64_t size = 0;
    if (!Take(&size) || size > bytes_.size()) return false;
    text->resize(static_cast<size_t>(size));
    TakeBytes(text->data(), text->size());
    return true;
  }
  [[nodiscard]] bool Take(uint64_t* number) {
    if (bytes_.size() < sizeof *number) return false;
    TakeBytes(number, sizeof *number);
    return true;
  }
  bool AtEnd() const { return bytes_.empty(); }

 private:
  void TakeBytes(void* to, size_t size) {
    if (size != 0) std::memcpy(to, bytes_.data(), size);
    bytes_ = bytes_.subspan(size);
  }

  std::span<const std::byte> bytes_;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_PACKED_TABLES_H_
