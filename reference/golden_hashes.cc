// SPDX-License-Identifier: Apache-2.0
//
// The inputs behind the published hashes: encoders of four shapes, of six families, some of them in
// bf16, int8 and int4, one of them on pictures; and each operation alone. None makes subnormal
// numbers that a product would see.

#include "reference/golden_hashes.h"

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "encore/encoder.h"
#include "encore/ops.h"
#include "encore/resize.h"
#include "reference/drawn.h"
#include "reference/encoder_model.h"
#include "reference/golden_families.h"

namespace encore::reference {
namespace {

void EndUnlessOk(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "a published input is refused: %s\n", status.message().c_str());
  std::abort();
}

// Lengths around the blocks of 64 queries and tiles of 512 keys.
uint64_t HashOfModel(const EncoderModel& model, const AttentionMask& mask, Precision precision) {
  const std::vector<size_t> starts = Starts({1, 17, 65, 530});
  const std::vector<float> x = RandomFloats(starts.back() * model.config().d_model, 99, 2);
  const Encoder encoder = model.Make({.precision = precision});
  return HashBits(Forward(encoder, Batch{.seq_starts = starts, .mask = mask}, x));
}

uint64_t HashOfFamily(const GoldenFamily& family, Precision precision = Precision::kF32) {
  return HashOfModel(EncoderModel(family.config, family.choices), {}, precision);
}

// K around the slices of a product.
uint64_t HashOfEncoder(Activation activation, bool norm_first, size_t head_size,
                       Precision precision = Precision::kF32) {
  const EncoderModel model({.d_model = 2 * head_size,
                            .num_heads = 2,
                            .d_ff = 1100,
                            .num_layers = 2,
                            .activation = activation,
                            .norm_first = norm_first,
                            .final_norm = norm_first});
  return HashOfModel(model, {.causal = norm_first}, precision);
}

// RGB of edge x edge pixels, by this filter from a picture that a formula draws: smooth as a whole,
// rough from pixel to pixel.
std::vector<uint8_t> ResizedPicture(size_t height, size_t width, ResizeFilter filter, size_t edge) {
  std::vector<uint8_t> drawn(height * width * 3);
  for (size_t i = 0; i < drawn.size(); ++i) {
    const size_t y = i / 3 / width, x = i / 3 % width;
    drawn[i] = static_cast<uint8_t>(x * y / 97 + 60 * (i % 3) + (x * x + 5 * y) % 31);
  }
  std::vector<uint8_t> resized(edge * edge * 3);
  EndUnlessOk(ResizeImage(
      {.pixels = drawn.data(), .width = width, .height = height, .stride = width * 3}, filter,
      {.height = edge, .width = edge, .rows = edge, .columns = edge}, resized.data(), edge * 3));
  return resized;
}

// A picture that gets smaller in both directions, and one that gets lower and wider, by the filters
// without a sine, which would be the C library's.
uint64_t HashOfResize() {
  std::vector<float> bytes;
  for (const uint8_t filter : {0, 2, 3, 4}) {
    for (const size_t width : {301, 37}) {
      const auto made = ResizedPicture(203, width, static_cast<ResizeFilter>(filter), 112);
      bytes.insert(bytes.end(), made.begin(), made.end());
    }
  }
  return HashBits(bytes);
}

// Two pictures from their pixels to their last states: 50 and 197 rows, as ViT-B/32 and ViT-B/16
// have, of the class and of patches by a linear layer.
uint64_t HashOfPictures(Precision precision) {
  constexpr size_t kPatch = 16, kInputs = 3 * kPatch * kPatch;
  const GoldenFamily family = Vit();
  const size_t d = family.config.d_model;
  const std::vector<float> weight = RandomFloats(kInputs * d, 12, 0.1f);
  std::vector<size_t> starts = {0};
  std::vector<float> x;
  for (const size_t across : {7, 14}) {
    const size_t edge = across * kPatch;
    const auto pixels = ResizedPicture(203, 301, ResizeFilter::kBicubic, edge);
    std::vector<float> patches(across * across * kInputs);
    for (size_t i = 0; i < patches.size(); ++i) {  // channels, then rows of a patch
      const size_t patch = i / kInputs, channel = i % kInputs / (kPatch * kPatch);
      const size_t row = patch / across * kPatch + i / kPatch % kPatch;
      const size_t column = patch % across * kPatch + i % kPatch;
      patches[i] = static_cast<float>(pixels[(row * edge + column) * 3 + channel]) / 64 - 2;
    }
    std::vector<float> rows = RandomFloats((1 + across * across) * d, 13);
    EndUnlessOk(MatMul({patches.data(), {across * across, kInputs}}, {weight.data(), {kInputs, d}},
                       {rows.data() + d, {across * across, d}}));
    x.insert(x.end(), rows.begin(), rows.end());
    starts.push_back(starts.back() + rows.size() / d);
  }
  const Encoder encoder =
      EncoderModel(family.config, family.choices).Make({.precision = precision});
  return HashBits(Forward(encoder, Batch{.seq_starts = starts}, x));
}

uint64_t HashOfFunction(Status (*function)(ConstView, MutableView)) {
  const std::vector<float> x = RandomFloats(20000, 5, 30);
  std::vector<float> y(x.size());
  EndUnlessOk(function(ConstView(x.data(), {x.size()}), MutableView(y.data(), {y.size()})));
  return HashBits(y);
}

// K beyond any slice, sizes that no tile divides.
uint64_t HashOfMatMul() {
  constexpr size_t kM = 37, kK = 2500, kN = 91;
  const std::vector<float> a = RandomFloats(kM * kK, 1);
  const std::vector<float> b = RandomFloats(kK * kN, 2);
  const std::vector<float> bias = RandomFloats(kN, 3);
  std::vector<float> c(kM * kN);
  EndUnlessOk(MatMul({a.data(), {kM, kK}}, {b.data(), {kK, kN}}, {c.data(), {kM, kN}},
                     {.bias = ConstView(bias.data(), {kN})}));
  return HashBits(c);
}

uint64_t HashOfSoftmax() {
  constexpr size_t kRows = 13, kCols = 1000;
  const std::vector<float> x = RandomFloats(kRows * kCols, 4, 5);
  std::vector<float> y(x.size());
  EndUnlessOk(Softmax({x.data(), {kRows, kCols}}, {y.data(), {kRows, kCols}}));
  return HashBits(y);
}

uint64_t HashOfLayerNorm() {
  constexpr size_t kRows = 13, kCols = 1003;
  const std::vector<float> x = RandomFloats(kRows * kCols, 6, 1, 3);
  const std::vector<float> weight = RandomFloats(kCols, 7, 0.1f, 1);
  const std::vector<float> bias = RandomFloats(kCols, 8);
  std::vector<float> y(x.size());
  EndUnlessOk(LayerNorm({x.data(), {kRows, kCols}}, {weight.data(), {kCols}},
                        {bias.data(), {kCols}}, 1e-5, {y.data(), {kRows, kCols}}));
  return HashBits(y);
}

uint64_t HashOfAttention() {
  constexpr size_t kQueries = 67, kKeys = 1030, kSize = 40;
  const std::vector<float> q = RandomFloats(kQueries * kSize, 9);
  const std::vector<float> k = RandomFloats(kKeys * kSize, 10);
  const std::vector<float> v = RandomFloats(kKeys * kSize, 11);
  std::vector<float> y(q.size());
  EndUnlessOk(Attention({q.data(), {kQueries, kSize}}, {k.data(), {kKeys, kSize}},
                        {v.data(), {kKeys, kSize}}, {y.data(), {kQueries, kSize}}));
  return HashBits(y);
}

struct Computed {
  std::string_view name;
  uint64_t (*hash)();
};

constexpr Computed kComputed[] = {
    {"relu post 14", [] { return HashOfEncoder(Activation::kRelu, false, 14); }},
    {"gelu post 64", [] { return HashOfEncoder(Activation::kGelu, false, 64); }},
    {"gelu_tanh pre 72", [] { return HashOfEncoder(Activation::kGeluTanh, true, 72); }},
    {"silu pre 32", [] { return HashOfEncoder(Activation::kSilu, true, 32); }},
    {"modernbert", [] { return HashOfFamily(ModernBert()); }},
    {"gemma", [] { return HashOfFamily(Gemma()); }},
    {"t5", [] { return HashOfFamily(T5()); }},
    {"qwen3", [] { return HashOfFamily(Qwen3()); }},
    {"jina", [] { return HashOfFamily(Jina()); }},
    {"dinov3", [] { return HashOfFamily(Dinov3()); }},
    {"bf16 relu post 14",
     [] { return HashOfEncoder(Activation::kRelu, false, 14, Precision::kBF16); }},
    {"bf16 gelu post 64",
     [] { return HashOfEncoder(Activation::kGelu, false, 64, Precision::kBF16); }},
    {"bf16 silu pre 72",
     [] { return HashOfEncoder(Activation::kSilu, true, 72, Precision::kBF16); }},
    {"bf16 modernbert", [] { return HashOfFamily(ModernBert(), Precision::kBF16); }},
    {"bf16 gemma", [] { return HashOfFamily(Gemma(), Precision::kBF16); }},
    {"int8 relu post 14",
     [] { return HashOfEncoder(Activation::kRelu, false, 14, Precision::kInt8); }},
    {"int8 gelu post 64",
     [] { return HashOfEncoder(Activation::kGelu, false, 64, Precision::kInt8); }},
    {"int8 silu pre 72",
     [] { return HashOfEncoder(Activation::kSilu, true, 72, Precision::kInt8); }},
    {"int8 modernbert", [] { return HashOfFamily(ModernBert(), Precision::kInt8); }},
    {"int8 gemma", [] { return HashOfFamily(Gemma(), Precision::kInt8); }},
    {"int4 relu post 14",
     [] { return HashOfEncoder(Activation::kRelu, false, 14, Precision::kInt4); }},
    {"int4 gelu post 64",
     [] { return HashOfEncoder(Activation::kGelu, false, 64, Precision::kInt4); }},
    {"int4 silu pre 72",
     [] { return HashOfEncoder(Activation::kSilu, true, 72, Precision::kInt4); }},
    {"int4 modernbert", [] { return HashOfFamily(ModernBert(), Precision::kInt4); }},
    {"int4 gemma", [] { return HashOfFamily(Gemma(), Precision::kInt4); }},
    {"pictures", [] { return HashOfPictures(Precision::kF32); }},
    {"bf16 pictures", [] { return HashOfPictures(Precision::kBF16); }},
    {"int8 pictures", [] { return HashOfPictures(Precision::kInt8); }},
    {"int4 pictures", [] { return HashOfPictures(Precision::kInt4); }},
    {"exp", [] { return HashOfFunction(Exp); }},
    {"tanh", [] { return HashOfFunction(Tanh); }},
    {"gelu", [] { return HashOfFunction(Gelu); }},
    {"gelu_tanh", [] { return HashOfFunction(GeluTanh); }},
    {"silu", [] { return HashOfFunction(Silu); }},
    {"matmul", HashOfMatMul},
    {"softmax", HashOfSoftmax},
    {"layer_norm", HashOfLayerNorm},
    {"attention", HashOfAttention},
    {"resize", HashOfResize},
};

}  // namespace

uint64_t ComputeGoldenHash(std::string_view name) {
  for (const Computed& computed : kComputed) {
    if (computed.name == name) return computed.hash();
  }
  std::fprintf(stderr, "there is no published input of that name\n");
  std::abort();
}

}  // namespace encore::reference
