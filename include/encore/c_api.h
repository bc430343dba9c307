// SPDX-License-Identifier: Apache-2.0
//
// encore::text for C and for every language that calls C: a model's folder as it was downloaded,
// texts or pictures in, vectors and scores out. C99. Formulas and rules are those of text_encoder.h
// and image_encoder.h.
//
//   encore_model* model;
//   if (encore_open("all-MiniLM-L6-v2", NULL, &model) != ENCORE_OK) puts(encore_last_error());
//   encore_text texts[] = {{"Hello", 5}, {"Good morning", 12}};
//   float vectors[2 * 384];
//   encore_encode(model, texts, 2, NULL, vectors, 2 * 384, NULL, NULL);
//   encore_free(model);
//
// Binary interface. Only these types cross it: pointers, size_t, int32_t, int64_t, float, double,
// and structs of them with C's layout; constants are macros. What is here keeps its name, order and
// meaning.
// Functions may be added, and fields at the ends of option structs; ENCORE_C_API_VERSION then
// grows by one. A program that was compiled with an older header runs with a newer library. One
// that needs an addition asks encore_c_api_version().
//
// Option structs begin with their own size as the caller knows it: set it to sizeof. All other
// fields are 0 for the default, so that `encore_open_options options = {.size = sizeof options};`
// is complete; NULL for the whole struct is the same. Fields that the library does not know,
// because it is older than the header, must be 0, or the call is refused.
//
// Nothing throws, prints or aborts. A null pointer where one is needed is ENCORE_INVALID_ARGUMENT.
// What output arrays hold after a failure is undefined. A count of 0 is allowed: the options and
// the kind of model are checked all the same.
//
// A thread with 128 KiB of stack may call all but encore_open, in every precision. After fork() a
// child may use its parent's models, whatever other threads of the parent were doing: its calls run
// on the calling thread, with the same bits. It may open models of its own, which have threads.
// exit() may be called while other threads are in a call. A shared library may be unloaded when no
// model is left.

#ifndef ENCORE_C_API_H_
#define ENCORE_C_API_H_

#include <stddef.h>
#include <stdint.h>

#include "encore/export.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ENCORE_C_API_VERSION 10

// What functions return. Codes above the last one here may be added.
typedef int32_t encore_status;
#define ENCORE_OK 0
#define ENCORE_INVALID_ARGUMENT 1  // an argument, an option or a text is wrong
#define ENCORE_NOT_FOUND 2         // there is no such folder, file or tensor
#define ENCORE_UNSUPPORTED 3       // understood, but not something that encore or the model can do
#define ENCORE_CORRUPT_DATA 4      // a file breaks its format
#define ENCORE_IO 5                // the operating system refused to read
#define ENCORE_OUT_OF_MEMORY 6
#define ENCORE_INTERNAL 7           // a defect of encore
#define ENCORE_CANCELLED 8          // by encore_stop; since version 7
#define ENCORE_DEADLINE_EXCEEDED 9  // of encore_call_options; since version 7

// A sentence that says what was found and what was wanted, in UTF-8, cut to 2047 bytes: of the last
// call on this thread that failed; "" if none has. Valid until the next call on this thread that
// fails, and to the thread's end. Where a language moves work between threads (Go's goroutines,
// say), keep the two calls on one thread.
ENCORE_API const char* encore_last_error(void);

// "0.1.0", and ENCORE_C_API_VERSION of the library in use.
ENCORE_API const char* encore_version(void);
ENCORE_API int32_t encore_c_api_version(void);

// A model with its tokenizer and its threads. Any number of threads may use one at once.
typedef struct encore_model encore_model;

// UTF-8, not necessarily ended by a zero. data may be NULL where size is 0.
typedef struct encore_text {
  const char* data;
  size_t size;  // bytes
} encore_text;

// A flag that ends calls early. Any thread may set it (1) and take it back (0) at any time, and any
// number of calls may have it. Since version 7.
typedef struct encore_stop encore_stop;
ENCORE_API encore_status encore_stop_new(encore_stop** stop);
ENCORE_API void encore_stop_set(encore_stop* stop, int32_t stopped);
// When no call has it any more. NULL is allowed.
ENCORE_API void encore_stop_free(encore_stop* stop);

// What a call did, and how far it is (call_stats.h). Since version 8. Fields may be added.
typedef struct encore_call_stats {
  size_t size;  // sizeof(encore_call_stats); set by the caller
  int64_t tokenizing, embedding, layers, pooling, waiting;  // ns
  size_t texts, tokens, helpers, scratch_bytes;
} encore_call_stats;
typedef struct encore_call_progress {
  size_t texts, all_texts, tokens, all_tokens;
} encore_call_progress;

// When a call ends before its work is done (Executor::WithStop in executor.h). Since version 7.
typedef struct encore_call_options {
  size_t size;               // sizeof(encore_call_options)
  const encore_stop* stop;   // NULL: none. Once it is set: ENCORE_CANCELLED
  double seconds;            // of this call at most, then ENCORE_DEADLINE_EXCEEDED; 0: any number
  encore_call_stats* stats;  // filled once it computes, also where it fails; or NULL. Since 8
  // As EncodeOptions::progress. Since version 8.
  void (*progress)(void* context, const encore_call_progress* progress);
  void* progress_context;
  int32_t background, reserved;  // 1: Executor::InBackground, since version 8; 0
} encore_call_options;

// A choice that may be left to the model's folder.
#define ENCORE_AS_FOLDER 0
#define ENCORE_YES 1
#define ENCORE_NO 2

// What the products in the encoder's layers multiply; vectors and scores are f32 in each. Since
// version 2. encore/precision.h says what each is. The folder's is what its weights were made for
// (`encore convert`), or f32.
#define ENCORE_PRECISION_OF_FOLDER 0
#define ENCORE_PRECISION_F32 1
#define ENCORE_PRECISION_BF16 2
#define ENCORE_PRECISION_INT8 3
#define ENCORE_PRECISION_INT4 4  // since version 5

// Ways of pooling, to be added up; several are concatenated in this order.
#define ENCORE_POOLING_CLS 1
#define ENCORE_POOLING_MAX 2
#define ENCORE_POOLING_MEAN 4
#define ENCORE_POOLING_MEAN_SQRT_LENGTH 8
#define ENCORE_POOLING_WEIGHTED_MEAN 16
#define ENCORE_POOLING_LAST_TOKEN 32

// What a model is opened as. Since version 5.
#define ENCORE_KIND_TEXT 0          // TextEncoder: all calls but those of the other kinds
#define ENCORE_KIND_MULTI_VECTOR 1  // MultiVectorEncoder: late interaction (ColBERT)
#define ENCORE_KIND_IMAGE 2         // ImageEncoder: encore_encode_images; since version 9

typedef struct encore_open_options {
  size_t size;  // sizeof(encore_open_options)
  // Threads of a call, the calling one included. 0: as many as there are usable cores (affinity
  // and cgroup count). 1: the calling thread alone, for programs with a pool of their own. They
  // belong to the model, sleep between calls, and are lent to one call at a time: a call that finds
  // them at work runs on its own thread. No number of threads changes a bit of any result.
  int32_t threads;
  int32_t normalize;            // vectors of length 1: ENCORE_AS_FOLDER, ENCORE_YES or ENCORE_NO
  int32_t pooling;              // a sum of ENCORE_POOLING_...; 0: the folder's
  int32_t ignore_unknown_keys;  // not 0: unread keys are described and ignored, as in C++
  size_t max_length;            // tokens of a text; 0: the folder's
  int32_t precision;            // ENCORE_PRECISION_...; since version 2
  // 1: bf16 is multiplied by AMX where the machine has it, with bits of its own (encoder.h); since
  // version 3, older libraries refuse it.
  int32_t amx_bf16;
  // A folder for packed weights, made if it is not there; NULL: none. Opening maps them from there
  // without packing, and processes share their memory (PackedCache in encoder.h); since version 4.
  const char* cache;
  int32_t compare_cache;  // 1: all that is there is compared with the weights; since version 4
  // 1: not all bytes that are there are checked (PackedCache in encoder.h). Since version 6; older
  // libraries refuse it.
  int32_t trust_cache;
  int32_t kind;           // ENCORE_KIND_...; since version 5
  int32_t language_head;  // not 0: also for encore_predict_tokens; since version 5
  // All of these since version 8. The host's own loop (ParallelFor in executor.h) of `threads`
  // calls of body, in place of threads of the model's; NULL: none.
  void (*parallel_for)(void* pool, size_t count, void (*body)(void* context, size_t i),
                       void* context);
  void* pool;
  // Of the model's own threads, as ThreadPoolOptions has them.
  const char* thread_name;
  const int32_t* cores;
  size_t core_count;
  void (*on_start)(void* context, int32_t thread);
  void* on_start_context;
  const size_t* keep;  // [keep_count][2]: layer and number of encore::LayerMatrix, to be kept
  size_t keep_count;
  const char* task;                // OpenOptions::task, an adapter; NULL: none
  int32_t copy_weights, reserved;  // 1: FileMemory::kCopied; 0
  size_t kept_bytes;               // of memory between calls; 0: 128 MiB
} encore_open_options;

// Opens a folder with config.json, *.safetensors, the tokenizer and sentence-transformers' files.
// Embedding tables stay mapped: the files must not be changed in place. A call refuses a file that
// was changed before it; one that is shortened during a call ends the process by SIGBUS. *model is
// NULL after a failure.
ENCORE_API encore_status encore_open(const char* folder, const encore_open_options* options,
                                     encore_model** model);
// Frees the model, when no call uses it any more; one that was retained n times, the time n + 1.
// NULL is allowed.
ENCORE_API void encore_free(encore_model* model);
// Returns `model`. This and the rest of TextEncoder's memory since version 8.
ENCORE_API encore_model* encore_retain(encore_model* model);

typedef struct encore_model_memory {
  size_t size;  // sizeof(encore_model_memory); set by the caller
  size_t mapped, packed, tables, scratch;
} encore_model_memory;
// max_tokens: of ENCORE_KIND_IMAGE pictures, not tokens.
ENCORE_API encore_status encore_prepare(const encore_model* model, size_t max_tokens);
ENCORE_API encore_status encore_trim_memory(const encore_model* model);
ENCORE_API encore_status encore_memory(const encore_model* model, encore_model_memory* memory);

// Columns of a vector (0 where the folder gives sparse ones alone), and tokens of a text, special
// ones included, or rows of a picture. 0 for NULL.
ENCORE_API size_t encore_dimensions(const encore_model* model);
ENCORE_API size_t encore_max_length(const encore_model* model);
// Every decision that was taken at opening, a line each: "pooling: mean (1_Pooling/config.json)".
// Belongs to the model. "" for NULL.
ENCORE_API const char* encore_describe(const encore_model* model);

// on_long: a text of more than max_length tokens.
#define ENCORE_LONG_CUT 0     // its last tokens are left out, or its first; `cut` tells how many
#define ENCORE_LONG_REFUSE 1  // ENCORE_INVALID_ARGUMENT
#define ENCORE_LONG_ERROR ENCORE_LONG_REFUSE  // its name in C++; since version 8
// on_invalid_utf8
#define ENCORE_UTF8_REFUSE 0   // ENCORE_INVALID_ARGUMENT with the byte's place
#define ENCORE_UTF8_REPLACE 1  // each longest invalid part becomes U+FFFD
// task: what texts are, where the folder treats queries and documents differently.
#define ENCORE_TASK_NONE 0
#define ENCORE_TASK_QUERY 1
#define ENCORE_TASK_DOCUMENT 2

typedef struct encore_encode_options {
  size_t size;  // sizeof(encore_encode_options)
  // Put before each text: one of the folder's prompts by its name, or the prompt itself (UTF-8,
  // ended by a zero); at most one of the two. Both NULL: the folder's default prompt, if it has
  // one. prompt "" is none.
  const char* prompt_name;
  const char* prompt;
  size_t max_length;  // tokens, all included, at most the model's positions; 0: encore_max_length()
  int32_t on_long;
  int32_t on_invalid_utf8;
  int32_t plain_text;  // not 0: "[SEP]" in a text is text; else it is the token, as in `tokenizers`
  int32_t normalize;   // ENCORE_AS_FOLDER, ENCORE_YES or ENCORE_NO
  size_t dimensions;   // the first so many columns only (Matryoshka); 0: encore_dimensions()
  size_t batch_tokens;  // tokens computed at once; 0: encore's choice
  // These since version 5, and not for encore_encode: there they must be 0.
  int32_t task;            // ENCORE_TASK_...
  int32_t reserved;        // 0
  size_t max_active_dims;  // of a sparse vector only the largest so many; 0: as the folder says
  const encore_call_options* call;  // NULL: the defaults; since version 7
} encore_encode_options;

// vectors [count, dimensions], row-major, in the order of the texts; its size `capacity` is in
// floats and must hold them. tokens and cut are [count], or NULL: the tokens of each text that were
// computed, and those that were left out.
ENCORE_API encore_status encore_encode(const encore_model* model, const encore_text* texts,
                                       size_t count, const encore_encode_options* options,
                                       float* vectors, size_t capacity, size_t* tokens,
                                       size_t* cut);

// What follows a head's last linear layer (ScoreActivation). The last three since version 6.
#define ENCORE_ACTIVATION_AS_FOLDER 0  // in encore_score as 4, in encore_classify as 5
#define ENCORE_ACTIVATION_IDENTITY 1
#define ENCORE_ACTIVATION_SIGMOID 2
#define ENCORE_ACTIVATION_SOFTMAX 3
#define ENCORE_ACTIVATION_AS_CROSS_ENCODER 4  // of sentence-transformers, by its activation_fn
#define ENCORE_ACTIVATION_AS_CLASSIFIER 5     // of transformers' pipeline, by problem_type

typedef struct encore_score_options {
  size_t size;        // sizeof(encore_score_options)
  size_t max_length;  // tokens of a pair; 0: encore_max_length()
  int32_t on_long;
  int32_t on_invalid_utf8;
  int32_t plain_text;
  int32_t activation;
  size_t batch_tokens;
  const encore_call_options* call;  // since version 7
  const char* prompt_name;          // as of encore_encode, before the first text; since version 8
  const char* prompt;
} encore_score_options;

// scores [count]: of the pairs (query, document), larger is better. For rerankers (one label). The
// rest as for encore_encode.
ENCORE_API encore_status encore_score(const encore_model* model, encore_text query,
                                      const encore_text* documents, size_t count,
                                      const encore_score_options* options, float* scores,
                                      size_t capacity, size_t* tokens, size_t* cut);

// ---- Since version 6: classifiers of texts ------------------------------------------------------

// Labels of the model's head: of a classifier of texts those of encore_classify, of one of tokens
// those of encore_find_entities, of one of pictures those of encore_classify_images. 0 without a
// head and for NULL.
ENCORE_API size_t encore_label_count(const encore_model* model);
// The name of a label, ended by a zero, valid as long as the model. NULL for one that is not there.
ENCORE_API const char* encore_label(const encore_model* model, size_t label);

// values [count, encore_label_count(model)], row-major: what the head says of each text or, where
// `seconds` is not NULL, of each pair (texts[i], seconds[i]). The rest as for encore_score.
ENCORE_API encore_status encore_classify(const encore_model* model, const encore_text* texts,
                                         const encore_text* seconds, size_t count,
                                         const encore_score_options* options, float* values,
                                         size_t capacity, size_t* tokens, size_t* cut);

typedef struct encore_tokenize_options {
  size_t size;        // sizeof(encore_tokenize_options)
  size_t max_length;  // 0: encore_max_length(); SIZE_MAX: no limit
  int32_t on_long;
  int32_t on_invalid_utf8;
  int32_t plain_text;
  int32_t without_special_tokens;  // not 0: without [CLS], [SEP] or whatever the model's are
} encore_tokenize_options;

// The ids of one text's tokens, without any prompt. *count becomes their number, also where
// `capacity` is too small for it (ENCORE_INVALID_ARGUMENT). ids NULL: only the number is wanted.
// cut may be NULL.
ENCORE_API encore_status encore_tokenize(const encore_model* model, encore_text text,
                                         const encore_tokenize_options* options, int32_t* ids,
                                         size_t capacity, size_t* count, size_t* cut);

// ---- Since version 5: results whose size only the call knows ----------------------------------

// Text t has the rows from starts[t] up to, but not including, starts[t + 1]. A call says below
// what a row has; arrays that it does not give are NULL. All of it belongs to the caller until
// encore_rows_free. Fields may be added at the end.
typedef struct encore_rows {
  size_t texts;
  size_t columns;
  const size_t* starts;       // [texts + 1]
  const float* values;        // [rows], or [rows, columns]
  const int32_t* ids;         // [rows]
  const char* const* labels;  // [rows], each ended by a zero
  const size_t* begins;       // [rows]: bytes of the text
  const size_t* ends;         // [rows]
  const size_t* tokens;       // [texts], as of encore_encode
  const size_t* cut;          // [texts]
} encore_rows;
// NULL is allowed.
ENCORE_API void encore_rows_free(encore_rows* rows);

// *rows is NULL after a failure of these calls.

// Sparse vectors (TextEncoder::EncodeSparse): a row is an entry, ids its column, which rises within
// a text, values [rows] what stands there. columns: of a vector written out.
ENCORE_API encore_status encore_encode_sparse(const encore_model* model, const encore_text* texts,
                                              size_t count, const encore_encode_options* options,
                                              encore_rows** rows);

// A vector for each token (MultiVectorEncoder::Encode), values [rows, columns]: of queries with
// ENCORE_TASK_QUERY, of documents with ENCORE_TASK_DOCUMENT.
ENCORE_API encore_status encore_encode_multi(const encore_model* model, const encore_text* texts,
                                             size_t count, const encore_encode_options* options,
                                             encore_rows** rows);

// scores [query_count, document_count] of such vectors, by MaxSim or its mean, as the folder says.
// queries [query_starts[query_count], encore_dimensions(model)] with query_starts [query_count + 1]
// are those of an encore_rows, or kept by the caller from several; documents alike.
ENCORE_API encore_status encore_max_sim(const encore_model* model, const float* queries,
                                        const size_t* query_starts, size_t query_count,
                                        const float* documents, const size_t* document_starts,
                                        size_t document_count, float* scores, size_t capacity);

// By encore::Aggregation.
#define ENCORE_AGGREGATION_SIMPLE 0
#define ENCORE_AGGREGATION_NONE 1
#define ENCORE_AGGREGATION_FIRST 2
#define ENCORE_AGGREGATION_AVERAGE 3
#define ENCORE_AGGREGATION_MAX 4

typedef struct encore_label_options {
  size_t size;        // sizeof(encore_label_options)
  size_t max_length;  // 0: encore_max_length()
  int32_t on_long;
  int32_t on_invalid_utf8;
  int32_t plain_text;
  int32_t aggregation;
  // Labels [ignored_count] whose entities are left out, each ended by a zero; NULL: "O" alone.
  const char* const* ignored;
  size_t ignored_count;
  size_t batch_tokens;
  const encore_call_options* call;  // since version 7
} encore_label_options;

// Names, personal data and the like (TextEncoder::FindEntities): a row is an entity, with its label
// in labels, its score in values [rows], and its place in begins and ends.
ENCORE_API encore_status encore_find_entities(const encore_model* model, const encore_text* texts,
                                              size_t count, const encore_label_options* options,
                                              encore_rows** rows);

// Of a masked language model, opened with language_head, the logits of all `columns` tokens of the
// vocabulary at positions [position_count] of one text's tokens, which encore_tokenize counts: a
// row a position, values [rows, columns]. `aggregation` and `ignored` do not matter.
ENCORE_API encore_status encore_predict_tokens(const encore_model* model, encore_text text,
                                               const size_t* positions, size_t position_count,
                                               const encore_label_options* options,
                                               encore_rows** rows);

// ---- Since version 9: pictures ------------------------------------------------------------------

// Pixels as ImageView (image_view.h) has them. `stride` is in bytes; 0: width * channels.
typedef struct encore_image {
  const uint8_t* pixels;
  size_t width, height, stride, channels;
} encore_image;

// ImageOptions (image_encoder.h).
typedef struct encore_image_options {
  size_t size;                      // sizeof(encore_image_options)
  int32_t normalize;                // ENCORE_AS_FOLDER, ENCORE_YES or ENCORE_NO
  int32_t activation;               // ENCORE_ACTIVATION_..., of classes alone; since version 10
  size_t dimensions;                // the first so many columns only; 0: encore_dimensions()
  size_t batch_tokens;              // encore_max_length() for each picture; 0: encore's choice
  const encore_call_options* call;  // NULL: the defaults. Its texts are pictures
} encore_image_options;

// vectors [count, dimensions], as encore_encode, of a model that was opened as ENCORE_KIND_IMAGE.
ENCORE_API encore_status encore_encode_images(const encore_model* model, const encore_image* images,
                                              size_t count, const encore_image_options* options,
                                              float* vectors, size_t capacity);

// ---- Since version 10
// -----------------------------------------------------------------------------

// values [count, encore_label_count(model)], row-major: what the head says of each picture
// (ImageEncoder::Classify). options.normalize and options.dimensions are 0.
ENCORE_API encore_status encore_classify_images(const encore_model* model,
                                                const encore_image* images, size_t count,
                                                const encore_image_options* options, float* values,
                                                size_t capacity);

// The last states of a picture (ImageEncoder::EncodePatches), values [rows, columns]: row
// *first_patch is that of the first patch, and the others follow from the top, row by row,
// *patch_rows x *patch_columns in all. Each of the three may be NULL.
ENCORE_API encore_status encore_encode_patches(const encore_model* model, const encore_image* image,
                                               const encore_image_options* options,
                                               encore_rows** rows, size_t* first_patch,
                                               size_t* patch_rows, size_t* patch_columns);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // ENCORE_C_API_H_
