// SPDX-License-Identifier: Apache-2.0
//
// The sentences of encoder_check.h about batches, inputs and taps.

#include "engine/nn/encoder_check.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>

#include "engine/base/input_check.h"
#include "engine/ops/overlap_check.h"
#include "engine/ops/view_check.h"

namespace encore::inline v0_1::internal {
namespace {

// "list[i]", made without an allocation: a good call makes it too.
class EntryName {
 public:
  EntryName(const char* list, size_t i) { std::snprintf(text_, sizeof(text_), "%s[%zu]", list, i); }
  const char* c_str() const { return text_; }

 private:
  char text_[64];
};

// Rows to write, at least one.
Status CheckRowsApart(const char* name, const MutableView& v) {
  if ((v.dim(1) > 1 && v.stride(1) != 1) ||
      (v.dim(0) > 1 && v.stride(0) < static_cast<ptrdiff_t>(v.dim(1)))) {
    return InvalidArgument(std::string(name) + " has strides " + std::to_string(v.stride(0)) +
                           ", " + std::to_string(v.stride(1)) +
                           "; wanted contiguous rows that do not overlap");
  }
  return {};
}

bool Overlap(const ConstView& x, const ConstView& y) {
  const AddressRange a = AddressesOf(x);
  const AddressRange b = AddressesOf(y);
  return a.begin < b.end && b.begin < a.end;
}

}  // namespace

Status CheckSequenceStarts(const Batch& batch) {
  return CheckStarts("seq_starts", batch.seq_starts.get());
}

Status CheckBatch(const EncoderConfig& config, const Batch& batch) {
  const std::span<const size_t> starts = batch.seq_starts.get();
  const size_t tokens = starts.back();
  if (!batch.positions.empty() && batch.positions.size() != tokens) {
    return InvalidArgument("positions has " + std::to_string(batch.positions.size()) +
                           " entries; wanted one for each of the " + std::to_string(tokens) +
                           " tokens");
  }
  size_t longest = 0;
  for (size_t i = 1; i < starts.size(); ++i) {
    longest = std::max(longest, starts[i] - starts[i - 1]);
  }
  for (const LayerConfig& layer : config.layers) {
    if (!layer.rotary || !layer.rotary->grid) continue;
    const RotaryGrid& grid = *layer.rotary->grid;
    if (longest <= grid.before + grid.rows * grid.columns) continue;
    return InvalidArgument("a sequence has " + std::to_string(longest) +
                           " tokens; wanted at most the " + std::to_string(grid.before) +
                           " before rotary.grid and its " + std::to_string(grid.rows) + " x " +
                           std::to_string(grid.columns));
  }
  size_t covered = longest;  // rows and columns that the mask must have at least
  if (!batch.positions.empty()) {
    covered = *std::max_element(batch.positions.begin(), batch.positions.end());
    covered += covered == SIZE_MAX ? 0 : 1;
  }
  const auto check = [covered](const char* name, const auto& mask) -> Status {
    if (mask.empty()) return {};
    ENCORE_RETURN_IF_ERROR(CheckRank(name, mask, 2));
    if (mask.dim(0) != mask.dim(1) || mask.dim(0) < covered) {
      return InvalidArgument(std::string(name) + " has shape " + mask.shape().ToString() +
                             "; wanted [S, S] with S at least " + std::to_string(covered) +
                             ", which the sequences reach");
    }
    return {};
  };
  ENCORE_RETURN_IF_ERROR(check("mask.blocked", batch.mask.blocked));
  const ConstView& additive = batch.mask.additive;
  if (additive.rank() != 3) return check("mask.additive", additive);
  ENCORE_RETURN_IF_ERROR(CheckRank("mask.additive", additive, 3));
  for (const LayerConfig& layer : config.layers) {
    if (additive.dim(0) == layer.num_heads) continue;
    return InvalidArgument("mask.additive has shape " + additive.shape().ToString() +
                           "; wanted [S, S], or [H, S, S] with H the number of heads, which is " +
                           std::to_string(layer.num_heads));
  }
  return check("mask.additive of a head", additive[0]);
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
  ENCORE_RETURN_IF_ERROR(CheckRowsApart("y", y));
  const bool same = x.data() == y.data() && (tokens == 1 || x.stride(0) == y.stride(0));
  if (!same && Overlap(x, y)) {
    return InvalidArgument("x and y overlap; wanted y apart from x, or the same view");
  }
  return {};
}

Status CheckInputOutputRows(const EncoderConfig& config, const Batch& batch, const MutableView& x,
                            const MutableView& y) {
  for (size_t b = 0; b + 1 < batch.seq_starts.size(); ++b) {
    if (batch.seq_starts[b] != batch.seq_starts[b + 1]) continue;
    return InvalidArgument("sequence " + std::to_string(b) +
                           " has no token; wanted at least one, as a row of each is an output");
  }
  const Shape tokens(batch.seq_starts.back(), config.d_model);
  const Shape sequences(batch.seq_starts.size() - 1, config.d_model);
  ENCORE_RETURN_IF_ERROR(CheckShape("x", x, tokens, "the last of seq_starts by d_model"));
  ENCORE_RETURN_IF_ERROR(CheckShape("y", y, sequences, "a row for each sequence by d_model"));
  if (sequences[0] == 0) return {};
  ENCORE_RETURN_IF_ERROR(CheckRowsApart("x", x));
  ENCORE_RETURN_IF_ERROR(CheckRowsApart("y", y));
  if (!Overlap(x, y)) return {};
  return InvalidArgument("x and y overlap; wanted y apart from x, which is overwritten");
}

bool TapsLayer(const Taps& taps, size_t layer, size_t sequences) {
  if (!taps.hidden.empty() && !taps.hidden[layer].empty()) return true;
  if (taps.attention.empty()) return false;
  const auto of_layer = taps.attention.subspan(layer * sequences, sequences);
  return std::any_of(of_layer.begin(), of_layer.end(),
                     [](const MutableView& tap) { return !tap.empty(); });
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
  if (!taps.hidden.empty() && taps.hidden.size() != config.num_layers()) {
    return InvalidArgument("taps.hidden has " + std::to_string(taps.hidden.size()) +
                           " entries; wanted one for each of the " +
                           std::to_string(config.num_layers()) + " layers");
  }
  for (size_t i = 0; i < taps.hidden.size(); ++i) {
    if (taps.hidden[i].empty()) continue;
    ENCORE_RETURN_IF_ERROR(check_tap(EntryName("taps.hidden", i).c_str(), taps.hidden[i],
                                     Shape(batch.seq_starts.back(), config.d_model),
                                     "tokens by d_model"));
  }
  if (!taps.attention.empty() && taps.attention.size() != config.num_layers() * sequences) {
    return InvalidArgument("taps.attention has " + std::to_string(taps.attention.size()) +
                           " entries; wanted layers times " + "sequences, " +
                           std::to_string(config.num_layers()) + " x " + std::to_string(sequences));
  }
  for (size_t i = 0; i < taps.attention.size(); ++i) {
    if (taps.attention[i].empty()) continue;
    const size_t b = i % sequences;
    const size_t length = batch.seq_starts[b + 1] - batch.seq_starts[b];
    ENCORE_RETURN_IF_ERROR(check_tap(EntryName("taps.attention", i).c_str(), taps.attention[i],
                                     Shape(config.layers[i / sequences].num_heads, length, length),
                                     "heads by length by length"));
  }
  return {};
}

}  // namespace encore::internal
