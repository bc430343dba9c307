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
#include "engine/base/quoted.h"
#include "engine/nn/layer_tensors.h"
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

// Rows of T, each element by convert(float) from f32 (f64 to nearest). Infinite ones are refused.
template <typename T, typename Convert, typename Back>
Status PutFloats(const SafetensorsEntry& entry, const std::string& type, Convert convert, Back back,
                 const ByteSink& sink) {
  const size_t k = entry.shape[1];
  const WeightSource source = WeightSource::One(entry.View());
  std::vector<float> floats(kRowsAtOnce * k);
  std::vector<T> out(floats.size());
  return ForRows(entry.shape[0], [&](size_t row, size_t count) -> Status {
    internal::ReadRows(source, row, count, 0, k, floats.data(), k);
    for (size_t i = 0; i < count * k; ++i) {
      out[i] = convert(floats[i]);
      if (!std::isfinite(back(out[i]))) return BadRow(entry, row + i / k, type);
    }
    return Put(sink, out, count * k);
  });
}

Status PutBf16(const SafetensorsEntry& entry, const ByteSink& sink) {
  return PutFloats<uint16_t>(entry, "bf16", internal::F32ToBf16, internal::Bf16ToF32, sink);
}

Status PutF16(const SafetensorsEntry& entry, const ByteSink& sink) {
  return PutFloats<uint16_t>(entry, "f16", internal::F32ToF16, internal::F16ToF32, sink);
}

Status PutF32(const SafetensorsEntry& entry, const ByteSink& sink) {
  const auto same = [](float value) { return value; };
  return PutFloats<float>(entry, "f32", same, same, sink);
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

void WantFloats(const SafetensorsEntry& entry) {
  if (entry.dtype != DType::kI8) return;
  throw Failure(Sentence(entry, "found I8, which is converted already, wanted floats"));
}

// All were read from files, so that their product fits.
size_t BytesOf(const internal::StreamedTensor& tensor) {
  size_t bytes = DTypeSize(tensor.dtype);
  for (size_t i = 0; i < tensor.shape.rank(); ++i) bytes *= tensor.shape[i];
  return bytes;
}

PreparedEncoder Prepare(const ConversionSource& source, const ConversionSettings& settings) {
  PreparedEncoder prepared = Take(PreparedEncoder::Create(
      source.config, source.weights, {.precision = settings.precision, .keep = settings.keep}));
  Check(internal::RunTeam(settings.executor, [&](internal::Team& team) {
    const internal::FpEnvScope modes;
    for (const MatrixToPack& m : prepared.matrices) {
      if (m.smoothed) internal::FindInputScale(team, m);
    }
  }));
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
  const MatrixTensors matrices(source_.weights, settings.precision == Precision::kF32);
  for (const SafetensorsFile& file : source_.files) {
    for (const SafetensorsEntry& entry : file.tensors()) {
      const MatrixTensor* const matrix = matrices.Find(entry);
      const bool table = source_.embeddings.contains(entry.name);
      ConvertedKind& kind = matrix != nullptr ? sizes_.matrices
                            : table           ? sizes_.embeddings
                                              : sizes_.others;
      const size_t at = tensors_.size();
      if (matrix != nullptr && settings.precision != Precision::kF32) {
        AddMatrix(entry, *matrix);
      } else if (table && settings.embeddings) {
        AddTable(entry, *settings.embeddings);
      } else {
        tensors_.push_back(CopiedTensor(file, entry));
      }
      ++kind.tensors;
      ++kind.types[tensors_[at].dtype];
      kind.bytes_before += entry.bytes.size();
      kind.bytes_after += BytesOf(tensors_[at]);
      for (size_t i = at + 1; i < tensors_.size(); ++i) sizes_.scale_bytes += BytesOf(tensors_[i]);
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

void ConvertedTensors::AddMatrix(const SafetensorsEntry& entry, const MatrixTensor& matrix) {
  WantFloats(entry);
  const MatrixToPack& m = prepared_.matrices[matrix.index];
  if (!m.packed->view().kernel->integer) {
    Add(entry.name, DType::kBF16, entry.shape,
        [&entry](const ByteSink& sink) { return PutBf16(entry, sink); });
    return;
  }
  WeightSource rows = WeightSource::One(entry.View());
  if (m.smoothed) rows.column_factor = m.packed->input_scale();
  AddIntegers(entry, rows);
  if (!matrix.first || !m.smoothed || !m.source.input_scale.empty()) return;
  tensors_.push_back({InputScaleName(entry.name), DType::kF32, Shape(entry.shape[1]),
                      [&m, k = entry.shape[1]](const ByteSink& sink) {
                        return sink(std::as_bytes(std::span(m.packed->input_scale(), k)));
                      }});
}

// The tensor as integers, and its row scales.
void ConvertedTensors::AddIntegers(const SafetensorsEntry& entry, const WeightSource& rows) {
  Add(entry.name, DType::kI8, entry.shape,
      [&entry, rows](const ByteSink& sink) { return PutIntegers(entry, rows, sink); });
  Add(RowScaleName(entry.name), DType::kF32, Shape(entry.shape[0]),
      [&entry, rows](const ByteSink& sink) { return PutRowScales(entry, rows, sink); });
}

void ConvertedTensors::AddTable(const SafetensorsEntry& entry, DType type) {
  WantFloats(entry);
  if (type == DType::kI8) return AddIntegers(entry, WeightSource::One(entry.View()));
  const auto put = type == DType::kF16 ? PutF16 : type == DType::kBF16 ? PutBf16 : PutF32;
  Add(entry.name, type, entry.shape,
      [&entry, put](const ByteSink& sink) { return put(entry, sink); });
}

MatrixTensors::MatrixTensors(const EncoderWeights& weights, bool may_share) {
  size_t first = 0;  // of the layer's products
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    std::optional<size_t> last;
    for (const internal::LayerTensor& tensor : internal::kLayerTensors) {
      const WeightView& view = tensor.In(weights.layers[i]);
      if (!tensor.is_matrix() || view.empty()) continue;
      const size_t index = first + static_cast<size_t>(*tensor.part->matrix);
      if (!by_address_.emplace(view.data(), MatrixTensor{index, last != index}).second &&
          !may_share) {
        throw Failure("layer " + std::to_string(i) + " has its " + tensor.name() +
                      " from another place of the encoder, wanted a tensor of its own");
      }
      last = index;
    }
    first += internal::MatricesOf(weights.layers[i]);
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
