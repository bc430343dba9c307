// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a safetensors file: an error with a sentence, or tensors that lie inside the file.
// The input is the header's text, a divider and the data, so that lengths need not be guessed.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "encore/safetensors.h"
#include "tests/fuzz/target.h"

namespace encore::fuzz {
namespace {

void Touch(const SafetensorsFile& file, std::span<const std::byte> bytes) {
  for (const SafetensorsEntry& entry : file.tensors()) {
    if (!entry.bytes.empty()) {
      ENCORE_FUZZ_CHECK(entry.bytes.data() >= bytes.data());
      ENCORE_FUZZ_CHECK(entry.bytes.data() + entry.bytes.size() <= bytes.data() + bytes.size());
    }
    ENCORE_FUZZ_CHECK(file.Find(entry.name) == &entry);
    const Result<Tensor> raw = file.Read(entry.name);
    if (raw.ok()) ENCORE_FUZZ_CHECK(raw->size_bytes() == entry.bytes.size());
    if (!raw.ok()) CheckError(raw.status());
    const Result<Tensor> converted = file.ReadAsF32(entry.name);
    if (!converted.ok()) CheckError(converted.status());
  }
}

}  // namespace

void RunSafetensors(std::string_view input) {
  const std::vector<std::string_view> parts = Parts(input, 2);
  std::string file;
  if (parts[1].data() == nullptr) {  // no divider: the bytes are the whole file
    file = input;
  } else {
    for (size_t i = 0; i < 8; ++i) {
      file.push_back(static_cast<char>((uint64_t{parts[0].size()} >> (8 * i)) & 0xFF));
    }
    file += parts[0];
    file += parts[1];
  }
  const std::vector<char> exact(file.begin(), file.end());  // a sanitizer sees one byte too many
  const std::span<const std::byte> bytes = std::as_bytes(std::span(exact));
  const Result<SafetensorsFile> opened = SafetensorsFile::FromBytes(bytes, "fuzz");
  if (!opened.ok()) {
    CheckError(opened.status());
    return;
  }
  Touch(*opened, bytes);
}

}  // namespace encore::fuzz
