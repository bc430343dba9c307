// SPDX-License-Identifier: Apache-2.0
//
// Pictures to vectors, or to what a head says of them: a batch at a time they are processed,
// computed and finished.

#include "encore/image_encoder.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "engine/base/first_failure.h"
#include "engine/base/guarded.h"
#include "engine/base/int_math.h"
#include "engine/base/status_macros.h"
#include "engine/images/image_processor.h"
#include "engine/models/image_model.h"
#include "engine/text/text_encoder_impl.h"

namespace encore::inline v0_1 {

struct ImageEncoder::Impl {
  internal::ImageModel model;
  internal::ImageProcessor processor;
  internal::AfterEncoder after;
  std::optional<size_t> truncate_dim = {};
  std::optional<bool> normalize = {};  // OpenOptions'
  // ScoreActivation::kAsClassifier, where there is a head.
  Result<const internal::ActivationRow*> as_classifier =
      internal::FindTorchActivation("torch.nn.Identity");
  std::vector<Decision> decisions = {};
  mutable internal::ScratchPool scratch;

  size_t dimensions() const {
    return std::min(truncate_dim.value_or(after.width()), after.width());
  }
};

namespace internal {
namespace {

using ImageImpl = ImageEncoder::Impl;

Status CheckNoTextOptions(const OpenOptions& options) {
  const char* const set = !options.pooling.empty() ? "pooling"
                          : options.max_length     ? "max_length"
                          : options.language_head  ? "language_head"
                          : !options.task.empty()  ? "task"
                                                   : nullptr;
  if (set == nullptr) return {};
  return InvalidArgument(std::string("found the option ") + set +
                         "; wanted none, as it is one of models of texts");
}

Status CheckNoVectorOptions(const ImageOptions& options) {
  if (options.dimensions == 0 && !options.normalize) return {};
  return InvalidArgument(
      "found dimensions or normalize; wanted neither, as these are for the vectors of pictures");
}

Status CheckNoActivation(const ImageOptions& options) {
  if (!options.activation) return {};
  return InvalidArgument("found an activation; wanted none, as it is for classes of pictures");
}

Result<std::shared_ptr<const ImageImpl>> OpenImages(const std::string& path,
                                                    const OpenOptions& options) {
  ENCORE_RETURN_IF_ERROR(CheckNoTextOptions(options));
  ENCORE_ASSIGN_OR_RETURN(const Folder folder, Folder::Open(path));
  std::vector<Decision> decisions;
  const FolderReading reading{folder, options.ignore_unknown_keys, decisions};
  ENCORE_ASSIGN_OR_RETURN(const ModelFolder found, FindFolder(FolderUse::kTextEncoder, reading));
  if (found.kind != FolderKind::kFeatures && found.kind != FolderKind::kCheckpoint) {
    return Status(ErrorCode::kUnsupported,
                  "the folder's modules make vectors of texts alone; wanted a model of pictures, "
                  "such as CLIP, or of texts and pictures");
  }
  ENCORE_ASSIGN_OR_RETURN(ImageProcessor processor,
                          ImageProcessor::Open(found.folder, options.ignore_unknown_keys));
  const ProcessorConfig& config = processor.config();
  reading.Note("processor",
               "pictures of " + std::to_string(processor.height()) + " x " +
                   std::to_string(processor.width()) + " pixels",
               config.source);
  for (const std::string& key : config.ignored) {
    reading.Note("ignored", "unknown key " + Quoted(key), config.source);
  }
  ENCORE_ASSIGN_OR_RETURN(ImageModel model, ImageModel::Open(found.folder, options,
                                                             {processor.height(), processor.width(),
                                                              processor.makes_floats()},
                                                             &decisions));
  ENCORE_ASSIGN_OR_RETURN(
      AfterEncoder after,
      AfterEncoder::Read(PoolingSettings{{PoolingMode::kLastToken}}, found.behind(), model.width(),
                         options.normalize, reading));
  ENCORE_ASSIGN_OR_RETURN(const SentenceConfig sentence, ReadSentenceConfig(found, reading));
  std::shared_ptr<ImageImpl> impl(new ImageImpl{.model = std::move(model),
                                                .processor = std::move(processor),
                                                .after = std::move(after),
                                                .truncate_dim = sentence.truncate_dim,
                                                .normalize = options.normalize,
                                                .scratch = ScratchPool(options.kept_bytes)});
  if (const Classifier& head = impl->model.head(); !head.labels().empty()) {
    impl->as_classifier =
        ClassifierActivation(impl->model.problem_type(), head.labels().size(), reading);
  }
  impl->decisions = std::move(decisions);
  return std::shared_ptr<const ImageImpl>(std::move(impl));
}

// One batch of a call.
struct PictureBatch {
  std::span<const ImageView> images;
  size_t first = 0;  // of the call's
};

// The pictures' processed bytes, and of these the encoder's input in scratch->x.
Result<MutableView> EmbedBatch(const ImageImpl& impl, const PictureBatch& batch, CallWatch* watch,
                               CallScratch* scratch, const Executor& executor) {
  const size_t bytes = impl.processor.size_bytes();
  const size_t count = batch.images.size();
  const size_t tokens = impl.model.tokens();
  scratch->pixels.resize(count * bytes);
  FirstFailure failure;
  ENCORE_RETURN_IF_ERROR(RunParallel(executor, count, [&](size_t i) {
    const std::span<uint8_t> out(scratch->pixels.data() + i * bytes, bytes);
    Status status = impl.processor.Process(batch.images[i], out);
    if (!status.ok()) failure.Keep(Prefixed("image " + std::to_string(batch.first + i), status));
  }));
  ENCORE_RETURN_IF_ERROR(failure.status());
  watch->Enter(&CallStats::embedding);
  scratch->starts.resize(count + 1);
  for (size_t i = 0; i <= count; ++i) scratch->starts[i] = i * tokens;
  size_t values = 0;
  if (!CheckedMul(count * tokens, impl.model.d_model(), &values)) {
    return Status(ErrorCode::kOutOfMemory, "a batch's rows exceed what can be addressed");
  }
  ENCORE_ASSIGN_OR_RETURN(float* const x, scratch->x.Get<float>(values));
  const MutableView rows(x, Shape(count * tokens, impl.model.d_model()));
  ENCORE_RETURN_IF_ERROR(impl.model.embeddings().Apply(scratch->pixels, impl.processor.values(),
                                                       rows, &scratch->model.narrow, executor));
  watch->Enter(&CallStats::layers);
  ENCORE_ASSIGN_OR_RETURN(const size_t workspace,
                          impl.model.encoder().WorkspaceBytes(
                              {.tokens = count * tokens, .sequences = count}, executor.threads()));
  if (workspace > scratch->workspace.size_bytes()) {
    ENCORE_RETURN_IF_ERROR(scratch->workspace.Reserve(workspace));
  }
  return rows;
}

ImageBuffers BuffersOf(CallScratch* scratch) {
  return {.workspace = scratch->workspace,
          .states = &scratch->model.states,
          .more = &scratch->gathered};
}

size_t MostPictures(const ImageImpl& impl, const ImageOptions& options) {  // of a batch
  const size_t tokens = BatchTokens(options.batch_tokens, options.executor.threads());
  return std::max<size_t>(1, tokens / impl.model.tokens());
}

// Of all pictures, a batch after the other: take(x, first, scratch) has the encoder's input of
// those from `first` on.
template <typename Take>
Status ForBatches(const ImageImpl& impl, std::span<const ImageView> images,
                  const ImageOptions& options, const Take& take) {
  CallWatch watch(options);
  watch.Begin(images.size());
  const ScratchOfCall scratch(options.scratch, &impl.scratch);
  ENCORE_RETURN_IF_ERROR(scratch.status());
  const Executor& executor = options.executor;
  const size_t tokens = impl.model.tokens();
  const size_t most = MostPictures(impl, options);
  for (size_t begin = 0; begin < images.size(); begin += most) {
    watch.Enter(&CallStats::tokenizing);
    const size_t count = std::min(most, images.size() - begin);
    watch.AddTokenized(count * tokens);
    ENCORE_ASSIGN_OR_RETURN(
        const MutableView x,
        EmbedBatch(impl, {images.subspan(begin, count), begin}, &watch, scratch.get(), executor));
    ENCORE_RETURN_IF_ERROR(take(x, begin, scratch.get(), &watch));
    watch.AddDone(count, count * tokens);
    if (watch.WantsBytes()) watch.NoteBytes(scratch->size_bytes());
  }
  return {};
}

Status EncodeImages(const ImageImpl& impl, std::span<const ImageView> images,
                    const EncodeSettings& settings, const ImageOptions& options,
                    MutableView vectors) {
  const size_t width = impl.model.width();
  const auto take = [&](MutableView x, size_t first, CallScratch* scratch,
                        CallWatch* watch) -> Status {
    const size_t count = scratch->starts.size() - 1;
    ENCORE_ASSIGN_OR_RETURN(float* const made, scratch->hidden.Get<float>(count * width));
    ENCORE_RETURN_IF_ERROR(impl.model.Vectors(scratch->starts, x,
                                              MutableView(made, Shape(count, width)),
                                              BuffersOf(scratch), options.executor));
    watch->Enter(&CallStats::pooling);
    scratch->order.resize(count);
    std::iota(scratch->order.begin(), scratch->order.end(), first);
    return impl.after.Run({made, scratch->starts, scratch->order}, settings, vectors, scratch,
                          options.executor);
  };
  return ForBatches(impl, images, options, take);
}

// What the head reads, rows [pictures, Classifier::width()], of the encoder's input.
Status HeadRows(const ImageImpl& impl, MutableView x, MutableView rows, CallScratch* scratch,
                const Executor& executor) {
  const PictureRows wanted = impl.model.head().of_picture();
  if (wanted == PictureRows::kFirst) {
    return impl.model.encoder().ForwardRows({.seq_starts = scratch->starts}, OutputRows::kFirst, x,
                                            rows, scratch->workspace, executor);
  }
  ENCORE_RETURN_IF_ERROR(impl.model.States(scratch->starts, x, BuffersOf(scratch), executor));
  const size_t d_model = impl.model.d_model();
  const size_t tokens = impl.model.tokens();
  const size_t before = impl.model.embeddings().rows_before();
  constexpr PoolingMode kMean[] = {PoolingMode::kMean};
  std::vector<double> sums(d_model);
  return RunParallel(Executor::Inline(), 1, [&](size_t) {  // under the default rounding
    for (size_t i = 0; i < rows.dim(0); ++i) {
      const float* const states = &x(i * tokens, 0);
      float* out = &rows(i, 0);
      if (wanted == PictureRows::kFirstTwo) std::copy_n(states, 2 * d_model, out);
      if (wanted == PictureRows::kFirstAndPatches) out = std::copy_n(states, d_model, out);
      if (wanted == PictureRows::kFirstTwo) continue;
      PoolRows(kMean, states + before * d_model, tokens - before, d_model, sums.data(), out);
    }
  });
}

Result<Tensor> ClassifyImages(const ImageImpl& impl, std::span<const ImageView> images,
                              const ImageOptions& options) {
  const Classifier& head = impl.model.head();
  if (head.labels().empty()) {
    return Status(ErrorCode::kUnsupported, "the folder's model has no head of a classifier");
  }
  ENCORE_RETURN_IF_ERROR(CheckNoVectorOptions(options));
  const Result<const ActivationRow*> of_texts =
      InvalidArgument("activation is 'as cross-encoder', which is of texts; wanted another");
  ENCORE_ASSIGN_OR_RETURN(
      const ActivationRow* const activation,
      ResolveActivation(options.activation.value_or(ScoreActivation::kAsClassifier), of_texts,
                        impl.as_classifier));
  const size_t labels = head.labels().size();
  ENCORE_ASSIGN_OR_RETURN(Tensor values, Tensor::Create(DType::kF32, {images.size(), labels}));
  auto* const all = static_cast<float*>(values.data());
  const auto take = [&](MutableView x, size_t first, CallScratch* scratch,
                        CallWatch* watch) -> Status {
    const size_t count = scratch->starts.size() - 1;
    ENCORE_ASSIGN_OR_RETURN(float* const read, scratch->hidden.Get<float>(count * head.width()));
    const MutableView rows(read, Shape(count, head.width()));
    ENCORE_RETURN_IF_ERROR(HeadRows(impl, x, rows, scratch, options.executor));
    watch->Enter(&CallStats::pooling);
    const MutableView logits(all + first * labels, Shape(count, labels));
    ENCORE_RETURN_IF_ERROR(head.Apply(rows, logits, options.executor));
    return RunParallel(Executor::Inline(), 1, [&](size_t) {  // under the default rounding
      for (size_t i = 0; i < count; ++i) activation->apply(&logits(i, 0), labels);
    });
  };
  ENCORE_RETURN_IF_ERROR(ForBatches(impl, images, options, take));
  return values;
}

Result<EncodeSettings> SettingsOf(const ImageImpl& impl, const ImageOptions& options) {
  ENCORE_RETURN_IF_ERROR(CheckNoActivation(options));
  return ResolveSettings(
      impl.after, {options.normalize ? options.normalize : impl.normalize, options.dimensions},
      impl.dimensions());
}

Result<PatchVectors> EncodePatchesOf(const ImageImpl& impl, const ImageView& image,
                                     const ImageOptions& options) {
  CallWatch watch(options);
  ENCORE_RETURN_IF_ERROR(CheckNoVectorOptions(options));
  ENCORE_RETURN_IF_ERROR(CheckNoActivation(options));
  watch.Begin(1);
  const ScratchOfCall scratch(options.scratch, &impl.scratch);
  ENCORE_RETURN_IF_ERROR(scratch.status());
  watch.AddTokenized(impl.model.tokens());
  ENCORE_ASSIGN_OR_RETURN(const MutableView x, EmbedBatch(impl, {std::span(&image, 1), 0}, &watch,
                                                          scratch.get(), options.executor));
  ENCORE_RETURN_IF_ERROR(
      impl.model.States(scratch->starts, x, BuffersOf(scratch.get()), options.executor));
  const PatchEmbeddings& embeddings = impl.model.embeddings();
  PatchVectors result{.vectors = {},
                      .first_patch = embeddings.rows_before(),
                      .rows = embeddings.grid().rows,
                      .columns = embeddings.grid().columns};
  ENCORE_ASSIGN_OR_RETURN(result.vectors, Tensor::Create(DType::kF32, x.shape()));
  std::copy_n(x.data(), x.dim(0) * x.dim(1), static_cast<float*>(result.vectors.data()));
  watch.AddDone(1, x.dim(0));
  return result;
}

}  // namespace
}  // namespace internal

Result<ImageEncoder> ImageEncoder::Open(const std::string& folder, const OpenOptions& options) {
  return internal::Guarded("the model", [&]() -> Result<ImageEncoder> {
    ENCORE_ASSIGN_OR_RETURN(std::shared_ptr<const Impl> impl,
                            internal::OpenImages(folder, options));
    return ImageEncoder(std::move(impl));
  });
}

Status ImageEncoder::Encode(std::span<const ImageView> images, MutableView vectors,
                            const ImageOptions& options) const {
  return internal::Guarded("the vectors", [&]() -> Status {
    ENCORE_ASSIGN_OR_RETURN(const internal::EncodeSettings settings,
                            internal::SettingsOf(*impl_, options));
    ENCORE_RETURN_IF_ERROR(internal::CheckVectors(vectors, images.size(), settings.dimensions));
    return internal::EncodeImages(*impl_, images, settings, options, vectors);
  });
}

Result<Tensor> ImageEncoder::Encode(std::span<const ImageView> images,
                                    const ImageOptions& options) const {
  return internal::Guarded("the vectors", [&]() -> Result<Tensor> {
    ENCORE_ASSIGN_OR_RETURN(const internal::EncodeSettings settings,
                            internal::SettingsOf(*impl_, options));
    ENCORE_ASSIGN_OR_RETURN(Tensor vectors,
                            Tensor::Create(DType::kF32, Shape(images.size(), settings.dimensions)));
    ENCORE_RETURN_IF_ERROR(
        internal::EncodeImages(*impl_, images, settings, options, vectors.View<float>()));
    return vectors;
  });
}

Result<PatchVectors> ImageEncoder::EncodePatches(const ImageView& image,
                                                 const ImageOptions& options) const {
  return internal::Guarded("the vectors",
                           [&] { return internal::EncodePatchesOf(*impl_, image, options); });
}

Result<Tensor> ImageEncoder::Classify(std::span<const ImageView> images,
                                      const ImageOptions& options) const {
  return internal::Guarded("the classes",
                           [&] { return internal::ClassifyImages(*impl_, images, options); });
}

Status ImageEncoder::Prepare(size_t max_images, const Executor& executor, Scratch* scratch) const {
  return internal::Guarded("the preparation", [&]() -> Status {
    if (max_images == 0) return InvalidArgument("max_images is 0; wanted at least 1");
    const ImageOptions options{.executor = executor, .scratch = scratch};
    const size_t count = std::min(max_images, internal::MostPictures(*impl_, options));
    const std::vector<uint8_t> black(height() * width());
    const std::vector<ImageView> images(count, {.pixels = black.data(),
                                                .width = width(),
                                                .height = height(),
                                                .stride = width(),
                                                .channels = 1});
    ENCORE_RETURN_IF_ERROR(Encode(images, options).status());
    if (scratch != nullptr || impl_->scratch.idle_bytes() > 0) return {};
    return InvalidArgument("kept_bytes is " + std::to_string(impl_->scratch.max_idle_bytes()) +
                           "; wanted enough for a call's memory, or a scratch");
  });
}

size_t ImageEncoder::dimensions() const { return impl_->dimensions(); }
size_t ImageEncoder::max_dimensions() const { return impl_->after.width(); }
size_t ImageEncoder::d_model() const { return impl_->model.d_model(); }
size_t ImageEncoder::tokens() const { return impl_->model.tokens(); }
size_t ImageEncoder::height() const { return impl_->processor.height(); }
size_t ImageEncoder::width() const { return impl_->processor.width(); }
const std::vector<std::string>& ImageEncoder::labels() const& {
  return impl_->model.head().labels();
}
std::optional<TextScale> ImageEncoder::text_scale() const { return impl_->model.text_scale(); }
const Encoder& ImageEncoder::encoder() const& { return impl_->model.encoder(); }
void ImageEncoder::TrimMemory() const { impl_->scratch.Trim(); }
ModelMemory ImageEncoder::Memory() const {
  return {.mapped = impl_->model.encoder().mapped_bytes(),
          .packed = impl_->model.packed_bytes() + impl_->after.packed_bytes(),
          .scratch = impl_->scratch.idle_bytes()};
}
const std::vector<Decision>& ImageEncoder::Describe() const& { return impl_->decisions; }

}  // namespace encore
