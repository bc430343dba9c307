// SPDX-License-Identifier: Apache-2.0
//
// Checks each switch of each layer, and the options.

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "engine/base/activations.h"
#include "engine/base/int_math.h"
#include "engine/base/number_text.h"
#include "engine/base/status_macros.h"
#include "engine/kernels/gemm_kernel.h"
#include "engine/nn/encoder_check.h"
#include "engine/nn/layer_sizes.h"

namespace encore::inline v0_1::internal {
namespace {

std::string Number(size_t n) { return std::to_string(n); }

// Checks switches under their full names. The first failure is kept; later ones are not looked at.
class SwitchChecker {
 public:
  explicit SwitchChecker(std::string prefix) : prefix_(std::move(prefix)) {}

  void Want(bool good, const std::string& found, const std::string& wanted) {
    if (status_.ok() && !good) status_ = InvalidArgument(prefix_ + found + "; wanted " + wanted);
  }
  void WantAtLeastOne(const char* name, size_t value) {
    Want(value >= 1, std::string(name) + " is 0", "at least 1");
  }
  void WantFinite(const std::string& name, double value) {
    Want(std::isfinite(value), name + " is " + NumberText(value), "a finite number");
  }
  // As f32, in which it is used.
  void WantFiniteFloat(const std::string& name, double value) {
    Want(std::abs(value) <= std::numeric_limits<float>::max(), name + " is " + NumberText(value),
         "a finite f32 number");
  }
  template <typename Enum>
  void WantEnumerator(const std::string& name, Enum value, Enum last, const char* type) {
    Want(value <= last, name + " is number " + Number(static_cast<size_t>(value)),
         std::string("one of the ") + type + " enumerators");
  }
  void CheckNorm(const std::string& name, const NormConfig& norm) {
    WantEnumerator(name + ".type", norm.type, NormType::kRmsNorm, "NormType");
    Want(norm.epsilon >= 0 && std::isfinite(norm.epsilon),
         name + ".epsilon is " + NumberText(norm.epsilon), "a finite number of at least 0");
    WantFiniteFloat(name + ".weight_offset", norm.weight_offset);
  }
  Status& status() { return status_; }

 private:
  std::string prefix_;
  Status status_;
};

void CheckRotary(const RotaryConfig& rotary, size_t head_size, SwitchChecker& check) {
  const size_t size = rotary.size != 0 ? rotary.size : head_size;
  check.Want(size % 2 == 0, "rotary.size is " + Number(size), "an even number");
  check.Want(size <= head_size, "rotary.size is " + Number(size),
             "at most the head size, which is " + Number(head_size));
  check.Want(
      !rotary.inverse_frequencies.empty() || (rotary.theta > 0 && std::isnormal(rotary.theta)),
      "rotary.theta is " + NumberText(rotary.theta), "a finite, normal number above 0");
  check.WantFiniteFloat("rotary.magnitude", rotary.magnitude);
  const std::vector<double>& frequencies = rotary.inverse_frequencies;
  check.Want(frequencies.empty() || frequencies.size() == size / 2,
             "rotary.inverse_frequencies has " + Number(frequencies.size()) + " numbers",
             "half of rotary.size, " + Number(size / 2));
  for (size_t i = 0; i < frequencies.size(); ++i) {
    check.WantFinite("rotary.inverse_frequencies[" + Number(i) + "]", frequencies[i]);
  }
  if (!rotary.grid) return;
  check.Want(size % 4 == 0, "rotary.size is " + Number(size), "a multiple of 4 beside a grid");
  const RotaryGrid& grid = *rotary.grid;
  constexpr size_t kMost = size_t{1} << 20;  // of each
  const auto fits = [](size_t n) { return n >= 1 && n <= kMost; };
  check.Want(fits(grid.rows) && fits(grid.columns) && grid.before <= kMost,
             "rotary.grid is " + Number(grid.rows) + " x " + Number(grid.columns) + " behind " +
                 Number(grid.before) + " rows",
             "1 .. 2^20 in each direction, behind at most 2^20");
}

// `sizes` are the layer's.
void CheckRelative(const LayerConfig& c, const LayerSizes& sizes, SwitchChecker& check) {
  const RelativeConfig& r = *c.relative;
  check.Want(!c.rotary && !c.alibi && !c.buckets, "positions are given by relative and another",
             "relative without rotary, alibi and buckets");
  check.Want(c.qk_norm.type == NormType::kNone,
             "positions are given by relative and qk_norm is set", "relative without qk_norm");
  check.Want(r.content_to_position || r.position_to_content,
             "relative.content_to_position and position_to_content are false",
             "one of them true, or no relative");
  // Bounds far beyond any model.
  check.Want(r.buckets != 1 && r.buckets <= (size_t{1} << 20),
             "relative.buckets is " + Number(r.buckets), "0, or 2 to 2^20");
  check.Want(r.max_distance > r.buckets / 2 + 1 && r.max_distance <= (size_t{1} << 20),
             "relative.max_distance is " + Number(r.max_distance),
             "more than half of relative.buckets and 1, and at most 2^20");
  check.CheckNorm("relative.norm", r.norm);
  if (!check.status().ok()) return;
  size_t table = 0;  // projected, in bytes and with room
  check.Want(CheckedMul(2 * RelativeSpan(r), sizes.qkv_width() + sizes.d_model, &table) &&
                 CheckedMul(table, 64, &table),
             "relative embeddings have " + Number(2 * RelativeSpan(r)) + " rows",
             "tables of all heads and rows that can be addressed");
}

void CheckPositions(const LayerConfig& c, size_t head_size, SwitchChecker& check) {
  const int given =
      int{c.rotary.has_value()} + int{c.alibi.has_value()} + int{c.buckets.has_value()};
  check.Want(given <= 1,
             std::string("positions are given by ") + (c.rotary ? "rotary and " : "") +
                 (c.alibi ? "alibi" : "buckets") + (c.alibi && c.buckets ? " and buckets" : ""),
             "at most one of rotary, alibi and buckets");
  if (c.rotary) CheckRotary(*c.rotary, head_size, check);
  if (c.alibi) {
    const std::vector<double>& slopes = c.alibi->slopes;
    check.Want(slopes.empty() || slopes.size() == c.num_heads,
               "alibi.slopes has " + Number(slopes.size()) + " numbers",
               "one for each of the " + Number(c.num_heads) + " heads");
    for (size_t i = 0; i < slopes.size(); ++i) {
      check.WantFiniteFloat("alibi.slopes[" + Number(i) + "]", slopes[i]);
    }
  }
  if (c.buckets) {
    const BucketConfig& b = *c.buckets;
    // Bounds far beyond any model keep tables small.
    check.Want(b.num_buckets >= 4 && b.num_buckets % 4 == 0 && b.num_buckets <= (size_t{1} << 20),
               "buckets.num_buckets is " + Number(b.num_buckets), "a multiple of 4 up to 2^20");
    check.Want(b.max_distance > b.num_buckets / 4 && b.max_distance <= (size_t{1} << 20),
               "buckets.max_distance is " + Number(b.max_distance),
               "more than a quarter of num_buckets, and at most 2^20");
    size_t table = 0;  // of all heads, in bytes and with room
    check.Want(CheckedMul(c.num_heads, std::max(b.num_buckets, 2 * b.max_distance + 1), &table) &&
                   CheckedMul(table, 64, &table),
               "buckets have " + Number(c.num_heads) + " heads",
               "tables of all heads and distances that can be addressed");
  }
}

// d_model by any width of the layer, and all of a row, in bytes of any type and with padding.
bool IsAddressable(size_t d_model, const LayerConfig& c) {
  const LayerSizes sizes(d_model, c);
  const auto fits = [](size_t a, size_t b) {
    return CheckedMul(a, b, &a) && CheckedMul(a, 64, &a);
  };
  size_t heads = 0;
  size_t width = 0;
  size_t inner = 0;
  return CheckedMul(sizes.kv_heads, 2, &heads) && CheckedAdd(c.num_heads, heads, &heads) &&
         CheckedMul(heads, sizes.head_size, &width) && fits(width, d_model) &&
         fits(d_model, d_model) &&
         CheckedMul(c.d_ff, c.experts ? std::max<size_t>(2, c.experts->num_experts) : 2, &inner) &&
         fits(inner, d_model) && (!c.layer_input || fits(c.layer_input->width, d_model)) &&
         (!c.convolution ||
          (CheckedMul(d_model, c.convolution->kernel, &inner) && fits(inner, d_model)));
}

Status CheckLayer(size_t d_model, const LayerConfig& c, const std::string& prefix) {
  SwitchChecker check(prefix);
  check.WantAtLeastOne("num_heads", c.num_heads);
  if (!check.status().ok()) return check.status();
  check.Want(
      c.num_kv_heads == 0 || (c.num_kv_heads <= c.num_heads && c.num_heads % c.num_kv_heads == 0),
      "num_kv_heads is " + Number(c.num_kv_heads) + " and num_heads is " + Number(c.num_heads),
      "a num_kv_heads that divides num_heads");
  check.Want(c.head_size != 0 || d_model % c.num_heads == 0,
             "num_heads is " + Number(c.num_heads) + " and d_model is " + Number(d_model),
             "a num_heads that divides d_model, or a head_size");
  check.WantFiniteFloat("attention_scale", c.attention_scale);
  check.WantAtLeastOne("d_ff", c.d_ff);
  if (c.window) check.WantAtLeastOne("window", *c.window);
  check.WantEnumerator("activation", c.activation, kLastActivation, "Activation");
  check.WantEnumerator("gate", c.gate, Gate::kSecondHalf, "Gate");
  if (c.experts) {
    const ExpertsConfig& e = *c.experts;
    check.Want(e.num_experts >= 1 && e.num_experts <= kMaxExperts,
               "experts.num_experts is " + Number(e.num_experts), "1 to " + Number(kMaxExperts));
    check.Want(e.top_k >= 1 && e.top_k <= e.num_experts, "experts.top_k is " + Number(e.top_k),
               "1 to experts.num_experts, which is " + Number(e.num_experts));
    check.Want(c.gate == Gate::kNone, "experts are given and gate is not kNone",
               "experts that are not gated");
  }
  check.WantEnumerator("norm_placement", c.norm_placement, NormPlacement::kBoth, "NormPlacement");
  check.CheckNorm("norm", c.norm);
  check.Want(c.norm.type != NormType::kNone, "norm.type is kNone", "kLayerNorm or kRmsNorm");
  check.CheckNorm("qk_norm", c.qk_norm);
  check.CheckNorm("v_norm", c.v_norm);
  if (c.layer_input) {
    check.WantAtLeastOne("layer_input.width", c.layer_input->width);
    check.CheckNorm("layer_input.norm", c.layer_input->norm);
  }
  if (c.convolution) {
    check.Want(c.convolution->kernel % 2 == 1 && c.convolution->kernel <= kMaxConvolution,
               "convolution.kernel is " + Number(c.convolution->kernel),
               "an odd number up to " + Number(kMaxConvolution));
    check.WantEnumerator("convolution.activation", c.convolution->activation, kLastActivation,
                         "Activation");
  }
  check.Want(c.attention_norm || c.norm_placement == NormPlacement::kPre,
             "attention_norm is false and norm_placement is not kPre",
             "a norm before attention left out with kPre only");
  if (!check.status().ok()) return check.status();
  check.Want(IsAddressable(d_model, c),
             "d_ff is " + Number(c.d_ff) + " and num_heads is " + Number(c.num_heads) +
                 " with d_model " + Number(d_model),
             "sizes whose matrices can be addressed");
  if (!check.status().ok()) return check.status();
  CheckPositions(c, LayerSizes(d_model, c).head_size, check);
  if (c.relative) CheckRelative(c, LayerSizes(d_model, c), check);
  return check.status();
}

}  // namespace

Status CheckConfig(const EncoderConfig& c) {
  if (c.d_model == 0) return InvalidArgument("d_model is 0; wanted at least 1");
  if (c.layers.empty()) return InvalidArgument("layers is empty; wanted at least one layer");
  for (size_t i = 0; i < c.layers.size(); ++i) {
    ENCORE_RETURN_IF_ERROR(CheckLayer(c.d_model, c.layers[i], "layers[" + Number(i) + "]."));
  }
  SwitchChecker check("");
  check.CheckNorm("final_norm", c.final_norm);
  return check.status();
}

Status CheckOptions(const EncoderConfig& config, const EncoderOptions& options) {
  if (!options.keep.empty() && !IsInteger(options.precision)) {
    return InvalidArgument("keep has " + Number(options.keep.size()) +
                           " matrices and precision is " +
                           std::string(PrecisionName(options.precision)) + "; wanted int8 or int4");
  }
  for (size_t i = 0; i < options.keep.size(); ++i) {
    if (options.keep[i].layer >= config.num_layers()) {
      return InvalidArgument("keep[" + Number(i) + "] is of layer " +
                             Number(options.keep[i].layer) + "; the encoder has " +
                             Number(config.num_layers()) + " layers");
    }
  }
  if (options.cache.compare && options.cache.trust) {
    return InvalidArgument("cache has both compare and trust; wanted one of them at most");
  }
  if (options.precision != Precision::kInt8) return {};
  for (size_t i = 0; i < config.num_layers(); ++i) {
    const LayerSizes sizes(config.d_model, config.layers[i]);
    const LayerConfig& layer = config.layers[i];
    const size_t joined = config.d_model * (layer.convolution ? layer.convolution->kernel : 1);
    const size_t inputs = std::max({joined, sizes.q_width(), sizes.d_ff});
    if (inputs > kMaxInt8K) {
      return InvalidArgument("layers." + Number(i) + " has a matrix of " + Number(inputs) +
                             " inputs; wanted at most " + Number(kMaxInt8K) +
                             " for int8, whose sums are 32 bits");
    }
  }
  return {};
}

}  // namespace encore::internal
