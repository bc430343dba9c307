// SPDX-License-Identifier: Apache-2.0
//
// The models that are served: opened, named, and timed once, so that the scheduler knows how many
// tokens make a slice.

#ifndef ENCORE_TOOLS_SERVE_MODELS_H_
#define ENCORE_TOOLS_SERVE_MODELS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "encore/executor.h"
#include "encore/status.h"
#include "encore/text_encoder.h"
#include "tools/serve/settings.h"

namespace encore::serve {

// What a request may want of a model.
enum class Ability : uint8_t { kEmbed, kSparse, kScore, kClassify, kTokenize };

struct Model {
  std::string name;
  TextEncoder encoder;
  double token_ns = 0;      // of one token in a batch, on all threads
  size_t slice_tokens = 0;  // computed at once: some 10 ms
  int64_t opened = 0;       // seconds since 1970

  bool Can(Ability ability) const;
};

// Opens them all. The Status names the folder.
Result<std::vector<Model>> OpenModels(const Settings& settings, const Executor& executor);

// The model of this name; of an empty name the first that can do it. Null: there is none.
const Model* FindModel(const std::vector<Model>& models, std::string_view name, Ability ability);

}  // namespace encore::serve

#endif  // ENCORE_TOOLS_SERVE_MODELS_H_
