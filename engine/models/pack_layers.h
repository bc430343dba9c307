// SPDX-License-Identifier: Apache-2.0
//
// What models of texts and of pictures do alike: from the tensors of the layers to an encoder of
// the wanted precision, from a cache where there is one; and what is said of other tensors.

#ifndef ENCORE_ENGINE_MODELS_PACK_LAYERS_H_
#define ENCORE_ENGINE_MODELS_PACK_LAYERS_H_

#include <optional>
#include <string_view>
#include <vector>

#include "encore/encoder.h"
#include "encore/status.h"
#include "encore/text_encoder.h"
#include "engine/io/folder.h"
#include "engine/models/family.h"
#include "engine/models/model_tensors.h"
#include "engine/models/task_adapter.h"
#include "engine/models/weight_files.h"

namespace encore::inline v0_1::internal {

struct LayerSource {
  const Folder& folder;
  const OpenOptions& options;
  const WeightFiles& files;
  const ModelSpec& spec;
  const std::optional<TaskAdapter>& adapter;
};

// Appends what was decided: the precision, AMX, the use of the cache. Pages of packed tensors are
// released. The errors of Encoder::Create; kCorruptData for an unknown precision in the files.
Result<Encoder> PackLayers(const LayerSource& source, const EncoderWeights& weights,
                           std::vector<Decision>* decisions);

// kUnsupported where the files have a tensor of Family::foreign_tensors.
Status CheckNoForeignTensor(const ModelSpec& spec, const WeightFiles& files);

// Tensors that nobody asked for are a decision; all but `read_later`.
void NoteUnused(const ModelSpec& spec, const ModelTensors& tensors, std::string_view read_later,
                std::vector<Decision>* decisions);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_MODELS_PACK_LAYERS_H_
