// SPDX-License-Identifier: Apache-2.0
//
// The public encoder: creation from weights, and the forward pass over all layers.

#include "encore/encoder.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/activations.h"
#include "engine/base/guarded.h"
#include "engine/base/workspace_use.h"
#include "engine/nn/encoder_block.h"
#include "engine/nn/encoder_check.h"
#include "engine/nn/packed_cache.h"
#include "engine/nn/prepared_encoder.h"
#include "engine/nn/product_observer.h"
#include "engine/nn/scratch_plan.h"
#include "engine/ops/view_check.h"
#include "engine/platform/cpu_info.h"
#include "engine/platform/fp_env.h"
#include "engine/platform/once.h"

namespace encore::inline v0_1 {
namespace {

using internal::PackedLayer;

// For an encoder that was moved from.
Status NoWeights() {
  return InvalidArgument("this Encoder holds no weights; wanted one made by Create");
}

size_t LongestSequence(const Batch& batch) {
  const std::span<const size_t> starts = batch.seq_starts.get();
  size_t longest = 0;
  for (size_t b = 0; b + 1 < starts.size(); ++b) {
    longest = std::max(longest, starts[b + 1] - starts[b]);
  }
  return longest;
}

Result<internal::ScratchPlan> PlanScratch(const internal::ModelSizes& sizes, const Batch& batch,
                                          const Executor& executor) {
  return internal::ScratchPlan::Create(sizes, batch.seq_starts.back(), batch.seq_starts.size() - 1,
                                       LongestSequence(batch),
                                       static_cast<size_t>(executor.threads()));
}

}  // namespace

struct Encoder::Impl {
  Impl(internal::PreparedEncoder&& all_but_panels, internal::PackedPanels&& panels,
       const EncoderOptions& options)
      : prepared(std::move(all_but_panels)),
        precision(options.precision),
        kernels{&internal::KernelOfAttention(options), &internal::GetSoftmaxKernels(),
                &internal::GetRotaryKernels(), &internal::GetRelativeKernels()},
        packed_weights(std::move(panels)) {}

  internal::PreparedEncoder prepared;
  Precision precision;
  internal::BlockKernels kernels;
  std::string_view target = internal::ActiveTargetName();
  internal::PackedPanels packed_weights;  // of all layers

  // Plans a pass over a checked batch, fills the tables of positions and calls run_layers(team,
  // pass) on the plan's threads; without a token it does nothing.
  template <typename F>
  Status RunPass(const Batch& batch, const Taps& taps, const Workspace& workspace,
                 const Executor& executor, const F& run_layers,
                 internal::ProductObserver* observer = nullptr) const;
  ENCORE_LOCAL Status Forward(const Batch& batch, ConstView x, MutableView y,
                              const Workspace& workspace, const Executor& executor,
                              const Taps& taps,
                              internal::ProductObserver* observer = nullptr) const;
};

template <typename F>
Status Encoder::Impl::RunPass(const Batch& batch, const Taps& taps, const Workspace& workspace,
                              const Executor& executor, const F& run_layers,
                              internal::ProductObserver* observer) const {
  const Result<internal::ScratchPlan> plan = PlanScratch(prepared.sizes, batch, executor);
  if (!plan.ok()) return plan.status();
  if (workspace.size_bytes() < plan->bytes) {
    return InvalidArgument("workspace has " + std::to_string(workspace.size_bytes()) +
                           " bytes; wanted " + std::to_string(plan->bytes) + " for " +
                           std::to_string(batch.seq_starts.back()) + " tokens in " +
                           std::to_string(batch.seq_starts.size() - 1) + " sequences on " +
                           std::to_string(executor.threads()) + " threads (see WorkspaceBytes)");
  }
  if (batch.seq_starts.back() == 0) return {};
  ENCORE_RETURN_IF_ERROR(packed_weights.CheckUnchanged(executor));
  const internal::WorkspaceUse use(workspace);
  ENCORE_RETURN_IF_ERROR(use.status());

  internal::Pass pass{};
  pass.config = &prepared.config;
  pass.kernels = &kernels;
  pass.batch = &batch;
  pass.taps = &taps;
  pass.scratch_plan = *plan;
  pass.scratch = static_cast<std::byte*>(workspace.data());
  pass.tables = &prepared.tables;
  pass.observer = observer;
  pass.longest = LongestSequence(batch);
  {
    // The plan weighs work in doubles: under the default modes, and no flag of it for the caller.
    const internal::FpEnvScope modes;
    pass.thread_plan = internal::ChooseThreadPlan(
        prepared.sizes, batch.seq_starts.get(), static_cast<size_t>(executor.threads()),
        internal::MachineCaches(), pass.At<size_t>(plan->words), internal::RunUnevenly(executor));
  }
  const int threads = static_cast<int>(pass.thread_plan.threads);
  return internal::RunTeam(executor, threads, [&](internal::Team& team) {
    pass.team = &team;
    if (!pass.tables->empty()) pass.tables->Fill(team, pass.longest, pass.tables_memory());
    run_layers(team, pass);
  });
}

Result<Encoder> Encoder::Create(const EncoderConfig& config, const EncoderWeights& weights,
                                const EncoderOptions& given) {
  return internal::Guarded("an encoder", [&]() -> Result<Encoder> {
    EncoderOptions options = given;
    options.executor = given.executor.WithoutStop();
    ENCORE_ASSIGN_OR_RETURN(internal::PreparedEncoder prepared,
                            internal::PreparedEncoder::Create(config, weights, options));
    ENCORE_ASSIGN_OR_RETURN(internal::PackedPanels panels, internal::PackOrMap(options, &prepared));
    prepared.matrices = {};
    prepared.relative.clear();
    return Encoder(std::make_shared<Impl>(std::move(prepared), std::move(panels), options));
  });
}

const EncoderConfig& Encoder::config() const& {
  static constinit internal::Once<EncoderConfig> none;
  return impl_ == nullptr ? none.Get([] { return EncoderConfig(); }) : impl_->prepared.config;
}

std::string_view Encoder::target() const { return impl_ == nullptr ? "" : impl_->target; }

Precision Encoder::precision() const {
  return impl_ == nullptr ? Precision::kF32 : impl_->precision;
}

size_t Encoder::packed_bytes() const { return impl_ == nullptr ? 0 : impl_->packed_weights.bytes; }

size_t Encoder::mapped_bytes() const {
  return impl_ != nullptr && impl_->packed_weights.file ? impl_->packed_weights.file->mapped_bytes()
                                                        : 0;
}

std::string Encoder::cache_use() const {
  return impl_ == nullptr ? "" : impl_->packed_weights.cache_use;
}

bool Encoder::amx_bf16() const {
  return impl_ != nullptr && impl_->kernels.gemm->only_block_kernel;
}

Result<size_t> Encoder::WorkspaceBytes(const BatchLimits& limits, int threads) const {
  return internal::Guarded("a plan of the workspace", [&]() -> Result<size_t> {
    if (impl_ == nullptr) return NoWeights();
    if (threads < 1)
      return InvalidArgument("threads is " + std::to_string(threads) + "; wanted at least 1");
    return impl_->prepared.WorkspaceBytes(limits, threads);
  });
}

Result<size_t> Encoder::WorkspaceBytes(const Batch& batch, const Executor& executor) const {
  return internal::Guarded("a plan of the workspace", [&]() -> Result<size_t> {
    if (impl_ == nullptr) return NoWeights();
    ENCORE_RETURN_IF_ERROR(internal::CheckSequenceStarts(batch));
    ENCORE_ASSIGN_OR_RETURN(const internal::ScratchPlan plan,
                            PlanScratch(impl_->prepared.sizes, batch, executor));
    return plan.bytes;
  });
}

Result<Workspace> Encoder::MakeWorkspace(const Batch& batch, const Executor& executor) const {
  return internal::Guarded("a workspace", [&]() -> Result<Workspace> {
    ENCORE_ASSIGN_OR_RETURN(const size_t bytes, WorkspaceBytes(batch, executor));
    return Workspace::Create(bytes);
  });
}

Result<Workspace> Encoder::MakeWorkspace(const BatchLimits& limits,
                                         const Executor& executor) const {
  return internal::Guarded("a workspace", [&]() -> Result<Workspace> {
    ENCORE_ASSIGN_OR_RETURN(const size_t bytes, WorkspaceBytes(limits, executor.threads()));
    return Workspace::Create(bytes);
  });
}

Status Encoder::Impl::Forward(const Batch& batch, ConstView x, MutableView y,
                              const Workspace& workspace, const Executor& executor,
                              const Taps& taps, internal::ProductObserver* observer) const {
  ENCORE_RETURN_IF_ERROR(internal::CheckSequenceStarts(batch));
  ENCORE_RETURN_IF_ERROR(internal::CheckBatch(prepared.config, batch));
  ENCORE_RETURN_IF_ERROR(internal::CheckInputOutput(prepared.config, batch, x, y));
  ENCORE_RETURN_IF_ERROR(internal::CheckTaps(prepared.config, batch, taps, x, y));
  const internal::Rows out{y.data(), internal::RowStride(y)};
  return RunPass(
      batch, taps, workspace, executor,
      [&](internal::Team& team, const internal::Pass& pass) {
        internal::ConstRows in{x.data(), internal::RowStride(x)};
        if (prepared.sizes.keeps_encoder_input) internal::KeepEncoderInput(team, pass, in);
        for (size_t i = 0; i < prepared.layers.size() && !team.IsStopped(); ++i) {
          internal::EncoderBlock(team, pass, prepared.layers[i], i, in, out);
          in = out;
        }
        if (prepared.final_norm.given()) {
          internal::NormRows(team, pass, prepared.final_norm, out, pass.tokens());
        }
      },
      observer);
}

Status Encoder::Forward(const Batch& batch, ConstView x, MutableView y, const Workspace& workspace,
                        const Executor& executor, const Taps& taps) const {
  return internal::Guarded("a pass", [&]() -> Status {
    if (impl_ == nullptr) return NoWeights();
    return impl_->Forward(batch, x, y, workspace, executor, taps);
  });
}

Status internal::EncoderAccess::Forward(const Encoder& encoder, const Batch& batch, ConstView x,
                                        MutableView y, const Workspace& workspace,
                                        ProductObserver* observer) {
  return internal::Guarded("a pass", [&]() -> Status {
    if (encoder.impl_ == nullptr) return NoWeights();
    return encoder.impl_->Forward(batch, x, y, workspace, Executor::Inline(), {}, observer);
  });
}

const std::vector<PackedLayer>& internal::EncoderAccess::Layers(const Encoder& encoder) {
  return encoder.impl_->prepared.layers;
}

Status Encoder::ForwardRows(const Batch& batch, OutputRows rows, MutableView x, MutableView y,
                            const Workspace& workspace, const Executor& executor,
                            const Taps& taps) const {
  return internal::Guarded("a pass", [&]() -> Status {
    if (impl_ == nullptr) return NoWeights();
    if (rows == OutputRows::kAll) return impl_->Forward(batch, x, y, workspace, executor, taps);
    ENCORE_RETURN_IF_ERROR(internal::CheckSequenceStarts(batch));
    ENCORE_RETURN_IF_ERROR(internal::CheckBatch(impl_->prepared.config, batch));
    ENCORE_RETURN_IF_ERROR(internal::CheckInputOutputRows(impl_->prepared.config, batch, x, y));
    ENCORE_RETURN_IF_ERROR(internal::CheckTaps(impl_->prepared.config, batch, taps, x, y));
    const internal::Rows in{x.data(), internal::RowStride(x)};
    const internal::Rows out{y.data(), internal::RowStride(y)};
    const size_t last = impl_->prepared.layers.size() - 1;
    const bool keeps_encoder_input = impl_->prepared.sizes.keeps_encoder_input;
    const bool all_rows =
        keeps_encoder_input || internal::TapsLayer(taps, last, batch.seq_starts.size() - 1);
    return impl_->RunPass(
        batch, taps, workspace, executor, [&](internal::Team& team, const internal::Pass& pass) {
          if (keeps_encoder_input) internal::KeepEncoderInput(team, pass, in);
          for (size_t i = 0; i < last && !team.IsStopped(); ++i) {
            internal::EncoderBlock(team, pass, impl_->prepared.layers[i], i, in, in);
          }
          if (all_rows) {
            internal::EncoderBlock(team, pass, impl_->prepared.layers[last], last, in, in);
            internal::CopyOutputRows(team, pass, in, rows, out);
          } else {
            internal::BlockOfOutputRows(team, pass, impl_->prepared.layers[last], last, in, rows,
                                        out);
          }
          if (impl_->prepared.final_norm.given()) {
            internal::NormRows(team, pass, impl_->prepared.final_norm, out, pass.sequences());
          }
        });
  });
}

std::string_view ActivationName(Activation activation) {
  return activation <= internal::kLastActivation ? internal::ActivationRowOf(activation).name
                                                 : "unknown";
}

Result<Activation> ActivationFromName(std::string_view name) {
  return internal::Guarded("the name", [&]() -> Result<Activation> {
    for (const internal::ActivationRow& row : internal::kActivations) {
      if (row.layer && name == row.name) return *row.layer;
    }
    return InvalidArgument("activation is \"" + std::string(name) + "\"; wanted " +
                           internal::LayerActivationNames());
  });
}

}  // namespace encore
