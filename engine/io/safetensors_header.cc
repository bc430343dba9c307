// SPDX-License-Identifier: Apache-2.0
//
// The safetensors header's parser: a state machine over JSON events, then the checks on all tensors
// together.

#include "engine/io/safetensors_header.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "engine/base/int_math.h"
#include "engine/base/quoted.h"
#include "engine/io/json.h"

namespace encore::inline v0_1::internal {
namespace {

constexpr std::array kDTypes = {DType::kBool, DType::kU8,   DType::kI8,  DType::kI32, DType::kI64,
                                DType::kF16,  DType::kBF16, DType::kF32, DType::kF64};

Status Corrupt(std::string message) { return Status(ErrorCode::kCorruptData, std::move(message)); }

// Takes the JSON events of
//   {"__metadata__": {"key": "value", ...},
//    "tensor": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
// and refuses everything else at the first event that does not fit, so that hostile depth ends at
// once.
class HeaderVisitor : public JsonVisitor {
 public:
  const Status& status() const { return status_; }
  SafetensorsHeader& header() { return header_; }

  bool BeginObject() override {
    switch (place_) {
      case Place::kStart:
        place_ = Place::kTop;
        return true;
      case Place::kTopValue:
        place_ = in_metadata_ ? Place::kMetadata : Place::kTensor;
        return true;
      default:
        return Unexpected("an object");
    }
  }

  bool Key(const std::string& key) override {
    key_ = key;
    if (place_ != Place::kTensor && ++keys_ > kMaxHeaderKeys) {
      return Fail(Corrupt("found more than " + std::to_string(kMaxHeaderKeys) +
                          " tensors and metadata keys, wanted at most that"));
    }
    if (place_ == Place::kTop) return TopKey(key);
    if (place_ == Place::kMetadata) {
      place_ = Place::kMetadataValue;
      if (!header_.metadata.contains(key)) return true;
      return Fail(Corrupt("metadata key " + Quoted(key) + " is there twice"));
    }
    return TensorKey(key);
  }

  bool EndObject() override {
    const Place ended = std::exchange(place_, Place::kTop);
    return ended != Place::kTensor || FinishTensor();
  }

  bool BeginArray() override {
    if (place_ == Place::kShape && !shape_) {
      shape_.emplace();
    } else if (place_ == Place::kOffsets && !offsets_) {
      offsets_.emplace();
    } else {
      return Unexpected("an array");
    }
    return true;
  }

  bool EndArray() override {
    place_ = Place::kTensor;
    return true;
  }

  bool String(const std::string& value) override {
    if (place_ == Place::kMetadataValue) {
      header_.metadata.emplace(key_, value);
      place_ = Place::kMetadata;
      return true;
    }
    if (place_ != Place::kDType) return Unexpected("the string " + Quoted(value));
    place_ = Place::kTensor;
    for (const DType dtype : kDTypes) {
      if (DTypeName(dtype) == value) dtype_ = dtype;
    }
    if (dtype_) return true;
    std::string known;
    for (const DType dtype : kDTypes)
      known += (known.empty() ? "" : ", ") + std::string(DTypeName(dtype));
    return Fail(Status(ErrorCode::kUnsupported,
                       Tensor() + "found dtype " + Quoted(value) + ", wanted one of " + known));
  }

  bool Unsigned(uint64_t value) override {
    const bool in_shape = place_ == Place::kShape && shape_;
    const bool in_offsets = place_ == Place::kOffsets && offsets_;
    if (!in_shape && !in_offsets) return Unexpected("the number " + std::to_string(value));
    if (value > std::numeric_limits<size_t>::max()) {
      return Fail(Corrupt(Tensor() + "found " + std::to_string(value) +
                          ", more than this machine can address"));
    }
    std::vector<size_t>& list = in_shape ? *shape_ : *offsets_;
    if (in_shape && list.size() == Shape::kMaxRank) {
      return Fail(Status(ErrorCode::kUnsupported, Tensor() + "found a shape of more than " +
                                                      std::to_string(Shape::kMaxRank) +
                                                      " extents, wanted at most that"));
    }
    if (in_offsets && list.size() == 2)
      return Fail(Corrupt(Tensor() + "found more than 2 data_offsets, wanted 2"));
    list.push_back(static_cast<size_t>(value));
    return true;
  }

  bool Null() override { return Unexpected(Quoted("null")); }
  bool Bool(bool value) override { return Unexpected(Quoted(value ? "true" : "false")); }
  bool Negative(int64_t value) override { return Unexpected(Quoted(std::to_string(value))); }
  bool Fraction(double, std::string_view text) override { return Unexpected(Quoted(text)); }

 private:
  enum class Place {
    kStart,          // before the text's object
    kTop,            // in it, before a key
    kTopValue,       // after a key of it
    kMetadata,       // in "__metadata__", before a key
    kMetadataValue,  // after a key of it
    kTensor,         // in a tensor's object, before a key
    kDType,          // after "dtype"
    kShape,          // after "shape", or in its array
    kOffsets,        // after "data_offsets", or in its array
  };

  bool TopKey(const std::string& key) {
    place_ = Place::kTopValue;
    in_metadata_ = key == kMetadataKey;
    if (!names_.insert(key).second)
      return Fail(Corrupt("key " + Quoted(key) + " is in the header twice"));
    if (in_metadata_) return true;
    tensor_ = key;
    dtype_.reset();
    shape_.reset();
    offsets_.reset();
    return true;
  }

  bool TensorKey(const std::string& key) {
    bool twice = false;
    if (key == "dtype") {
      place_ = Place::kDType;
      twice = dtype_.has_value();
    } else if (key == "shape") {
      place_ = Place::kShape;
      twice = shape_.has_value();
    } else if (key == "data_offsets") {
      place_ = Place::kOffsets;
      twice = offsets_.has_value();
    } else {
      return Fail(Corrupt(Tensor() + "found the key " + Quoted(key) +
                          ", wanted dtype, shape and data_offsets"));
    }
    return !twice || Fail(Corrupt(Tensor() + "the key " + Quoted(key) + " is there twice"));
  }

  bool FinishTensor() {
    if (!dtype_) return Fail(Corrupt(Tensor() + "dtype is missing"));
    if (!shape_) return Fail(Corrupt(Tensor() + "shape is missing"));
    if (!offsets_ || offsets_->size() != 2) {
      return Fail(Corrupt(Tensor() + "found " + std::to_string(offsets_ ? offsets_->size() : 0) +
                          " data_offsets, wanted 2"));
    }
    Result<Shape> shape = Shape::Create(shape_->data(), shape_->size());
    if (!shape.ok()) return Fail(shape.status());  // cannot be: the rank was checked on the way
    header_.tensors.push_back({tensor_, *dtype_, *shape, (*offsets_)[0], (*offsets_)[1]});
    return true;
  }

  bool Unexpected(const std::string& found) {
    switch (place_) {
      case Place::kStart:
        return Fail(Corrupt("found " + found + ", wanted an object"));
      case Place::kTopValue:
        return Fail(Corrupt("key " + Quoted(key_) + ": found " + found + ", wanted an object"));
      case Place::kMetadataValue:
        return Fail(
            Corrupt("metadata key " + Quoted(key_) + ": found " + found + ", wanted a string"));
      case Place::kDType:
        return Fail(Corrupt(Tensor() + "dtype: found " + found + ", wanted a string"));
      default:
        return Fail(Corrupt(Tensor() + key_ + ": found " + found +
                            ", wanted an array of whole numbers of at least 0"));
    }
  }

  bool Fail(Status status) {
    status_ = std::move(status);
    return false;
  }

  std::string Tensor() const { return "tensor " + Quoted(tensor_) + ": "; }

  Place place_ = Place::kStart;
  bool in_metadata_ = false;
  std::string key_;  // the last one seen
  size_t keys_ = 0;  // of the top object and the metadata
  std::set<std::string>
      names_;           // of the top object; ordered, so that no choice of names makes it slow
  std::string tensor_;  // the one being read, and what is known of it:
  std::optional<DType> dtype_;
  std::optional<std::vector<size_t>> shape_;
  std::optional<std::vector<size_t>> offsets_;
  SafetensorsHeader header_;
  Status status_;
};

std::string RangeText(const HeaderTensor& tensor) {
  return "data_offsets [" + std::to_string(tensor.begin) + ", " + std::to_string(tensor.end) + "]";
}

Status CheckTensor(const HeaderTensor& tensor, size_t data_bytes) {
  const std::string name = "tensor " + Quoted(tensor.name) + ": ";
  if (tensor.begin > tensor.end)
    return Corrupt(name + "found " + RangeText(tensor) + ", wanted begin <= end");
  if (tensor.end > data_bytes) {
    return Corrupt(name + "found " + RangeText(tensor) + ", wanted an end within the " +
                   std::to_string(data_bytes) + " bytes of data");
  }
  const Result<size_t> wanted = TensorBytes(tensor.dtype, tensor.shape);
  if (!wanted.ok()) return Corrupt(name + wanted.status().message());
  const std::string kind = std::string(DTypeName(tensor.dtype)) + " " + tensor.shape.ToString();
  if (tensor.end - tensor.begin != *wanted) {
    return Corrupt(name + "found " + RangeText(tensor) + " of " +
                   std::to_string(tensor.end - tensor.begin) + " bytes, wanted " +
                   std::to_string(*wanted) + " for " + kind);
  }
  return Status();
}

// Laid end to end in the order of their offsets, the tensors must cover the data exactly.
Status CheckCoverage(const std::vector<HeaderTensor>& tensors, size_t data_bytes) {
  std::vector<const HeaderTensor*> order;
  order.reserve(tensors.size());
  for (const HeaderTensor& tensor : tensors) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](const HeaderTensor* a, const HeaderTensor* b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  size_t covered = 0;
  for (const HeaderTensor* tensor : order) {
    if (tensor->begin != covered) {
      return Corrupt(
          "tensor " + Quoted(tensor->name) + ": found " + RangeText(*tensor) + ", which " +
          (tensor->begin < covered ? "overlaps another tensor" : "leaves a gap before it") +
          "; wanted a begin at " + std::to_string(covered));
    }
    covered = tensor->end;
  }
  if (covered != data_bytes) {
    return Corrupt("found " + std::to_string(data_bytes) + " bytes of data, wanted the " +
                   std::to_string(covered) + " that the tensors cover");
  }
  return Status();
}

}  // namespace

Result<size_t> TensorBytes(DType dtype, const Shape& shape) {
  // An extent of 0 must not hide that the others overflow: strides are products of them.
  size_t bytes = DTypeSize(dtype);
  bool empty = false;
  bool fits = true;
  for (size_t i = 0; i < shape.rank(); ++i) {
    if (shape[i] == 0) {
      empty = true;
    } else {
      fits = fits && CheckedMul(bytes, shape[i], &bytes);
    }
  }
  if (!fits || bytes > static_cast<size_t>(std::numeric_limits<ptrdiff_t>::max())) {
    return InvalidArgument(std::string(DTypeName(dtype)) + " " + shape.ToString() +
                           " has more bytes than this machine can address");
  }
  return empty ? 0 : bytes;
}

Result<SafetensorsHeader> ParseSafetensorsHeader(std::string_view json, size_t data_bytes) {
  if (json.empty() || json.front() != '{') {
    return Corrupt("header: found " + (json.empty() ? "nothing" : Quoted(json.substr(0, 1))) +
                   " at its start, wanted '{'");
  }
  HeaderVisitor visitor;
  Status status = ParseJson(json, visitor);
  if (status.ok()) status = visitor.status();
  if (!status.ok()) return Status(status.code(), "header: " + status.message());

  for (const HeaderTensor& tensor : visitor.header().tensors) {
    status = CheckTensor(tensor, data_bytes);
    if (!status.ok()) return status;
  }
  status = CheckCoverage(visitor.header().tensors, data_bytes);
  if (!status.ok()) return status;
  return std::move(visitor.header());
}

}  // namespace encore::internal
