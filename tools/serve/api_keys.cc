// SPDX-License-Identifier: Apache-2.0
//
// Comparing keys in constant time.

#include "tools/serve/api_keys.h"

#include <fstream>

namespace encore::serve {
namespace {

// The loop is over what the client sent.
bool Same(std::string_view sent, const std::string& key) {
  volatile unsigned difference = sent.size() == key.size() ? 0 : 1;
  for (size_t i = 0; i < sent.size(); ++i) {
    const auto wanted = static_cast<unsigned char>(key[i % key.size()]);
    difference = difference | (static_cast<unsigned char>(sent[i]) ^ wanted);
  }
  return difference == 0;
}

}  // namespace

Result<ApiKeys> ApiKeys::Read(const std::string& path) {
  ApiKeys keys;
  if (path.empty()) return keys;
  std::ifstream file(path);
  if (!file) return Status(ErrorCode::kIo, "--api-key-file: " + path + " cannot be read");
  for (std::string line; std::getline(file, line);) {
    line.erase(line.find_last_not_of(" \t\r") + 1);
    if (!line.empty()) keys.keys_.push_back(line);
  }
  if (keys.keys_.empty()) {
    return InvalidArgument("--api-key-file: " + path + " has no key, wanted one a line");
  }
  return keys;
}

bool ApiKeys::Allow(std::string_view authorization) const {
  constexpr std::string_view kBearer = "Bearer ";
  if (keys_.empty()) return true;
  if (!authorization.starts_with(kBearer)) return false;
  authorization.remove_prefix(kBearer.size());
  bool allowed = false;
  for (const std::string& key : keys_) {
    const bool same = Same(authorization, key);
    allowed = allowed || same;
  }
  return allowed;
}

}  // namespace encore::serve
