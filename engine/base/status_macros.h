// SPDX-License-Identifier: Apache-2.0
//
// Handing errors on to the caller:
//
//   ENCORE_RETURN_IF_ERROR(CheckShape("x", x, shape, "of the weights"));
//   ENCORE_ASSIGN_OR_RETURN(const size_t bytes, CheckedProduct({rows, cols}));

#ifndef ENCORE_ENGINE_BASE_STATUS_MACROS_H_
#define ENCORE_ENGINE_BASE_STATUS_MACROS_H_

#include <string>
#include <utility>

#include "encore/status.h"

namespace encore::inline v0_1::internal {

// The error "WHERE: MESSAGE".
inline Status Prefixed(const std::string& where, const Status& status) {
  return Status(status.code(), where + ": " + status.message());
}

}  // namespace encore::internal

// Returns from the enclosing function if `expression` is a Status of failure.
#define ENCORE_RETURN_IF_ERROR(expression)                                    \
  do {                                                                        \
    if (::encore::Status encore_status = (expression); !encore_status.ok()) { \
      return encore_status;                                                   \
    }                                                                         \
  } while (false)

// Declares or assigns `target` from the value of a Result, or returns its Status from the
// enclosing function. More than one statement: not for the branch of an `if` without braces.
#define ENCORE_ASSIGN_OR_RETURN(target, expression) \
  ENCORE_ASSIGN_OR_RETURN_AS(ENCORE_CONCAT(encore_result_, __LINE__), target, expression)

// NOLINTBEGIN(bugprone-macro-parentheses): names and declarations cannot have any.
#define ENCORE_ASSIGN_OR_RETURN_AS(result, target, expression) \
  auto result = (expression);                                  \
  if (!result.ok()) return result.status();                    \
  target = *std::move(result)
// NOLINTEND(bugprone-macro-parentheses)

#define ENCORE_CONCAT(a, b) ENCORE_CONCAT_TOKENS(a, b)
#define ENCORE_CONCAT_TOKENS(a, b) a##b

#endif  // ENCORE_ENGINE_BASE_STATUS_MACROS_H_
