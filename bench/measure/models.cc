// SPDX-License-Identifier: Apache-2.0
//
// The list of workloads, and how the ragged batch's lengths are drawn.

#include "bench/measure/models.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <numeric>
#include <optional>
#include <random>
#include <utility>

#include "engine/nn/layer_sizes.h"

namespace encore::bench {
namespace {

// In [0, 1), from the generator's high bits. The distributions of <random> differ between
// libraries; this does not.
double Uniform(std::mt19937_64& generator) {
  return static_cast<double>(generator() >> 11) * 0x1p-53;
}

std::vector<size_t> LognormalLengths(size_t count, uint64_t seed) {
  // 64 lies halfway between 8 and 512 on the logarithmic scale; sigma 0.8 leaves about one in a
  // hundred outside, which is drawn again.
  constexpr double kMedian = 64;
  constexpr double kSigma = 0.8;
  std::mt19937_64 generator(seed);
  std::vector<size_t> lengths;
  while (lengths.size() < count) {
    // Box and Muller's transform of two uniform numbers into a normal one.
    const double radius = std::sqrt(-2 * std::log(1 - Uniform(generator)));
    const double normal = radius * std::cos(2 * std::numbers::pi * Uniform(generator));
    const double length = std::round(kMedian * std::exp(kSigma * normal));
    if (length >= 8 && length <= 512) lengths.push_back(static_cast<size_t>(length));
  }
  return lengths;
}

// As many sequences, all of the one length whose operations come nearest to those of `lengths`.
std::vector<size_t> UniformLike(const Model& model, const std::vector<size_t>& lengths) {
  const double wanted = LayerFlops(model, lengths);
  std::vector<size_t> best(lengths.size(), 1);
  for (size_t length = 2; length <= 512; ++length) {
    const std::vector<size_t> uniform(lengths.size(), length);
    if (std::abs(LayerFlops(model, uniform) - wanted) <
        std::abs(LayerFlops(model, best) - wanted)) {
      best = uniform;
    }
  }
  return best;
}

NamedWorkload Rectangle(const Model& model, size_t batch, size_t seq, bool warm, bool cold,
                        size_t layers = 1) {
  const std::string depth = layers > 1 ? "_" + std::to_string(layers) + "_layers_" : "_";
  return {.name = model.name + depth + std::to_string(batch) + "x" + std::to_string(seq),
          .model = model,
          .lengths = std::vector<size_t>(batch, seq),
          .warm_by_default = warm,
          .cold_by_default = cold,
          .layers = layers};
}

std::vector<NamedWorkload> MakeWorkloads() {
  std::vector<NamedWorkload> all = {
      Rectangle(kExample, 32, 10, true, true),   Rectangle(kExample, 10, 32, true, true),
      Rectangle(kMiniLm, 1, 16, true, true),     Rectangle(kMiniLm, 1, 128, true, true),
      Rectangle(kMiniLm, 8, 128, true, true),    Rectangle(kBase, 1, 16, true, true),
      Rectangle(kBase, 1, 128, true, true),      Rectangle(kBase, 8, 128, true, true),
      Rectangle(kBase, 1, 512, true, true),      Rectangle(kLarge, 1, 128, true, true),
      Rectangle(kVitB, 1, 197, true, false),     Rectangle(kMiniLm, 1, 128, true, false, 6),
      Rectangle(kBase, 1, 128, true, false, 12), Rectangle(kModernBert, 1, 512, true, false, 22),
  };
  const std::vector<size_t> ragged = LognormalLengths(64, 2026);
  all.push_back({.name = "ragged_64", .model = kBase, .lengths = ragged, .warm_by_default = true});
  const size_t useful = Tokens(all.back());
  const size_t longest = *std::max_element(ragged.begin(), ragged.end());
  all.push_back({.name = "ragged_64_padded",
                 .model = kBase,
                 .lengths = std::vector<size_t>(ragged.size(), longest),
                 .warm_by_default = true,
                 .padding = ragged.size() * longest - useful});
  all.push_back(
      {.name = "ragged_64_uniform", .model = kBase, .lengths = UniformLike(kBase, ragged)});
  for (const size_t seq : {size_t{2048}, size_t{8192}, size_t{16384}}) {
    all.push_back(Rectangle(kBase, 1, seq, false, false));
  }
  for (const auto& [batch, seq] :
       {std::pair<size_t, size_t>{1, 16}, {1, 128}, {8, 128}, {1, 512}, {1, 2048}, {1, 8192}}) {
    all.push_back(Rectangle(kDeberta, batch, seq, false, false));
  }
  // A picture of CLIP's ViT-B/32, and both sizes of all layers on several.
  all.push_back(Rectangle(kVitB, 1, 50, false, false));
  for (const size_t seq : {size_t{50}, size_t{197}}) {
    all.push_back(Rectangle(kVitB, 8, seq, false, false, 12));
  }
  return all;
}

}  // namespace

const std::vector<NamedWorkload>& NamedWorkloads() {
  static const std::vector<NamedWorkload> all = MakeWorkloads();
  return all;
}

const NamedWorkload* FindWorkload(const std::string& name) {
  for (const NamedWorkload& workload : NamedWorkloads()) {
    if (workload.name == name) return &workload;
  }
  return nullptr;
}

size_t Tokens(const NamedWorkload& workload) {
  return std::accumulate(workload.lengths.begin(), workload.lengths.end(), size_t{0});
}

std::string DescribeLengths(const std::vector<size_t>& lengths) {
  if (lengths.empty()) return "none";
  const auto [shortest, longest] = std::minmax_element(lengths.begin(), lengths.end());
  const std::string count = std::to_string(lengths.size());
  if (*shortest == *longest) return count + "x" + std::to_string(*longest);
  return count + " of " + std::to_string(*shortest) + " to " + std::to_string(*longest);
}

EncoderConfig ConfigOf(const Model& model, size_t layers) {
  LayerConfig layer = {
      .num_heads = model.heads, .d_ff = model.d_ff, .activation = model.activation};
  if (model.block == Block::kDeberta) {
    layer.relative = RelativeConfig{.buckets = 256, .max_distance = 512, .norm = NormConfig{}};
    const size_t head_size = model.d_model / model.heads;
    layer.attention_scale = 1 / std::sqrt(3.0 * static_cast<double>(head_size));
  } else if (model.block != Block::kPostNorm) {
    layer.norm_placement = NormPlacement::kPre;
  }
  if (model.block != Block::kModernBert) {
    return EncoderConfig::Uniform(model.d_model, layers, layer);
  }
  layer.gate = Gate::kFirstHalf;
  EncoderConfig config{.d_model = model.d_model};
  for (size_t i = 0; i < layers; ++i) {
    const bool global = i % 3 == 0;
    layer.window = global ? std::nullopt : std::optional<size_t>(64);
    layer.rotary = RotaryConfig{.theta = global ? 160000.0 : 10000.0};
    layer.attention_norm = i != 0;
    config.layers.push_back(layer);
  }
  return config;
}

WeightChoices ChoicesOf(const Model& model) {
  return {.biases = model.block != Block::kModernBert};
}

size_t LayerBytes(const Model& model, Precision precision) {
  size_t bits = 32;
  if (precision == Precision::kBF16) bits = 16;
  if (precision == Precision::kInt8) bits = 8;
  const size_t first = model.block == Block::kModernBert ? 2 : 1;
  const size_t weights =
      4 * model.d_model * model.d_model + (first + 1) * model.d_model * model.d_ff;
  if (precision == Precision::kInt4) return weights * 9 / 16;  // with a bf16 scale for each 32
  return weights * bits / 8;
}

double StackFlops(const Model& model, const std::vector<size_t>& lengths, size_t layers) {
  double flops = 0;
  for (const LayerConfig& layer : ConfigOf(model, layers).layers) {
    for (const size_t length : lengths) flops += internal::LayerFlops(model.d_model, layer, length);
  }
  return flops;
}

}  // namespace encore::bench
