// SPDX-License-Identifier: Apache-2.0
//
// The words of the options, and the model that they name.

#include "tools/encore/text_options.h"

#include "encore/cpu.h"
#include "tools/encore/failure.h"

namespace encore::tool {

void TextOptions::AddTo(CLI::App& app) {
  // Far above any model and any memory, far below what could overflow.
  constexpr int kMost = 1 << 24;
  app.add_option("--model", model, "A model's folder, as it was downloaded")
      ->required()
      ->type_name("FOLDER");
  app.add_option("--input", input, "Texts, one a line; - is standard input")
      ->required()
      ->type_name("FILE");
  app.add_flag("--jsonl", jsonl, "Each line is a JSON string, or an object with a member \"text\"");
  app.add_option("--threads", threads, "Threads; 0: all usable cores (`encore info`)")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_option("--target", target, "SIMD target, e.g. AVX2; else the best")->type_name("NAME");
  precision.AddTo(app);
  precision.AddAmxTo(app);
  app.add_option("--max-length", max_length, "Tokens of a text; 0: as many as the folder says")
      ->check(CLI::Range(0, kMost))
      ->capture_default_str();
  app.add_option("--on-long", on_long, "What becomes of longer texts: cut or error")
      ->check(CLI::IsMember({"cut", "error"}))
      ->capture_default_str();
  app.add_option("--batch-tokens", batch_tokens, "Tokens computed at once; 0: encore's choice")
      ->check(CLI::Range(0, kMost))
      ->capture_default_str();
  app.add_flag("--plain-text", plain_text,
               "\"[SEP]\" in a text is text; else it is the special token");
  app.add_flag("--replace-invalid", replace_invalid,
               "Bytes that are not UTF-8 become U+FFFD; else they are an error");
  app.add_flag("--ignore-unknown-keys", ignore_unknown_keys,
               "Keys of the folder's files that encore does not know are no error");
}

TextSession::TextSession(const TextOptions& options) {
  const std::vector<MatrixOfLayer> kept = options.precision.kept();
  if (!options.target.empty()) Check(SetTarget(options.target), "--target");
  pool_ = Take(ThreadPool::Create({.threads = options.threads}), "--threads");
  model_ =
      Take(TextEncoder::Open(options.model, {.ignore_unknown_keys = options.ignore_unknown_keys,
                                             .executor = pool_->executor(),
                                             .precision = options.precision.precision(),
                                             .keep = kept,
                                             .amx_bf16 = options.precision.amx_bf16}),
           "--model " + options.model);
}

}  // namespace encore::tool
