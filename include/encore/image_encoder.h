// SPDX-License-Identifier: Apache-2.0
//
// ImageEncoder: a Hugging Face model folder as it was downloaded, from pictures to vectors, or to
// what its classifier says of them. Part of the library encore::text.
//
// What transformers computes from the same folder is the reference: the pixels of its processors on
// Pillow (CLIPImageProcessorPil and its kin; DINOv3's is on torchvision), and get_image_features of
// CLIP and SigLIP or pooler_output of other families. The vectors of CLIP and SigLIP are in the
// space of those that TextEncoder makes of texts from the same folder. A picture's bits depend on
// its pixels, the folder and the options alone: not on the other pictures, their order, batch
// sizes, the executor or the SIMD target (with FMA).

#ifndef ENCORE_IMAGE_ENCODER_H_
#define ENCORE_IMAGE_ENCODER_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "encore/call_stats.h"
#include "encore/encoder.h"
#include "encore/executor.h"
#include "encore/export.h"
#include "encore/image_view.h"
#include "encore/scratch.h"
#include "encore/status.h"
#include "encore/tensor.h"
#include "encore/text_encoder.h"
#include "encore/tokenizer.h"

namespace encore::inline v0_1 {

struct ImageOptions {
  Executor executor = {};
  std::optional<bool> normalize = {};  // as EncodeOptions
  size_t dimensions = 0;               // as EncodeOptions
  // Rows computed at once, tokens() for each picture, at least one picture. 0: encore's choice.
  size_t batch_tokens = 0;
  // Filled by the call; `tokenizing` is the time of the processor. null: nothing is measured.
  CallStats* stats = nullptr;
  std::function<void(const CallProgress&)> progress = {};  // as EncodeOptions; texts are pictures
  Scratch* scratch = nullptr;                              // as EncodeOptions
  // Of Classify alone. Nothing: kAsClassifier. kAsCrossEncoder is of texts.
  std::optional<ScoreActivation> activation = {};
};

// How CLIP and SigLIP compare a picture and a text: logit = e^scale * cosine + bias.
struct TextScale {
  float scale = 0;
  // SigLIP's: the logit's sigmoid says how likely the text describes the picture. Without it: of
  // CLIP, where the softmax of several texts' logits says how likely each does.
  std::optional<float> bias = {};
};

// The last states of a picture.
struct PatchVectors {
  Tensor vectors;                // F32 [tokens(), d_model()]
  size_t first_patch = 0;        // the rows before are the class token and others without a place
  size_t rows = 0, columns = 0;  // of patches, from the top, row by row
};

// A model with its processor. Immutable: any number of threads may use it at once. Copying shares
// it. Methods return kInvalidArgument with the picture's index where a picture is at fault;
// kOutOfMemory. Results are complete or absent.
class ENCORE_API ImageEncoder {
 public:
  // To move is to copy: what was moved from stays as it is.
  ImageEncoder(const ImageEncoder&) = default;
  ImageEncoder& operator=(const ImageEncoder&) = default;

  // Reads config.json, *.safetensors, preprocessor_config.json or processor_config.json, and
  // sentence-transformers' files, of which the modules behind the model count. Of the options those
  // of texts (pooling, max_length, language_head, task) must be unset: kInvalidArgument. The errors
  // of TextEncoder::Open.
  static Result<ImageEncoder> Open(const std::string& folder, const OpenOptions& options = {});

  // F32 [images, dimensions], in the order of the images.
  Result<Tensor> Encode(std::span<const ImageView> images, const ImageOptions& options = {}) const;
  // The same into the caller's memory, as TextEncoder::Encode.
  Status Encode(std::span<const ImageView> images, MutableView vectors,
                const ImageOptions& options = {}) const;
  // transformers' last_hidden_state. `normalize` and `dimensions` must be unset.
  Result<PatchVectors> EncodePatches(const ImageView& image,
                                     const ImageOptions& options = {}) const;
  // Classifiers: the value of each label, F32 [images, labels]. `normalize` and `dimensions` must
  // be unset. kUnsupported where the folder has no head.
  Result<Tensor> Classify(std::span<const ImageView> images,
                          const ImageOptions& options = {}) const;

  // Makes the next call of up to so many pictures as fast as later ones, by computing as many: in
  // `scratch`, or in memory that is kept. kInvalidArgument if kept_bytes is too small. Memory for
  // resizing, which depends on a picture's size, is taken in each call.
  Status Prepare(size_t max_images, const Executor& executor = {},
                 Scratch* scratch = nullptr) const;

  size_t dimensions() const;      // of Encode's vectors
  size_t max_dimensions() const;  // more where the folder has a truncate_dim
  size_t d_model() const;         // of patches' vectors
  size_t tokens() const;          // rows of a picture in the encoder
  size_t height() const;          // of pictures, once they are processed
  size_t width() const;
  // Of a classifier, by id; none in other folders.
  const std::vector<std::string>& labels() const&;
  const std::vector<std::string>& labels() const&& = delete;
  std::optional<TextScale> text_scale() const;  // of whole models of texts and pictures
  const Encoder& encoder() const&;
  const Encoder& encoder() const&& = delete;
  void TrimMemory() const;  // gives back what is kept between calls
  ModelMemory Memory() const;
  // Every decision taken, as TextEncoder's.
  const std::vector<Decision>& Describe() const&;
  const std::vector<Decision>& Describe() const&& = delete;

  struct Impl;

 private:
  explicit ImageEncoder(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

}  // namespace encore

#endif  // ENCORE_IMAGE_ENCODER_H_
