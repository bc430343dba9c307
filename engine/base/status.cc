// SPDX-License-Identifier: Apache-2.0
//
// The names of the error codes, and how a Status is printed.

#include "encore/status.h"

#include <ostream>

namespace encore::inline v0_1 {

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

std::ostream& operator<<(std::ostream& out, const Status& status) {
  out << ErrorCodeName(status.code());
  return status.ok() ? out : out << ": " << status.message();
}

}  // namespace encore
