// SPDX-License-Identifier: Apache-2.0
//
// Misuse that must not compile. check.cmake compiles this file once as it is, which must succeed,
// and once with each ENCORE_MISUSE_<name> defined, which must fail. The names are found here.

#include <array>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "encore/encore.h"

void Correct(encore::TensorView<float> y, encore::TensorView<const float> x,
             const encore::Encoder& encoder, std::ostream& out) {
  using namespace encore;  // NOLINT(google-build-using-namespace): a page of examples
  const Shape six(1, 2, 3, 4, 5, 6);
  Status status = Exp(x, y);
  status = Exp(y, y);  // a view of float serves as one of const float
  y(0, 1) = 1.0f;
  Result<Tensor> made = Tensor::Create(DType::kF32, six);
  Tensor tensor = *std::move(made);
  const Batch batch;
  status = encoder.Forward(batch, x, y, Workspace());
  MatMulOptions options;
  options.transpose_b = Transpose::kYes;
  status = MatMul(x, x, y, options);
  // Of temporaries: copies, and what is used before they end.
  out << Tensor::Create(DType::kF32, six).status()
      << (*Tensor::Create(DType::kF32, six)).size_bytes();
  std::vector<float> floats(6);
  const std::vector<size_t> starts = {0, 3};
  const Result<TensorView<const float>> checked =
      TensorView<const float>::Create(floats, Shape(2, 3));
  const Batch named{.seq_starts = starts, .positions = starts};
  const Batch listed{.seq_starts = {0, 3}, .positions = std::span(starts)};

#if defined(ENCORE_MISUSE_SHAPE_OF_SEVEN_EXTENTS)
  const Shape seven(1, 2, 3, 4, 5, 6, 7);
#elif defined(ENCORE_MISUSE_SHAPE_OF_TEXT)
  const Shape text("2", "3");
#elif defined(ENCORE_MISUSE_SHAPE_OF_FLOATS)
  const Shape floating(2.5, -1);
#elif defined(ENCORE_MISUSE_SHAPE_OF_BOOL)
  const Shape truth(true, 3);
#elif defined(ENCORE_MISUSE_INDEX_OF_FLOAT)
  y(0.5, 1) = 1.0f;
#elif defined(ENCORE_MISUSE_ARROW_OF_TEMPORARY_RESULT)
  const DType type = Tensor::Create(DType::kF32, six)->dtype();
#elif defined(ENCORE_MISUSE_REFERENCE_TO_TEMPORARY_STATUS)
  Status& kept = Tensor::Create(DType::kF32, six).status();
#elif defined(ENCORE_MISUSE_VIEW_OF_TEMPORARY_TENSOR)
  y = Tensor().View<float>();
#elif defined(ENCORE_MISUSE_CONST_VIEW_OF_TEMPORARY_TENSOR)
  x = std::move(std::as_const(tensor)).View<float>();
#elif defined(ENCORE_MISUSE_DATA_OF_TEMPORARY_TENSOR)
  const void* data = Tensor().data();
#elif defined(ENCORE_MISUSE_VIEW_OF_TEMPORARY_VECTOR)
  const auto view = TensorView<const float>::Create(std::vector<float>(6), Shape(2, 3));
#elif defined(ENCORE_MISUSE_VIEW_OF_CONST_TEMPORARY_VECTOR)
  const std::vector<float> values(6);
  const auto view = TensorView<const float>::Create(std::move(values), Shape(2, 3));
#elif defined(ENCORE_MISUSE_STARTS_IN_TEMPORARY_VECTOR)
  const Batch gone{.seq_starts = std::vector<size_t>{0, 3}};
#elif defined(ENCORE_MISUSE_POSITIONS_IN_TEMPORARY_VECTOR)
  const Batch gone{.seq_starts = {0, 3}, .positions = std::vector<size_t>{0, 1, 2}};
#elif defined(ENCORE_MISUSE_POSITIONS_IN_TEMPORARY_ARRAY)
  const Batch gone{.seq_starts = {0, 3}, .positions = std::array<size_t, 3>{0, 1, 2}};
#elif defined(ENCORE_MISUSE_BATCH_OF_TEMPORARY_PADDED_BATCH)
  const Batch gone = (*PaddedBatch::Create(2, 3)).batch();
#elif defined(ENCORE_MISUSE_ROWS_OF_TEMPORARY_PADDED_BATCH)
  const auto rows = (*PaddedBatch::Create(2, 3)).rows();
#elif defined(ENCORE_MISUSE_TENSORS_OF_TEMPORARY_FILE)
  for (const SafetensorsEntry& t : (*SafetensorsFile::Open("f")).tensors()) out << t.name;
#elif defined(ENCORE_MISUSE_FIND_IN_TEMPORARY_FILE)
  const SafetensorsEntry* entry = (*SafetensorsFile::Open("f")).Find("t");
#elif defined(ENCORE_MISUSE_VIEW_OF_TEMPORARY_FILE)
  x = *(*SafetensorsFile::Open("f")).ViewF32("t");
#elif defined(ENCORE_MISUSE_WEIGHTS_OF_TEMPORARY)
  const EncoderWeights& weights = (*TorchWeights::Open("f")).weights();
#elif defined(ENCORE_MISUSE_CONFIG_OF_TEMPORARY)
  const EncoderConfig& config = (*TorchWeights::Open("f")).config();
#elif defined(ENCORE_MISUSE_EXECUTOR_OF_TEMPORARY_POOL)
  const Executor executor = (*ThreadPool::Create({.threads = 2})).executor();
#elif defined(ENCORE_MISUSE_CONST_OUTPUT)
  status = Exp(x, x);
#elif defined(ENCORE_MISUSE_CONST_OUTPUT_OF_FORWARD)
  status = encoder.Forward(batch, x, x, Workspace());
#elif defined(ENCORE_MISUSE_WRITE_THROUGH_CONST_VIEW)
  x(0, 1) = 1.0f;
#elif defined(ENCORE_MISUSE_DOUBLE_INPUT)
  status = Exp(TensorView<const double>(), y);
#elif defined(ENCORE_MISUSE_POSITIONAL_BOOL)
  status = MatMul(x, x, y, true);
#elif defined(ENCORE_MISUSE_BOOL_FOR_TRANSPOSE)
  options.transpose_b = true;
#elif defined(ENCORE_MISUSE_NUMBER_FOR_ACTIVATION)
  const LayerConfig layer = {.num_heads = 1, .d_ff = 8, .activation = 1};
#elif defined(ENCORE_MISUSE_COPY_OF_TENSOR)
  const Tensor copy = tensor;
#elif defined(ENCORE_MISUSE_COPY_OF_WORKSPACE)
  const Workspace workspace;
  const Workspace copy = workspace;
#elif defined(ENCORE_MISUSE_ENCODER_OUT_OF_NOTHING)
  const Encoder nothing;
#elif defined(ENCORE_MISUSE_VIEW_OF_VECTOR_OF_BOOL)
  std::vector<bool> flags(4);
  const TensorView<const bool> view(flags.data(), Shape(2, 2));
#elif defined(ENCORE_MISUSE_IGNORED_STATUS)
  Exp(x, y);  // check.cmake makes this warning an error
#endif
}
