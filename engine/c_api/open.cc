// SPDX-License-Identifier: Apache-2.0
//
// encore_open: the options, the model's threads, and the model in its kind.

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "encore/cpu.h"
#include "engine/base/status_macros.h"
#include "engine/c_api/arguments.h"
#include "engine/c_api/call.h"

namespace encore::inline v0_1::internal {
namespace {

static_assert(ENCORE_PRECISION_F32 == 1 + static_cast<int>(Precision::kF32));
static_assert(ENCORE_PRECISION_BF16 == 1 + static_cast<int>(Precision::kBF16));
static_assert(ENCORE_PRECISION_INT8 == 1 + static_cast<int>(Precision::kInt8));
static_assert(ENCORE_PRECISION_INT4 == 1 + static_cast<int>(Precision::kInt4));

Status CheckOpenOptions(const encore_open_options& given) {
  const std::pair<const char*, std::pair<int32_t, int32_t>> kChoices[] = {
      {"normalize", {given.normalize, ENCORE_NO}},
      {"precision", {given.precision, ENCORE_PRECISION_INT4}},
      {"amx_bf16", {given.amx_bf16, 1}},
      {"compare_cache", {given.compare_cache, 1}},
      {"trust_cache", {given.trust_cache, 1}},
      {"kind", {given.kind, ENCORE_KIND_IMAGE}},
      {"pooling", {given.pooling, 2 * ENCORE_POOLING_LAST_TOKEN - 1}},
      {"copy_weights", {given.copy_weights, 1}},
      {"reserved", {given.reserved, 0}}};
  for (const auto& [field, choice] : kChoices) {
    ENCORE_RETURN_IF_ERROR(CheckChoice(field, choice.first, choice.second));
  }
  return {};
}

std::vector<PoolingMode> PoolingOf(int32_t sum) {
  constexpr std::pair<int32_t, PoolingMode> kModes[] = {
      {ENCORE_POOLING_CLS, PoolingMode::kCls},
      {ENCORE_POOLING_MAX, PoolingMode::kMax},
      {ENCORE_POOLING_MEAN, PoolingMode::kMean},
      {ENCORE_POOLING_MEAN_SQRT_LENGTH, PoolingMode::kMeanSqrtLength},
      {ENCORE_POOLING_WEIGHTED_MEAN, PoolingMode::kWeightedMean},
      {ENCORE_POOLING_LAST_TOKEN, PoolingMode::kLastToken}};
  std::vector<PoolingMode> modes;
  for (const auto& [bit, mode] : kModes) {
    if ((sum & bit) != 0) modes.push_back(mode);
  }
  return modes;
}

Status ReadKept(const encore_open_options& given, std::vector<MatrixOfLayer>* keep) {
  if (given.keep == nullptr && given.keep_count > 0) return NullArgument("options.keep");
  for (size_t i = 0; i < given.keep_count; ++i) {
    const size_t matrix = given.keep[2 * i + 1];
    if (matrix > static_cast<size_t>(LayerMatrix::kLinear2)) {
      return InvalidArgument("options.keep[" + std::to_string(i) + "][1] is " +
                             std::to_string(matrix) + ", wanted 0 to 3");
    }
    keep->push_back({given.keep[2 * i], static_cast<LayerMatrix>(matrix)});
  }
  return {};
}

Status ReadOpenOptions(const encore_open_options& given, OpenOptions* options) {
  ENCORE_RETURN_IF_ERROR(CheckOpenOptions(given));
  ENCORE_RETURN_IF_ERROR(ReadKept(given, &options->keep));
  options->amx_bf16 = given.amx_bf16 != 0;
  options->language_head = given.language_head != 0;
  options->compare_cache = given.compare_cache != 0;
  options->trust_cache = given.trust_cache != 0;
  if (given.cache != nullptr) options->cache = given.cache;
  if (given.task != nullptr) options->task = given.task;
  if (given.copy_weights != 0) options->weights = FileMemory::kCopied;
  options->pooling = PoolingOf(given.pooling);
  options->ignore_unknown_keys = given.ignore_unknown_keys != 0;
  if (given.precision != ENCORE_PRECISION_OF_FOLDER) {
    options->precision = static_cast<Precision>(given.precision - 1);
  }
  options->normalize = YesOrNo(given.normalize);
  if (given.max_length != 0) options->max_length = given.max_length;
  if (given.kept_bytes != 0) options->kept_bytes = given.kept_bytes;
  return {};
}

// The threads of all calls, in `model`.
Status MakeThreads(const encore_open_options& given, encore_model* model) {
  const bool has_own = given.thread_name != nullptr || given.core_count > 0 ||
                       given.cores != nullptr || given.on_start != nullptr;
  if (given.parallel_for != nullptr) {
    if (has_own) {
      return InvalidArgument(
          "found options.parallel_for beside thread_name, cores or on_start; wanted one or the "
          "other, as these are of threads of the model's own");
    }
    if (given.threads < 0) return CheckChoice("threads", given.threads, ThreadPool::kMaxThreads);
    const int threads = given.threads == 0 ? UsableCores() : given.threads;
    model->executor = Executor::Host(threads, given.parallel_for, given.pool);
    return {};
  }
  if (given.threads == 1 && given.core_count == 0) return {};
  if (given.cores == nullptr && given.core_count > 0) return NullArgument("options.cores");
  ThreadPoolOptions options{.threads = given.threads};
  if (given.thread_name != nullptr) options.name = given.thread_name;
  if (given.core_count > 0) options.cores.assign(given.cores, given.cores + given.core_count);
  if (given.on_start != nullptr) {
    options.on_start = [start = given.on_start, context = given.on_start_context](int thread) {
      start(context, thread);
    };
  }
  ENCORE_ASSIGN_OR_RETURN(model->pool, ThreadPool::Create(options));
  model->executor = model->pool->executor();
  return {};
}

Status Open(const char* folder, const encore_open_options* given, encore_model** model) {
  if (model == nullptr) return NullArgument("model");
  *model = nullptr;
  if (folder == nullptr) return NullArgument("folder");
  encore_open_options known;
  OpenOptions options;
  ENCORE_RETURN_IF_ERROR(ReadOptions(given, "encore_open_options", &known));
  ENCORE_RETURN_IF_ERROR(ReadOpenOptions(known, &options));
  auto opened = std::make_unique<encore_model>();
  ENCORE_RETURN_IF_ERROR(MakeThreads(known, opened.get()));
  options.executor = opened->executor;
  if (known.kind == ENCORE_KIND_TEXT) {
    ENCORE_ASSIGN_OR_RETURN(opened->encoder, TextEncoder::Open(folder, options));
  } else if (known.kind == ENCORE_KIND_MULTI_VECTOR) {
    ENCORE_ASSIGN_OR_RETURN(opened->encoder, MultiVectorEncoder::Open(folder, options));
  } else {
    ENCORE_ASSIGN_OR_RETURN(opened->encoder, ImageEncoder::Open(folder, options));
  }
  for (const Decision& decision :
       Ask(*opened, [](const auto& encoder) { return encoder.Describe(); })) {
    opened->description += decision.what + ": " + decision.value + " (" + decision.source + ")\n";
  }
  *model = opened.release();
  return {};
}

Status Prepare(const encore_model* model, size_t max_tokens) {
  if (model == nullptr) return NullArgument("model");
  return Ask(*model,
             [&](const auto& encoder) { return encoder.Prepare(max_tokens, model->executor); });
}

Status TrimMemory(const encore_model* model) {
  if (model == nullptr) return NullArgument("model");
  Ask(*model, [](const auto& encoder) { encoder.TrimMemory(); });
  return {};
}

Status Memory(const encore_model* model, encore_model_memory* memory) {
  if (model == nullptr) return NullArgument("model");
  if (memory == nullptr) return NullArgument("memory");
  ENCORE_RETURN_IF_ERROR(CheckSize(memory, "memory", "encore_model_memory"));
  const ModelMemory found = Ask(*model, [](const auto& encoder) { return encoder.Memory(); });
  WriteStruct({.size = 0,
               .mapped = found.mapped,
               .packed = found.packed,
               .tables = found.tables,
               .scratch = found.scratch},
              memory);
  return {};
}

}  // namespace
}  // namespace encore::internal

extern "C" {

encore_status encore_open(const char* folder, const encore_open_options* options,
                          encore_model** model) {
  return encore::internal::CallInC(encore::internal::Open, folder, options, model);
}

void encore_free(encore_model* model) {
  if (model != nullptr && model->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete model;
}

encore_model* encore_retain(encore_model* model) {
  if (model != nullptr) model->owners.fetch_add(1, std::memory_order_relaxed);
  return model;
}

encore_status encore_prepare(const encore_model* model, size_t max_tokens) {
  return encore::internal::CallInC(encore::internal::Prepare, model, max_tokens);
}

encore_status encore_trim_memory(const encore_model* model) {
  return encore::internal::CallInC(encore::internal::TrimMemory, model);
}

encore_status encore_memory(const encore_model* model, encore_model_memory* memory) {
  return encore::internal::CallInC(encore::internal::Memory, model, memory);
}

}  // extern "C"
