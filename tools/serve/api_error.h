// SPDX-License-Identifier: Apache-2.0
//
// What a request gets in place of an answer: a status of HTTP and a sentence, in the shape of the
// interface that was asked.

#ifndef ENCORE_TOOLS_SERVE_API_ERROR_H_
#define ENCORE_TOOLS_SERVE_API_ERROR_H_

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include "encore/status.h"

namespace encore::serve {

enum class Interface : uint8_t {
  kOpenAi,  // {"error": {"message", "type", "param", "code"}}
  kTei,     // {"error", "error_type"}
  kCohere,  // {"message", "detail", "error": {...}}: Cohere's, Jina's and OpenAI's
};

// Thrown while a request is read. `param` is the member at fault, or empty.
class ApiError : public std::runtime_error {
 public:
  ApiError(int status, const std::string& sentence, std::string param = "")
      : std::runtime_error(sentence), status_(status), param_(std::move(param)) {}
  int status() const { return status_; }
  const std::string& param() const { return param_; }

 private:
  int status_;
  std::string param_;
};

struct Response {
  int status = 200;
  std::string body;
  const char* type = "application/json";
  int retry_after = 0;     // seconds; 0: no such header
  const char* allow = "";  // of status 405
};

Response ErrorResponse(Interface interface, const ApiError& error);

// Of a library's error.
ApiError ErrorOf(const Status& status);

}  // namespace encore::serve

#endif  // ENCORE_TOOLS_SERVE_API_ERROR_H_
