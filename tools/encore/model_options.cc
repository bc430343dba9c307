// SPDX-License-Identifier: Apache-2.0
//
// The options' words and bounds.

#include "tools/encore/model_options.h"

#include <string>

#include "tools/encore/failure.h"

namespace encore::tool {
namespace {

// Far above any model, far below what could overflow.
constexpr int kMaxSize = 1 << 20;

}  // namespace

std::vector<CLI::Option*> ModelOptions::AddTo(CLI::App& app) {
  const auto add = [&](const std::string& name, size_t& value, const std::string& help) {
    return app.add_option(name, value, help)->check(CLI::Range(1, kMaxSize))->capture_default_str();
  };
  CLI::Option* batch_option = nullptr;
  CLI::Option* seq_option = nullptr;
  std::vector<CLI::Option*> options = {
      add("--d-model", d_model, "Width of a token's vector"),
      add("--heads", heads, "Attention heads"),
      add("--d-ff", d_ff, "Inner width of the feed-forward network"),
      batch_option = add("--batch", batch, "Sequences of --seq tokens each"),
      seq_option = add("--seq", seq, "Tokens of a sequence"),
  };
  options.push_back(
      app.add_option("--lengths", lengths, "Tokens of each sequence, in place of --batch and --seq")
          ->delimiter(',')
          ->check(CLI::Range(1, kMaxSize))
          ->type_name("N,N,...")
          ->excludes(batch_option)
          ->excludes(seq_option));
  return options;
}

bench::NamedWorkload ModelOptions::Workload() const {
  if (d_model % heads != 0) {
    throw Failure("--heads is " + std::to_string(heads) + ", wanted a divisor of --d-model, " +
                  std::to_string(d_model));
  }
  return {.name = "custom",
          .model = {"custom", d_model, heads, d_ff, Activation::kGelu},
          .lengths = lengths.empty() ? std::vector<size_t>(batch, seq) : lengths};
}

}  // namespace encore::tool
