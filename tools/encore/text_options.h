// SPDX-License-Identifier: Apache-2.0
//
// The options that commands on texts share, and what follows from them: threads, the model. Not
// here: the texts (text_chunks.h).

#ifndef ENCORE_TOOLS_ENCORE_TEXT_OPTIONS_H_
#define ENCORE_TOOLS_ENCORE_TEXT_OPTIONS_H_

#include <cstddef>
#include <optional>
#include <string>

#include "CLI/CLI.hpp"
#include "encore/text_encoder.h"
#include "encore/thread_pool.h"
#include "tools/encore/precision_options.h"

namespace encore::tool {

struct TextOptions {
  std::string model;
  std::string input;
  bool jsonl = false;
  int threads = 0;
  std::string target;
  PrecisionOptions precision;
  size_t max_length = 0;
  std::string on_long = "cut";
  size_t batch_tokens = 0;
  bool plain_text = false;
  bool replace_invalid = false;
  bool ignore_unknown_keys = false;

  // Adds them all. This object must stay where it is until the command line has been read.
  void AddTo(CLI::App& app);

  OnLong OnLongTexts() const { return on_long == "error" ? OnLong::kError : OnLong::kCut; }
  OnInvalidUtf8 OnInvalidBytes() const {
    return replace_invalid ? OnInvalidUtf8::kReplace : OnInvalidUtf8::kError;
  }
};

// The threads and the model, opened. Throws Failure.
class TextSession {
 public:
  explicit TextSession(const TextOptions& options);
  const TextEncoder& model() const { return *model_; }
  Executor executor() const { return pool_->executor(); }

 private:
  std::optional<ThreadPool> pool_;
  std::optional<TextEncoder> model_;
};

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_TEXT_OPTIONS_H_
