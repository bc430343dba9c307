// SPDX-License-Identifier: Apache-2.0
//
// Work: what a request wants computed, how far it is, and what came out. Of a request's thread
// until it is submitted, then of the scheduler until it is finished.

#ifndef ENCORE_TOOLS_SERVE_WORK_H_
#define ENCORE_TOOLS_SERVE_WORK_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "encore/status.h"
#include "encore/text_encoder.h"
#include "tools/serve/models.h"

namespace encore::serve {

using Clock = std::chrono::steady_clock;

enum class WorkKind : uint8_t {
  kEmbed,     // values [texts, width]
  kEmbedIds,  // the same, of ids
  kSparse,    // sparse [texts]
  kTokens,    // values [tokens, width], rows of text i from row_starts[i]
  kScore,     // values [texts, 1] of pairs (query, text)
  kClassify,  // values [texts, width]; of pairs where there are second texts
};

// Texts with the same options may be computed in one call.
struct WorkOptions {
  std::optional<std::string> prompt_name = {};
  std::optional<bool> normalize = {};
  size_t dimensions = 0;
  OnLong on_long = OnLong::kCut;
  std::optional<ScoreActivation> activation = {};

  friend bool operator==(const WorkOptions&, const WorkOptions&) = default;
};

struct Batch;

struct Work {
  // ---- What is wanted --------------------------------------------------------------------------
  const Model* model = nullptr;
  WorkKind kind = WorkKind::kEmbed;
  WorkOptions options = {};
  std::vector<std::string> texts = {};
  std::vector<std::string> seconds = {};  // [texts] or none
  std::vector<std::vector<int32_t>> ids = {};
  std::string query = {};
  std::vector<size_t> tokens = {};  // [texts or ids]: about as many as will be computed
  size_t all_tokens = 0;
  Clock::time_point deadline = Clock::time_point::max();
  std::function<void()> finished = {};  // called once, without a lock

  // ---- What came out ---------------------------------------------------------------------------
  Status status = {};
  size_t width = 0;
  std::vector<float> values = {};
  std::vector<std::vector<std::pair<int32_t, float>>> sparse = {};
  std::vector<size_t> row_starts = {0};
  size_t computed_tokens = 0;  // special ones and prompts included
  double queue_seconds = 0;    // until the first slice began
  double compute_seconds = 0;

  // ---- The scheduler's -------------------------------------------------------------------------
  size_t next = 0;          // texts before it are done or in a slice
  size_t begun_tokens = 0;  // of these
  Clock::time_point submitted = {};
  Clock::time_point due = {};  // the order in which slices are taken
  bool cancelled = false;
  Batch* running = nullptr;

  size_t size() const { return tokens.size(); }
};

}  // namespace encore::serve

#endif  // ENCORE_TOOLS_SERVE_WORK_H_
