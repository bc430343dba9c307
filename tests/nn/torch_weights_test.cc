// SPDX-License-Identifier: Apache-2.0
//
// Weight files with PyTorch's names: good ones of every kind, and each way to get one wrong.

#include "encore/torch_weights.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/nn/layer_tensors.h"
#include "reference/linear.h"
#include "tests/support/safetensors_bytes.h"

namespace encore {
namespace {

constexpr size_t kModel = 6;
constexpr size_t kFeedForward = 10;

// A tensor to be: its shape, and the value that it starts with and counts up from.
struct Content {
  Shape shape;
  float first = 0;
};

// The tensors and metadata of a file, to be bent before it is written.
struct Contents {
  std::map<std::string, Content> tensors;
  SafetensorsMetadata metadata = {{"nhead", "2"}, {"activation", "relu"}};
  DType dtype = DType::kF32;

  void Rename(const std::string& from, const std::string& to) {
    auto node = tensors.extract(from);
    ASSERT_FALSE(node.empty()) << from;
    node.key() = to;
    tensors.insert(std::move(node));
  }
};

// The state_dict of a torch.nn.TransformerEncoderLayer, each tensor with values of its own.
void AddLayer(const std::string& prefix, bool biases, Contents* contents) {
  const std::vector<std::pair<std::string, Shape>> tensors = {
      {"self_attn.in_proj_weight", {3 * kModel, kModel}},
      {"self_attn.in_proj_bias", {3 * kModel}},
      {"self_attn.out_proj.weight", {kModel, kModel}},
      {"self_attn.out_proj.bias", {kModel}},
      {"linear1.weight", {kFeedForward, kModel}},
      {"linear1.bias", {kFeedForward}},
      {"linear2.weight", {kModel, kFeedForward}},
      {"linear2.bias", {kModel}},
      {"norm1.weight", {kModel}},
      {"norm1.bias", {kModel}},
      {"norm2.weight", {kModel}},
      {"norm2.bias", {kModel}}};
  for (const auto& [name, shape] : tensors) {
    if (!biases && name.ends_with("bias")) continue;
    contents->tensors[prefix + name] = {shape,
                                        1000.0f * static_cast<float>(contents->tensors.size() + 1)};
  }
}

Contents OneLayer(bool biases = true) {
  Contents contents;
  AddLayer("", biases, &contents);
  return contents;
}

Contents Stack(size_t layers) {
  Contents contents;
  for (size_t i = 0; i < layers; ++i)
    AddLayer("layers." + std::to_string(i) + ".", true, &contents);
  contents.tensors["norm.weight"] = {Shape(kModel), -1.0f};
  contents.tensors["norm.bias"] = {Shape(kModel), -2.0f};
  return contents;
}

Result<TorchWeights> Load(const Contents& contents, const TorchOverrides& overrides = {}) {
  std::vector<std::vector<std::byte>> data;
  std::vector<SafetensorsEntry> entries;
  for (const auto& [name, content] : contents.tensors) {
    const size_t count = *content.shape.NumElements();
    const size_t size = DTypeSize(contents.dtype);
    std::vector<std::byte> bytes(count * size);
    for (size_t i = 0; i < count; ++i) {
      const double wide = static_cast<double>(content.first) + static_cast<double>(i);
      const float narrow = static_cast<float>(wide);
      if (contents.dtype == DType::kF32) std::memcpy(&bytes[i * size], &narrow, size);
      if (contents.dtype == DType::kF64) std::memcpy(&bytes[i * size], &wide, size);
    }
    data.push_back(std::move(bytes));
    entries.push_back({name, contents.dtype, content.shape, data.back()});
  }
  const TemporaryFolder folder;
  const Status status = WriteSafetensors(folder.File("w"), entries, contents.metadata);
  if (!status.ok()) return status;
  return TorchWeights::Open(folder.File("w"), overrides);
}

// A view in the file, of its dtype.
void ExpectContent(const WeightView& view, DType dtype, const Content& want,
                   const std::string& name) {
  ASSERT_FALSE(view.empty()) << name;
  ASSERT_EQ(view.shape(), want.shape) << name;
  ASSERT_EQ(view.dtype(), dtype) << name;
  const reference::Matrix<double> numbers = reference::Numbers<double>(view);
  for (size_t i = 0; i < *want.shape.NumElements(); ++i) {
    ASSERT_EQ(numbers.data[i], static_cast<double>(want.first) + static_cast<double>(i)) << name;
  }
}

void ExpectLayer(const EncoderLayerWeights& layer, const Contents& contents,
                 const std::string& prefix) {
  for (const internal::LayerTensor& tensor : internal::kLayerTensors) {
    const std::string name = tensor.name();
    const WeightView& view = tensor.In(layer);
    const auto found = contents.tensors.find(prefix + name);
    if (found == contents.tensors.end()) {
      EXPECT_TRUE(view.empty()) << name;
    } else {
      ExpectContent(view, contents.dtype, found->second, name);
    }
  }
}

TEST(TorchWeights, OneLayerWithDefaults) {
  const Contents contents = OneLayer();
  const TorchWeights weights = Taken(Load(contents));
  const EncoderConfig& config = weights.config();
  EXPECT_EQ(config.d_model, kModel);
  ASSERT_EQ(config.num_layers(), 1u);
  const LayerConfig& layer = config.layers[0];
  EXPECT_EQ(layer.d_ff, kFeedForward);
  EXPECT_EQ(layer.num_heads, 2u);
  EXPECT_EQ(layer.activation, Activation::kRelu);
  EXPECT_EQ(layer.norm_placement, NormPlacement::kPost);
  EXPECT_EQ(layer.norm.type, NormType::kLayerNorm);
  EXPECT_EQ(layer.norm.epsilon, 1e-5);
  EXPECT_EQ(config.final_norm.type, NormType::kNone);
  ASSERT_EQ(weights.weights().layers.size(), 1u);
  ExpectLayer(weights.weights().layers[0], contents, "");
  EXPECT_TRUE(weights.weights().norm.weight.empty());
  EXPECT_TRUE(weights.weights().norm.bias.empty());
}

TEST(TorchWeights, WithoutBiases) {
  const Contents contents = OneLayer(false);
  const TorchWeights weights = Taken(Load(contents));
  ExpectLayer(weights.weights().layers[0], contents, "");
  EXPECT_TRUE(weights.weights().layers[0].linear1.bias.empty());
}

TEST(TorchWeights, StackOfMoreThanTenLayersWithFinalNorm) {
  Contents contents = Stack(12);  // "layers.10." sorts before "layers.2."
  contents.metadata = {{"nhead", "3"},
                       {"activation", "gelu_tanh"},
                       {"norm_first", "True"},
                       {"layer_norm_eps", "1e-12"},
                       {"format", "pt"},
                       {"d_model", "6"},
                       {"dim_feedforward", "10"},
                       {"num_layers", "12"},
                       {"bias", "True"},
                       {"batch_first", "False"},
                       {"dropout", "0.1"}};
  const TorchWeights loaded = Taken(Load(contents));
  const TorchWeights weights = loaded;  // copies share
  ASSERT_EQ(weights.config().num_layers(), 12u);
  for (const LayerConfig& layer : weights.config().layers) {
    EXPECT_EQ(layer.num_heads, 3u);
    EXPECT_EQ(layer.activation, Activation::kGeluTanh);
    EXPECT_EQ(layer.norm_placement, NormPlacement::kPre);
    EXPECT_EQ(layer.norm.epsilon, 1e-12);
  }
  EXPECT_EQ(weights.config().final_norm.type, NormType::kLayerNorm);
  EXPECT_EQ(weights.config().final_norm.epsilon, 1e-12);
  ASSERT_EQ(weights.weights().layers.size(), 12u);
  for (size_t i = 0; i < 12; ++i) {
    ExpectLayer(weights.weights().layers[i], contents, "layers." + std::to_string(i) + ".");
  }
  ExpectContent(weights.weights().norm.weight, contents.dtype, contents.tensors["norm.weight"],
                "norm.weight");
  ExpectContent(weights.weights().norm.bias, contents.dtype, contents.tensors["norm.bias"],
                "norm.bias");
}

TEST(TorchWeights, OtherTypesStayAsTheyAre) {
  Contents contents = Stack(2);
  contents.dtype = DType::kF64;
  const TorchWeights weights = Taken(Load(contents));
  for (size_t i = 0; i < 2; ++i) {
    ExpectLayer(weights.weights().layers[i], contents, "layers." + std::to_string(i) + ".");
  }
  ExpectContent(weights.weights().norm.bias, contents.dtype, contents.tensors["norm.bias"],
                "norm.bias");
}

TEST(TorchWeights, FeedForwardUnderTheNamesOfASequence) {
  const Contents plain = OneLayer();
  Contents contents = plain;
  for (const std::string what : {".weight", ".bias"}) {
    contents.Rename("linear1" + what, "ff.0" + what);
    contents.Rename("linear2" + what, "ff.2" + what);
  }
  const TorchWeights weights = Taken(Load(contents));
  ExpectLayer(weights.weights().layers[0], plain, "");
}

TEST(TorchWeights, MetadataInItsManyForms) {
  const std::vector<std::tuple<std::string, std::string, std::function<bool(const LayerConfig&)>>>
      forms = {
          {"activation", "relu",
           [](const LayerConfig& c) { return c.activation == Activation::kRelu; }},
          {"activation", "gelu",
           [](const LayerConfig& c) { return c.activation == Activation::kGelu; }},
          {"activation", "gelu_tanh",
           [](const LayerConfig& c) { return c.activation == Activation::kGeluTanh; }},
          {"activation", "gelu_pytorch_tanh",
           [](const LayerConfig& c) { return c.activation == Activation::kGeluTanh; }},
          {"activation", "gelu_new",
           [](const LayerConfig& c) { return c.activation == Activation::kGeluTanh; }},
          {"activation", "silu",
           [](const LayerConfig& c) { return c.activation == Activation::kSilu; }},
          {"activation", "quick_gelu",
           [](const LayerConfig& c) { return c.activation == Activation::kQuickGelu; }},
          {"activation", "swish",
           [](const LayerConfig& c) { return c.activation == Activation::kSilu; }},
          {"norm_first", "True",
           [](const LayerConfig& c) { return c.norm_placement == NormPlacement::kPre; }},
          {"norm_first", "true",
           [](const LayerConfig& c) { return c.norm_placement == NormPlacement::kPre; }},
          {"norm_first", "1",
           [](const LayerConfig& c) { return c.norm_placement == NormPlacement::kPre; }},
          {"norm_first", "False",
           [](const LayerConfig& c) { return c.norm_placement == NormPlacement::kPost; }},
          {"norm_first", "false",
           [](const LayerConfig& c) { return c.norm_placement == NormPlacement::kPost; }},
          {"norm_first", "0",
           [](const LayerConfig& c) { return c.norm_placement == NormPlacement::kPost; }},
          {"layer_norm_eps", "1e-05", [](const LayerConfig& c) { return c.norm.epsilon == 1e-5; }},
          {"layer_norm_eps", "0.001", [](const LayerConfig& c) { return c.norm.epsilon == 1e-3; }},
          {"layer_norm_eps", "0", [](const LayerConfig& c) { return c.norm.epsilon == 0; }},
          {"nhead", "1", [](const LayerConfig& c) { return c.num_heads == 1; }},
          {"nhead", "6", [](const LayerConfig& c) { return c.num_heads == 6; }},
      };
  for (const auto& [key, value, holds] : forms) {
    Contents contents = OneLayer();
    contents.metadata[key] = value;
    const TorchWeights weights = Taken(Load(contents));
    EXPECT_TRUE(holds(weights.config().layers[0])) << key << " " << value;
  }
}

TEST(TorchWeights, OverridesWinAndTheirMetadataIsNotRead) {
  Contents contents = OneLayer();
  contents.metadata = {
      {"nhead", "5"}, {"activation", "mish"}, {"norm_first", "maybe"}, {"layer_norm_eps", "tiny"}};
  const TorchOverrides overrides = {.num_heads = 3,
                                    .activation = Activation::kSilu,
                                    .norm_placement = NormPlacement::kPre,
                                    .epsilon = 0.5};
  const TorchWeights weights = Taken(Load(contents, overrides));
  const LayerConfig& layer = weights.config().layers[0];
  EXPECT_EQ(layer.num_heads, 3u);
  EXPECT_EQ(layer.activation, Activation::kSilu);
  EXPECT_EQ(layer.norm_placement, NormPlacement::kPre);
  EXPECT_EQ(layer.norm.epsilon, 0.5);

  contents.metadata.clear();
  EXPECT_TRUE(Load(contents, {.num_heads = 1, .activation = Activation::kRelu}).ok());
}

TEST(TorchWeights, BadOverrides) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::pair<TorchOverrides, std::string>> cases = {
      {{.num_heads = 0}, "nhead: found 0"},
      {{.num_heads = 4}, "nhead: found 4, wanted a divisor of d_model, 6"},
      {{.epsilon = -1.0}, "layer_norm_eps: found -1"},
      {{.epsilon = nan}, "layer_norm_eps: found nan"},
  };
  for (const auto& [overrides, message] : cases) {
    EXPECT_TRUE(FailsWith(Load(OneLayer(), overrides), {message}));
  }
}

TEST(TorchWeights, BadMetadata) {
  const std::vector<std::tuple<std::string, std::string, std::string>> cases = {
      {"nhead", "", "metadata nhead: found '', wanted a whole number of at least 1"},
      {"nhead", "0", "metadata nhead: found '0'"},
      {"nhead", "-2", "metadata nhead: found '-2'"},
      {"nhead", "2.0", "metadata nhead: found '2.0'"},
      {"nhead", " 2", "metadata nhead: found ' 2'"},
      {"nhead", "99999999999999999999", "metadata nhead: found '99999999999999999999'"},
      {"nhead", "4", "nhead: found 4, wanted a divisor of d_model, 6"},
      {"activation", "mish", "metadata activation: found 'mish', wanted relu, gelu, gelu_tanh"},
      {"activation", "", "metadata activation: found ''"},
      {"norm_first", "yes", "metadata norm_first: found 'yes', wanted True or False"},
      {"layer_norm_eps", "small", "metadata layer_norm_eps: found 'small'"},
      {"layer_norm_eps", "-1e-5", "metadata layer_norm_eps: found '-1e-5'"},
      {"layer_norm_eps", "nan", "metadata layer_norm_eps: found 'nan'"},
      {"layer_norm_eps", "inf", "metadata layer_norm_eps: found 'inf'"},
      {"layer_norm_eps", "1e999", "metadata layer_norm_eps: found '1e999'"},
      {"layer_norm_eps", "1e-5 ", "metadata layer_norm_eps: found '1e-5 '"},
      {"layer_norm_eps", "1,5", "metadata layer_norm_eps: found '1,5'"},
      {"layer_norm_eps", "", "metadata layer_norm_eps: found ''"},
      {"d_model", "7", "metadata d_model: found '7', wanted 6, as the tensors have it"},
      {"dim_feedforward", "2048", "metadata dim_feedforward: found '2048', wanted 10"},
      {"num_layers", "2", "metadata num_layers: found '2', wanted 1"},
      {"bias", "False", "metadata bias: found 'False', wanted True, as the file has biases"},
      {"batch_first", "2", "metadata batch_first: found '2'"},
      {"dropout", "x", "metadata dropout: found 'x'"},
      {"vocab_size", "9",
       "metadata 'vocab_size': found an unknown key, wanted only nhead, activation, norm_first,"},
      {"", "", "metadata '': found an unknown key"},
  };
  for (const auto& [key, value, message] : cases) {
    Contents contents = OneLayer();
    contents.metadata[key] = value;
    EXPECT_TRUE(FailsWith(Load(contents), {"/w: " + message})) << message;
  }
  for (const std::string key : {"nhead", "activation"}) {
    Contents contents = OneLayer();
    contents.metadata.erase(key);
    EXPECT_TRUE(FailsWith(Load(contents),
                          {"metadata " + key + ": found neither it nor an override"}, kAnyCode))
        << key;
  }
}

TEST(TorchWeights, BadTensors) {
  using Bend = std::function<void(Contents*)>;
  const auto shape = [](const std::string& name, const Shape& s) -> Bend {
    return [=](Contents* c) { c->tensors.at(name).shape = s; };
  };
  const auto erase = [](const std::string& name) -> Bend {
    return [=](Contents* c) { c->tensors.erase(name); };
  };
  const auto rename = [](const std::string& from, const std::string& to) -> Bend {
    return [=](Contents* c) { c->Rename(from, to); };
  };
  const auto add = [](const std::string& name) -> Bend {
    return [=](Contents* c) { c->tensors[name] = {Shape(kModel), 0}; };
  };
  const std::vector<std::pair<Bend, std::string>> cases = {
      {erase("layers.1.norm2.weight"), "'layers.1.norm2.weight': found none, wanted [6]"},
      {erase("layers.0.self_attn.in_proj_weight"),
       "'layers.0.self_attn.in_proj_weight': found none, wanted [3 d_"},
      {erase("layers.0.linear1.weight"), "'layers.0.linear1.weight': found none, wanted [d_ff, 6]"},
      {erase("layers.1.linear1.bias"),
       "'layers.1.linear1.bias': found none, wanted [10], as layers have all of their"},
      {erase("layers.0.self_attn.in_proj_bias"),
       "'layers.0.self_attn.in_proj_bias': found none, wanted [18]"},
      {erase("norm.weight"), "'norm.weight': found none, wanted [6]"},
      {shape("norm.weight", {kModel + 1}), "'norm.weight': found shape [7], wanted [6]"},
      {shape("norm.bias", {1, kModel}), "'norm.bias': found shape [1, 6], wanted [6]"},
      {shape("layers.0.self_attn.in_proj_weight", {19, 6}),
       "found shape [19, 6], wanted [3 d_model, d_model]"},
      {shape("layers.0.self_attn.in_proj_weight", {6, 18}),
       "found shape [6, 18], wanted [3 d_model, d_model]"},
      {shape("layers.0.self_attn.in_proj_weight", {0, 0}),
       "found shape [0, 0], wanted [3 d_model, d_model]"},
      {shape("layers.0.self_attn.in_proj_weight", {108}),
       "found shape [108], wanted [3 d_model, d_model]"},
      {shape("layers.1.self_attn.in_proj_weight", {15, 5}),
       "'layers.1.self_attn.in_proj_weight': found shape [15, 5], w"},
      {shape("layers.0.linear1.weight", {6, 10}),
       "'layers.0.linear1.weight': found shape [6, 10], wanted [6, 6]"},
      {shape("layers.0.linear1.weight", {0, 6}),
       "'layers.0.linear1.weight': found shape [0, 6], wanted [d_ff, 6]"},
      {shape("layers.1.linear1.weight", {11, 6}),
       "'layers.1.linear1.weight': found shape [11, 6], wanted [10, 6]"},
      {shape("layers.1.linear2.weight", {10, 6}),
       "'layers.1.linear2.weight': found shape [10, 6], wanted [6, 10]"},
      {shape("layers.1.norm1.bias", {}), "'layers.1.norm1.bias': found shape [], wanted [6]"},
      {add("head.weight"), "'head.weight': found a tensor without a place in an encoder"},
      {add("linear1.weight"), "'linear1.weight': found names with and without 'layers.N.'"},
      {add("layers.0.ff.0.weight"),
       "found also 'layers.0.ff.0.weight', which means the same, wanted one of them"},
      {add("layers.3.norm1.weight"),
       "layer 3: found it without a layer 2, wanted numbers from 0 on without a gap"},
      {add("layers.99999999999.norm1.weight"), "layer 99999999999: found it without a layer 2"},
      {add("layers.18446744073709551615.norm1.weight"),
       "layer 18446744073709551615: found it without a layer 2"},
      {add("layers.18446744073709551616.norm1.weight"), "found a tensor without a place"},
      {add("layers.-1.norm1.weight"), "found a tensor without a place"},
      {add("layers.01.norm1.weight"), "found a tensor without a place"},
      {add("layers..norm1.weight"), "found a tensor without a place"},
      {add("layers.1"), "found a tensor without a place"},
      {add("layers.1."), "found a tensor without a place"},
      {add("layers.1.layers.0.norm1.weight"), "found a tensor without a place"},
      {add(""), "tensor '': found a tensor without a place"},
      {rename("layers.0.norm1.weight", "layers.0.norm3.weight"),
       "'layers.0.norm3.weight': found a tensor without a place"},
      {[](Contents* c) { c->tensors.clear(); },
       "'self_attn.in_proj_weight': found none, wanted a layer's tensors"},
      {[](Contents* c) { c->dtype = DType::kI32; },
       "found dtype I32, wanted F32, F64, F16, BF16 or I8"},
      {[](Contents* c) { c->dtype = DType::kBool; },
       "found dtype BOOL, wanted F32, F64, F16, BF16 or I8"},
  };
  for (const auto& [bend, message] : cases) {
    Contents contents = Stack(2);
    bend(&contents);
    EXPECT_TRUE(FailsWith(Load(contents), {"/w: ", message}));
  }
}

TEST(TorchWeights, AMissingFile) {
  const TemporaryFolder folder;
  const Result<TorchWeights> weights = TorchWeights::Open(folder.File("missing"));
  ASSERT_FALSE(weights.ok());
  EXPECT_EQ(weights.status().code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace encore
