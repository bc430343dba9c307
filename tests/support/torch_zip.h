// SPDX-License-Identifier: Apache-2.0
//
// Files of torch.save made by hand, for tests: a zip of stored entries, and the opcodes of pickle
// that a tensor is made of. Independent of encore's reader.

#ifndef ENCORE_TESTS_SUPPORT_TORCH_ZIP_H_
#define ENCORE_TESTS_SUPPORT_TORCH_ZIP_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace encore {

using ZipEntries = std::vector<std::pair<std::string, std::string>>;

// The lowest bytes of a number, the lowest first.
inline std::string LittleEndian(uint64_t number, size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i, number >>= 8) text.push_back(static_cast<char>(number & 0xFF));
  return text;
}

// All in the folder "made". Without checksums, which nobody reads.
inline std::string StoredZip(const ZipEntries& entries) {
  std::string file;
  std::string directory;
  for (const auto& [name, bytes] : entries) {
    const std::string path = "made/" + name;
    const std::string common = LittleEndian(0, 12) + LittleEndian(bytes.size(), 4) +
                               LittleEndian(bytes.size(), 4) + LittleEndian(path.size(), 2);
    directory += "PK\x01\x02" + LittleEndian(0, 4) + common.substr(0, 12) + common.substr(12) +
                 LittleEndian(0, 12) + LittleEndian(file.size(), 4) + path;
    file += "PK\x03\x04" + LittleEndian(0, 2) + common + LittleEndian(0, 2) + path + bytes;
  }
  const std::string count = LittleEndian(entries.size(), 2);
  return file + directory + "PK\x05\x06" + LittleEndian(0, 4) + count + count +
         LittleEndian(directory.size(), 4) + LittleEndian(file.size(), 4) + LittleEndian(0, 2);
}

// ---- Of a pickle.
inline std::string PickledText(std::string_view text) {
  return "X" + LittleEndian(text.size(), 4) + std::string(text);
}
inline std::string PickledNumber(uint64_t number) { return "J" + LittleEndian(number, 4); }
// At most two numbers.
inline std::string PickledSizes(const std::vector<size_t>& sizes) {
  std::string text;
  for (const size_t size : sizes) text += PickledNumber(size);
  return text + (sizes.empty() ? ")" : sizes.size() == 1 ? "\x85" : "\x86");
}
inline std::string PickledStorage(const std::string& kind, const std::string& name,
                                  size_t elements) {
  return "(" + PickledText("storage") + "ctorch\n" + kind + "Storage\n" + PickledText(name) +
         PickledText("cpu") + PickledNumber(elements) + "tQ";
}
inline std::string PickledTensor(const std::string& storage, size_t offset,
                                 const std::vector<size_t>& shape,
                                 const std::vector<size_t>& strides) {
  return "ctorch._utils\n_rebuild_tensor_v2\n(" + storage + PickledNumber(offset) +
         PickledSizes(shape) + PickledSizes(strides) + "\x89" + "ccollections\nOrderedDict\n)RtR";
}
// `members`: keys and values in turn.
inline std::string PickledDict(const std::string& members) {
  return std::string("\x80\x02") + "ccollections\nOrderedDict\n)R(" + members + "u.";
}

}  // namespace encore

#endif  // ENCORE_TESTS_SUPPORT_TORCH_ZIP_H_
