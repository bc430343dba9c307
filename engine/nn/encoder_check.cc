// SPDX-License-Identifier: Apache-2.0
//
// The sentences of encoder_check.h, one condition after another.

#include "engine/nn/encoder_check.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>

#include "engine/base/int_math.h"
#include "engine/base/number_text.h"
#include "engine/ops/overlap_check.h"
#include "engine/ops/view_check.h"

namespace encore::internal {
namespace {

std::string Number(size_t n) { return std::to_string(n); }

// "list[i]", made without an allocation: a good call makes it too.
class EntryName {
 public:
  EntryName(const char* list, size_t i) { std::snprintf(text_, sizeof(text_), "%s[%zu]", list, i); }
  const char* c_str() const { return text_; }

 private:
  char text_[64];
};

// Checks tensors of one layer, or those beside the layers, under their full names.
class TensorChecker {
 public:
  explicit TensorChecker(std::string prefix) : prefix_(std::move(prefix)) {}

  // A failure is kept in status(); later tensors are then not looked at.
  void Required(const char* name, const ConstView& tensor, const Shape& wanted, const char* why) {
    if (!status_.ok()) return;
    const std::string full = prefix_ + name;
    if (tensor.empty()) {
      status_ = InvalidArgument(full + " is missing; wanted shape " + wanted.ToString() + " (" +
                                why + ")");
    } else {
      status_ = CheckShape(full.c_str(), tensor, wanted, why);
    }
  }
  void Optional(const char* name, const ConstView& tensor, const Shape& wanted, const char* why) {
    if (!tensor.empty()) Required(name, tensor, wanted, why);
  }
  const Status& status() const { return status_; }

 private:
  std::string prefix_;
  Status status_;
};

}  // namespace

Status CheckConfig(const EncoderConfig& c) {
  if (c.d_model == 0) return InvalidArgument("d_model is 0; wanted at least 1");
  if (c.num_heads == 0) return InvalidArgument("num_heads is 0; wanted at least 1");
  if (c.d_model % c.num_heads != 0) {
    return InvalidArgument("d_model is " + Number(c.d_model) + " and num_heads is " +
                           Number(c.num_heads) + "; wanted a d_model that num_heads divides");
  }
  if (c.d_ff == 0) return InvalidArgument("d_ff is 0; wanted at least 1");
  if (c.num_layers == 0) return InvalidArgument("num_layers is 0; wanted at least 1");
  if (!(c.layer_norm_eps >= 0) || !std::isfinite(c.layer_norm_eps)) {
    return InvalidArgument("layer_norm_eps is " + NumberText(c.layer_norm_eps) +
                           "; wanted a finite number of at least 0");
  }
  if (ActivationName(c.activation) == "unknown") {
    return InvalidArgument("activation is number " + Number(static_cast<size_t>(c.activation)) +
                           "; wanted one of the Activation enumerators");
  }
  size_t bytes = 0;  // of the largest matrices, which later sums and products stay below
  if (!CheckedMul(c.d_model, c.d_model, &bytes) || !CheckedMul(bytes, 64, &bytes) ||
      !CheckedMul(c.d_model, c.d_ff, &bytes) || !CheckedMul(bytes, 64, &bytes) ||
      !CheckedMul(c.d_ff, 64, &bytes)) {
    return InvalidArgument("d_model is " + Number(c.d_model) + " and d_ff is " + Number(c.d_ff) +
                           "; wanted sizes whose matrices can be addressed");
  }
  return {};
}

Status CheckWeights(const EncoderConfig& c, const EncoderWeights& weights) {
  if (weights.layers.size() != c.num_layers) {
    return InvalidArgument("weights have " + Number(weights.layers.size()) +
                           " layers; wanted num_layers, which is " + Number(c.num_layers));
  }
  const size_t d = c.d_model;
  for (size_t i = 0; i < c.num_layers; ++i) {
    const EncoderLayerWeights& w = weights.layers[i];
    TensorChecker check("layers." + Number(i) + ".");
    check.Required("self_attn.in_proj_weight", w.in_proj_weight, Shape(3 * d, d),
                   "3 d_model by d_model");
    check.Optional("self_attn.in_proj_bias", w.in_proj_bias, Shape(3 * d), "3 d_model");
    check.Required("self_attn.out_proj.weight", w.out_proj_weight, Shape(d, d),
                   "d_model by d_model");
    check.Optional("self_attn.out_proj.bias", w.out_proj_bias, Shape(d), "d_model");
    check.Required("linear1.weight", w.linear1_weight, Shape(c.d_ff, d), "d_ff by d_model");
    check.Optional("linear1.bias", w.linear1_bias, Shape(c.d_ff), "d_ff");
    check.Required("linear2.weight", w.linear2_weight, Shape(d, c.d_ff), "d_model by d_ff");
    check.Optional("linear2.bias", w.linear2_bias, Shape(d), "d_model");
    check.Required("norm1.weight", w.norm1_weight, Shape(d), "d_model");
    check.Optional("norm1.bias", w.norm1_bias, Shape(d), "d_model");
    check.Required("norm2.weight", w.norm2_weight, Shape(d), "d_model");
    check.Optional("norm2.bias", w.norm2_bias, Shape(d), "d_model");
    if (!check.status().ok()) return check.status();
  }
  TensorChecker check("");
  if (c.final_norm) {
    check.Required("norm.weight", weights.norm_weight, Shape(d), "d_model");
    check.Optional("norm.bias", weights.norm_bias, Shape(d), "d_model");
  } else if (!weights.norm_weight.empty() || !weights.norm_bias.empty()) {
    return InvalidArgument(
        "norm.weight or norm.bias is given and final_norm is false; wanted neither");
  }
  return check.status();
}

Status CheckSequenceStarts(const Batch& batch) {
  const std::span<const size_t> starts = batch.seq_starts;
  if (starts.empty())
    return InvalidArgument("seq_starts is empty; wanted one entry a sequence, plus the end");
  if (starts[0] != 0)
    return InvalidArgument("seq_starts[0] is " + Number(starts[0]) + "; wanted 0");
  for (size_t i = 1; i < starts.size(); ++i) {
    if (starts[i] < starts[i - 1]) {
      return InvalidArgument("seq_starts[" + Number(i) + "] is " + Number(starts[i]) + " after " +
                             Number(starts[i - 1]) + "; wanted entries that never decrease");
    }
  }
  return {};
}

Status CheckBatch(const Batch& batch) {
  const size_t tokens = batch.seq_starts.back();
  if (!batch.positions.empty() && batch.positions.size() != tokens) {
    return InvalidArgument("positions has " + Number(batch.positions.size()) +
                           " entries; wanted one for each of the " + Number(tokens) + " tokens");
  }
  size_t covered = 0;  // rows and columns that the mask must have at least
  if (batch.positions.empty()) {
    for (size_t i = 1; i < batch.seq_starts.size(); ++i) {
      covered = std::max(covered, batch.seq_starts[i] - batch.seq_starts[i - 1]);
    }
  } else {
    covered = *std::max_element(batch.positions.begin(), batch.positions.end());
    covered += covered == SIZE_MAX ? 0 : 1;
  }
  const auto check = [covered](const char* name, const auto& mask) -> Status {
    if (mask.empty()) return {};
    ENCORE_RETURN_IF_ERROR(CheckRank(name, mask, 2));
    if (mask.dim(0) != mask.dim(1) || mask.dim(0) < covered) {
      return InvalidArgument(std::string(name) + " has shape " + mask.shape().ToString() +
                             "; wanted [S, S] with S at least " + Number(covered) +
                             ", which the sequences reach");
    }
    return {};
  };
  ENCORE_RETURN_IF_ERROR(check("mask.blocked", batch.mask.blocked));
  return check("mask.additive", batch.mask.additive);
}

Status CheckInputOutput(const EncoderConfig& config, const Batch& batch, const ConstView& x,
                        const MutableView& y) {
  const size_t tokens = batch.seq_starts.back();
  const Shape wanted(tokens, config.d_model);
  ENCORE_RETURN_IF_ERROR(CheckShape("x", x, wanted, "the last of seq_starts by d_model"));
  ENCORE_RETURN_IF_ERROR(CheckShape("y", y, wanted, "the last of seq_starts by d_model"));
  if (tokens == 0) return {};
  if ((config.d_model > 1 && x.stride(1) != 1) || (tokens > 1 && x.stride(0) < 0)) {
    return InvalidArgument("x has strides " + std::to_string(x.stride(0)) + ", " +
                           std::to_string(x.stride(1)) +
                           "; wanted contiguous rows in rising order");
  }
  if ((config.d_model > 1 && y.stride(1) != 1) ||
      (tokens > 1 && y.stride(0) < static_cast<ptrdiff_t>(config.d_model))) {
    return InvalidArgument("y has strides " + std::to_string(y.stride(0)) + ", " +
                           std::to_string(y.stride(1)) +
                           "; wanted contiguous rows that do not overlap");
  }
  const auto first = [](const auto& v) { return reinterpret_cast<uintptr_t>(v.data()); };
  const auto last = [&](const auto& v) {
    return reinterpret_cast<uintptr_t>(&v(tokens - 1, config.d_model - 1));
  };
  const bool same = x.data() == y.data() && (tokens == 1 || x.stride(0) == y.stride(0));
  if (!same && first(x) <= last(y) && first(y) <= last(x)) {
    return InvalidArgument("x and y overlap; wanted y apart from x, or the same view");
  }
  return {};
}

Status CheckTaps(const EncoderConfig& config, const Batch& batch, const Taps& taps,
                 const ConstView& x, const MutableView& y) {
  const auto check_tap = [&](const char* name, const MutableView& tap, const Shape& wanted,
                             const char* why) -> Status {
    ENCORE_RETURN_IF_ERROR(CheckShape(name, tap, wanted, why));
    ENCORE_RETURN_IF_ERROR(CheckOutput(name, tap));
    ENCORE_RETURN_IF_ERROR(CheckNoOverlap(name, tap, "x", x));
    return CheckNoOverlap(name, tap, "y", y);
  };
  const size_t sequences = batch.seq_starts.size() - 1;
  if (!taps.hidden.empty() && taps.hidden.size() != config.num_layers) {
    return InvalidArgument("taps.hidden has " + Number(taps.hidden.size()) +
                           " entries; wanted one for each of the " + Number(config.num_layers) +
                           " layers");
  }
  for (size_t i = 0; i < taps.hidden.size(); ++i) {
    if (taps.hidden[i].empty()) continue;
    ENCORE_RETURN_IF_ERROR(check_tap(EntryName("taps.hidden", i).c_str(), taps.hidden[i],
                                     Shape(batch.seq_starts.back(), config.d_model),
                                     "tokens by d_model"));
  }
  if (!taps.attention.empty() && taps.attention.size() != config.num_layers * sequences) {
    return InvalidArgument("taps.attention has " + Number(taps.attention.size()) +
                           " entries; wanted layers times " + "sequences, " +
                           Number(config.num_layers) + " x " + Number(sequences));
  }
  for (size_t i = 0; i < taps.attention.size(); ++i) {
    if (taps.attention[i].empty()) continue;
    const size_t b = i % sequences;
    const size_t length = batch.seq_starts[b + 1] - batch.seq_starts[b];
    ENCORE_RETURN_IF_ERROR(check_tap(EntryName("taps.attention", i).c_str(), taps.attention[i],
                                     Shape(config.num_heads, length, length),
                                     "heads by length by length"));
  }
  return {};
}

}  // namespace encore::internal
