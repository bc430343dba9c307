// SPDX-License-Identifier: Apache-2.0
//
// What public classes promise of objects that were moved from: they may be used.

#include <gtest/gtest.h>

#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "encore/encoder.h"
#include "encore/safetensors.h"
#include "encore/text_encoder.h"
#include "encore/tokenizer.h"
#include "encore/torch_weights.h"
#include "reference/encoder_model.h"
#include "tests/support/safetensors_bytes.h"
#include "tests/support/text_case.h"
#include "tests/support/weights_file.h"

// NOLINTBEGIN(bugprone-use-after-move): what this file is about

namespace encore {
namespace {

// Moves `object` away by construction and by assignment.
template <class T>
void MoveAway(T& object) {
  static_assert(std::is_nothrow_move_constructible_v<T> && std::is_nothrow_move_assignable_v<T>);
  T taken = std::move(object);
  T other = taken;
  other = std::move(object);
}

TEST(MovedFromTest, FilesStayAsTheyAre) {
  const std::vector<std::byte> bytes = SafetensorsBytes(
      R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", std::string_view("\0\0\0\0", 4));
  SafetensorsFile file = *SafetensorsFile::FromBytes(bytes, "name");
  MoveAway(file);
  EXPECT_EQ(file.name(), "name");
  EXPECT_TRUE(file.CheckUnchanged().ok());
  EXPECT_EQ(file.metadata().size(), 0u);
  EXPECT_TRUE(file.Read("t").ok());
  EXPECT_FALSE(file.Read("u").ok());

  const TemporaryFolder folder;
  WriteWeightsFile(folder.File("w"));
  TorchWeights weights = *TorchWeights::Open(folder.File("w"));
  MoveAway(weights);
  EXPECT_EQ(weights.weights().layers.size(), weights.config().num_layers());
  EXPECT_EQ(weights.precision(), Precision::kF32);
  EXPECT_TRUE(Encoder::Create(weights.config(), weights.weights()).ok());
}

TEST(MovedFromTest, TextEncodersStayAsTheyAre) {
  const TextFolder folder;
  TextEncoder encoder = *TextEncoder::Open(folder.path());
  MoveAway(encoder);
  EXPECT_GT(encoder.dimensions(), 0u);
  EXPECT_TRUE(encoder.Encode({"tea"}).ok());
  Tokenizer tokenizer = *Tokenizer::Open(folder.path());
  MoveAway(tokenizer);
  EXPECT_GT(tokenizer.vocab_size(), 0u);
  Tokens tokens;
  EXPECT_TRUE(tokenizer.Encode("tea", &tokens).ok());
}

TEST(MovedFromTest, EncodersHaveNothing) {
  Encoder encoder = EncoderModel({.d_model = 8, .num_heads = 2, .d_ff = 5}).Make();
  const Encoder taken = std::move(encoder);
  EXPECT_EQ(taken.config().num_layers(), 1u);
  EXPECT_EQ(encoder.config().num_layers(), 0u);
  EXPECT_EQ(encoder.config().d_model, 0u);
  EXPECT_EQ(encoder.target(), "");
  EXPECT_EQ(encoder.precision(), Precision::kF32);
  EXPECT_FALSE(encoder.amx_bf16());
  EXPECT_EQ(encoder.packed_bytes(), 0u);
  EXPECT_EQ(encoder.MakeWorkspace(BatchLimits{.tokens = 3}).status().code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(encoder.WorkspaceBytes(Batch{.seq_starts = {0, 3}}).status().code(),
            ErrorCode::kInvalidArgument);
  std::vector<float> x(8);
  const Status status =
      encoder.Forward({.seq_starts = {0, 1}}, {x.data(), {1, 8}}, {x.data(), {1, 8}}, Workspace());
  EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace encore

// NOLINTEND(bugprone-use-after-move)
