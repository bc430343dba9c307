// SPDX-License-Identifier: Apache-2.0
//
// Reading a table of vectors by token id, and means of its rows.

#include "engine/models/static_table.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "engine/base/elements.h"
#include "engine/base/prefetch.h"
#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"

namespace encore::inline v0_1::internal {
namespace {

// Columns that are summed up at once, and rows whose sum is f32.
constexpr size_t kColumns = 256;
constexpr size_t kRows = 32;
constexpr size_t kPrefetchBytes = 1024;

// One chunk of a text: where the rows of its tokens begin, and what they are multiplied by.
struct ChunkOfRows {
  std::array<const std::byte*, kRows> at;
  std::array<float, kRows> weights;
};

// sums[c] += element c of each of the rows, one after the other: several at once, so that a sum is
// loaded and stored once for all of them. Without an inner loop, so that it becomes vectors at any
// level of optimization.
template <typename T, bool kWeighted, size_t... kRow>
void AddRows(std::index_sequence<kRow...>, const ChunkOfRows& chunk, size_t first, size_t columns,
             float* __restrict sums) {
  const std::array<const std::byte*, sizeof...(kRow)> rows = {chunk.at[first + kRow]...};
  const std::array<float, sizeof...(kRow)> weights = {
      (kWeighted ? chunk.weights[first + kRow] : 1.0f)...};
  for (size_t c = 0; c < columns; ++c) {
    float sum = sums[c];
    if constexpr (kWeighted) {
      ((sum += weights[kRow] * ElementAt<T>(rows[kRow], static_cast<ptrdiff_t>(c))), ...);
    } else {
      ((sum += ElementAt<T>(rows[kRow], static_cast<ptrdiff_t>(c))), ...);
    }
    sums[c] = sum;
  }
}

template <typename T, bool kWeighted>
void AddChunk(const ChunkOfRows& chunk, size_t count, size_t columns, float* sums) {
  size_t first = 0;
  for (; first + 8 <= count; first += 8)
    AddRows<T, kWeighted>(std::make_index_sequence<8>(), chunk, first, columns, sums);
  if ((count & 4) != 0)
    AddRows<T, kWeighted>(std::make_index_sequence<4>(), chunk, first, columns, sums);
  first += count & 4;
  if ((count & 2) != 0)
    AddRows<T, kWeighted>(std::make_index_sequence<2>(), chunk, first, columns, sums);
  first += count & 2;
  if ((count & 1) != 0)
    AddRows<T, kWeighted>(std::make_index_sequence<1>(), chunk, first, columns, sums);
}

Status Refuse(const WeightFiles& files, std::string_view tensor, const std::string& found,
              const std::string& wanted) {
  return InvalidArgument(files.name() + ": tensor " + Quoted(tensor) + ": found " + found +
                         "; wanted " + wanted);
}

std::string Described(const SafetensorsEntry& entry) {
  return std::string(DTypeName(entry.dtype)) + " " + entry.shape.ToString();
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
                  "[rows, width] in " + std::string(kFloatTypesOrInt8));
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

const std::byte* StaticTable::RowOf(int32_t id) const {
  const size_t row = mapping_.empty() ? static_cast<size_t>(id) : mapping_[static_cast<size_t>(id)];
  return static_cast<const std::byte*>(rows_.data()) + row * width() * DTypeSize(rows_.dtype());
}

template <typename T>
void StaticTable::MeanOf(std::span<const int32_t> ids, float* out) const {
  const auto* const weights = static_cast<const float*>(weights_.data());
  const bool weighted = weights_.size_bytes() > 0;
  const size_t count = std::max<size_t>(ids.size(), 1);
  for (size_t column = 0; column < width(); column += kColumns) {
    const size_t columns = std::min(kColumns, width() - column);
    float* const mean = out + column;
    float sums[kColumns] = {};
    double total[kColumns];
    for (size_t begin = 0; begin < ids.size(); begin += kRows) {
      const std::span<const int32_t> some = ids.subspan(begin, std::min(kRows, ids.size() - begin));
      ChunkOfRows chunk;
      for (size_t i = 0; i < some.size(); ++i) {
        chunk.at[i] = RowOf(some[i]) + column * sizeof(T);
        if (weighted) chunk.weights[i] = weights[some[i]];
      }
      if (begin == 0 && ids.size() > kRows) std::fill_n(total, columns, 0.0);
      if (weighted) {
        AddChunk<T, true>(chunk, some.size(), columns, sums);
      } else {
        AddChunk<T, false>(chunk, some.size(), columns, sums);
      }
      if (ids.size() <= kRows) break;
      for (size_t c = 0; c < columns; ++c) total[c] += std::exchange(sums[c], 0.0f);
    }
    if (ids.size() <= kRows) {
      // The bits of a quotient in double that is rounded: double has more than twice the digits.
      const auto divisor = static_cast<float>(count);
      for (size_t c = 0; c < columns; ++c) mean[c] = sums[c] / divisor;
    } else {
      const auto divisor = static_cast<double>(count);
      for (size_t c = 0; c < columns; ++c) mean[c] = static_cast<float>(total[c] / divisor);
    }
  }
}

void StaticTable::Prefetch(std::span<const int32_t> ids) const {
  // A row's first lines: the processor sees the others coming.
  const size_t bytes = std::min(width() * DTypeSize(rows_.dtype()), kPrefetchBytes);
  for (const int32_t id : ids.first(std::min(ids.size(), kRows))) {
    const std::byte* const row = RowOf(id);
    for (size_t i = 0; i < bytes; i += 64) PrefetchL1(row + i);
  }
}

void StaticTable::Mean(std::span<const int32_t> ids, float* out) const {
  VisitElements(rows_.dtype(), [&]<typename T>(T) { MeanOf<T>(ids, out); });
}

}  // namespace encore::internal
