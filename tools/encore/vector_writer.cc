// SPDX-License-Identifier: Apache-2.0
//
// The three formats. npy is that of NumPy's NEP 1, version 1.0; the headers of npy and safetensors
// are written with room for any number of rows, and again at the end.

#include "tools/encore/vector_writer.h"

#include <bit>
#include <span>

#include "tools/encore/failure.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

static_assert(std::endian::native == std::endian::little, "both formats are little-endian");

// Both headers with everything before the numbers: a multiple of 64, so that these are aligned.
constexpr size_t kHeaderBytes = 256;

std::string Padded(std::string text, size_t size) {
  text.resize(size, ' ');
  return text;
}

// Bytes of a number that precedes a header, lowest first.
std::string LittleEndian(size_t value, size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i) text += static_cast<char>((value >> (8 * i)) & 0xFF);
  return text;
}

std::string NpyHeader(size_t rows, size_t columns) {
  const std::string magic = "\x93NUMPY\x01";
  const size_t length = kHeaderBytes - magic.size() - 3;
  std::string header = Padded("{'descr': '<f4', 'fortran_order': False, 'shape': (" +
                                  std::to_string(rows) + ", " + std::to_string(columns) + "), }",
                              length - 1);
  return magic + '\0' + LittleEndian(length, 2) + header + '\n';
}

std::string SafetensorsHeader(size_t rows, size_t columns) {
  const size_t length = kHeaderBytes - 8;
  return LittleEndian(length, 8) +
         Padded(R"({"vectors":{"dtype":"F32","shape":[)" + std::to_string(rows) + "," +
                    std::to_string(columns) + R"(],"data_offsets":[0,)" +
                    std::to_string(rows * columns * sizeof(float)) + "]}}",
                length);
}

}  // namespace

VectorFormat FormatOf(const std::string& path) {
  const auto ends = [&](const std::string& ending) {
    return path.size() > ending.size() && path.ends_with(ending);
  };
  if (ends(".npy")) return VectorFormat::kNpy;
  if (ends(".safetensors")) return VectorFormat::kSafetensors;
  if (ends(".jsonl")) return VectorFormat::kJsonLines;
  throw Failure("--output " + path + ": wanted a name that ends in .npy, .safetensors or .jsonl");
}

VectorWriter::VectorWriter(const std::string& path, size_t columns)
    : format_(FormatOf(path)),
      columns_(columns),
      file_(Take(internal::FileWriter::Create(path), "--output")) {
  const std::string header = Header();
  Append(header.data(), header.size());
}

std::string VectorWriter::Header() const {
  switch (format_) {
    case VectorFormat::kNpy:
      return NpyHeader(rows_, columns_);
    case VectorFormat::kSafetensors:
      return SafetensorsHeader(rows_, columns_);
    case VectorFormat::kJsonLines:
      break;
  }
  return "";
}

void VectorWriter::Append(const char* data, size_t bytes) {
  Check(file_.Write(std::as_bytes(std::span<const char>(data, bytes))), "--output");
}

void VectorWriter::Write(ConstView rows) {
  const size_t values = rows.dim(0) * columns_;
  rows_ += rows.dim(0);
  if (format_ != VectorFormat::kJsonLines) {
    Append(reinterpret_cast<const char*>(rows.data()), values * sizeof(float));
    return;
  }
  std::string text;
  for (size_t i = 0; i < values; ++i) {
    text += (i % columns_ == 0 ? '[' : ',') + ShortestText(rows.data()[i]);
    if ((i + 1) % columns_ == 0) text += "]\n";
  }
  Append(text.data(), text.size());
}

void VectorWriter::Commit() {
  const std::string header = Header();
  Check(file_.Replace(0, std::as_bytes(std::span<const char>(header.data(), header.size()))),
        "--output");
  Check(file_.Commit(), "--output");
}

}  // namespace encore::tool
