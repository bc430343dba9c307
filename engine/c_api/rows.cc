// SPDX-License-Identifier: Apache-2.0
//
// The C interface's calls whose results are of a size that the caller can not know before: sparse
// vectors, vectors of tokens, entities, logits.

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "encore/c_api.h"
#include "encore/max_sim.h"
#include "engine/base/int_math.h"
#include "engine/base/status_macros.h"
#include "engine/c_api/arguments.h"
#include "engine/c_api/call.h"

namespace encore::inline v0_1::internal {
namespace {

// What the fields of encore_rows point to.
struct OwnedRows : encore_rows {
  OwnedRows() : encore_rows{} {}

  std::vector<size_t> row_starts = {0};
  std::vector<float> numbers;
  std::vector<int32_t> row_ids;
  Tensor matrix;  // or the values
  std::vector<std::string> names;
  std::vector<const char*> name_pointers;
  std::vector<size_t> row_begins;
  std::vector<size_t> row_ends;
  TextCounts counts;
};

template <typename T>
const T* DataOf(const std::vector<T>& list) {
  return list.empty() ? nullptr : list.data();
}

// Sets the fields, after which the vectors stay as they are.
encore_rows* Publish(std::unique_ptr<OwnedRows> rows, size_t columns) {
  rows->texts = rows->row_starts.size() - 1;
  rows->columns = columns;
  rows->starts = rows->row_starts.data();
  rows->values = rows->matrix.size_bytes() != 0 ? static_cast<const float*>(rows->matrix.data())
                                                : DataOf(rows->numbers);
  rows->ids = DataOf(rows->row_ids);
  for (const std::string& name : rows->names) rows->name_pointers.push_back(name.c_str());
  rows->labels = DataOf(rows->name_pointers);
  rows->begins = DataOf(rows->row_begins);
  rows->ends = DataOf(rows->row_ends);
  rows->tokens = DataOf(rows->counts.tokens);
  rows->cut = DataOf(rows->counts.cut);
  return rows.release();
}

Status EncodeSparse(const encore_model* model, const encore_text* texts, size_t count,
                    const encore_encode_options* given, encore_rows** rows) {
  if (rows == nullptr) return NullArgument("rows");
  *rows = nullptr;
  ENCORE_ASSIGN_OR_RETURN(const TextEncoder* const encoder, EncoderOf<TextEncoder>(model));
  encore_encode_options known;
  CallChoices call;
  EncodeOptions dense;
  ENCORE_RETURN_IF_ERROR(ReadEncodeOptions(*model, given, &call, &known, &dense));
  ENCORE_RETURN_IF_ERROR(CheckChoice("normalize", known.normalize, ENCORE_AS_FOLDER));
  if (known.dimensions != 0) {
    return InvalidArgument("options.dimensions is " + std::to_string(known.dimensions) +
                           "; wanted 0, as vectors are sparse: max_active_dims cuts them");
  }
  SparseOptions options{.executor = dense.executor,
                        .prompt_name = dense.prompt_name,
                        .prompt = dense.prompt,
                        .max_length = dense.max_length,
                        .on_long = dense.on_long,
                        .on_invalid_utf8 = dense.on_invalid_utf8,
                        .plain_text = dense.plain_text,
                        .max_active_dims = known.max_active_dims,
                        .batch_tokens = dense.batch_tokens,
                        .stats = dense.stats,
                        .progress = dense.progress};
  if (known.task == ENCORE_TASK_QUERY) options.task = "query";
  if (known.task == ENCORE_TASK_DOCUMENT) options.task = "document";
  std::vector<std::string_view> views;
  ENCORE_RETURN_IF_ERROR(ReadTexts(texts, "texts", count, &views));
  ENCORE_ASSIGN_OR_RETURN(SparseVectors found, encoder->EncodeSparse(views, options));
  auto owned = std::make_unique<OwnedRows>();
  owned->row_starts = std::move(found.row_starts);
  owned->row_ids = std::move(found.indices);
  owned->numbers = std::move(found.values);
  owned->counts = std::move(found.counts);
  *rows = Publish(std::move(owned), found.columns);
  return {};
}

Status EncodePatches(const encore_model* model, const encore_image* image,
                     const encore_image_options* given, encore_rows** rows, size_t* first_patch,
                     size_t* patch_rows, size_t* patch_columns) {
  if (rows == nullptr) return NullArgument("rows");
  *rows = nullptr;
  ENCORE_ASSIGN_OR_RETURN(const ImageEncoder* const encoder, EncoderOf<ImageEncoder>(model));
  if (image == nullptr) return NullArgument("image");
  CallChoices call;
  ImageOptions options;
  ENCORE_RETURN_IF_ERROR(ReadImageOptions(*model, given, &call, &options));
  std::vector<ImageView> views;
  ENCORE_RETURN_IF_ERROR(ReadImages(image, 1, &views));
  ENCORE_ASSIGN_OR_RETURN(PatchVectors found, encoder->EncodePatches(views.front(), options));
  auto owned = std::make_unique<OwnedRows>();
  owned->row_starts.push_back(encoder->tokens());
  owned->matrix = std::move(found.vectors);
  if (first_patch != nullptr) *first_patch = found.first_patch;
  if (patch_rows != nullptr) *patch_rows = found.rows;
  if (patch_columns != nullptr) *patch_columns = found.columns;
  *rows = Publish(std::move(owned), encoder->d_model());
  return {};
}

Status EncodeMulti(const encore_model* model, const encore_text* texts, size_t count,
                   const encore_encode_options* given, encore_rows** rows) {
  if (rows == nullptr) return NullArgument("rows");
  *rows = nullptr;
  ENCORE_ASSIGN_OR_RETURN(const MultiVectorEncoder* const encoder,
                          EncoderOf<MultiVectorEncoder>(model));
  encore_encode_options known;
  CallChoices call;
  EncodeOptions options;
  ENCORE_RETURN_IF_ERROR(ReadEncodeOptions(*model, given, &call, &known, &options));
  if (known.max_active_dims != 0) {
    return InvalidArgument("options.max_active_dims is " + std::to_string(known.max_active_dims) +
                           "; wanted 0, as vectors are not sparse");
  }
  std::vector<std::string_view> views;
  ENCORE_RETURN_IF_ERROR(ReadTexts(texts, "texts", count, &views));
  ENCORE_ASSIGN_OR_RETURN(MultiVectors found,
                          encoder->Encode(views, options, static_cast<TextTask>(known.task)));
  auto owned = std::make_unique<OwnedRows>();
  owned->row_starts = std::move(found.row_starts);
  owned->matrix = std::move(found.vectors);
  owned->counts = std::move(found.counts);
  *rows = Publish(std::move(owned), encoder->dimensions());
  return {};
}
static_assert(ENCORE_TASK_NONE == static_cast<int>(TextTask::kNone));
static_assert(ENCORE_TASK_QUERY == static_cast<int>(TextTask::kQuery));
static_assert(ENCORE_TASK_DOCUMENT == static_cast<int>(TextTask::kDocument));

// A view of the caller's rows.
Status ReadGroups(const float* vectors, const size_t* starts, size_t count, size_t width,
                  const std::string& name, RowGroups* groups) {
  if (starts == nullptr) return NullArgument((name + " starts").c_str());
  if (count >= SIZE_MAX / sizeof(size_t)) {
    return InvalidArgument("the count of " + name + " is " + std::to_string(count) +
                           "; wanted one that can be addressed");
  }
  const size_t rows = starts[count];
  size_t floats = 0;
  if (!CheckedMul(rows, width, &floats) || floats > SIZE_MAX / sizeof(float)) {
    return InvalidArgument("the last start of " + name + " is " + std::to_string(rows) +
                           "; wanted rows of " + std::to_string(width) +
                           " floats that can be addressed");
  }
  if (vectors == nullptr && rows > 0) return NullArgument(name.c_str());
  *groups = {ConstView(vectors, {rows, width}), {starts, count + 1}};
  return {};
}

Status CallMaxSim(const encore_model* model, const float* queries, const size_t* query_starts,
                  size_t query_count, const float* documents, const size_t* document_starts,
                  size_t document_count, float* scores, size_t capacity) {
  ENCORE_ASSIGN_OR_RETURN(const MultiVectorEncoder* const encoder,
                          EncoderOf<MultiVectorEncoder>(model));
  ENCORE_RETURN_IF_ERROR(CheckOutput("scores", scores, capacity, query_count, document_count));
  const size_t width = encoder->dimensions();
  RowGroups query_rows, document_rows;
  ENCORE_RETURN_IF_ERROR(
      ReadGroups(queries, query_starts, query_count, width, "queries", &query_rows));
  ENCORE_RETURN_IF_ERROR(
      ReadGroups(documents, document_starts, document_count, width, "documents", &document_rows));
  return encoder->Similarity(query_rows, document_rows,
                             MutableView(scores, {query_count, document_count}), model->executor);
}

Status ReadLabelOptions(const encore_model& model, const encore_label_options* given,
                        CallChoices* call, LabelOptions* options) {
  constexpr Aggregation kAggregations[] = {
      // by ENCORE_AGGREGATION_...
      Aggregation::kSimple, Aggregation::kNone, Aggregation::kFirst, Aggregation::kAverage,
      Aggregation::kMax};
  encore_label_options known;
  ENCORE_RETURN_IF_ERROR(ReadOptions(given, "encore_label_options", &known));
  ENCORE_RETURN_IF_ERROR(ReadTextOptions(known, options));
  ENCORE_RETURN_IF_ERROR(CheckChoice("aggregation", known.aggregation, ENCORE_AGGREGATION_MAX));
  ENCORE_RETURN_IF_ERROR(call->Choose(model, known.call, options));
  options->aggregation = kAggregations[known.aggregation];
  options->batch_tokens = known.batch_tokens;
  if (known.ignored == nullptr) {
    return known.ignored_count == 0 ? Status() : NullArgument("options.ignored");
  }
  options->ignore_labels.clear();
  for (size_t i = 0; i < known.ignored_count; ++i) {
    if (known.ignored[i] == nullptr) {
      return NullArgument(("options.ignored[" + std::to_string(i) + "]").c_str());
    }
    options->ignore_labels.emplace_back(known.ignored[i]);
  }
  return {};
}

Status FindEntities(const encore_model* model, const encore_text* texts, size_t count,
                    const encore_label_options* given, encore_rows** rows) {
  if (rows == nullptr) return NullArgument("rows");
  *rows = nullptr;
  ENCORE_ASSIGN_OR_RETURN(const TextEncoder* const encoder, EncoderOf<TextEncoder>(model));
  CallChoices call;
  LabelOptions options;
  ENCORE_RETURN_IF_ERROR(ReadLabelOptions(*model, given, &call, &options));
  std::vector<std::string_view> views;
  ENCORE_RETURN_IF_ERROR(ReadTexts(texts, "texts", count, &views));
  ENCORE_ASSIGN_OR_RETURN(Entities found, encoder->FindEntities(views, options));
  auto owned = std::make_unique<OwnedRows>();
  for (std::vector<Entity>& entities : found.of_texts) {
    for (Entity& entity : entities) {
      owned->names.push_back(std::move(entity.label));
      owned->numbers.push_back(entity.score);
      owned->row_begins.push_back(entity.place.begin);
      owned->row_ends.push_back(entity.place.end);
    }
    owned->row_starts.push_back(owned->numbers.size());
  }
  owned->counts = std::move(found.counts);
  *rows = Publish(std::move(owned), 1);
  return {};
}

Status PredictTokens(const encore_model* model, const encore_text& text, const size_t* positions,
                     size_t position_count, const encore_label_options* given, encore_rows** rows) {
  if (rows == nullptr) return NullArgument("rows");
  *rows = nullptr;
  ENCORE_ASSIGN_OR_RETURN(const TextEncoder* const encoder, EncoderOf<TextEncoder>(model));
  CallChoices call;
  LabelOptions options;
  ENCORE_RETURN_IF_ERROR(ReadLabelOptions(*model, given, &call, &options));
  if (positions == nullptr && position_count > 0) return NullArgument("positions");
  std::string_view view;
  ENCORE_RETURN_IF_ERROR(ReadText(text, "text", &view));
  ENCORE_ASSIGN_OR_RETURN(
      TokenLogits found,
      encoder->PredictTokens(view, std::span(positions, position_count), options));
  auto owned = std::make_unique<OwnedRows>();
  owned->row_starts.push_back(position_count);
  const size_t columns = found.logits.shape()[1];
  owned->matrix = std::move(found.logits);
  owned->counts = {.tokens = {found.tokens.ids.size()}, .cut = {found.tokens.cut}};
  *rows = Publish(std::move(owned), columns);
  return {};
}

}  // namespace
}  // namespace encore::internal

extern "C" {

void encore_rows_free(encore_rows* rows) { delete static_cast<encore::internal::OwnedRows*>(rows); }

encore_status encore_encode_sparse(const encore_model* model, const encore_text* texts,
                                   size_t count, const encore_encode_options* options,
                                   encore_rows** rows) {
  return encore::internal::CallInC(encore::internal::EncodeSparse, model, texts, count, options,
                                   rows);
}

encore_status encore_encode_patches(const encore_model* model, const encore_image* image,
                                    const encore_image_options* options, encore_rows** rows,
                                    size_t* first_patch, size_t* patch_rows,
                                    size_t* patch_columns) {
  return encore::internal::CallInC(encore::internal::EncodePatches, model, image, options, rows,
                                   first_patch, patch_rows, patch_columns);
}

encore_status encore_encode_multi(const encore_model* model, const encore_text* texts, size_t count,
                                  const encore_encode_options* options, encore_rows** rows) {
  return encore::internal::CallInC(encore::internal::EncodeMulti, model, texts, count, options,
                                   rows);
}

encore_status encore_max_sim(const encore_model* model, const float* queries,
                             const size_t* query_starts, size_t query_count, const float* documents,
                             const size_t* document_starts, size_t document_count, float* scores,
                             size_t capacity) {
  return encore::internal::CallInC(encore::internal::CallMaxSim, model, queries, query_starts,
                                   query_count, documents, document_starts, document_count, scores,
                                   capacity);
}

encore_status encore_find_entities(const encore_model* model, const encore_text* texts,
                                   size_t count, const encore_label_options* options,
                                   encore_rows** rows) {
  return encore::internal::CallInC(encore::internal::FindEntities, model, texts, count, options,
                                   rows);
}

encore_status encore_predict_tokens(const encore_model* model, encore_text text,
                                    const size_t* positions, size_t position_count,
                                    const encore_label_options* options, encore_rows** rows) {
  return encore::internal::CallInC(encore::internal::PredictTokens, model, text, positions,
                                   position_count, options, rows);
}

}  // extern "C"
