// SPDX-License-Identifier: Apache-2.0
//
// The words and bounds of the options, and the ways from them to the library's settings.

#include "tools/encore/shared_options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "CLI/CLI.hpp"
#include "encore/cpu.h"
#include "engine/platform/file_writer.h"
#include "tools/encore/failure.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

constexpr std::pair<std::string_view, LayerMatrix> kMatrices[] = {
    {"qkv", LayerMatrix::kQkv},
    {"out_proj", LayerMatrix::kOutProj},
    {"linear1", LayerMatrix::kLinear1},
    {"linear2", LayerMatrix::kLinear2}};

bool ParseMatrix(std::string_view text, MatrixOfLayer* matrix) {
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, matrix->layer);
  if (error != std::errc() || rest == end || *rest != '.') return false;
  const std::string_view name(rest + 1, static_cast<size_t>(end - rest - 1));
  for (const auto& [known, value] : kMatrices) {
    matrix->matrix = value;
    if (name == known) return true;
  }
  return false;
}

// Far above any model, far below what could overflow.
constexpr int kMaxSize = 1 << 20;

}  // namespace

void AddRequired(CLI::App& app, const std::string& name, const std::string& type,
                 std::string& value, const std::string& words) {
  app.add_option(name, value, words)->required()->type_name(type);
}

void WriteTextFile(const std::string& path, const std::string& text) {
  internal::FileWriter writer = Take(internal::FileWriter::Create(path));
  Check(writer.Write(std::as_bytes(std::span(text))));
  Check(writer.Commit());
}

void WantWritable(const std::string& path, const std::string& option) {
  if (!path.empty()) Take(internal::FileWriter::Create(path), option);
}

void WantFolderOf(const std::string& output) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::path(output).parent_path();
  if (folder.empty() || std::filesystem::is_directory(folder, error)) return;
  throw Failure("--output " + output + ": there is no folder " + folder.string());
}

void WantOtherFile(const std::string& option, const std::string& output, const std::string& taken,
                   const std::string& what) {
  if (output.empty() || taken.empty()) return;
  std::error_code error;
  const auto place = [](const std::string& path) {
    std::error_code no_such_place;
    return std::filesystem::weakly_canonical(path, no_such_place);
  };
  // By device and inode, so that links are seen through; by name where nothing is there yet.
  if (std::filesystem::equivalent(output, taken, error) ||
      (!place(output).empty() && place(output) == place(taken))) {
    throw Failure(option + " " + output + ": found " + what + ", wanted another file");
  }
}

void CheckSeconds(double seconds) {
  constexpr double kMost = 600;
  if (seconds >= 0 && seconds <= kMost) return;
  throw Failure("--seconds is " + Number(seconds, 2) + ", wanted 0 to " + Number(kMost, 0));
}

std::string MatrixName(const MatrixOfLayer& matrix) {
  const auto named = [&](const auto& entry) { return entry.second == matrix.matrix; };
  const auto* const found = std::find_if(std::begin(kMatrices), std::end(kMatrices), named);
  return std::to_string(matrix.layer) + "." + std::string(found->first);
}

CLI::Option* PrecisionOptions::AddTo(CLI::App& app) {
  CLI::Option* const option =
      app.add_option("--precision", name,
                     "Multiply in f32, or in bf16 or int8, which are faster and less exact; "
                     "default: what the weights were converted to (`encore convert`), or f32")
          ->check(CLI::IsMember({"f32", "bf16", "int8"}));
  app.add_option("--keep", keep,
                 "With int8, keep these matrices in bf16, e.g. 0.linear1,5.out_proj")
      ->delimiter(',')
      ->type_name("LAYER.MATRIX")
      ->needs(option);
  return option;
}

void PrecisionOptions::AddAmxTo(CLI::App& app) {
  app.add_flag("--amx-bf16", amx_bf16, kAmxBf16Help);
}

std::optional<Precision> PrecisionOptions::precision() const {
  if (name.empty()) return std::nullopt;
  return Take(PrecisionFromName(name));
}

std::vector<MatrixOfLayer> PrecisionOptions::kept() const {
  std::vector<MatrixOfLayer> matrices;
  for (const std::string& text : keep) {
    if (!ParseMatrix(text, &matrices.emplace_back())) {
      throw Failure("--keep: found '" + Printable(text) +
                    "', wanted a layer's number from 0, a point, and qkv, out_proj, linear1 or "
                    "linear2: 0.linear1");
    }
  }
  return matrices;
}

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

void TorchOptions::AddTo(CLI::App& app) {
  app.add_option("--nhead", nhead, "Attention heads")
      ->check(CLI::Range(1, std::numeric_limits<int>::max()));
  app.add_option("--activation", activation, "relu, gelu, gelu_tanh, silu or quick_gelu")
      ->type_name("NAME");
  app.add_option("--eps", eps, "Epsilon of the layer norms");
  app.add_flag_function(
         "--norm-first,!--no-norm-first", [this](int64_t given) { norm_first = given > 0; },
         "Pre-norm, or post-norm")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

TorchOverrides TorchOptions::overrides() const {
  TorchOverrides given;
  if (nhead) given.num_heads = static_cast<size_t>(*nhead);
  if (norm_first) given.norm_placement = *norm_first ? NormPlacement::kPre : NormPlacement::kPost;
  given.epsilon = eps;
  if (eps && !(std::isfinite(*eps) && *eps >= 0)) {
    throw Failure("--eps is " + Number(*eps, 6) + ", wanted a finite number of at least 0");
  }
  if (!activation.empty()) given.activation = Take(ActivationFromName(activation), "--activation");
  return given;
}

void InputOptions::AddTo(CLI::App& app) {
  AddRequired(app, "--input", "FILE", path, "The texts; - is standard input");
  CLI::Option* const option =
      app.add_option("--format", format,
                     "What the input is; default: by its ending, .jsonl, .csv or .tsv, else text "
                     "with one text per line")
          ->check(CLI::IsMember({"text", "jsonl", "csv", "tsv"}));
  app.add_option("--field", field,
                 "The member (jsonl) or column (csv, tsv) that is the text; default: text")
      ->type_name("NAME");
  app.add_flag("--jsonl", jsonl, "The same as --format jsonl")->excludes(option);
}

TextSource InputOptions::source() const {
  TextSource source = {.path = path, .format = std::nullopt, .field = field};
  if (jsonl || format == "jsonl") source.format = TextFormat::kJsonLines;
  if (format == "text") source.format = TextFormat::kLines;
  if (format == "csv") source.format = TextFormat::kCsv;
  if (format == "tsv") source.format = TextFormat::kTsv;
  return source;
}

void TextOptions::AddTo(CLI::App& app) {
  // Far above any model and any memory, far below what could overflow.
  constexpr int kMost = 1 << 24;
  AddRequired(app, "--model", "FOLDER", model, "A model's folder, as it was downloaded");
  input.AddTo(app);
  app.add_option("--threads", threads, "Threads; 0: all usable cores (`encore info`)")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_option("--target", target, "SIMD target, e.g. AVX2; default: the best")
      ->type_name("NAME");
  precision.AddTo(app);
  precision.AddAmxTo(app);
  app.add_option("--max-length", max_length,
                 "Tokens per text, at most; 0: as many as the folder says")
      ->check(CLI::Range(0, kMost))
      ->capture_default_str();
  app.add_option("--on-long", on_long, "Truncate (cut) or reject (error) long texts")
      ->check(CLI::IsMember({"cut", "error"}))
      ->capture_default_str();
  app.add_option("--batch-tokens", batch_tokens, "Tokens computed at once; 0: encore's choice")
      ->check(CLI::Range(0, kMost))
      ->capture_default_str();
  app.add_flag("--plain-text", plain_text, kPlainTextHelp);
  app.add_flag("--replace-invalid", replace_invalid, kReplaceInvalidHelp);
  app.add_flag("--ignore-unknown-keys", ignore_unknown_keys, kIgnoreUnknownKeysHelp);
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
