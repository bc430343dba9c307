// SPDX-License-Identifier: Apache-2.0
//
// Validates the input, packs, computes, unpacks. Attention weights are tapped straight into their
// place in the padded tensor, as if all padding were at the end, and then spread where it is not:
// one copy in memory.

#include "tools/encore/run_batch.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "bench/measure/os.h"
#include "encore/workspace.h"
#include "tools/encore/failure.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

constexpr std::string_view kNames[] = {"x", "seq_lengths", "key_padding_mask", "attn_mask"};

[[noreturn]] void Fail(const SafetensorsFile& file, const std::string& sentence) {
  throw Failure("--input: " + file.name() + ": " + sentence);
}

std::string Describe(const SafetensorsEntry& entry) {
  return std::string(DTypeName(entry.dtype)) + " " + entry.shape.ToString();
}

void WantKnownNames(const SafetensorsFile& file) {
  for (const SafetensorsEntry& entry : file.tensors()) {
    if (std::find(std::begin(kNames), std::end(kNames), entry.name) != std::end(kNames)) continue;
    constexpr size_t kLongest = 60;
    Fail(file, "found an unknown tensor '" + Printable(entry.name.substr(0, kLongest)) +
                   "', wanted x and perhaps seq_lengths, key_padding_mask, attn_mask");
  }
}

bool IsFloat(DType type) {
  return type == DType::kF32 || type == DType::kF64 || type == DType::kF16 || type == DType::kBF16;
}

void ReadX(const SafetensorsFile& file, size_t d_model, RunInput& input) {
  const SafetensorsEntry* x = file.Find("x");
  if (x == nullptr) Fail(file, "found no tensor x, wanted the input [B, S, D] or [T, D]");
  const size_t rank = x->shape.rank();
  if (!IsFloat(x->dtype) || (rank != 2 && rank != 3) || x->shape[rank - 1] != d_model) {
    const std::string width = std::to_string(d_model);
    Fail(file, "x is " + Describe(*x) + ", wanted F32, F64, F16 or BF16 [B, S, " + width +
                   "] or [T, " + width + "] (the weights' d_model is " + width + ")");
  }
  if (x->bytes.empty()) Fail(file, "x is " + x->shape.ToString() + ", wanted at least one element");
  input.x = Take(file.ReadAsF32("x"), "--input");
}

// x is [B, S, D].
void ReadPadding(const SafetensorsFile& file, RunInput& input) {
  if (file.Find("seq_lengths") != nullptr) {
    Fail(file, "seq_lengths goes with an x of shape [T, D], found " + input.x.shape().ToString());
  }
  input.batch = input.x.shape()[0];
  input.seq = input.x.shape()[1];
  const SafetensorsEntry* entry = file.Find("key_padding_mask");
  Tensor mask;
  if (entry != nullptr) {
    const Shape wanted(input.batch, input.seq);
    if (entry->dtype != DType::kBool || entry->shape != wanted) {
      Fail(file, "key_padding_mask is " + Describe(*entry) + ", wanted BOOL " + wanted.ToString() +
                     " (true = padding)");
    }
    mask = Take(file.Read("key_padding_mask"), "--input");
  }
  input.padded = Take(PaddedBatch::Create(input.batch, input.seq, std::as_const(mask).View<bool>()),
                      file.name());
}

// x is [T, D].
void ReadLengths(const SafetensorsFile& file, RunInput& input) {
  const SafetensorsEntry* entry = file.Find("seq_lengths");
  if (entry == nullptr) {
    Fail(file, "x is " + input.x.shape().ToString() +
                   ", packed sequences, and seq_lengths (I64 [B]) is missing");
  }
  if (file.Find("key_padding_mask") != nullptr) {
    Fail(file,
         "key_padding_mask goes with an x of shape [B, S, D], found " + input.x.shape().ToString());
  }
  if (entry->dtype != DType::kI64 || entry->shape.rank() != 1) {
    Fail(file, "seq_lengths is " + Describe(*entry) + ", wanted I64 [B]");
  }
  const Tensor lengths = Take(file.Read("seq_lengths"), "--input");
  input.batch = lengths.shape()[0];
  const size_t tokens = input.x.shape()[0];
  const auto* values = static_cast<const int64_t*>(lengths.data());
  input.seq_starts.assign(1, 0);
  for (size_t b = 0; b < input.batch; ++b) {
    const size_t left = tokens - input.seq_starts.back();
    if (values[b] < 0 || static_cast<uint64_t>(values[b]) > left) {
      Fail(file, "seq_lengths[" + std::to_string(b) + "] is " + std::to_string(values[b]) +
                     ", wanted 0 to " + std::to_string(left) + ", the rows of x that are left");
    }
    const size_t length = static_cast<size_t>(values[b]);
    input.seq = std::max(input.seq, length);
    input.seq_starts.push_back(input.seq_starts.back() + length);
  }
  if (input.seq_starts.back() != tokens) {
    Fail(file, "seq_lengths add up to " + std::to_string(input.seq_starts.back()) + ", wanted " +
                   std::to_string(tokens) + ", the rows of x");
  }
}

void ReadMask(const SafetensorsFile& file, RunInput& input) {
  const SafetensorsEntry* entry = file.Find("attn_mask");
  if (entry == nullptr) return;
  const Shape wanted(input.seq, input.seq);
  if ((entry->dtype != DType::kBool && !IsFloat(entry->dtype)) || entry->shape != wanted) {
    Fail(file, "attn_mask is " + Describe(*entry) +
                   ", wanted BOOL (true = may not attend) or F32 " + wanted.ToString() +
                   (input.padded ? "" : ", the longest sequence"));
  }
  if (entry->dtype == DType::kBool) {
    input.blocked = Take(file.Read("attn_mask"), "--input");
  } else {
    input.additive = Take(file.ReadAsF32("attn_mask"), "--input");
  }
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

Batch RunInput::MakeBatch(bool causal) const {
  const AttentionMask mask = {
      .causal = causal, .blocked = blocked.View<bool>(), .additive = additive.View<float>()};
  if (padded) return padded->batch(mask);
  return Batch{.seq_starts = seq_starts, .mask = mask};
}

ConstView RunInput::Packed(Tensor* packed) const {
  if (!padded) return x.View<float>();
  *packed = NewTensor({tokens(), d_model()}, "x");
  Check(padded->Pack(x.View<float>(), packed->View<float>()), "x");
  return packed->View<float>();
}

RunInput ReadRunInput(const SafetensorsFile& file, size_t d_model) {
  WantKnownNames(file);
  RunInput input;
  ReadX(file, d_model, input);
  if (input.x.shape().rank() == 3) {
    ReadPadding(file, input);
  } else {
    ReadLengths(file, input);
  }
  ReadMask(file, input);
  return input;
}

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
    const ConstView x = input.Packed(&packed);
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
