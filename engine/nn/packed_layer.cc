// SPDX-License-Identifier: Apache-2.0
//
// From a layer's views to the matrices to be packed.

#include "engine/nn/packed_layer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/nn/layer_tensors.h"

namespace encore::inline v0_1::internal {
namespace {

Status PackVector(const WeightView& vector, double offset, AlignedBuffer<float>* packed) {
  if (vector.empty()) return {};
  if (!packed->Allocate(vector.dim(0))) {
    return Status(ErrorCode::kOutOfMemory,
                  "no memory for a norm of shape " + vector.shape().ToString());
  }
  const size_t size = vector.dim(0);
  ReadVector(vector, packed->data());
  const float add = static_cast<float>(offset);
  for (size_t i = 0; add != 0 && i < size; ++i) packed->data()[i] += add;
  return {};
}

// Rows [begin, begin + count) of a view, or nothing of nothing.
WeightView RowsOf(const WeightView& view, size_t begin, size_t count) {
  if (view.empty()) return view;
  const auto offset = static_cast<ptrdiff_t>(begin) * view.stride(0) *
                      static_cast<ptrdiff_t>(DTypeSize(view.dtype()));
  const Shape shape = view.rank() == 1 ? Shape(count) : Shape(count, view.dim(1));
  return WeightView(view.dtype(), static_cast<const char*>(view.data()) + offset, shape,
                    view.strides());
}

// The linear layers that are packed into a matrix, and the scale of their inputs.
WeightSource SourceOf(LayerMatrix matrix, const LayerConfig& config, const EncoderLayerWeights& w) {
  WeightSource source;
  for (const LayerPart& row : kLayerParts) {
    if (row.member.linear == nullptr || row.matrix != matrix) continue;
    const LinearWeights& linear = w.*row.member.linear;
    if (!linear.input_scale.empty()) source.input_scale = linear.input_scale;
    if (linear.weight.empty()) continue;
    source.parts[source.num_parts++] = {linear.weight, linear.bias, linear.scale};
  }
  if (matrix == LayerMatrix::kOutProj) source.output_scale = w.layer_scale1;
  if (matrix == LayerMatrix::kLinear2) source.output_scale = w.layer_scale2;
  if (matrix != LayerMatrix::kLinear1 || config.gate == Gate::kNone) return source;
  source.gated = true;  // part 0 is the activated half
  if (source.num_parts == 1) {
    const WeightPart both = source.parts[0];
    const size_t first = config.gate == Gate::kFirstHalf ? 0 : 1;
    for (const size_t half : {size_t{0}, size_t{1}}) {
      const size_t begin = (half == 0 ? first : 1 - first) * config.d_ff;
      source.parts[half] = {RowsOf(both.weight, begin, config.d_ff),
                            RowsOf(both.bias, begin, config.d_ff),
                            RowsOf(both.scale, begin, config.d_ff)};
    }
    source.num_parts = 2;
  }
  return source;
}

// Expert e of a matrix of all experts: rows [e d_ff, (e + 1) d_ff), or these as columns.
WeightSource ExpertOf(const WeightView& all, size_t e, size_t d_ff, bool as_columns) {
  const WeightView rows = RowsOf(all, e * d_ff, d_ff);
  if (!as_columns) return WeightSource::One(rows);
  WeightView::Strides strides = rows.strides();
  std::swap(strides[0], strides[1]);
  return WeightSource::One(
      WeightView(rows.dtype(), rows.data(), Shape(rows.dim(1), rows.dim(0)), strides));
}

bool HasIntegers(const WeightSource& source) {
  return std::any_of(source.parts.begin(), source.parts.end(),
                     [](const WeightPart& part) { return part.weight.dtype() == DType::kI8; });
}

BlockActivation ActivationOf(Activation activation, bool gated) {
  const ActivationKernel& kernel = GetActivationKernel(activation);
  if (gated) return {.gated = kernel.gated};
  if (activation == Activation::kRelu) return {.relu = true};
  return {.tile = kernel.tile};
}

// experts_bias times LayerScale's factors, which the experts' packed matrices contain as well.
Status PackExpertsBias(const EncoderLayerWeights& w, AlignedBuffer<float>* packed) {
  ENCORE_RETURN_IF_ERROR(PackVector(w.experts_bias, 0, packed));
  if (packed->data() == nullptr || w.layer_scale2.empty()) return {};
  std::vector<float> factors(packed->size());
  ReadVector(w.layer_scale2, factors.data());
  for (size_t i = 0; i < factors.size(); ++i) packed->data()[i] *= factors[i];
  return {};
}

// Lays out the matrix and appends it.
Status AddMatrix(const MatrixToPack& product, const GemmKernel& kernel,
                 std::vector<MatrixToPack>* matrices) {
  ENCORE_ASSIGN_OR_RETURN(*product.packed,
                          PackedMatrix::Prepare(product.source, kernel, product.smoothed));
  matrices->push_back(product);
  return {};
}

// In the precision of linear1 and linear2.
Status PrepareLayerInput(const LayerConfig& config, const EncoderLayerWeights& w,
                         const LayerKernels& kernels, PackedLayer* layer,
                         std::vector<MatrixToPack>* matrices) {
  PackedLayerInput& input = layer->layer_input.emplace();
  input.activation = ActivationOf(config.activation, /*gated=*/false);
  ENCORE_RETURN_IF_ERROR(PackNorm(config.layer_input->norm, w.input_norm, &input.norm));
  ENCORE_RETURN_IF_ERROR(PackNorm(config.norm, w.post_input_norm, &input.post_norm));
  if (!w.layer_scalar.empty()) ReadVector(w.layer_scalar, &input.scalar);
  const GemmKernel& first = *kernels[static_cast<size_t>(LayerMatrix::kLinear1)];
  const GemmKernel& second = *kernels[static_cast<size_t>(LayerMatrix::kLinear2)];
  const auto source = [](const LinearWeights& linear) {
    return WeightSource::One(linear.weight, linear.bias);
  };
  ENCORE_RETURN_IF_ERROR(
      AddMatrix({.source = source(w.input_proj), .packed = &input.proj, .name = "input_proj"},
                first, matrices));
  ENCORE_RETURN_IF_ERROR(
      AddMatrix({.source = source(w.input_gate), .packed = &input.gate, .name = "input_gate"},
                first, matrices));
  return AddMatrix(
      {.source = source(w.input_output), .packed = &input.output, .name = "input_output"}, second,
      matrices);
}

// In the precision of linear1.
Status PrepareConvolution(const LayerConfig& config, const EncoderLayerWeights& w,
                          const LayerKernels& kernels, PackedLayer* layer,
                          std::vector<MatrixToPack>* matrices) {
  PackedConvolution& convolution = layer->convolution.emplace();
  convolution.kernel = config.convolution->kernel;
  convolution.activation = ActivationOf(config.convolution->activation, /*gated=*/false);
  ENCORE_RETURN_IF_ERROR(PackNorm(config.norm, w.convolution_norm, &convolution.norm));
  return AddMatrix({.source = WeightSource::One(w.convolution.weight, w.convolution.bias),
                    .packed = &convolution.matrix,
                    .name = "convolution"},
                   *kernels[static_cast<size_t>(LayerMatrix::kLinear1)], matrices);
}

// Router and experts. `first` is how linear1 is packed without experts.
Status PrepareExperts(const LayerConfig& config, const EncoderLayerWeights& w,
                      const LayerKernels& kernels, MatrixToPack first, PackedLayer* layer,
                      std::vector<MatrixToPack>* matrices) {
  const size_t count = config.experts->num_experts;
  PackedExperts& experts = layer->experts.emplace();
  experts.top_k = config.experts->top_k;
  experts.normalize_weights = config.experts->normalize_weights;
  experts.linear1.resize(count);
  experts.linear2.resize(count);
  ENCORE_RETURN_IF_ERROR(PackExpertsBias(w, &experts.bias));
  ENCORE_RETURN_IF_ERROR(AddMatrix(
      {.source = WeightSource::One(w.router), .packed = &experts.router, .name = "the router"},
      GetGemmKernelF32(), matrices));
  const GemmKernel& kernel1 = *kernels[static_cast<size_t>(LayerMatrix::kLinear1)];
  const GemmKernel& kernel2 = *kernels[static_cast<size_t>(LayerMatrix::kLinear2)];
  for (size_t e = 0; e < count; ++e) {
    first.source = ExpertOf(w.experts_first, e, config.d_ff, /*as_columns=*/false);
    first.packed = &experts.linear1[e];
    first.name = "an expert's first matrix";
    first.smoothed = kernel1.integer;
    ENCORE_RETURN_IF_ERROR(AddMatrix(first, kernel1, matrices));
    MatrixToPack second{.packed = &experts.linear2[e], .name = "an expert's second matrix"};
    second.source = ExpertOf(w.experts_second, e, config.d_ff, /*as_columns=*/true);
    second.source.output_scale = w.layer_scale2;
    ENCORE_RETURN_IF_ERROR(AddMatrix(second, kernel2, matrices));
  }
  return {};
}

Status PackNorms(const LayerConfig& config, const EncoderLayerWeights& w, PackedLayer* layer) {
  if (config.attention_norm) {
    ENCORE_RETURN_IF_ERROR(PackNorm(config.norm, w.norm1, &layer->norm1));
  }
  ENCORE_RETURN_IF_ERROR(PackNorm(config.norm, w.norm2, &layer->norm2));
  if (config.norm_placement == NormPlacement::kBoth) {
    ENCORE_RETURN_IF_ERROR(PackNorm(config.norm, w.post_norm1, &layer->post_norm1));
    ENCORE_RETURN_IF_ERROR(PackNorm(config.norm, w.post_norm2, &layer->post_norm2));
  }
  ENCORE_RETURN_IF_ERROR(PackNorm(config.qk_norm, w.q_norm, &layer->q_norm));
  ENCORE_RETURN_IF_ERROR(PackNorm(config.qk_norm, w.k_norm, &layer->k_norm));
  return PackNorm(config.v_norm, {}, &layer->v_norm);
}

}  // namespace

Status PackNorm(const NormConfig& config, const NormWeights& weights, PackedNorm* packed) {
  if (config.type == NormType::kNone) return {};
  const NormKernels& kernels = GetNormKernels();
  packed->kernel = config.type == NormType::kRmsNorm ? kernels.rms_norm : kernels.layer_norm;
  packed->epsilon = config.epsilon;
  ENCORE_RETURN_IF_ERROR(PackVector(weights.weight, config.weight_offset, &packed->weight));
  return PackVector(weights.bias, 0, &packed->bias);
}

Status PrepareLayer(const LayerConfig& config, const EncoderLayerWeights& w,
                    const LayerKernels& kernels, const PackedNorm* input_norm, PackedLayer* layer,
                    std::vector<MatrixToPack>* matrices) {
  layer->activation = ActivationOf(config.activation, config.gate != Gate::kNone);
  ENCORE_RETURN_IF_ERROR(PackNorms(config, w, layer));
  const bool post = config.norm_placement == NormPlacement::kPost;
  // An error of a value reaches the output, an error of a score passes a softmax: value rows count,
  // queries and keys do not. The inputs of out_proj and linear2 have no norm to estimate them by.
  const size_t values = layer->sizes.q_width() + layer->sizes.kv_width();
  MatrixToPack products[] = {// by LayerMatrix
                             {.packed = &layer->qkv,
                              .name = "qkv",
                              .norm = post ? input_norm : &layer->norm1,
                              .row_begin = values,
                              .row_end = layer->sizes.qkv_width()},
                             {.packed = &layer->out_proj, .name = "out_proj"},
                             {.packed = &layer->linear1,
                              .name = "linear1",
                              .norm = post ? &layer->norm1 : &layer->norm2,
                              .row_end = config.d_ff * (config.gate == Gate::kNone ? 1 : 2)},
                             {.packed = &layer->linear2, .name = "linear2"}};
  const size_t linear1 = static_cast<size_t>(LayerMatrix::kLinear1);
  for (size_t m = 0; m < (config.experts ? linear1 : kernels.size()); ++m) {
    MatrixToPack& product = products[m];
    product.source = SourceOf(static_cast<LayerMatrix>(m), config, w);
    const bool finds_own = product.row_end != 0 && !HasIntegers(product.source);
    product.smoothed = kernels[m]->integer && (finds_own || !product.source.input_scale.empty());
    ENCORE_RETURN_IF_ERROR(AddMatrix(product, *kernels[m], matrices));
  }
  if (config.experts) {
    ENCORE_RETURN_IF_ERROR(PrepareExperts(config, w, kernels, products[linear1], layer, matrices));
  }
  if (config.layer_input) {
    ENCORE_RETURN_IF_ERROR(PrepareLayerInput(config, w, kernels, layer, matrices));
  }
  if (!config.convolution) return {};
  return PrepareConvolution(config, w, kernels, layer, matrices);
}

}  // namespace encore::internal
