// SPDX-License-Identifier: Apache-2.0
//
// The C interface: calls into the caller's arrays, the sentence of the last failure. rows.cc has
// the calls whose results are of a size of their own, open.cc the model's beginning and end.

#include "encore/c_api.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "encore/text_encoder.h"
#include "encore/version.h"
#include "engine/base/status_macros.h"
#include "engine/c_api/arguments.h"
#include "engine/c_api/call.h"

namespace encore::inline v0_1::internal {
namespace {

static_assert(ENCORE_OK == static_cast<int>(ErrorCode::kOk));
static_assert(ENCORE_INVALID_ARGUMENT == static_cast<int>(ErrorCode::kInvalidArgument));
static_assert(ENCORE_NOT_FOUND == static_cast<int>(ErrorCode::kNotFound));
static_assert(ENCORE_UNSUPPORTED == static_cast<int>(ErrorCode::kUnsupported));
static_assert(ENCORE_CORRUPT_DATA == static_cast<int>(ErrorCode::kCorruptData));
static_assert(ENCORE_IO == static_cast<int>(ErrorCode::kIo));
static_assert(ENCORE_OUT_OF_MEMORY == static_cast<int>(ErrorCode::kOutOfMemory));
static_assert(ENCORE_CANCELLED == StatusInC(ErrorCode::kCancelled));
static_assert(ENCORE_DEADLINE_EXCEEDED == StatusInC(ErrorCode::kDeadlineExceeded));
static_assert(ENCORE_ACTIVATION_IDENTITY == 1 + static_cast<int>(ScoreActivation::kIdentity));
static_assert(ENCORE_ACTIVATION_SIGMOID == 1 + static_cast<int>(ScoreActivation::kSigmoid));
static_assert(ENCORE_ACTIVATION_SOFTMAX == 1 + static_cast<int>(ScoreActivation::kSoftmax));
static_assert(ENCORE_ACTIVATION_AS_CROSS_ENCODER ==
              1 + static_cast<int>(ScoreActivation::kAsCrossEncoder));
static_assert(ENCORE_ACTIVATION_AS_CLASSIFIER ==
              1 + static_cast<int>(ScoreActivation::kAsClassifier));

// The last failure on this thread. An array, because a destructor of a thread's variable keeps a
// shared library loaded until the thread ends.
thread_local char last_error[2048] = "";

}  // namespace

void SetLastError(std::string_view sentence) noexcept {
  constexpr std::string_view kCut = "...";
  constexpr size_t kMost = sizeof(last_error) - 1;
  size_t size = std::min(sentence.size(), kMost);
  if (size < sentence.size()) {
    size = kMost - kCut.size();
    while (size > 0 && (sentence[size] & 0xC0) == 0x80) --size;  // whole characters
  }
  char* const end = std::copy_n(sentence.begin(), size, last_error);
  *(size < sentence.size() ? std::copy(kCut.begin(), kCut.end(), end) : end) = '\0';
}

Status WrongKind(const encore_model* model, size_t wanted) {
  if (model == nullptr) return NullArgument("model");
  constexpr const char* kNames[] = {"ENCORE_KIND_TEXT", "ENCORE_KIND_MULTI_VECTOR",
                                    "ENCORE_KIND_IMAGE"};
  return Status(ErrorCode::kUnsupported, std::string("the model was opened as ") +
                                             kNames[model->encoder->index()] + "; wanted " +
                                             kNames[wanted]);
}

namespace {

// Of ScoreOptions or ImageOptions.
template <typename Options>
Status ReadActivation(int32_t activation, Options* options) {
  ENCORE_RETURN_IF_ERROR(CheckChoice("activation", activation, ENCORE_ACTIVATION_AS_CLASSIFIER));
  if (activation == ENCORE_ACTIVATION_AS_FOLDER) return {};
  options->activation = static_cast<ScoreActivation>(activation - 1);
  return {};
}

}  // namespace

Status ReadEncodeOptions(const encore_model& model, const encore_encode_options* given,
                         CallChoices* call, encore_encode_options* known, EncodeOptions* options) {
  ENCORE_RETURN_IF_ERROR(ReadOptions(given, "encore_encode_options", known));
  ENCORE_RETURN_IF_ERROR(ReadTextOptions(*known, options));
  ENCORE_RETURN_IF_ERROR(CheckChoice("normalize", known->normalize, ENCORE_NO));
  ENCORE_RETURN_IF_ERROR(CheckChoice("task", known->task, ENCORE_TASK_DOCUMENT));
  ENCORE_RETURN_IF_ERROR(CheckChoice("reserved", known->reserved, 0));
  ENCORE_RETURN_IF_ERROR(call->Choose(model, known->call, options));
  if (known->prompt_name != nullptr) options->prompt_name = known->prompt_name;
  if (known->prompt != nullptr) options->prompt = known->prompt;
  options->normalize = YesOrNo(known->normalize);
  options->dimensions = known->dimensions;
  options->batch_tokens = known->batch_tokens;
  return {};
}

Status ReadImageOptions(const encore_model& model, const encore_image_options* given,
                        CallChoices* call, ImageOptions* options) {
  encore_image_options known;
  ENCORE_RETURN_IF_ERROR(ReadOptions(given, "encore_image_options", &known));
  ENCORE_RETURN_IF_ERROR(CheckChoice("normalize", known.normalize, ENCORE_NO));
  ENCORE_RETURN_IF_ERROR(ReadActivation(known.activation, options));
  ENCORE_RETURN_IF_ERROR(call->Choose(model, known.call, options));
  options->normalize = YesOrNo(known.normalize);
  options->dimensions = known.dimensions;
  options->batch_tokens = known.batch_tokens;
  return {};
}

Status ReadImages(const encore_image* images, size_t count, std::vector<ImageView>* views) {
  if (images == nullptr && count > 0) return NullArgument("images");
  ENCORE_RETURN_IF_ERROR(CheckCount(count, views->max_size()));
  views->reserve(count);
  for (const encore_image& image : std::span(images, count)) {
    const size_t row = image.width * image.channels;  // an overflow is refused with the width
    views->push_back({.pixels = image.pixels,
                      .width = image.width,
                      .height = image.height,
                      .stride = image.stride > 0 ? image.stride : row,
                      .channels = image.channels});
  }
  return {};
}

namespace {

Status Encode(const encore_model* model, const encore_text* texts, size_t count,
              const encore_encode_options* given, float* vectors, size_t capacity, size_t* tokens,
              size_t* cut) {
  ENCORE_ASSIGN_OR_RETURN(const TextEncoder* const encoder, EncoderOf<TextEncoder>(model));
  encore_encode_options known;
  CallChoices call;
  EncodeOptions options;
  ENCORE_RETURN_IF_ERROR(ReadEncodeOptions(*model, given, &call, &known, &options));
  ENCORE_RETURN_IF_ERROR(CheckChoice("task", known.task, ENCORE_TASK_NONE));
  if (known.max_active_dims != 0) {
    return InvalidArgument("options.max_active_dims is " + std::to_string(known.max_active_dims) +
                           "; wanted 0, as vectors are not sparse");
  }

  const size_t columns = known.dimensions > 0 ? known.dimensions : encoder->dimensions();
  ENCORE_RETURN_IF_ERROR(CheckOutput("vectors", vectors, capacity, count, columns));
  std::vector<std::string_view> views;
  ENCORE_RETURN_IF_ERROR(ReadTexts(texts, "texts", count, &views));
  TextCounts counts;
  Status status = encoder->Encode(views, MutableView(vectors, {count, columns}), &counts, options);
  if (status.ok()) CopyCounts(counts, tokens, cut);
  return status;
}

Status ReadScoreOptions(const encore_model& model, const encore_score_options* given,
                        CallChoices* call, ScoreOptions* options) {
  encore_score_options known;
  ENCORE_RETURN_IF_ERROR(ReadOptions(given, "encore_score_options", &known));
  ENCORE_RETURN_IF_ERROR(ReadTextOptions(known, options));
  ENCORE_RETURN_IF_ERROR(ReadActivation(known.activation, options));
  ENCORE_RETURN_IF_ERROR(call->Choose(model, known.call, options));
  if (known.prompt_name != nullptr) options->prompt_name = known.prompt_name;
  if (known.prompt != nullptr) options->prompt = known.prompt;
  options->batch_tokens = known.batch_tokens;
  return {};
}

Status Score(const encore_model* model, const encore_text& query, const encore_text* documents,
             size_t count, const encore_score_options* given, float* scores, size_t capacity,
             size_t* tokens, size_t* cut) {
  ENCORE_ASSIGN_OR_RETURN(const TextEncoder* const encoder, EncoderOf<TextEncoder>(model));
  CallChoices call;
  ScoreOptions options;
  ENCORE_RETURN_IF_ERROR(ReadScoreOptions(*model, given, &call, &options));
  ENCORE_RETURN_IF_ERROR(CheckOutput("scores", scores, capacity, count, 1));
  std::string_view query_view;
  std::vector<std::string_view> views;
  ENCORE_RETURN_IF_ERROR(ReadText(query, "query", &query_view));
  ENCORE_RETURN_IF_ERROR(ReadTexts(documents, "documents", count, &views));
  ENCORE_ASSIGN_OR_RETURN(const Scores found, encoder->Score(query_view, views, options));
  std::copy(found.values.begin(), found.values.end(), scores);
  CopyCounts(found.counts, tokens, cut);
  return {};
}

Status Classify(const encore_model* model, const encore_text* texts, const encore_text* seconds,
                size_t count, const encore_score_options* given, float* values, size_t capacity,
                size_t* tokens, size_t* cut) {
  ENCORE_ASSIGN_OR_RETURN(const TextEncoder* const encoder, EncoderOf<TextEncoder>(model));
  CallChoices call;
  ScoreOptions options;
  ENCORE_RETURN_IF_ERROR(ReadScoreOptions(*model, given, &call, &options));
  ENCORE_RETURN_IF_ERROR(CheckOutput("values", values, capacity, count, encoder->labels().size()));
  std::vector<std::string_view> first, second;
  ENCORE_RETURN_IF_ERROR(ReadTexts(texts, "texts", count, &first));
  if (seconds != nullptr) ENCORE_RETURN_IF_ERROR(ReadTexts(seconds, "seconds", count, &second));
  ENCORE_ASSIGN_OR_RETURN(const Predictions found, seconds == nullptr
                                                       ? encoder->Classify(first, options)
                                                       : encoder->Classify(first, second, options));
  std::copy_n(static_cast<const float*>(found.values.data()), count * encoder->labels().size(),
              values);
  CopyCounts(found.counts, tokens, cut);
  return {};
}

Status Tokenize(const encore_model* model, const encore_text& text,
                const encore_tokenize_options* given, int32_t* ids, size_t capacity, size_t* count,
                size_t* cut) {
  if (model == nullptr) return NullArgument("model");
  if (count == nullptr) return NullArgument("count");
  *count = 0;
  encore_tokenize_options known;
  TokenizeOptions options;
  ENCORE_RETURN_IF_ERROR(ReadOptions(given, "encore_tokenize_options", &known));
  ENCORE_RETURN_IF_ERROR(ReadTextOptions(known, &options));
  if (known.max_length == 0) options.max_length = encore_max_length(model);
  options.add_special_tokens = known.without_special_tokens == 0;

  std::string_view view;
  ENCORE_RETURN_IF_ERROR(ReadText(text, "text", &view));
  const auto* const late = EncoderOrNull<MultiVectorEncoder>(model);
  const TextEncoder* encoder = nullptr;
  if (late == nullptr) {
    ENCORE_ASSIGN_OR_RETURN(encoder, EncoderOf<TextEncoder>(model));
  }
  if (encoder != nullptr && !encoder->has_tokenizer()) {
    return Status(ErrorCode::kUnsupported, "encore does not have the tokenizer of this model");
  }
  Tokens tokens;
  const Tokenizer& tokenizer = encoder != nullptr ? encoder->tokenizer() : late->tokenizer();
  ENCORE_RETURN_IF_ERROR(tokenizer.Encode(view, &tokens, options));
  *count = tokens.ids.size();
  if (cut != nullptr) *cut = tokens.cut;
  if (ids == nullptr) return {};
  if (capacity < tokens.ids.size()) {
    return InvalidArgument("capacity is " + std::to_string(capacity) + " ids, wanted " +
                           std::to_string(tokens.ids.size()));
  }
  std::copy(tokens.ids.begin(), tokens.ids.end(), ids);
  return {};
}

Status EncodeImages(const encore_model* model, const encore_image* images, size_t count,
                    const encore_image_options* given, float* vectors, size_t capacity) {
  ENCORE_ASSIGN_OR_RETURN(const ImageEncoder* const encoder, EncoderOf<ImageEncoder>(model));
  CallChoices call;
  ImageOptions options;
  ENCORE_RETURN_IF_ERROR(ReadImageOptions(*model, given, &call, &options));
  const size_t columns = options.dimensions > 0 ? options.dimensions : encoder->dimensions();
  ENCORE_RETURN_IF_ERROR(CheckOutput("vectors", vectors, capacity, count, columns));
  std::vector<ImageView> views;
  ENCORE_RETURN_IF_ERROR(ReadImages(images, count, &views));
  return encoder->Encode(views, MutableView(vectors, {count, columns}), options);
}

Status ClassifyImages(const encore_model* model, const encore_image* images, size_t count,
                      const encore_image_options* given, float* values, size_t capacity) {
  ENCORE_ASSIGN_OR_RETURN(const ImageEncoder* const encoder, EncoderOf<ImageEncoder>(model));
  CallChoices call;
  ImageOptions options;
  ENCORE_RETURN_IF_ERROR(ReadImageOptions(*model, given, &call, &options));
  const size_t labels = encoder->labels().size();
  ENCORE_RETURN_IF_ERROR(CheckOutput("values", values, capacity, count, labels));
  std::vector<ImageView> views;
  ENCORE_RETURN_IF_ERROR(ReadImages(images, count, &views));
  ENCORE_ASSIGN_OR_RETURN(const Tensor found, encoder->Classify(views, options));
  std::copy_n(static_cast<const float*>(found.data()), count * labels, values);
  return {};
}

// Of the model's head; null for none.
const std::vector<std::string>* LabelsOf(const encore_model* model) {
  if (const auto* const texts = EncoderOrNull<TextEncoder>(model)) return &texts->labels();
  const auto* const images = EncoderOrNull<ImageEncoder>(model);
  return images == nullptr ? nullptr : &images->labels();
}

}  // namespace
}  // namespace encore::internal

extern "C" {

const char* encore_last_error(void) { return encore::internal::last_error; }

const char* encore_version(void) { return encore::Version(); }

int32_t encore_c_api_version(void) { return ENCORE_C_API_VERSION; }

size_t encore_dimensions(const encore_model* model) {
  if (model == nullptr) return 0;
  return encore::internal::Ask(*model, [](const auto& encoder) { return encoder.dimensions(); });
}

size_t encore_max_length(const encore_model* model) {
  if (const auto* const texts = encore::internal::EncoderOrNull<encore::TextEncoder>(model))
    return texts->max_length();
  if (const auto* const late = encore::internal::EncoderOrNull<encore::MultiVectorEncoder>(model)) {
    return late->max_length(encore::TextTask::kNone);
  }
  const auto* const images = encore::internal::EncoderOrNull<encore::ImageEncoder>(model);
  return images == nullptr ? 0 : images->tokens();
}

const char* encore_describe(const encore_model* model) {
  return model == nullptr ? "" : model->description.c_str();
}

encore_status encore_encode(const encore_model* model, const encore_text* texts, size_t count,
                            const encore_encode_options* options, float* vectors, size_t capacity,
                            size_t* tokens, size_t* cut) {
  return encore::internal::CallInC(encore::internal::Encode, model, texts, count, options, vectors,
                                   capacity, tokens, cut);
}

encore_status encore_score(const encore_model* model, encore_text query,
                           const encore_text* documents, size_t count,
                           const encore_score_options* options, float* scores, size_t capacity,
                           size_t* tokens, size_t* cut) {
  return encore::internal::CallInC(encore::internal::Score, model, query, documents, count, options,
                                   scores, capacity, tokens, cut);
}

size_t encore_label_count(const encore_model* model) {
  const std::vector<std::string>* const labels = encore::internal::LabelsOf(model);
  return labels == nullptr ? 0 : labels->size();
}

const char* encore_label(const encore_model* model, size_t label) {
  if (label >= encore_label_count(model)) return nullptr;
  return (*encore::internal::LabelsOf(model))[label].c_str();
}

encore_status encore_classify(const encore_model* model, const encore_text* texts,
                              const encore_text* seconds, size_t count,
                              const encore_score_options* options, float* values, size_t capacity,
                              size_t* tokens, size_t* cut) {
  return encore::internal::CallInC(encore::internal::Classify, model, texts, seconds, count,
                                   options, values, capacity, tokens, cut);
}

encore_status encore_tokenize(const encore_model* model, encore_text text,
                              const encore_tokenize_options* options, int32_t* ids, size_t capacity,
                              size_t* count, size_t* cut) {
  return encore::internal::CallInC(encore::internal::Tokenize, model, text, options, ids, capacity,
                                   count, cut);
}

encore_status encore_encode_images(const encore_model* model, const encore_image* images,
                                   size_t count, const encore_image_options* options,
                                   float* vectors, size_t capacity) {
  return encore::internal::CallInC(encore::internal::EncodeImages, model, images, count, options,
                                   vectors, capacity);
}

encore_status encore_classify_images(const encore_model* model, const encore_image* images,
                                     size_t count, const encore_image_options* options,
                                     float* values, size_t capacity) {
  return encore::internal::CallInC(encore::internal::ClassifyImages, model, images, count, options,
                                   values, capacity);
}

}  // extern "C"
