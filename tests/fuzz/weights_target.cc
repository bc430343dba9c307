// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a safetensors file of an encoder's weights with torch's names: an error with a
// sentence, or weights of which an encoder can be made, that gives a sequence the same bits alone
// and in a batch. An input that begins with a brace is the header's text, and data is made for it;
// any other is drawn from: the names, shapes, types and metadata of a file, few of them wrong.

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "encore/encoder.h"
#include "encore/safetensors.h"
#include "encore/torch_weights.h"
#include "engine/nn/layer_tensors.h"
#include "tests/fuzz/drawn_views.h"
#include "tests/fuzz/target.h"

namespace encore::fuzz {
namespace {

constexpr size_t kMostBytes = 1 << 16;  // of data that is made for a header

// The end of the data that a header speaks of: the largest second number of "data_offsets".
size_t DataBytes(std::string_view header) {
  constexpr std::string_view kKey = "\"data_offsets\":[";
  size_t bytes = 0;
  for (size_t at = header.find(kKey); at != std::string_view::npos; at = header.find(kKey, at)) {
    at += kKey.size();
    size_t number = 0;
    for (; at < header.size() && header[at] != ']' && number < kMostBytes; ++at) {
      const char c = header[at];
      number = c >= '0' && c <= '9' ? 10 * number + static_cast<size_t>(c - '0') : 0;
    }
    bytes = std::max(bytes, std::min(number, kMostBytes));
  }
  return bytes;
}

// The whole file. The numbers of its data are small and positive in every type.
std::vector<std::byte> File(std::string_view header, NumberSource& source) {
  const size_t data = DataBytes(header);
  std::vector<std::byte> file;
  file.reserve(8 + header.size() + data);
  for (size_t i = 0; i < 8; ++i) {
    file.push_back(static_cast<std::byte>(uint64_t{header.size()} >> (8 * i) & 0xFF));
  }
  for (const char c : header) file.push_back(static_cast<std::byte>(c));
  for (size_t i = 0; i < data; ++i) {
    file.push_back(static_cast<std::byte>(i % 2 == 1 ? 0x3C : source.Bits() & 0xFF));
  }
  return file;
}

// Drawn, and wrong now and then.
class DrawnHeader {
 public:
  explicit DrawnHeader(Draw& draw) : draw_(draw) {
    heads_ = draw.Between(1, 3);
    d_model_ = heads_ * draw.Between(1, 4);
    layer_.d_ff = draw.Between(1, 12);
    layers_ = draw.Between(1, 2);
    biases_ = draw.Chance(2);
    int8_ = draw.Chance(4);
    final_norm_ = draw.Chance(3);
    type_ = kFloats[draw.Between(0, 3)];
    layer_.num_heads = heads_;
    for (size_t i = 0; i < layers_; ++i) AddLayer(i);
    if (final_norm_) Add("norm.weight", {d_model_}, type_);
    if (final_norm_ && biases_) Add("norm.bias", {d_model_}, type_);
    text_.append("\"__metadata__\":{");
    AddMetadata();
    text_.append("}}");
  }
  const std::string& text() const { return text_; }

 private:
  static constexpr DType kFloats[] = {DType::kF32, DType::kBF16, DType::kF16, DType::kF64};
  static constexpr DType kOthers[] = {DType::kF32, DType::kI8,  DType::kI64,
                                      DType::kF64, DType::kF16, DType::kBool};

  void AddLayer(size_t index) {
    const std::string prefix =
        layers_ == 1 && draw_.Chance(2) ? "" : "layers." + std::to_string(index) + ".";
    bool of_int8 = false;  // the matrix before
    for (const internal::LayerTensor& tensor : internal::kLayerTensors) {
      if (!tensor.part->in_torch && !draw_.Chance(200)) continue;
      if (tensor.is_bias() && !biases_) continue;
      DType type = type_;
      if (tensor.is_matrix()) {
        of_int8 = int8_ && draw_.Chance(2);
        if (of_int8) type = DType::kI8;
      }
      if (tensor.role == internal::TensorRole::kRowScale && !of_int8) continue;
      if (tensor.role == internal::TensorRole::kInputScale && !draw_.Chance(8)) continue;
      const Shape shape = internal::ShapeOf(tensor, d_model_, layer_);
      std::vector<size_t> extents;
      for (size_t i = 0; i < shape.rank(); ++i) extents.push_back(shape[i]);
      const bool alias = !tensor.part->alias.empty() && draw_.Chance(8);
      Add(prefix + (alias ? tensor.alias() : tensor.name()), extents, type);
    }
  }

  // A tensor, one in a hundred of them not as it should be.
  void Add(std::string name, std::vector<size_t> extents, DType type) {
    if (draw_.Chance(100)) {
      const size_t axis = draw_.Between(0, extents.size() - 1);
      switch (draw_.Between(0, 8)) {
        case 0:
          return;
        case 1:
          extents[axis] += 1;
          break;
        case 2:
          extents[axis] -= 1;
          break;
        case 3:
          extents.push_back(1);
          break;
        case 4:
          extents.clear();
          break;
        case 5:
          type = kOthers[draw_.Between(0, std::size(kOthers) - 1)];
          break;
        case 6:
          name.insert(0, "layers.18446744073709551615.");
          break;
        case 7:
          name.erase(draw_.Between(0, name.size() - 1), 1);
          break;
        default:
          std::swap(extents.front(), extents.back());
          break;
      }
    }
    size_t bytes = DTypeSize(type);
    std::string list;
    for (const size_t extent : extents) {
      bytes *= extent;
      list.append(list.empty() ? "" : ",").append(std::to_string(extent));
    }
    text_.append("\"").append(name).append("\":{\"dtype\":\"").append(DTypeName(type));
    text_.append("\",\"shape\":[").append(list).append("],\"data_offsets\":[");
    text_.append(std::to_string(end_)).append(",").append(std::to_string(end_ + bytes));
    text_.append("]},");
    end_ += bytes;
  }

  // A pair, one in forty of them wrong, and others left out.
  void AddPair(std::string_view key, std::string_view value) {
    constexpr std::string_view kWrong[] = {
        "",    "0",       "-1",    "1e400", "1e-400", "nan", "inf",  "18446744073709551616",
        " 1",  "0x1p3",   "True ", "relu",  "false",  "é",   "int8", "2",
        "1e5", "gelu_new"};
    if (draw_.Chance(40)) value = kWrong[draw_.Between(0, std::size(kWrong) - 1)];
    if (draw_.Chance(40)) key = draw_.Chance(2) ? "nheads" : "";
    text_.append(text_.ends_with("{") ? "\"" : ",\"").append(key);
    text_.append("\":\"").append(value).append("\"");
  }

  void AddMetadata() {
    constexpr std::string_view kActivations[] = {"relu",  "gelu",     "gelu_tanh", "silu",
                                                 "swish", "gelu_new", "quick_gelu"};
    constexpr std::string_view kEpsilons[] = {"1e-05", "0", "1e-300", "1e308", "0.1"};
    const auto maybe = [&](std::string_view key, std::string_view value) {
      if (draw_.Chance(3)) AddPair(key, value);
    };
    if (!draw_.Chance(40)) AddPair("nhead", std::to_string(heads_));
    if (!draw_.Chance(40)) AddPair("activation", kActivations[draw_.Between(0, 6)]);
    maybe("norm_first", draw_.Chance(2) ? "True" : "0");
    maybe("layer_norm_eps", kEpsilons[draw_.Between(0, 4)]);
    maybe("d_model", std::to_string(d_model_));
    maybe("dim_feedforward", std::to_string(layer_.d_ff));
    maybe("num_layers", std::to_string(layers_));
    maybe("bias", biases_ ? "True" : "False");
    maybe("batch_first", "true");
    maybe("dropout", "0.1");
    maybe("format", "pt");
    if (int8_ && draw_.Chance(2)) AddPair("encore_precision", "int8");
  }

  Draw& draw_;
  size_t heads_ = 0;
  size_t d_model_ = 0;
  size_t layers_ = 0;
  LayerConfig layer_;
  bool biases_ = false;
  bool int8_ = false;
  bool final_norm_ = false;
  DType type_ = DType::kF32;
  size_t end_ = 0;
  std::string text_ = "{";
};

// Whether scales are there or should be, which only Encoder::Create looks at.
bool NeedsScales(const EncoderWeights& weights) {
  for (const EncoderLayerWeights& layer : weights.layers) {
    for (const internal::LayerTensor& tensor : internal::kLayerTensors) {
      const WeightView& view = tensor.In(layer);
      if (!view.empty() && (tensor.is_scale() || view.dtype() == DType::kI8)) return true;
    }
  }
  return false;
}

std::vector<float> Run(const Encoder& encoder, std::span<const size_t> starts, const float* x) {
  const Shape shape(starts.back(), encoder.config().d_model);
  std::vector<float> y(*shape.NumElements());
  const Batch batch{.seq_starts = starts};
  const Result<Workspace> workspace = encoder.MakeWorkspace(batch);
  ENCORE_FUZZ_CHECK(workspace.ok(), workspace.status().message());
  const Status status = encoder.Forward(batch, {x, shape}, {y.data(), shape}, *workspace);
  ENCORE_FUZZ_CHECK(status.ok(), status.message());
  return y;
}

void UseWeights(const TorchWeights& weights, NumberSource& source) {
  const Result<Encoder> encoder =
      Encoder::Create(weights.config(), weights.weights(),
                      {.precision = weights.precision(), .keep = weights.keep()});
  if (!encoder.ok()) {
    ENCORE_FUZZ_CHECK(NeedsScales(weights.weights()), encoder.status().message());
    return CheckError(encoder.status());
  }
  const size_t d = weights.config().d_model;
  constexpr std::array<size_t, 4> kStarts = {0, 1, 1, 4};
  constexpr std::array<size_t, 2> kAlone = {0, 3};
  std::vector<float> x(kStarts.back() * d);
  source.Fill(x, Numbers::kTame);
  const std::vector<float> y = Run(*encoder, kStarts, x.data());
  CheckSame(std::span(y).subspan(d), Run(*encoder, kAlone, x.data() + d), "a sequence alone");
}

void Open(std::string_view header, const TorchOverrides& overrides, NumberSource& source) {
  const std::vector<std::byte> bytes = File(header, source);
  const Result<SafetensorsFile> file = SafetensorsFile::FromBytes(bytes, "fuzz");
  if (!file.ok()) return CheckError(file.status());
  const Result<TorchWeights> weights = TorchWeights::FromFile(*file, overrides);
  if (weights.ok()) return UseWeights(*weights, source);
  CheckError(weights.status());
  ENCORE_FUZZ_CHECK(weights.status().message().starts_with("fuzz"), "the file has no name");
}

}  // namespace

void RunWeights(std::string_view input) {
  Draw draw(input);
  NumberSource source(static_cast<uint32_t>(input.size()));
  TorchOverrides overrides;
  if (input.starts_with("{")) {
    // What the text lacks, for some lengths.
    if (input.size() % 4 == 1) overrides.num_heads = 1;
    if (input.size() % 4 == 2) overrides.activation = Activation::kGelu;
    return Open(input, overrides, source);
  }
  if (draw.Chance(16)) overrides.num_heads = draw.Between(0, 4);
  if (draw.Chance(16)) overrides.activation = static_cast<Activation>(draw.Between(0, 4));
  if (draw.Chance(16)) overrides.epsilon = draw.Chance(2) ? -1 : 0.5;
  if (draw.Chance(16)) overrides.norm_placement = NormPlacement::kPre;
  const DrawnHeader header(draw);
  Open(header.text(), overrides, source);
}

}  // namespace encore::fuzz
