// SPDX-License-Identifier: Apache-2.0
//
// Headers and rows of the three formats, in four types of numbers. npy is that of NumPy's NEP 1,
// version 1.0. The headers of npy and safetensors are written with room for any number of rows, and
// again at the end.

#include "tools/encore/vector_file.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>

#include "engine/base/bf16.h"
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

struct TypeName {
  const char* name;   // of --output-type
  const char* npy;    // in the header
  const char* dtype;  // of safetensors
  size_t bits;        // of a number
};
constexpr TypeName kTypes[] = {{"f32", "<f4", "F32", 32},
                               {"f16", "<f2", "F16", 16},
                               {"int8", "|i1", "I8", 8},
                               {"ubinary", "|u1", "U8", 1}};

const TypeName& NameOf(VectorType type) { return kTypes[static_cast<size_t>(type)]; }

std::string NpyHeader(const VectorLayout& layout, size_t rows) {
  const std::string magic = "\x93NUMPY\x01";
  const size_t length = kHeaderBytes - magic.size() - 3;
  std::string header = Padded(std::string("{'descr': '") + NameOf(layout.type).npy +
                                  "', 'fortran_order': False, 'shape': (" + std::to_string(rows) +
                                  ", " + std::to_string(layout.columns()) + "), }",
                              length - 1);
  return magic + '\0' + LittleEndian(length, 2) + header + '\n';
}

std::string SafetensorsHeader(const VectorLayout& layout, size_t rows) {
  const size_t length = kHeaderBytes - 8;
  return LittleEndian(length, 8) +
         Padded(std::string(R"({"vectors":{"dtype":")") + NameOf(layout.type).dtype +
                    R"(","shape":[)" + std::to_string(rows) + "," +
                    std::to_string(layout.columns()) + R"(],"data_offsets":[0,)" +
                    std::to_string(rows * layout.row_bytes()) + "]}}",
                length);
}

// quantize_embeddings of sentence-transformers in f32, with ranges of -1 and 1.
int8_t ToInt8(float value) {
  constexpr float kStep = 2.0f / 255;
  const float step = std::clamp(std::floor((value + 1) / kStep), 0.0f, 255.0f);
  return static_cast<int8_t>(static_cast<int>(step) - 128);
}

// What fills the columns of a row: numbers of the file's type.
std::vector<float> Numbers(const VectorLayout& layout, std::span<const float> vector) {
  std::vector<float> numbers(vector.begin(), vector.end());
  if (layout.type == VectorType::kUbinary) {
    numbers.assign(layout.columns(), 0.0f);
    for (size_t i = 0; i < vector.size(); ++i) {
      if (vector[i] > 0) numbers[i / 8] += static_cast<float>(128 >> (i % 8));
    }
  }
  for (float& number : numbers) {
    if (layout.type == VectorType::kF16) number = internal::F16ToF32(internal::F32ToF16(number));
    if (layout.type == VectorType::kInt8) number = ToInt8(number);
  }
  return numbers;
}

std::string JsonLine(const VectorLayout& layout, std::span<const float> numbers,
                     const std::string& id) {
  std::string text;
  if (!layout.field.empty()) {
    text = (id.empty() ? "{" : "{\"id\":" + id + ",") + AsJson(layout.field) + ":";
  }
  for (const float& number : numbers) {
    text += &number == numbers.data() ? '[' : ',';
    text += ShortestText(number);
  }
  return text + (layout.field.empty() ? "]\n" : "]}\n");
}

}  // namespace

VectorLayout::VectorLayout(const std::string& path, const std::string& type_name,
                           const std::string& field_name)
    : field(field_name) {
  const auto ends = [&](const std::string& ending) {
    return path.size() > ending.size() && path.ends_with(ending);
  };
  if (ends(".npy")) {
    format = VectorFormat::kNpy;
  } else if (ends(".safetensors")) {
    format = VectorFormat::kSafetensors;
  } else if (ends(".jsonl")) {
    format = VectorFormat::kJsonLines;
  } else {
    throw Failure("--output " + path + ": wanted a name that ends in .npy, .safetensors or .jsonl");
  }
  if (!field.empty() && format != VectorFormat::kJsonLines) {
    throw Failure("--output-field is for an output that ends in .jsonl, found " + path);
  }
  const auto* const named = std::find_if(std::begin(kTypes), std::end(kTypes),
                                         [&](const TypeName& t) { return type_name == t.name; });
  if (named == std::end(kTypes)) {
    throw Failure("--output-type: found '" + type_name +
                  "', wanted f32, f16, int8 or ubinary, as each text has a vector");
  }
  type = static_cast<VectorType>(named - std::begin(kTypes));
}

size_t VectorLayout::columns() const {
  return type == VectorType::kUbinary ? row_bytes() : dimensions;
}

size_t VectorLayout::row_bytes() const { return (dimensions * NameOf(type).bits + 7) / 8; }

bool VectorLayout::CanHold(std::span<const float> vector) const {
  if (type == VectorType::kUbinary) return true;
  if (format != VectorFormat::kJsonLines && type != VectorType::kInt8) return true;
  const bool half = type == VectorType::kF16;
  return std::all_of(vector.begin(), vector.end(), [half](float value) {
    return std::isfinite(half ? internal::F16ToF32(internal::F32ToF16(value)) : value);
  });
}

std::string VectorLayout::Row(std::span<const float> vector, const std::string& id) const {
  const std::vector<float> numbers = Numbers(*this, vector);
  if (format == VectorFormat::kJsonLines) return JsonLine(*this, numbers, id);
  std::string bytes;
  for (const float number : numbers) {
    if (type == VectorType::kF16) {
      bytes += LittleEndian(internal::F32ToF16(number), 2);
    } else if (type == VectorType::kF32) {
      bytes += LittleEndian(std::bit_cast<uint32_t>(number), 4);
    } else {
      bytes += static_cast<char>(static_cast<int>(number));
    }
  }
  return bytes;
}

std::string VectorLayout::Header(size_t rows) const {
  if (format == VectorFormat::kJsonLines) return "";
  return format == VectorFormat::kNpy ? NpyHeader(*this, rows) : SafetensorsHeader(*this, rows);
}

WrittenVectors::WrittenVectors(const std::string& path, const VectorLayout& layout)
    : layout_(layout), file_(Take(internal::MappedFile::Open(path), "--resume")) {
  const std::string_view all = bytes();
  const auto refuse = [&] {
    throw Failure("--resume: " + path + " is no file that this command wrote with " +
                  Counted(layout.columns(), "column") + ", wanted one or none");
  };
  if (layout.format == VectorFormat::kJsonLines) {
    if (!all.empty() && !all.ends_with('\n')) refuse();
    const std::string first = layout.field.empty() ? "[" : "{";
    const std::string last = layout.field.empty() ? "]" : "]}";
    row_starts_.push_back(0);
    while (row_starts_.back() < all.size()) {
      std::string_view line = all.substr(row_starts_.back());
      line = line.substr(0, line.find('\n'));
      const size_t open = std::min(line.rfind('['), line.size());
      const auto commas = std::count(line.begin() + static_cast<ptrdiff_t>(open), line.end(), ',');
      if (!line.starts_with(first) || !line.ends_with(last) ||
          static_cast<size_t>(commas) + 1 != layout.columns()) {
        refuse();
      }
      row_starts_.push_back(row_starts_.back() + line.size() + 1);
    }
    rows_ = row_starts_.size() - 1;
    return;
  }
  const size_t row = layout.row_bytes();
  if (all.size() < kHeaderBytes || (all.size() - kHeaderBytes) % row != 0) refuse();
  rows_ = (all.size() - kHeaderBytes) / row;
  if (all.substr(0, kHeaderBytes) != layout.Header(rows_)) refuse();
}

std::string_view WrittenVectors::bytes() const {
  return {reinterpret_cast<const char*>(file_.bytes().data()), file_.bytes().size()};
}

std::string_view WrittenVectors::row_bytes() const {
  return bytes().substr(layout_.Header(0).size());
}

uint64_t WrittenVectors::checksum() const { return internal::ChecksumOf(row_bytes()); }

bool WrittenVectors::Holds(size_t row, std::span<const float> vector, const std::string& id) const {
  const size_t size = layout_.row_bytes();
  const bool lines = layout_.format == VectorFormat::kJsonLines;
  const std::string_view found =
      lines ? bytes().substr(row_starts_[row], row_starts_[row + 1] - row_starts_[row])
            : bytes().substr(kHeaderBytes + row * size, size);
  return found == layout_.Row(vector, id);
}

VectorWriter::VectorWriter(const std::string& path, const VectorLayout& layout)
    : layout_(layout), file_(Take(internal::FileWriter::Create(path), "--output")) {
  const std::string header = layout_.Header(0);
  Check(file_.Write(std::as_bytes(std::span(header))), "--output");
}

void VectorWriter::Append(const WrittenVectors& written) {
  Append(std::as_bytes(std::span(written.row_bytes())));
  rows_ += written.rows();
}

size_t VectorWriter::FirstUnwritable(ConstView rows) const {
  size_t row = 0;
  while (row < rows.dim(0) && layout_.CanHold({rows[row].data(), layout_.dimensions})) ++row;
  return row;
}

void VectorWriter::Write(ConstView rows, const std::vector<std::string>& ids) {
  rows_ += rows.dim(0);
  if (layout_.format != VectorFormat::kJsonLines && layout_.type == VectorType::kF32) {
    const std::span<const float> values(rows.data(), rows.dim(0) * layout_.dimensions);
    Append(std::as_bytes(values));
    return;
  }
  std::string text;
  for (size_t i = 0; i < rows.dim(0); ++i) {
    text += layout_.Row({rows[i].data(), layout_.dimensions}, ids[i]);
  }
  Append(std::as_bytes(std::span(text)));
}

void VectorWriter::Commit() {
  const std::string header = layout_.Header(rows_);
  Check(file_.Replace(0, std::as_bytes(std::span(header))), "--output");
  CheckWritten(file_.Commit(), "--output");
}

void VectorWriter::Append(std::span<const std::byte> bytes) {
  checksum_.Add(bytes);
  Check(file_.Write(bytes), "--output");
}

}  // namespace encore::tool
