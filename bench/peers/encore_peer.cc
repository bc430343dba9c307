// SPDX-License-Identifier: Apache-2.0
//
// What pyencore has not, for encore_peer.py, which compiles it: PackedLinear,
// TextEncoder::EncodeIds and the ids of many texts, behind C functions. Those that make something
// give null and the others false for a failure; encore_peer_error() says which.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "encore/cpu.h"
#include "encore/ops.h"
#include "encore/text_encoder.h"
#include "encore/thread_pool.h"
#include "encore/tokenizer.h"
#include "encore/version.h"

namespace {

std::string error;

bool Done(const encore::Status& status) {
  if (!status.ok()) error = status.message();
  return status.ok();
}

// The value as the caller's own, or null.
template <typename T>
void* Given(encore::Result<T> result) {
  if (!result.ok()) {
    error = result.status().message();
    return nullptr;
  }
  return std::make_unique<T>(*std::move(result)).release();
}

}  // namespace

extern "C" {

const char* encore_peer_error() { return error.c_str(); }
const char* encore_peer_version() { return ENCORE_VERSION_STRING; }
const char* encore_peer_target() {
  error = encore::ActiveTarget();
  return error.c_str();
}

// target: as encore::SetTarget; "" for the best.
bool encore_peer_set_target(const char* target) {
  return *target == '\0' || Done(encore::SetTarget(target));
}

void* encore_peer_pool(int threads) {
  return Given(encore::ThreadPool::Create({.threads = threads}));
}

// weight [n, k].
void* encore_peer_linear(const float* weight, size_t n, size_t k) {
  return Given(encore::PackedLinear::Create(encore::ConstView(weight, encore::Shape(n, k))));
}

// x [m, k], y [m, n].
bool encore_peer_apply(const void* pool, const void* linear, const float* x, size_t m, float* y) {
  const auto& product = *static_cast<const encore::PackedLinear*>(linear);
  return Done(product.Apply(encore::ConstView(x, encore::Shape(m, product.in_features())),
                            encore::MutableView(y, encore::Shape(m, product.out_features())),
                            static_cast<const encore::ThreadPool*>(pool)->executor()));
}

// precision: "f32", "bf16" or "int8"; vectors are means, of any length.
void* encore_peer_model(const char* folder, const char* precision) {
  encore::OpenOptions options{.pooling = {encore::PoolingMode::kMean}, .normalize = false};
  options.precision = *encore::PrecisionFromName(precision);
  return Given(encore::TextEncoder::Open(folder, options));
}

// ids [texts, tokens], vectors [texts, d_model].
bool encore_peer_encode(const void* pool, const void* model, const int32_t* ids, size_t texts,
                        size_t tokens, float* vectors) {
  std::vector<std::vector<int32_t>> lists;
  for (size_t i = 0; i < texts; ++i) lists.emplace_back(ids + i * tokens, ids + (i + 1) * tokens);
  const encore::Result<encore::Embeddings> found =
      static_cast<const encore::TextEncoder*>(model)->EncodeIds(
          lists, {.executor = static_cast<const encore::ThreadPool*>(pool)->executor()});
  if (!Done(found.status())) return false;
  std::memcpy(vectors, found->vectors.data(), found->vectors.size_bytes());
  return true;
}

void* encore_peer_tokenizer(const char* folder) { return Given(encore::Tokenizer::Open(folder)); }

// The ids of all texts, uncut, one text after another, and how many each has: counts [texts].
bool encore_peer_tokenize(const void* tokenizer, const char* const* data, const size_t* sizes,
                          size_t texts, int32_t* ids, size_t* counts) {
  encore::Tokens tokens;
  for (size_t i = 0; i < texts; ++i) {
    const std::string_view text(data[i], sizes[i]);
    if (!Done(static_cast<const encore::Tokenizer*>(tokenizer)->Encode(text, &tokens))) {
      return false;
    }
    counts[i] = tokens.ids.size();
    ids = std::copy(tokens.ids.begin(), tokens.ids.end(), ids);
  }
  return true;
}

}  // extern "C"
