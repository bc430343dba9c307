// SPDX-License-Identifier: Apache-2.0
//
// Reads BGE-M3's heads, and makes sparse vectors of its weights of tokens.

#include "engine/text/m3_heads.h"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/io/torch_file.h"
#include "engine/text/sparse_vectors.h"
#include "engine/text/text_encoder_impl.h"
#include "engine/tokenizer/tokenizer_factory.h"

namespace encore::inline v0_1::internal {

Result<PackedLinear> ReadTorchLinear(const Folder& folder, std::string_view file, size_t inputs,
                                     size_t outputs) {
  const std::string quoted = QuotedPath(folder.PathOf(file));
  ENCORE_ASSIGN_OR_RETURN(const std::optional<MappedFile> bytes, folder.Read(file));
  if (!bytes) return Status(ErrorCode::kNotFound, "there is no " + quoted);
  const auto tensors = ReadTorchFile(bytes->bytes());
  if (!tensors.ok()) {
    return Status(tensors.status().code(), quoted + ": " + tensors.status().message());
  }
  const Tensor* weight = nullptr;
  const Tensor* bias = nullptr;
  for (const auto& [name, values] : *tensors) {
    if (name != "weight" && name != "bias") {
      return InvalidArgument(quoted + ": unknown tensor " + Quoted(name) +
                             "; wanted weight and bias");
    }
    (name == "weight" ? weight : bias) = &values;
  }
  const auto shape_of = [](const Tensor* tensor) {
    return tensor == nullptr ? "none" : "shape " + tensor->shape().ToString();
  };
  const bool is_matrix = weight != nullptr && weight->shape().rank() == 2 &&
                         weight->shape()[0] > 0 && weight->shape()[1] == inputs &&
                         (outputs == 0 || weight->shape()[0] == outputs);
  if (!is_matrix) {
    return InvalidArgument(quoted + ": tensor 'weight': found " + shape_of(weight) + "; wanted [" +
                           (outputs == 0 ? "columns" : std::to_string(outputs)) + ", " +
                           std::to_string(inputs) + "]");
  }
  if (bias == nullptr || !(bias->shape() == Shape(weight->shape()[0]))) {
    return InvalidArgument(quoted + ": tensor 'bias': found " + shape_of(bias) + "; wanted [" +
                           std::to_string(weight->shape()[0]) + "]");
  }
  return PackedLinear::Create(weight->View<float>(), bias->View<float>());
}

Result<TokenWeights> ReadTokenWeights(const ModelFolder& found, const Tokenizer& tokenizer,
                                      size_t width, const FolderReading& reading) {
  ENCORE_ASSIGN_OR_RETURN(PackedLinear linear,
                          ReadTorchLinear(found.folder, kTokenWeightFile, width, 1));
  TokenWeights weights{std::move(linear), {}};
  for (const std::string_view key : {"cls_token", "eos_token", "pad_token", "unk_token"}) {
    const std::optional<int32_t> id = TokenizerFactory::SpecialTokenId(tokenizer, key);
    if (id) weights.dropped.push_back(*id);
  }
  std::sort(weights.dropped.begin(), weights.dropped.end());
  reading.Note("sparse vectors", "of each token of the text the largest weight, as BGE-M3",
               std::string(kTokenWeightFile));
  return weights;
}

Status EncodeByTokens(const TextEncoder::Impl& impl, const TextInputs& inputs,
                      const SparseOptions& options, CallWatch* watch, SparseRows* rows,
                      TextCounts* counts) {
  const TokenWeights& side = **impl.sparse.by_token;
  const size_t width = impl.model.hidden_width();
  ENCORE_ASSIGN_OR_RETURN(const StreamOptions stream,
                          MakeStreamOptions(impl, options, false, OutputRows::kAll, watch));
  const auto take = [&](const float* hidden, std::span<const size_t> texts,
                        CallScratch* scratch) -> Status {
    const size_t tokens = scratch->starts.back();
    ENCORE_ASSIGN_OR_RETURN(float* const weights, scratch->projected.Get<float>(tokens));
    ENCORE_RETURN_IF_ERROR(side.linear.Apply(ConstView(hidden, Shape(tokens, width)),
                                             MutableView(weights, Shape(tokens, 1)),
                                             options.executor));
    for (size_t i = 0; i < texts.size(); ++i) {
      std::vector<SparseEntry>& row = (*rows)[texts[i]];
      for (size_t t = scratch->starts[i]; t < scratch->starts[i + 1]; ++t) {
        const int32_t id = scratch->ids[t];
        if (!(weights[t] > 0)) continue;
        if (std::binary_search(side.dropped.begin(), side.dropped.end(), id)) continue;
        row.push_back({id, weights[t]});
      }
      std::sort(row.begin(), row.end(), [](const SparseEntry& a, const SparseEntry& b) {
        return a.index != b.index ? a.index < b.index : a.value > b.value;
      });
      const auto same = [](const SparseEntry& a, const SparseEntry& b) {
        return a.index == b.index;
      };
      row.erase(std::unique(row.begin(), row.end(), same), row.end());
    }
    return {};
  };
  return StreamTexts(impl, inputs, stream, std::ref(take), counts);
}

}  // namespace encore::internal
