// SPDX-License-Identifier: Apache-2.0
//
// How encore reports errors: a code for programs and a sentence for people. The library never
// throws, prints or aborts on bad input. A program that uses a failed Result without asking ok() is
// ended.

#ifndef ENCORE_STATUS_H_
#define ENCORE_STATUS_H_

#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "encore/export.h"
#include "encore/language.h"  // IWYU pragma: keep

namespace encore::inline v0_1 {

#if defined(_GLIBCXX_DEBUG)
// libstdc++'s debug mode has containers of another layout. A program compiled in it links only with
// an encore that is: for any other this symbol is undefined.
namespace internal {
ENCORE_API extern const char kCompiledWithGlibcxxDebug;
namespace {
[[gnu::used]] const char* const glibcxx_debug = &kCompiledWithGlibcxxDebug;
}  // namespace
}  // namespace internal
#endif

enum class ErrorCode {
  kOk = 0,
  kInvalidArgument,   // a shape, a size, an option or a combination of them is wrong
  kNotFound,          // a tensor, a file or a name does not exist
  kUnsupported,       // understood, but not something this build or machine can do
  kCorruptData,       // a file or a buffer breaks its format
  kIo,                // the operating system refused to read or write
  kOutOfMemory,       // an allocation failed, or a size exceeds what can be addressed
  kCancelled,         // the caller's stop flag was set (Executor::WithStop)
  kDeadlineExceeded,  // the caller's deadline passed first (Executor::WithDeadline)
};

// The code's name as written above, without the k: "InvalidArgument".
ENCORE_API std::string_view ErrorCodeName(ErrorCode code);

// Success, or a code with a sentence that names the thing, what was found and what was wanted.
class [[nodiscard]] Status {
 public:
  Status() = default;  // success; never allocates
  Status(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == ErrorCode::kOk; }
  ErrorCode code() const { return code_; }
  const std::string& message() const& { return message_; }
  std::string message() && { return std::move(message_); }  // of a temporary: no reference into it

 private:
  ErrorCode code_ = ErrorCode::kOk;
  std::string message_;
};

// "Ok", or "InvalidArgument: " and the sentence.
ENCORE_API std::ostream& operator<<(std::ostream& out, const Status& status);

inline Status InvalidArgument(std::string message) {
  return Status(ErrorCode::kInvalidArgument, std::move(message));
}

// What a failed Result does when it is used: prints "encore: a failed Result was used: " with the
// code and the sentence to stderr, and aborts.
[[noreturn]] ENCORE_API void FailedResultUsed(const Status& status);

// A value, or the Status that says why there is none. Ask ok() before *, -> and value(): on a
// failed Result these three end the program with the Status's sentence on stderr, in every build.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}         // NOLINT(google-explicit-constructor)
  Result(Status status) : status_(std::move(status)) {  // NOLINT(google-explicit-constructor)
    if (status_.ok())
      status_ = InvalidArgument("a Result was made from a successful Status without a value");
  }

  bool ok() const { return value_.has_value(); }
  const Status& status() const& { return status_; }
  Status status() && { return std::move(status_); }

  T& value() & {
    CheckOk();
    return *value_;
  }
  const T& value() const& {
    CheckOk();
    return *value_;
  }
  T&& value() && {
    CheckOk();
    return *std::move(value_);
  }
  // The value, or `other` where there is none.
  template <typename U>
  T value_or(U&& other) const& {
    return ok() ? *value_ : static_cast<T>(std::forward<U>(other));
  }
  template <typename U>
  T value_or(U&& other) && {
    return ok() ? *std::move(value_) : static_cast<T>(std::forward<U>(other));
  }

  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() & { return &value(); }
  const T* operator->() const& { return &value(); }
  // What a temporary holds ends with it: give it a name, and ask ok() on the way.
  const T* operator->() const&& = delete;

 private:
  void CheckOk() const {
    if (!ok()) FailedResultUsed(status_);
  }

  std::optional<T> value_;
  Status status_;
};

}  // namespace encore

#endif  // ENCORE_STATUS_H_
