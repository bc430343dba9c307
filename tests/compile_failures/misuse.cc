// SPDX-License-Identifier: Apache-2.0
//
// Misuse that must not compile. check.cmake compiles this file once as it is, which must succeed,
// and once with each ENCORE_MISUSE_<name> defined, which must fail. The names are found here.

#include <utility>
#include <vector>

#include "encore/encore.h"

void Correct(encore::TensorView<float> y, encore::TensorView<const float> x,
             const encore::Encoder& encoder) {
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

#if defined(ENCORE_MISUSE_SHAPE_OF_SEVEN_EXTENTS)
  const Shape seven(1, 2, 3, 4, 5, 6, 7);
#elif defined(ENCORE_MISUSE_SHAPE_OF_TEXT)
  const Shape text("2", "3");
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
