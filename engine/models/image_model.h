// SPDX-License-Identifier: Apache-2.0
//
// A model of pictures from its folder: pixels to the last states of patches, and to a vector of
// each picture.

#ifndef ENCORE_ENGINE_MODELS_IMAGE_MODEL_H_
#define ENCORE_ENGINE_MODELS_IMAGE_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "encore/encoder.h"
#include "encore/image_encoder.h"
#include "encore/status.h"
#include "encore/text_encoder.h"
#include "engine/io/folder.h"
#include "engine/models/classifier.h"
#include "engine/models/patch_embeddings.h"
#include "engine/models/probe_pooling.h"

namespace encore::inline v0_1::internal {

// Buffers of a call, kept for the next one.
struct ImageBuffers {
  const Workspace& workspace;  // of the encoder, as WorkspaceBytes says
  FloatBuffer* states;
  FloatBuffer* more;
};

// Immutable, thread-safe. All weights are in own memory, or in the cache's.
class ImageModel {
 public:
  // Reads config.json and the weights, as TextModel::Open, for pictures of the processor's size.
  static Result<ImageModel> Open(const Folder& folder, const OpenOptions& options,
                                 const PictureSize& size, std::vector<Decision>* decisions);

  const PatchEmbeddings& embeddings() const { return embeddings_; }
  size_t tokens() const { return embeddings_.rows(); }  // of a picture
  size_t d_model() const { return encoder_.config().d_model; }
  size_t width() const { return width_; }  // of a picture's vector
  const Encoder& encoder() const { return encoder_; }
  // Without labels: none. It reads rows of States.
  const Classifier& head() const { return head_; }
  const Result<ProblemType>& problem_type() const { return problem_type_; }
  const std::optional<TextScale>& text_scale() const { return text_scale_; }
  size_t packed_bytes() const;

  // The last states of all rows, x [pictures tokens(), d_model] in place, of what
  // PatchEmbeddings::Apply made. `starts` has pictures + 1 entries, tokens() apart.
  Status States(std::span<const size_t> starts, MutableView x, const ImageBuffers& buffers,
                const Executor& executor) const;
  // The vectors [pictures, width()], contiguous. x is overwritten.
  Status Vectors(std::span<const size_t> starts, MutableView x, MutableView vectors,
                 const ImageBuffers& buffers, const Executor& executor) const;

 private:
  ImageModel(PatchEmbeddings embeddings, Encoder encoder)
      : embeddings_(std::move(embeddings)), encoder_(std::move(encoder)) {}
  Status ReadPooling(const ModelSpec& spec, ModelTensors* tensors,
                     std::vector<Decision>* decisions);

  PatchEmbeddings embeddings_;
  Encoder encoder_;
  size_t width_ = 0;
  // What follows the first row's last state, or what takes its place.
  std::optional<LoadedNorm> norm_;
  std::optional<PackedLinear> linear_;         // PatchSpec's dense or projection
  const ActivationRow* activation_ = nullptr;  // behind it
  std::optional<ProbePooling> probe_;
  Classifier head_;
  Result<ProblemType> problem_type_ = ProblemType::kUnnamed;
  std::optional<TextScale> text_scale_;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_MODELS_IMAGE_MODEL_H_
