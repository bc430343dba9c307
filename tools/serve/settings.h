// SPDX-License-Identifier: Apache-2.0
//
// What `encore serve` was asked for: models, where to listen, and limits.

#ifndef ENCORE_TOOLS_SERVE_SETTINGS_H_
#define ENCORE_TOOLS_SERVE_SETTINGS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "encore/precision.h"
#include "encore/tokenizer.h"

namespace encore::serve {

struct NamedFolder {
  std::string name;  // by which requests ask for it
  std::string folder;
};

// Nothing that a client sends makes memory or time grow beyond these.
struct Limits {
  size_t body_bytes = size_t{8} << 20;          // of a request
  size_t all_bodies_bytes = size_t{256} << 20;  // of those that are held at once
  size_t texts = 2048;                          // of a request
  size_t text_bytes = size_t{1} << 20;          // of a text
  size_t json_depth = 16;
  size_t header_bytes = size_t{16} << 10;
  size_t connections = 2048;
  size_t queue_tokens = size_t{1} << 20;  // waiting or computed, of all requests
  size_t request_seconds = 30;            // to send a request, or to take an answer
  size_t idle_seconds = 75;               // between requests of a connection
  size_t grace_seconds = 30;              // after SIGTERM
};

enum class LogLines : uint8_t { kAll, kErrors, kNone };

struct Settings {
  std::vector<NamedFolder> models;
  std::string host = "127.0.0.1";
  uint16_t port = 8080;  // 0: one that is free
  int threads = 0;       // 0: all usable cores
  std::optional<Precision> precision = {};
  std::string cache;              // OpenOptions::cache
  OnLong on_long = OnLong::kCut;  // where a request does not say
  std::string api_key_file;       // empty: whoever can connect may ask
  LogLines log = LogLines::kAll;
  Limits limits = {};
};

}  // namespace encore::serve

#endif  // ENCORE_TOOLS_SERVE_SETTINGS_H_
