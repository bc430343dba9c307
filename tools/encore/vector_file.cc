// SPDX-License-Identifier: Apache-2.0
//
// Headers and rows of the three formats. npy is that of NumPy's NEP 1, version 1.0. The headers of
// npy and safetensors are written with room for any number of rows, and again at the end.

#include "tools/encore/vector_file.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

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

// Empty for JSON lines.
std::string HeaderOf(VectorFormat format, size_t rows, size_t columns) {
  switch (format) {
    case VectorFormat::kNpy:
      return NpyHeader(rows, columns);
    case VectorFormat::kSafetensors:
      return SafetensorsHeader(rows, columns);
    case VectorFormat::kJsonLines:
      break;
  }
  return "";
}

std::string JsonLine(std::span<const float> vector) {
  std::string text;
  for (const float& value : vector) {
    text += &value == vector.data() ? '[' : ',';
    text += ShortestText(value);
  }
  return text + "]\n";
}

std::span<const float> ValuesOf(ConstView rows, size_t columns) {
  return {rows.data(), rows.dim(0) * columns};
}

}  // namespace

VectorFormat VectorFormatOf(const std::string& path) {
  const auto ends = [&](const std::string& ending) {
    return path.size() > ending.size() && path.ends_with(ending);
  };
  if (ends(".npy")) return VectorFormat::kNpy;
  if (ends(".safetensors")) return VectorFormat::kSafetensors;
  if (ends(".jsonl")) return VectorFormat::kJsonLines;
  throw Failure("--output " + path + ": wanted a name that ends in .npy, .safetensors or .jsonl");
}

WrittenVectors::WrittenVectors(const std::string& path, size_t columns)
    : format_(VectorFormatOf(path)), file_(Take(internal::MappedFile::Open(path), "--resume")) {
  const std::string_view all = bytes();
  const auto refuse = [&] {
    throw Failure("--resume: " + path + " is no file that this command wrote with " +
                  Counted(columns, "column") + ", wanted one or none");
  };
  if (format_ == VectorFormat::kJsonLines) {
    if (!all.empty() && !all.ends_with('\n')) refuse();
    line_starts_.push_back(0);
    while (line_starts_.back() < all.size()) {
      const std::string_view line = all.substr(line_starts_.back());
      const size_t end = line.find('\n');
      const auto commas = std::count(line.begin(), line.begin() + static_cast<ptrdiff_t>(end), ',');
      if (line[0] != '[' || end < 2 || line[end - 1] != ']' ||
          static_cast<size_t>(commas) + 1 != columns) {
        refuse();
      }
      line_starts_.push_back(line_starts_.back() + end + 1);
    }
    rows_ = line_starts_.size() - 1;
    return;
  }
  row_bytes_ = columns * sizeof(float);
  if (all.size() < kHeaderBytes || (all.size() - kHeaderBytes) % row_bytes_ != 0) refuse();
  rows_ = (all.size() - kHeaderBytes) / row_bytes_;
  if (all.substr(0, kHeaderBytes) != HeaderOf(format_, rows_, columns)) refuse();
}

std::string_view WrittenVectors::bytes() const {
  return {reinterpret_cast<const char*>(file_.bytes().data()), file_.bytes().size()};
}

bool WrittenVectors::Holds(size_t row, std::span<const float> vector) const {
  if (format_ == VectorFormat::kJsonLines) {
    return bytes().substr(line_starts_[row], line_starts_[row + 1] - line_starts_[row]) ==
           JsonLine(vector);
  }
  return std::memcmp(bytes().data() + kHeaderBytes + row * row_bytes_, vector.data(), row_bytes_) ==
         0;
}

VectorWriter::VectorWriter(const std::string& path, size_t columns)
    : format_(VectorFormatOf(path)),
      columns_(columns),
      file_(Take(internal::FileWriter::Create(path), "--output")) {
  Append(Header());
}

void VectorWriter::Append(const WrittenVectors& written) {
  Append(written.bytes().substr(Header().size()));
  rows_ += written.rows();
}

size_t VectorWriter::FirstUnwritable(ConstView rows) const {
  if (format_ != VectorFormat::kJsonLines) return rows.dim(0);
  const std::span<const float> values = ValuesOf(rows, columns_);
  const auto found =
      std::find_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
  return static_cast<size_t>(found - values.begin()) / columns_;
}

void VectorWriter::Write(ConstView rows) {
  const std::span<const float> values = ValuesOf(rows, columns_);
  rows_ += rows.dim(0);
  if (format_ != VectorFormat::kJsonLines) {
    Check(file_.Write(std::as_bytes(values)), "--output");
    return;
  }
  std::string text;
  for (size_t i = 0; i < rows.dim(0); ++i) text += JsonLine(values.subspan(i * columns_, columns_));
  Append(text);
}

void VectorWriter::Commit() {
  const std::string header = Header();
  Check(file_.Replace(0, std::as_bytes(std::span(header))), "--output");
  Check(file_.Commit(), "--output");
}

std::string VectorWriter::Header() const { return HeaderOf(format_, rows_, columns_); }

void VectorWriter::Append(std::string_view bytes) {
  Check(file_.Write(std::as_bytes(std::span(bytes))), "--output");
}

}  // namespace encore::tool
