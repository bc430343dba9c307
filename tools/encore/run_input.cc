// SPDX-License-Identifier: Apache-2.0
//
// Validates the input file of `encore run`.

#include "tools/encore/run_input.h"

#include <algorithm>
#include <string_view>
#include <utility>

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

}  // namespace

Batch RunInput::MakeBatch(bool causal) const {
  const AttentionMask mask = {
      .causal = causal, .blocked = blocked.View<bool>(), .additive = additive.View<float>()};
  if (padded) return padded->batch(mask);
  return Batch{.seq_starts = seq_starts, .mask = mask};
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

}  // namespace encore::tool
