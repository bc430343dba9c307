// SPDX-License-Identifier: Apache-2.0
//
// Reads samples batch by batch.

#include "tools/encore/calibration_samples.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "encore/safetensors.h"
#include "engine/models/embeddings.h"
#include "engine/text/folder_tokenizer.h"
#include "tools/encore/failure.h"
#include "tools/encore/run_input.h"
#include "tools/encore/text_input.h"

namespace encore::tool {

void AddSampleTensors(const std::string& path, Calibration* calibration) {
  const SafetensorsFile file = Take(SafetensorsFile::Open(path), "--input");
  const RunInput input = ReadRunInput(file, calibration->encoder().config().d_model);
  if (input.tokens() == 0) return;
  ConstView x = input.x.View<float>();
  Tensor packed;
  if (input.padded) {
    packed = Take(Tensor::Create(DType::kF32, {input.tokens(), input.d_model()}), "x");
    Check(input.padded->Pack(x, packed.View<float>()), "x");
    x = packed.View<float>();
  }
  calibration->Add(input.MakeBatch(/*causal=*/false), x);
}

void AddSampleTexts(const std::string& texts, const std::string& path, WeightsFolder* folder,
                    Calibration* calibration) {
  constexpr size_t kBatchTokens = 2048;
  const internal::FolderTokenizer opened =
      Take(internal::OpenFolderTokenizer(path, /*ignore_unknown_keys=*/true), "IN");
  const size_t d_model = calibration->encoder().config().d_model;
  const internal::Embeddings embeddings =
      Take(internal::Embeddings::Create(folder->config.plan.embeddings, d_model, &folder->tensors),
           "IN");
  TokenizeOptions tokenize;
  tokenize.max_length = opened.max_length == 0
                            ? embeddings.max_tokens()
                            : std::min(opened.max_length, embeddings.max_tokens());
  std::vector<int32_t> ids;
  std::vector<uint8_t> type_ids;
  std::vector<size_t> starts = {0};
  const auto add = [&] {
    if (ids.empty()) return;
    const internal::TokenBatch batch = {.ids = ids,
                                        .type_ids = embeddings.type_vocab_size() > 0
                                                        ? std::span<const uint8_t>(type_ids)
                                                        : std::span<const uint8_t>(),
                                        .seq_starts = starts};
    Check(embeddings.Check(batch), "--input");
    Tensor x = Take(Tensor::Create(DType::kF32, {ids.size(), d_model}), "x");
    Check(embeddings.Apply(batch, x.View<float>(), Executor::Inline()), "--input");
    calibration->Add(Batch{.seq_starts = starts}, x.View<float>());
    ids.clear();
    type_ids.clear();
    starts.assign(1, 0);
  };
  TextReader reader(texts, /*jsonl=*/false);
  TextInput input;
  Tokens tokens;
  while (reader.Next(&input)) {
    Check(opened.tokenizer.Encode(input.text, &tokens, tokenize), reader.Where());
    if (tokens.ids.empty()) continue;
    if (ids.size() + tokens.ids.size() > kBatchTokens) add();
    ids.insert(ids.end(), tokens.ids.begin(), tokens.ids.end());
    type_ids.insert(type_ids.end(), tokens.type_ids.begin(), tokens.type_ids.end());
    starts.push_back(ids.size());
  }
  add();
}

}  // namespace encore::tool
