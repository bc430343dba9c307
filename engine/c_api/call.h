// SPDX-License-Identifier: Apache-2.0
//
// What the C interface's calls share: the model, and the way from a Status or an exception to a
// code and a sentence.

#ifndef ENCORE_ENGINE_C_API_CALL_H_
#define ENCORE_ENGINE_C_API_CALL_H_

#include <atomic>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <string_view>

#include "encore/c_api.h"
#include "encore/multi_vector_encoder.h"
#include "encore/text_encoder.h"
#include "encore/thread_pool.h"

struct encore_model {
  // One of them, by the kind.
  std::optional<encore::TextEncoder> encoder;
  std::optional<encore::MultiVectorEncoder> multi;
  std::optional<encore::ThreadPool> pool;  // nothing: calls run inline
  std::string description;

  encore::Executor executor() const { return pool ? pool->executor() : encore::Executor::Inline(); }
};

struct encore_stop {
  std::atomic<bool> flag{false};
};

namespace encore::inline v0_1::internal {

// The model as the kind that a call wants. kInvalidArgument for NULL, kUnsupported for the other.
Result<const TextEncoder*> TextEncoderOf(const encore_model* model);
Result<const MultiVectorEncoder*> MultiVectorEncoderOf(const encore_model* model);

// The model's threads for one call. `call` may be NULL.
Result<Executor> ExecutorOf(const encore_model& model, const encore_call_options* call);

// What encode calls have in common.
Status ReadEncodeOptions(const encore_model& model, const encore_encode_options* given,
                         encore_encode_options* known, EncodeOptions* options);

void SetLastError(std::string_view sentence) noexcept;

// ENCORE_INTERNAL took the number after kOutOfMemory.
constexpr encore_status StatusInC(ErrorCode code) {
  return static_cast<encore_status>(code) + (code > ErrorCode::kOutOfMemory ? 1 : 0);
}

// function(arguments...) returns a Status; nothing that it throws gets out.
template <typename F, typename... Arguments>
encore_status CallInC(F function, const Arguments&... arguments) noexcept {
  try {
    const Status status = function(arguments...);
    if (status.ok()) return ENCORE_OK;
    SetLastError(status.message());
    return StatusInC(status.code());
  } catch (const std::bad_alloc&) {
    SetLastError("out of memory");
    return ENCORE_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    SetLastError(error.what());
    return ENCORE_INTERNAL;
  } catch (...) {
    SetLastError("an unknown exception");
    return ENCORE_INTERNAL;
  }
}

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_C_API_CALL_H_
