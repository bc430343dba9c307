// SPDX-License-Identifier: Apache-2.0
//
// The names of the error codes.

#include "encore/status.h"

namespace encore {

std::string_view ErrorCodeName(ErrorCode code) {
  switch (code) {
    case ErrorCode::kOk:
      return "Ok";
    case ErrorCode::kInvalidArgument:
      return "InvalidArgument";
    case ErrorCode::kNotFound:
      return "NotFound";
    case ErrorCode::kUnsupported:
      return "Unsupported";
    case ErrorCode::kCorruptData:
      return "CorruptData";
    case ErrorCode::kIo:
      return "Io";
    case ErrorCode::kOutOfMemory:
      return "OutOfMemory";
  }
  return "Unknown";
}

}  // namespace encore
