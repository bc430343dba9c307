// SPDX-License-Identifier: Apache-2.0
//
// Reads rows as packing reads them, a few at a time.

#include "tools/encore/converted_tensors.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "engine/base/bf16.h"
#include "engine/base/layer_tensors.h"
#include "engine/base/quoted.h"
#include "engine/nn/encoder_packing.h"
#include "engine/ops/weight_source.h"
#include "engine/platform/fp_env.h"
#include "engine/platform/thread_team.h"
#include "tools/encore/failure.h"

namespace encore::tool {
namespace {

using internal::ByteSink;
using internal::MatrixToPack;
using internal::PreparedEncoder;
using internal::WeightSource;

constexpr size_t kRowsAtOnce = 16;

std::string Sentence(const SafetensorsEntry& entry, const std::string& rest) {
  return "tensor " + internal::Quoted(entry.name) + ": " + rest;
}

Status BadRow(const SafetensorsEntry& entry, size_t row, const std::string& wanted) {
  return InvalidArgument(Sentence(entry, "row " + std::to_string(row) +
                                             " has a number that is NaN, infinite or too large" +
                                             ", wanted finite ones for " + wanted));
}

// Calls make(row, count) for some rows at a time, which gives their bytes to the sink.
template <typename Make>
Status ForRows(size_t rows, const Make& make) {
  const internal::FpEnvScope modes;
  for (size_t row = 0; row < rows; row += kRowsAtOnce) {
    Status status = make(row, std::min(kRowsAtOnce, rows - row));
    if (!status.ok()) return status;
  }
  return {};
}

template <typename T>
Status Put(const ByteSink& sink, const std::vector<T>& elements, size_t count) {
  return sink(std::as_bytes(std::span(elements).first(count)));
}

Status PutBf16(const SafetensorsEntry& entry, const ByteSink& sink) {
  const size_t k = entry.shape[1];
  const WeightSource source = WeightSource::One(entry.View());
  std::vector<float> floats(kRowsAtOnce * k);
  std::vector<uint16_t> out(floats.size());
  return ForRows(entry.shape[0], [&](size_t row, size_t count) -> Status {
    internal::ReadRows(source, row, count, 0, k, floats.data(), k);
    for (size_t i = 0; i < count * k; ++i) {
      out[i] = internal::F32ToBf16(floats[i]);
      if (!std::isfinite(internal::Bf16ToF32(out[i]))) return BadRow(entry, row + i / k, "bf16");
    }
    return Put(sink, out, count * k);
  });
}

Status PutRowScales(const SafetensorsEntry& entry, const WeightSource& source,
                    const ByteSink& sink) {
  std::vector<float> scales(kRowsAtOnce);
  return ForRows(entry.shape[0], [&](size_t row, size_t count) -> Status {
    internal::ReadInt8Scales(source, row, count, scales.data());
    for (size_t r = 0; r < count; ++r) {
      if (!std::isfinite(scales[r])) return BadRow(entry, row + r, "int8");
      // The row's integers are zeros: any scale will do, and a file's must not be 0.
      if (scales[r] < internal::kLeastInt8Scale) scales[r] = 1;
    }
    return Put(sink, scales, count);
  });
}

Status PutIntegers(const SafetensorsEntry& entry, const WeightSource& source,
                   const ByteSink& sink) {
  const size_t k = entry.shape[1];
  std::vector<float> scales(kRowsAtOnce);
  std::vector<float> sums(kRowsAtOnce);  // of no use here
  std::vector<float> floats(kRowsAtOnce * k);
  std::vector<int8_t> out(floats.size());
  return ForRows(entry.shape[0], [&](size_t row, size_t count) -> Status {
    internal::ReadInt8Scales(source, row, count, scales.data());
    internal::ReadInt8Rows(source, scales.data(), row, count, 0, k, floats.data(), k, sums.data());
    for (size_t i = 0; i < count * k; ++i) out[i] = static_cast<int8_t>(floats[i]);
    return Put(sink, out, count * k);
  });
}

PreparedEncoder Prepare(const ConversionSource& source, const ConversionSettings& settings) {
  PreparedEncoder prepared = Take(PreparedEncoder::Create(
      source.config, source.weights, {.precision = settings.precision, .keep = settings.keep}));
  internal::RunTeam(settings.executor, [&](internal::Team& team) {
    const internal::FpEnvScope modes;
    for (const MatrixToPack& m : prepared.matrices) {
      if (m.smoothed) internal::FindInputScale(team, m);
    }
  });
  return prepared;
}

}  // namespace

internal::StreamedTensor CopiedTensor(const SafetensorsFile& file, const SafetensorsEntry& entry) {
  return {entry.name, entry.dtype, entry.shape, [file, &entry](const ByteSink& sink) {
            Status status = sink(entry.bytes);
            file.ReleasePages();
            return status;
          }};
}

ConvertedTensors::ConvertedTensors(ConversionSource source, const ConversionSettings& settings)
    : source_(std::move(source)), prepared_(Prepare(source_, settings)) {
  const MatrixTensors matrices(source_.weights);
  for (const SafetensorsFile& file : source_.files) {
    for (const SafetensorsEntry& entry : file.tensors()) {
      const MatrixTensor* const matrix = matrices.Find(entry);
      if (matrix == nullptr) {
        tensors_.push_back(CopiedTensor(file, entry));
        continue;
      }
      if (entry.dtype == DType::kI8) {
        throw Failure(Sentence(entry, "found I8, which is converted already, wanted floats"));
      }
      ++matrices_;
      if (prepared_.matrices[matrix->index].packed->view().kernel->integer) {
        AddInt8(entry, *matrix);
      } else {
        Add(entry.name, DType::kBF16, entry.shape,
            [&entry](const ByteSink& sink) { return PutBf16(entry, sink); });
      }
    }
  }
}

void ConvertedTensors::Add(const std::string& name, DType type, const Shape& shape,
                           std::function<Status(const ByteSink& sink)> put) {
  tensors_.push_back({name, type, shape, [this, put = std::move(put)](const ByteSink& sink) {
                        Status status = put(sink);
                        for (const SafetensorsFile& file : source_.files) file.ReleasePages();
                        return status;
                      }});
}

void ConvertedTensors::AddInt8(const SafetensorsEntry& entry, const MatrixTensor& matrix) {
  const MatrixToPack& m = prepared_.matrices[matrix.index];
  WeightSource rows = WeightSource::One(entry.View());
  if (m.smoothed) rows.input_scale = m.packed->input_scale();
  Add(entry.name, DType::kI8, entry.shape,
      [&entry, rows](const ByteSink& sink) { return PutIntegers(entry, rows, sink); });
  Add(RowScaleName(entry.name), DType::kF32, Shape(entry.shape[0]),
      [&entry, rows](const ByteSink& sink) { return PutRowScales(entry, rows, sink); });
  if (!matrix.first || !m.smoothed || !m.given_scale.empty()) return;
  tensors_.push_back({InputScaleName(entry.name), DType::kF32, Shape(entry.shape[1]),
                      [&m, k = entry.shape[1]](const ByteSink& sink) {
                        return sink(std::as_bytes(std::span(m.packed->input_scale(), k)));
                      }});
}

MatrixTensors::MatrixTensors(const EncoderWeights& weights) {
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    std::optional<size_t> last;
    for (const internal::LayerTensor& tensor : internal::kLayerTensors) {
      const WeightView& view = tensor.In(weights.layers[i]);
      if (!tensor.is_matrix() || view.empty()) continue;
      const size_t index = 4 * i + static_cast<size_t>(internal::MatrixOf(tensor.part->packed));
      if (!by_address_.emplace(view.data(), MatrixTensor{index, last != index}).second) {
        throw Failure("layer " + std::to_string(i) + " has its " + tensor.name() +
                      " from another place of the encoder, wanted a tensor of its own");
      }
      last = index;
    }
  }
}

const MatrixTensor* MatrixTensors::Find(const SafetensorsEntry& entry) const {
  const auto found = by_address_.find(entry.bytes.data());
  return entry.bytes.empty() || found == by_address_.end() ? nullptr : &found->second;
}

std::string RowScaleName(const std::string& weight) { return weight + "_scale"; }

std::string InputScaleName(const std::string& weight) {
  constexpr std::string_view kWeight = "weight";
  return weight.substr(0, weight.size() - kWeight.size()) + "input_scale";
}

}  // namespace encore::tool
