// SPDX-License-Identifier: Apache-2.0
//
// The public encoder: creation from weights, and the forward pass over a stack of blocks. Not here:
// validation (encoder_check.h), one block (encoder_block.h).

#include "encore/encoder.h"

#include <cstddef>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/int_math.h"
#include "engine/base/out_of_memory.h"
#include "engine/nn/encoder_block.h"
#include "engine/nn/encoder_check.h"
#include "engine/nn/scratch_plan.h"
#include "engine/ops/view_check.h"
#include "engine/platform/fp_env.h"

namespace encore {
namespace {

using internal::PackedLayer;
using internal::PackedLayerNorm;
using internal::PackedMatrix;
using internal::WeightSource;

internal::BlockKernels KernelsOfActiveTarget(Activation activation) {
  const internal::ActivationKernels& activations = internal::GetActivationKernels();
  internal::BlockKernels kernels{};
  kernels.gemm = &internal::GetGemmKernelF32();
  kernels.softmax = &internal::GetSoftmaxKernels();
  kernels.norm = &internal::GetNormKernels();
  switch (activation) {
    case Activation::kRelu:
      break;
    case Activation::kGelu:
      kernels.activation = activations.gelu.tile;
      break;
    case Activation::kGeluTanh:
      kernels.activation = activations.gelu_tanh.tile;
      break;
    case Activation::kSilu:
      kernels.activation = activations.silu.tile;
      break;
    case Activation::kQuickGelu:
      kernels.activation = activations.quick_gelu.tile;
      break;
  }
  return kernels;
}

// A matrix and its place among the packed weights of a model.
struct Weight {
  WeightSource source;
  PackedMatrix* packed;
  std::byte* data = nullptr;
};

Status PackVector(ConstView vector, internal::AlignedBuffer<float>* packed) {
  if (vector.empty()) return {};
  if (!packed->Allocate(vector.dim(0))) {
    return Status(ErrorCode::kOutOfMemory,
                  "no memory for a norm of shape " + vector.shape().ToString());
  }
  for (size_t i = 0; i < vector.dim(0); ++i) packed->data()[i] = vector(i);
  return {};
}

Status PackNorm(ConstView weight, ConstView bias, PackedLayerNorm* packed) {
  ENCORE_RETURN_IF_ERROR(PackVector(weight, &packed->weight));
  return PackVector(bias, &packed->bias);
}

// The layer's norms and biases, and what is to be packed.
Status PrepareLayer(const EncoderLayerWeights& w, PackedLayer* layer, std::vector<Weight>* all) {
  const struct {
    ConstView weight;
    ConstView bias;
    PackedMatrix* packed;
  } matrices[] = {{w.in_proj_weight, w.in_proj_bias, &layer->qkv},
                  {w.out_proj_weight, w.out_proj_bias, &layer->out_proj},
                  {w.linear1_weight, w.linear1_bias, &layer->linear1},
                  {w.linear2_weight, w.linear2_bias, &layer->linear2}};
  for (const auto& m : matrices) {
    const WeightSource source = WeightSource::One(m.weight, m.bias);
    Result<PackedMatrix> prepared = PackedMatrix::Prepare(source);
    if (!prepared.ok()) return prepared.status();
    *m.packed = *std::move(prepared);
    all->push_back({source, m.packed});
  }
  ENCORE_RETURN_IF_ERROR(PackNorm(w.norm1_weight, w.norm1_bias, &layer->norm1));
  return PackNorm(w.norm2_weight, w.norm2_bias, &layer->norm2);
}

// Packs all weights one after another into one piece of memory, in the order in which a pass reads
// them.
Status PackWeights(std::vector<Weight>& weights, const Executor& executor,
                   internal::AlignedBuffer<std::byte>* memory) {
  size_t bytes = 0;
  for (const Weight& w : weights) {
    if (!internal::CheckedAdd(bytes, w.packed->data_bytes(), &bytes)) {
      return Status(ErrorCode::kOutOfMemory, "the packed weights exceed what can be addressed");
    }
  }
  if (!memory->Allocate(bytes)) {
    return Status(ErrorCode::kOutOfMemory,
                  "no memory for packed weights of " + std::to_string(bytes) + " bytes");
  }
  std::byte* next = memory->data();
  for (Weight& w : weights) {
    w.data = next;
    w.packed->SetData(next);
    next += w.packed->data_bytes();
  }
  internal::RunTeam(executor, [&](internal::Team& team) {
    for (const Weight& w : weights) {
      team.ForEach(w.packed->view().panels(),
                   [&](size_t p, int /*lane*/) { w.packed->Pack(w.source, p, p + 1, w.data); });
    }
  });
  return {};
}

// For an encoder that was moved from.
Status NoWeights() {
  return InvalidArgument("this Encoder holds no weights; wanted one made by Create");
}

}  // namespace

struct Encoder::Impl {
  EncoderConfig config;
  internal::BlockKernels kernels;
  std::vector<PackedLayer> layers;
  internal::AlignedBuffer<std::byte> packed_weights;  // of all layers
  PackedLayerNorm final_norm;
};

Result<Encoder> Encoder::Create(const EncoderConfig& config, const EncoderWeights& weights,
                                const Executor& executor) try {
  ENCORE_RETURN_IF_ERROR(internal::CheckConfig(config));
  ENCORE_RETURN_IF_ERROR(internal::CheckWeights(config, weights));
  auto impl = std::make_shared<Impl>();
  impl->config = config;
  impl->kernels = KernelsOfActiveTarget(config.activation);
  impl->layers.resize(config.num_layers);
  std::vector<Weight> to_pack;
  for (size_t i = 0; i < config.num_layers; ++i) {
    ENCORE_RETURN_IF_ERROR(PrepareLayer(weights.layers[i], &impl->layers[i], &to_pack));
  }
  ENCORE_RETURN_IF_ERROR(PackWeights(to_pack, executor, &impl->packed_weights));
  if (config.final_norm)
    ENCORE_RETURN_IF_ERROR(PackNorm(weights.norm_weight, weights.norm_bias, &impl->final_norm));
  return Encoder(std::move(impl));
} catch (const std::bad_alloc&) {
  return internal::OutOfMemory();
}

const EncoderConfig& Encoder::config() const { return impl_->config; }

std::string_view Encoder::target() const { return impl_->kernels.gemm->target; }

Result<size_t> Encoder::WorkspaceBytes(size_t tokens, size_t sequences, int lanes) const try {
  if (impl_ == nullptr) return NoWeights();
  if (lanes < 1)
    return InvalidArgument("lanes is " + std::to_string(lanes) + "; wanted at least 1");
  const Result<internal::ScratchPlan> plan =
      internal::ScratchPlan::Create(impl_->config, tokens, sequences, static_cast<size_t>(lanes));
  if (!plan.ok()) return plan.status();
  return plan->bytes;
} catch (const std::bad_alloc&) {
  return internal::OutOfMemory();
}

Result<size_t> Encoder::WorkspaceBytes(const Batch& batch, const Executor& executor) const try {
  ENCORE_RETURN_IF_ERROR(internal::CheckSequenceStarts(batch));
  return WorkspaceBytes(batch.seq_starts.back(), batch.seq_starts.size() - 1, executor.lanes());
} catch (const std::bad_alloc&) {
  return internal::OutOfMemory();
}

Status Encoder::Forward(const Batch& batch, ConstView x, MutableView y, const Workspace& workspace,
                        const Executor& executor, const Taps& taps) const try {
  if (impl_ == nullptr) return NoWeights();
  ENCORE_RETURN_IF_ERROR(internal::CheckSequenceStarts(batch));
  ENCORE_RETURN_IF_ERROR(internal::CheckBatch(batch));
  ENCORE_RETURN_IF_ERROR(internal::CheckInputOutput(impl_->config, batch, x, y));
  ENCORE_RETURN_IF_ERROR(internal::CheckTaps(impl_->config, batch, taps, x, y));
  const size_t tokens = batch.seq_starts.back();
  const size_t sequences = batch.seq_starts.size() - 1;
  const Result<internal::ScratchPlan> plan = internal::ScratchPlan::Create(
      impl_->config, tokens, sequences, static_cast<size_t>(executor.lanes()));
  if (!plan.ok()) return plan.status();
  if (workspace.size_bytes() < plan->bytes) {
    return InvalidArgument("workspace has " + std::to_string(workspace.size_bytes()) +
                           " bytes; wanted " + std::to_string(plan->bytes) + " for " +
                           std::to_string(tokens) + " tokens in " + std::to_string(sequences) +
                           " sequences on " + std::to_string(executor.lanes()) +
                           " lanes (see WorkspaceBytes)");
  }
  if (tokens == 0) return {};

  internal::Pass pass{};
  pass.config = &impl_->config;
  pass.kernels = &impl_->kernels;
  pass.batch = &batch;
  pass.taps = &taps;
  pass.scratch_plan = *plan;
  pass.scratch = static_cast<float*>(workspace.data());
  {
    // The plan weighs work in doubles: under the default modes, and no flag of it for the caller.
    const internal::FpEnvScope modes;
    pass.thread_plan = internal::ChooseThreadPlan(
        impl_->config, batch.seq_starts, static_cast<size_t>(executor.lanes()),
        impl_->layers[0].qkv.view().nr(), internal::MachineCaches(),
        reinterpret_cast<size_t*>(pass.scratch + plan->words));
  }
  auto* block_starts = reinterpret_cast<size_t*>(pass.scratch + plan->block_starts);
  if (pass.thread_plan.kind == internal::ThreadPlanKind::kRows) {
    internal::CountQueryBlocks(pass, block_starts);
    pass.block_starts = block_starts;
  }

  const internal::Rows out{y.data(), internal::RowStride(y)};
  const int lanes = static_cast<int>(pass.thread_plan.lanes);
  internal::RunTeam(executor, lanes, [&](internal::Team& team) {
    internal::ConstRows in{x.data(), internal::RowStride(x)};
    for (size_t i = 0; i < impl_->layers.size(); ++i) {
      internal::EncoderBlock(team, pass, impl_->layers[i], i, in, out);
      in = {out.data, out.ld};
    }
    if (impl_->config.final_norm) internal::NormRows(team, pass, impl_->final_norm, out);
  });
  return {};
} catch (const std::bad_alloc&) {
  return internal::OutOfMemory();
}

std::string_view ActivationName(Activation activation) {
  switch (activation) {
    case Activation::kRelu:
      return "relu";
    case Activation::kGelu:
      return "gelu";
    case Activation::kGeluTanh:
      return "gelu_tanh";
    case Activation::kSilu:
      return "silu";
  }
  return "unknown";
}

Result<Activation> ActivationFromName(std::string_view name) try {
  for (const Activation a :
       {Activation::kRelu, Activation::kGelu, Activation::kGeluTanh, Activation::kSilu}) {
    if (name == ActivationName(a)) return a;
  }
  return InvalidArgument("activation is \"" + std::string(name) +
                         "\"; wanted relu, gelu, gelu_tanh or silu");
} catch (const std::bad_alloc&) {
  return internal::OutOfMemory();
}

}  // namespace encore
