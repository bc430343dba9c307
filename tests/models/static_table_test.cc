// SPDX-License-Identifier: Apache-2.0
//
// Means of a static table's rows, bit for bit as the definition has them: sums in f32 over 32
// tokens, from token to token, and in f64 over these.

#include "engine/models/static_table.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "engine/base/bf16.h"
#include "engine/io/folder.h"
#include "engine/models/weight_files.h"
#include "gtest/gtest.h"
#include "tests/support/compare.h"
#include "tests/support/safetensors_bytes.h"

namespace encore {
namespace {

using internal::StaticTable;

constexpr size_t kTableRows = 40;
constexpr float kInf = std::numeric_limits<float>::infinity();

// A table of random numbers in a type, some of them subnormal in f16 and one infinite.
struct DrawnTable {
  DrawnTable(DType stored_type, size_t columns) : type(stored_type), width(columns) {
    floats = RandomFloats(kTableRows * width, 1);
    for (size_t i = 0; i < floats.size(); i += 7) floats[i] *= 0x1p-15f;
    floats.back() = kInf;
    bytes.resize(floats.size() * DTypeSize(type));
    for (size_t i = 0; i < floats.size(); ++i) {
      std::byte* const at = bytes.data() + i * DTypeSize(type);
      if (type == DType::kF32) {
        std::memcpy(at, &floats[i], 4);
      } else if (type == DType::kF64) {
        const double value = floats[i];
        std::memcpy(at, &value, 8);
      } else if (type == DType::kI8) {
        const auto value = static_cast<int8_t>(static_cast<int>(i * 37 % 255) - 127);
        floats[i] = value;
        std::memcpy(at, &value, 1);
      } else {
        const bool half = type == DType::kF16;
        const uint16_t bits = half ? internal::F32ToF16(floats[i]) : internal::F32ToBf16(floats[i]);
        floats[i] = half ? internal::F16ToF32(bits) : internal::Bf16ToF32(bits);
        std::memcpy(at, &bits, 2);
      }
    }
  }

  DType type;
  size_t width;
  std::vector<float> floats;  // what the table holds
  std::vector<std::byte> bytes;
};

std::vector<float> DefinedMean(const DrawnTable& table, const std::vector<int64_t>& mapping,
                               const std::vector<float>& weights, const std::vector<int32_t>& ids) {
  std::vector<float> mean(table.width);
  for (size_t c = 0; c < table.width; ++c) {
    double total = 0;
    float sum = 0;
    for (size_t i = 0; i < ids.size(); ++i) {
      const auto id = static_cast<size_t>(ids[i]);
      const size_t row = mapping.empty() ? id : static_cast<size_t>(mapping[id]);
      sum += (weights.empty() ? 1.0f : weights[id]) * table.floats[row * table.width + c];
      if ((i + 1) % 32 != 0) continue;
      total += sum;
      sum = 0;
    }
    const double count = ids.empty() ? 1 : static_cast<double>(ids.size());
    mean[c] = static_cast<float>((total + sum) / count);
  }
  return mean;
}

template <typename T>
SafetensorsEntry EntryOf(const std::string& name, DType type, const Shape& shape,
                         const std::vector<T>& numbers) {
  return {name, type, shape, std::as_bytes(std::span(numbers))};
}

TEST(StaticTableTest, MeansHaveTheBitsOfTheDefinition) {
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16, DType::kF64, DType::kI8}) {
    for (const size_t width : {size_t{1}, size_t{3}, size_t{256}, size_t{300}}) {
      for (const bool plain : {true, false}) {
        SCOPED_TRACE(std::string(DTypeName(type)) + " " + std::to_string(width));
        const DrawnTable drawn(type, width);
        std::vector<int64_t> mapping;
        std::vector<float> weights;
        std::vector<SafetensorsEntry> entries = {
            EntryOf("embedding.weight", type, Shape(kTableRows, width), drawn.bytes)};
        if (!plain) {
          for (size_t i = 0; i < 60; ++i)
            mapping.push_back(static_cast<int64_t>(i * 7 % kTableRows));
          weights = RandomFloats(60, 2);
          entries.push_back(EntryOf("mapping", DType::kI64, Shape(60), mapping));
          entries.push_back(EntryOf("weights", DType::kF32, Shape(60), weights));
        }
        const TemporaryFolder folder;
        ASSERT_TRUE(WriteSafetensors(folder.File("model.safetensors"), entries).ok());
        const auto opened = Taken(internal::Folder::Open(folder.path().string()));
        const auto files = Taken(internal::WeightFiles::Open(opened));
        std::vector<Decision> decisions;
        const StaticTable table = Taken(StaticTable::Create(files, &decisions));
        for (const size_t length : {0, 1, 2, 5, 8, 11, 31, 32, 33, 63, 64, 65, 100}) {
          std::vector<int32_t> ids;
          for (size_t i = 0; i < length; ++i) {
            ids.push_back(static_cast<int32_t>((i * 13 + length) % table.vocab_size()));
          }
          std::vector<float> mean(width);
          table.Prefetch(ids);
          table.Mean(ids, mean.data());
          EXPECT_TRUE(SameBits(mean, DefinedMean(drawn, mapping, weights, ids))) << length;
        }
      }
    }
  }
}

}  // namespace
}  // namespace encore
