// SPDX-License-Identifier: Apache-2.0
//
// Lines of the log.

#include "tools/serve/access_log.h"

#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <ctime>

namespace encore::serve {

void LogRequest(LogLines lines, const RequestRecord& request) {
  if (lines == LogLines::kNone || (lines == LogLines::kErrors && request.code < 400)) return;
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto since = now - std::chrono::system_clock::from_time_t(seconds);
  std::tm utc = {};
  ::gmtime_r(&seconds, &utc);
  char day[32];
  if (std::strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &utc) == 0) return;
  char line[512];
  const int length = std::snprintf(
      line, sizeof(line),
      "{\"time\":\"%s.%03dZ\",\"method\":\"%.*s\",\"route\":\"%.*s\",\"status\":%d,\"texts\":%zu,"
      "\"tokens\":%zu,\"bytes_in\":%zu,\"bytes_out\":%zu,\"tokenize_us\":%.0f,\"queue_us\":%.0f,"
      "\"compute_us\":%.0f,\"total_us\":%.0f}\n",
      day, static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(since).count()),
      static_cast<int>(request.method.size()), request.method.data(),
      static_cast<int>(request.route.size()), request.route.data(), request.code, request.texts,
      request.tokens, request.bytes_in, request.bytes_out, request.tokenize_seconds * 1e6,
      request.queue_seconds * 1e6, request.compute_seconds * 1e6, request.seconds * 1e6);
  if (length <= 0 || length >= static_cast<int>(sizeof(line))) return;
  // A pipe that can be written has room for PIPE_BUF bytes, which is more than a line.
  pollfd ready = {STDERR_FILENO, POLLOUT, 0};
  if (::poll(&ready, 1, 0) != 1 || (ready.revents & POLLOUT) == 0) return;
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line, static_cast<size_t>(length));
}

}  // namespace encore::serve
