// SPDX-License-Identifier: Apache-2.0
//
// SigLIP's head (Zhai et al. 2023, arXiv:2303.15343): a picture's vector is what one query, the
// probe, sees of its patches by attention, a, and then a + mlp(layernorm(a)).

#ifndef ENCORE_ENGINE_MODELS_PROBE_POOLING_H_
#define ENCORE_ENGINE_MODELS_PROBE_POOLING_H_

#include <cstddef>
#include <optional>

#include "encore/executor.h"
#include "encore/ops.h"
#include "encore/status.h"
#include "encore/tensor.h"
#include "engine/base/float_buffer.h"
#include "engine/models/family.h"
#include "engine/models/model_tensors.h"

namespace encore::inline v0_1::internal {

// Immutable.
class ProbePooling {
 public:
  // Of the module PatchSpec::attention_head. The errors of ModelTensors; kUnsupported where the
  // activation is one of layers only.
  static Result<ProbePooling> Read(const ModelSpec& spec, ModelTensors* tensors);

  // vectors [pictures, d_model] from states [pictures tokens, d_model], both contiguous.
  Status Apply(ConstView states, MutableView vectors, FloatBuffer* keys, FloatBuffer* more,
               const Executor& executor) const;
  size_t packed_bytes() const;

 private:
  ProbePooling() = default;

  size_t heads_ = 0;
  Tensor query_;                             // [d_model]: the probe's
  std::optional<PackedLinear> keys_values_;  // to [2 d_model]
  std::optional<PackedLinear> out_, first_, second_;
  LoadedNorm norm_;
  const ActivationRow* activation_ = nullptr;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_MODELS_PROBE_POOLING_H_
