// SPDX-License-Identifier: Apache-2.0
//
// Reading a table of vectors by token id, and means of its rows.

#include "engine/models/static_table.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include "engine/base/bf16.h"
#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"

namespace encore::inline v0_1::internal {
namespace {

// Elements of a table as floats, without branches, so that loops over a row become vectors.
struct Half {
  uint16_t bits;
  operator float() const {  // NOLINT(google-explicit-constructor)
    const uint32_t magnitude = static_cast<uint32_t>(bits & 0x7FFFu) << 13;
    // 2^112 is the difference of the two biases, 127 - 15; subnormals come out right too.
    const auto value = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
    const uint32_t special = magnitude >= 0x0F800000u ? magnitude | 0x7F800000u : value;
    return std::bit_cast<float>(special | (static_cast<uint32_t>(bits & 0x8000u) << 16));
  }
};
struct BFloat {
  uint16_t bits;
  operator float() const { return Bf16ToF32(bits); }  // NOLINT(google-explicit-constructor)
};

// Columns that are summed up at once, and rows whose sum is f32.
constexpr size_t kColumns = 256;
constexpr size_t kRows = 32;

template <typename T>
void AddRow(const std::byte* row, size_t columns, float weight, float* sums) {
  for (size_t c = 0; c < columns; ++c) {
    T value;
    std::memcpy(&value, row + c * sizeof(T), sizeof(T));  // a file's rows may be unaligned
    sums[c] += weight * static_cast<float>(value);
  }
}

Status Refuse(const WeightFiles& files, std::string_view tensor, const std::string& found,
              const std::string& wanted) {
  return InvalidArgument(files.name() + ": tensor " + Quoted(tensor) + ": found " + found +
                         "; wanted " + wanted);
}

std::string Described(const SafetensorsEntry& entry) {
  return std::string(DTypeName(entry.dtype)) + " " + entry.shape.ToString();
}

bool IsFloat(DType type) {
  return type == DType::kF32 || type == DType::kF16 || type == DType::kBF16 || type == DType::kF64;
}

// The integers of a tensor, each below `rows`.
template <typename T>
Status ReadMapping(const WeightFiles& files, const SafetensorsEntry& entry, size_t rows,
                   std::vector<uint32_t>* mapping) {
  mapping->resize(entry.shape[0]);
  for (size_t i = 0; i < mapping->size(); ++i) {
    T row;
    std::memcpy(&row, entry.bytes.data() + i * sizeof(T), sizeof(T));
    if (row < 0 || static_cast<uint64_t>(row) >= rows) {
      return Refuse(files, entry.name, std::to_string(row) + " at " + std::to_string(i),
                    "rows of the table, 0 .. " + std::to_string(rows - 1));
    }
    (*mapping)[i] = static_cast<uint32_t>(row);
  }
  return {};
}

}  // namespace

Result<StaticTable> StaticTable::Create(const WeightFiles& files,
                                        std::vector<Decision>* decisions) {
  StaticTable table;
  WeightFiles::Found rows = files.Find("embedding.weight");
  if (rows.tensor == nullptr) rows = files.Find("embeddings");
  constexpr std::string_view kNames = "embedding.weight";
  if (rows.tensor == nullptr) {
    return Refuse(files, kNames, "neither it nor 'embeddings'", "the table [rows, width]");
  }
  const SafetensorsEntry& entry = *rows.tensor;
  const bool is_table = entry.shape.rank() == 2 && entry.shape[0] > 0 && entry.shape[1] > 0 &&
                        entry.shape[0] <= (size_t{1} << 31) && entry.shape[1] <= (size_t{1} << 20);
  if (!is_table || !(IsFloat(entry.dtype) || entry.dtype == DType::kI8)) {
    return Refuse(files, entry.name, Described(entry),
                  "[rows, width] in F32, F16, BF16, F64 or I8");
  }
  table.rows_ = entry.View();
  if (const SafetensorsEntry* mapping = files.Find("mapping").tensor) {
    const bool wide = mapping->dtype == DType::kI64;
    if (mapping->shape.rank() != 1 || mapping->shape[0] == 0 ||
        (!wide && mapping->dtype != DType::kI32)) {
      return Refuse(files, "mapping", Described(*mapping), "[vocabulary] in I64 or I32");
    }
    ENCORE_RETURN_IF_ERROR(
        wide ? ReadMapping<int64_t>(files, *mapping, entry.shape[0], &table.mapping_)
             : ReadMapping<int32_t>(files, *mapping, entry.shape[0], &table.mapping_));
  }
  if (const auto [file, weights] = files.Find("weights"); weights != nullptr) {
    if (!(weights->shape == Shape(table.vocab_size())) || !IsFloat(weights->dtype)) {
      return Refuse(files, "weights", Described(*weights),
                    "[" + std::to_string(table.vocab_size()) + "] of floats, one a token");
    }
    ENCORE_ASSIGN_OR_RETURN(table.weights_, file->ReadAsF32("weights"));
  }
  std::string text =
      std::to_string(entry.shape[0]) + " vectors in " + std::string(DTypeName(entry.dtype));
  if (!table.mapping_.empty()) {
    text += ", shared by " + std::to_string(table.vocab_size()) + " tokens";
  }
  if (table.weights_.size_bytes() > 0) text += ", a weight a token";
  decisions->push_back({"static embeddings", std::move(text), rows.file->name()});
  return table;
}

template <typename T>
void StaticTable::MeanOf(std::span<const int32_t> ids, float* out) const {
  const auto* const table = static_cast<const std::byte*>(rows_.data());
  const auto* const weights = static_cast<const float*>(weights_.data());
  const bool weighted = weights_.size_bytes() > 0;
  const double count = static_cast<double>(std::max<size_t>(ids.size(), 1));
  for (size_t column = 0; column < width(); column += kColumns) {
    const size_t columns = std::min(kColumns, width() - column);
    float sums[kColumns] = {};
    double total[kColumns] = {};
    for (size_t i = 0; i < ids.size(); ++i) {
      const auto id = static_cast<size_t>(ids[i]);
      const size_t row = mapping_.empty() ? id : mapping_[id];
      AddRow<T>(table + (row * width() + column) * sizeof(T), columns,
                weighted ? weights[id] : 1.0f, sums);
      if ((i + 1) % kRows != 0) continue;
      for (size_t c = 0; c < columns; ++c) total[c] += std::exchange(sums[c], 0.0f);
    }
    for (size_t c = 0; c < columns; ++c) {
      out[column + c] = static_cast<float>((total[c] + sums[c]) / count);
    }
  }
}

void StaticTable::Mean(std::span<const int32_t> ids, float* out) const {
  switch (rows_.dtype()) {
    case DType::kI8:
      return MeanOf<int8_t>(ids, out);
    case DType::kF16:
      return MeanOf<Half>(ids, out);
    case DType::kBF16:
      return MeanOf<BFloat>(ids, out);
    case DType::kF64:
      return MeanOf<double>(ids, out);
    default:  // F32: the type was checked
      return MeanOf<float>(ids, out);
  }
}

}  // namespace encore::internal
