// SPDX-License-Identifier: Apache-2.0
//
// Packs, computes, unpacks. Attention weights are tapped straight into their place in the padded
// tensor, as if all padding were at the end, and then spread where it is not: one copy in memory.

#include "tools/encore/run_forward.h"

#include <utility>

#include "bench/measure/os.h"
#include "encore/workspace.h"
#include "tools/encore/failure.h"

namespace encore::tool {
namespace {

Tensor NewTensor(const Shape& shape, const std::string& name) {
  return Take(Tensor::Create(DType::kF32, shape), name);
}

struct TapTensors {
  std::vector<Tensor> attention;  // [layer]: [B, H, S, S]
  std::vector<Tensor> hidden;     // [layer]: [tokens, D]
  std::vector<MutableView> attention_views;
  std::vector<MutableView> hidden_views;
};

TapTensors MakeTaps(const EncoderConfig& config, const RunInput& input, const Batch& batch,
                    const RunSettings& settings) {
  TapTensors taps;
  const size_t seq = input.seq;
  const auto stride = [](size_t elements) { return static_cast<ptrdiff_t>(elements); };
  for (size_t layer = 0; layer < config.num_layers(); ++layer) {
    const size_t heads = config.layers[layer].num_heads;
    if (settings.attention_weights) {
      Tensor& weights = taps.attention.emplace_back(
          NewTensor({input.batch, heads, seq, seq}, "attention." + std::to_string(layer)));
      for (size_t b = 0; b < input.batch; ++b) {
        const size_t length = batch.seq_starts[b + 1] - batch.seq_starts[b];
        taps.attention_views.push_back(
            length == 0
                ? MutableView()
                : MutableView(static_cast<float*>(weights.data()) + b * heads * seq * seq,
                              Shape(heads, length, length), {stride(seq * seq), stride(seq), 1}));
      }
    }
    if (settings.hidden_states) {
      Tensor& hidden = taps.hidden.emplace_back(
          NewTensor({input.tokens(), config.d_model}, "hidden." + std::to_string(layer)));
      taps.hidden_views.push_back(hidden.View<float>());
    }
  }
  return taps;
}

// Attention weights of sequences with holes go from the top left corner to their rows and columns.
void SpreadHoles(const RunInput& input, const Batch& batch, size_t heads, Tensor& weights) {
  if (!input.padded) return;
  const size_t seq = input.seq;
  for (size_t b = 0; b < input.batch; ++b) {
    const size_t start = batch.seq_starts[b];
    const size_t length = batch.seq_starts[b + 1] - start;
    std::vector<size_t> positions(length);
    for (size_t i = 0; i < length; ++i) positions[i] = input.padded->rows()[start + i] - b * seq;
    for (size_t head = 0; head < heads; ++head) {
      SpreadSquare(static_cast<float*>(weights.data()) + (b * heads + head) * seq * seq, seq,
                   positions);
    }
  }
}

// From [tokens, D] to x's shape.
Tensor ToInputShape(const RunInput& input, Tensor packed, const std::string& name) {
  if (!input.padded) return packed;
  Tensor padded = NewTensor(input.x.shape(), name);
  if (input.tokens() > 0) {
    Check(input.padded->Unpack(packed.View<float>(), padded.View<float>()), name);
  }
  return padded;
}

}  // namespace

void SpreadSquare(float* matrix, size_t width, std::span<const size_t> positions) {
  // From the last to the first: an element moves down and right, to where all have moved away.
  for (size_t r = positions.size(); r-- > 0;) {
    for (size_t c = positions.size(); c-- > 0;) {
      if (positions[r] == r && positions[c] == c) continue;
      float& source = matrix[r * width + c];
      matrix[positions[r] * width + positions[c]] = source;
      source = 0;
    }
  }
}

RunOutput RunForward(const Encoder& encoder, const RunInput& input, const RunSettings& settings) {
  const EncoderConfig& config = encoder.config();
  const Batch batch = input.MakeBatch(settings.causal);
  TapTensors taps = MakeTaps(config, input, batch, settings);
  Tensor y = NewTensor({input.tokens(), config.d_model}, "y");
  RunOutput output;

  if (input.tokens() > 0) {
    Tensor packed;
    ConstView x = input.x.View<float>();
    if (input.padded) {
      packed = NewTensor({input.tokens(), config.d_model}, "x");
      Check(input.padded->Pack(x, packed.View<float>()), "x");
      x = packed.View<float>();
    }
    const Workspace workspace = Take(encoder.MakeWorkspace(batch, settings.executor));
    output.seconds = bench::SecondsOf([&] {
      Check(encoder.Forward(batch, x, y.View<float>(), workspace, settings.executor,
                            {.attention = taps.attention_views, .hidden = taps.hidden_views}));
    });
  }

  output.tensors.push_back({"y", ToInputShape(input, std::move(y), "y")});
  for (size_t layer = 0; layer < config.num_layers(); ++layer) {
    const std::string number = std::to_string(layer);
    if (settings.attention_weights) {
      SpreadHoles(input, batch, config.layers[layer].num_heads, taps.attention[layer]);
      output.tensors.push_back({"attention." + number, std::move(taps.attention[layer])});
    }
    if (settings.hidden_states) {
      output.tensors.push_back(
          {"hidden." + number,
           ToInputShape(input, std::move(taps.hidden[layer]), "hidden." + number)});
    }
  }
  return output;
}

}  // namespace encore::tool
