// SPDX-License-Identifier: Apache-2.0
//
// Finds the activation of scores.

#include "engine/text/score_activation.h"

#include <optional>

#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"

namespace encore::inline v0_1::internal {
namespace {

struct Named {
  std::string function;  // the Python class's path
  std::string source;
};

// Of config.json; nothing if it says nothing.
Result<std::optional<Named>> FromModelConfig(const std::string& path,
                                             const FolderReading& reading) {
  const std::string file = Within(path, "config.json");
  ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> json, reading.folder.ReadJson(file));
  if (!json.has_value()) return std::optional<Named>();
  JsonMembers members(*json, file);
  // Where the newer key is there, the older one does not count, not even if the newer is null.
  if (members.Has("sentence_transformers")) {
    JsonMembers inner(members.RequiredObject("sentence_transformers"),
                      file + ": sentence_transformers");
    if (!members.ok()) return members.status();
    const bool is_there = inner.Find("activation_fn") != nullptr;
    const std::optional<std::string> function = inner.OptionalString("activation_fn");
    if (!inner.ok()) return inner.status();
    if (function) return std::optional<Named>({*function, inner.where()});
    if (is_there) return std::optional<Named>();
  }
  const std::optional<std::string> old =
      members.OptionalString("sbert_ce_default_activation_function");
  if (!members.ok()) return members.status();
  if (old) return std::optional<Named>({*old, file});
  return std::optional<Named>();
}

Result<std::optional<Named>> Find(const std::string& path, const SentenceConfig& config,
                                  const FolderReading& reading) {
  if (config.activation_fn) {
    return std::optional<Named>({*config.activation_fn, std::string(kSentenceConfigFile)});
  }
  return FromModelConfig(path, reading);
}

}  // namespace

Result<const TorchActivation*> ReadScoreActivation(const std::string& path,
                                                   const SentenceConfig& config, size_t labels,
                                                   const FolderReading& reading) {
  ENCORE_ASSIGN_OR_RETURN(const std::optional<Named> named, Find(path, config, reading));
  if (named.has_value()) {
    const TorchActivation* activation = FindTorchActivation(named->function);
    if (activation == nullptr) {
      return Status(ErrorCode::kUnsupported, named->source + ": the activation of scores is " +
                                                 Quoted(named->function) + "; encore has " +
                                                 TorchActivationNames());
    }
    reading.Tell("scores", std::string(activation->text), named->source);
    return activation;
  }
  const TorchActivation* activation =
      FindTorchActivation(labels == 1 ? "torch.nn.Sigmoid" : "torch.nn.Identity");
  reading.Tell("scores", std::string(activation->text),
               labels == 1 ? "default for one label" : "default for several labels");
  return activation;
}

}  // namespace encore::internal
