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
#include <type_traits>
#include <variant>
#include <vector>

#include "encore/c_api.h"
#include "encore/image_encoder.h"
#include "encore/multi_vector_encoder.h"
#include "encore/text_encoder.h"
#include "encore/thread_pool.h"

struct encore_model {
  // By ENCORE_KIND_...
  using Kind = std::variant<encore::TextEncoder, encore::MultiVectorEncoder, encore::ImageEncoder>;

  std::atomic<size_t> owners{1};
  std::optional<Kind> encoder;             // set at opening
  std::optional<encore::ThreadPool> pool;  // of its own
  encore::Executor executor;               // of all calls
  std::string description;
};

struct encore_stop {
  std::atomic<bool> flag{false};
};

namespace encore::inline v0_1::internal {

// The model as the kind that a call wants; null for NULL and for another kind.
template <typename T>
const T* EncoderOrNull(const encore_model* model) {
  return model == nullptr ? nullptr : std::get_if<T>(&*model->encoder);
}

// kInvalidArgument for NULL, kUnsupported for another kind than ENCORE_KIND_... `wanted`.
Status WrongKind(const encore_model* model, size_t wanted);

template <typename T>
Result<const T*> EncoderOf(const encore_model* model) {
  if (const T* const found = EncoderOrNull<T>(model)) return found;
  return WrongKind(model, std::is_same_v<T, TextEncoder>          ? ENCORE_KIND_TEXT
                          : std::is_same_v<T, MultiVectorEncoder> ? ENCORE_KIND_MULTI_VECTOR
                                                                  : ENCORE_KIND_IMAGE);
}

// What `ask` says of the encoder, whatever its kind.
template <typename F>
auto Ask(const encore_model& model, const F& ask) {
  return std::visit(ask, *model.encoder);
}

// What encore_call_options say of one call. It outlives the call's options in C++; when it ends,
// the caller's stats are filled.
class CallChoices {
 public:
  CallChoices() = default;
  CallChoices(const CallChoices&) = delete;
  CallChoices& operator=(const CallChoices&) = delete;
  ~CallChoices();

  // Sets executor, stats and progress of `options`. `given` may be NULL.
  template <typename Options>
  Status Choose(const encore_model& model, const encore_call_options* given, Options* options) {
    if (Status s = Read(model, given, &options->executor); !s.ok()) return s;
    if (known_.stats != nullptr) options->stats = &found_;
    if (known_.progress != nullptr) {
      options->progress = [this](const CallProgress& progress) { Tell(progress); };
    }
    return {};
  }

 private:
  Status Read(const encore_model& model, const encore_call_options* given, Executor* executor);
  void Tell(const CallProgress& progress) const;

  encore_call_options known_ = {};
  CallStats found_;
};

// What encode calls have in common.
Status ReadEncodeOptions(const encore_model& model, const encore_encode_options* given,
                         CallChoices* call, encore_encode_options* known, EncodeOptions* options);

// The same of calls on pictures.
Status ReadImageOptions(const encore_model& model, const encore_image_options* given,
                        CallChoices* call, ImageOptions* options);
Status ReadImages(const encore_image* images, size_t count, std::vector<ImageView>* views);

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
