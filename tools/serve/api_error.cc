// SPDX-License-Identifier: Apache-2.0
//
// The shapes of errors.

#include "tools/serve/api_error.h"

#include "nlohmann/json.hpp"
#include "tools/serve/json.h"

namespace encore::serve {
namespace {

const char* OpenAiType(int status) {
  if (status == 401) return "authentication_error";
  if (status == 429) return "rate_limit_error";
  return status < 500 ? "invalid_request_error" : "server_error";
}

const char* OpenAiCode(int status) {
  switch (status) {
    case 401:
      return "invalid_api_key";
    case 404:
      return "not_found";
    case 413:
      return "request_too_large";
    case 429:
      return "queue_full";
    case 504:
      return "deadline_exceeded";
    default:
      return nullptr;
  }
}

// As the enumerators of text-embeddings-inference.
const char* TeiType(int status) {
  switch (status) {
    case 429:
    case 503:
      return "Overloaded";
    case 500:
    case 504:
      return "Backend";
    default:
      return "Validation";
  }
}

}  // namespace

Response ErrorResponse(Interface interface, const ApiError& error) {
  Json body;
  if (interface == Interface::kTei) {
    body = {{"error", error.what()}, {"error_type", TeiType(error.status())}};
  } else {
    Json shape = {{"message", error.what()},
                  {"type", OpenAiType(error.status())},
                  {"param", nullptr},
                  {"code", nullptr}};
    if (!error.param().empty()) shape["param"] = error.param();
    if (const char* const code = OpenAiCode(error.status())) shape["code"] = code;
    if (interface == Interface::kCohere) {
      body["message"] = error.what();
      body["detail"] = error.what();
    }
    body["error"] = std::move(shape);
  }
  Response response = {.status = error.status(), .body = Dump(body)};
  if (error.status() == 503) response.retry_after = 1;
  return response;
}

ApiError ErrorOf(const Status& status) {
  switch (status.code()) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kNotFound:
    case ErrorCode::kUnsupported:
      return {400, status.message()};
    case ErrorCode::kOutOfMemory:
    case ErrorCode::kCancelled:
      return {503, status.message()};
    case ErrorCode::kDeadlineExceeded:
      return {504, status.message()};
    default:
      return {500, status.message()};
  }
}

}  // namespace encore::serve
