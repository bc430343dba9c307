// SPDX-License-Identifier: Apache-2.0
//
// A copy of a folder of tests/data/models, to change and to open.

#ifndef ENCORE_TESTS_SUPPORT_MODEL_FOLDER_H_
#define ENCORE_TESTS_SUPPORT_MODEL_FOLDER_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "encore/safetensors.h"
#include "engine/models/text_model.h"
#include "nlohmann/json.hpp"
#include "tests/support/safetensors_bytes.h"

namespace encore {

inline const std::string kModels = ENCORE_TEST_DATA_DIR "/models/";

class ModelFolder {
 public:
  // Of the folder at this path, without what is expected of it.
  explicit ModelFolder(const std::string& path);

  std::string File(std::string_view name) const { return folder_.File(name); }
  void Write(const std::string& name, const std::string& text) const;
  void Remove(const std::string& name) const;

  // config.json as it stands, to be changed and set again.
  nlohmann::json Config() const;
  void SetConfig(const nlohmann::json& config) const;
  void SetKey(const std::string& key, const nlohmann::json& value) const;
  void RemoveKey(const std::string& key) const;

  // Rewrites model.safetensors with each entry as `change` leaves it (false: left out), then those
  // of `more`.
  void ChangeWeights(const std::function<bool(SafetensorsEntry&)>& change,
                     const std::vector<SafetensorsEntry>& more = {}) const;

  // Opens it; decisions() tells what was decided.
  Result<internal::TextModel> Open(bool ignore_unknown_keys = false);
  const std::vector<Decision>& decisions() const { return decisions_; }
  // The values of decisions about this, joined by "; ".
  std::string Decided(const std::string& what) const;

 private:
  TemporaryFolder folder_;
  std::vector<Decision> decisions_;
};

}  // namespace encore

#endif  // ENCORE_TESTS_SUPPORT_MODEL_FOLDER_H_
