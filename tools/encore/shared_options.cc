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

#include "encore/cpu.h"
#include "engine/base/activations.h"
#include "engine/platform/file_writer.h"
#include "engine/platform/path.h"
#include "engine/platform/temporary_name.h"
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

void WriteTextFile(const std::string& path, const std::string& text) {
  internal::FileWriter writer = Take(internal::FileWriter::Create(path));
  Check(writer.Write(std::as_bytes(std::span(text))));
  CheckWritten(writer.Commit());
}

void ClearFolderOf(const std::string& output) {
  std::error_code error;
  const std::filesystem::path path = internal::ToPath(output);
  internal::RemoveAbandoned(std::filesystem::weakly_canonical(path, error).parent_path());
}

void WantWritable(const std::string& path, const std::string& option) {
  if (path.empty()) return;
  Take(internal::FileWriter::Create(path), option);
  ClearFolderOf(path);
}

void WantFolderOf(const std::string& output) {
  std::error_code error;
  const std::filesystem::path folder = internal::ToPath(output).parent_path();
  if (!folder.empty() && !std::filesystem::is_directory(folder, error)) {
    throw Failure("--output " + output + ": there is no folder " + internal::PathText(folder));
  }
  ClearFolderOf(output);
}

void WantOtherFile(const std::string& option, const std::string& output, const std::string& taken,
                   const std::string& what) {
  if (output.empty() || taken.empty()) return;
  std::error_code error;
  const auto place = [](const std::string& path) {
    std::error_code no_such_place;
    return std::filesystem::weakly_canonical(internal::ToPath(path), no_such_place);
  };
  // By device and inode, so that links are seen through; by name where nothing is there yet.
  if (std::filesystem::equivalent(internal::ToPath(output), internal::ToPath(taken), error) ||
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

Option PrecisionOptions::AddTo(const Command& command, OptionRules rules) {
  if (rules.one_of.empty()) rules.one_of = {"f32", "bf16", "int8", "int4"};
  const Option option = command.Add(
      "--precision", &name,
      "Multiply in f32, or in bf16, int8 or int4, which are smaller and less exact; default: "
      "what the weights were converted to (`encore convert`), or f32",
      rules);
  command.Add("--keep", &keep,
              "With int8 and int4, keep these matrices in bf16, e.g. 0.linear1,5.out_proj",
              {.type = "LAYER.MATRIX", .needs = option});
  return option;
}

void PrecisionOptions::AddAmxTo(const Command& command) {
  command.Add("--amx-bf16", &amx_bf16, kAmxBf16Help);
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

std::vector<Option> ModelOptions::AddTo(const Command& command) {
  const auto add = [&](const std::string& name, size_t* value, const std::string& help) {
    return command.Add(name, value, help, {.show_default = true, .range = Range{1, kMaxSize}});
  };
  std::vector<Option> options = {
      add("--d-model", &d_model, "Width of a token's vector"),
      add("--heads", &heads, "Attention heads"),
      add("--d-ff", &d_ff, "Inner width of the feed-forward network"),
      add("--batch", &batch, "Sequences of --seq tokens each"),
      add("--seq", &seq, "Tokens of a sequence"),
  };
  options.push_back(command.Add(
      "--lengths", &lengths, "Tokens of each sequence, in place of --batch and --seq",
      {.type = "N,N,...", .range = Range{1, kMaxSize}, .excludes = {options[3], options[4]}}));
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

void TorchOptions::AddTo(const Command& command) {
  command.Add("--nhead", &nhead, "Attention heads",
              {.range = Range{1, std::numeric_limits<int>::max()}});
  command.Add("--activation", &activation, internal::LayerActivationNames(), {.type = "NAME"});
  command.Add("--eps", &eps, "Epsilon of the layer norms");
  command.Add("--norm-first,!--no-norm-first", &norm_first, "Pre-norm, or post-norm");
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

void InputOptions::AddTo(const Command& command) {
  command.Add("--input", &path, "The texts; - is standard input",
              {.type = "FILE", .required = true});
  const Option option = command.Add(
      "--format", &format,
      "The input's format; default: by its ending (.jsonl, .ndjson, .csv, .tsv), else one "
      "text per line",
      {.one_of = {"text", "jsonl", "csv", "tsv"}});
  command.Add("--field", &field,
              "The member (jsonl) or column (csv, tsv) that is the text; default: text",
              {.type = "NAME"});
  command.Add("--jsonl", &jsonl, "The same as --format jsonl", {.excludes = {option}});
  command.Add("--replace-invalid", &replace_invalid, kReplaceInvalidHelp);
}

TextSource InputOptions::source() const {
  TextSource source = {
      .path = path, .format = std::nullopt, .field = field, .replace_invalid = replace_invalid};
  if (jsonl || format == "jsonl") source.format = TextFormat::kJsonLines;
  if (format == "text") source.format = TextFormat::kLines;
  if (format == "csv") source.format = TextFormat::kCsv;
  if (format == "tsv") source.format = TextFormat::kTsv;
  return source;
}

void TextOptions::AddTo(const Command& command) {
  // Far above any model and any memory, far below what could overflow.
  constexpr int kMost = 1 << 24;
  command.Add("--model", &model, "A model's folder, as it was downloaded",
              {.type = "FOLDER", .required = true});
  input.AddTo(command);
  command.Add("--threads", &threads, "Threads; 0: all usable cores (`encore info`)",
              {.show_default = true, .range = Range{0, 1024}});
  command.Add("--target", &target, "SIMD target, e.g. AVX2; default: the best", {.type = "NAME"});
  precision.AddTo(command);
  precision.AddAmxTo(command);
  command.Add("--max-length", &max_length,
              "Tokens per text, at most; 0: as many as the folder says",
              {.show_default = true, .range = Range{0, kMost}});
  command.Add("--on-long", &on_long, "Truncate (cut) or reject (error) long texts",
              {.show_default = true, .one_of = {"cut", "error"}});
  command.Add("--batch-tokens", &batch_tokens, "Tokens computed at once; 0: encore's choice",
              {.show_default = true, .range = Range{0, kMost}});
  command.Add("--plain-text", &plain_text, kPlainTextHelp);
  command.Add("--ignore-unknown-keys", &ignore_unknown_keys, kIgnoreUnknownKeysHelp);
  const Option folder = command.Add(
      "--cache", &cache, "Keep packed weights in this folder, so that the next start takes less",
      {.type = "FOLDER"});
  command.Add("--compare-cache", &compare_cache, "Compare all that is there with the weights",
              {.needs = folder});
  command.Add("--trust-cache", &trust_cache, "Do not check all bytes that are there",
              {.needs = folder});
}

TextSession::TextSession(const TextOptions& options, VectorsWanted wanted) {
  const std::vector<MatrixOfLayer> kept = options.precision.kept();
  if (!options.target.empty()) Check(SetTarget(options.target), "--target");
  pool_ = Take(ThreadPool::Create({.threads = options.threads}), "--threads");
  const OpenOptions open = {.ignore_unknown_keys = options.ignore_unknown_keys,
                            .executor = pool_->executor(),
                            .precision = options.precision.precision(),
                            .keep = kept,
                            .amx_bf16 = options.precision.amx_bf16,
                            .task = options.task,
                            .cache = options.cache,
                            .compare_cache = options.compare_cache,
                            .trust_cache = options.trust_cache};
  const std::string what = "--model " + options.model;
  if (wanted == VectorsWanted::kOfTokens) {
    late_ = Take(MultiVectorEncoder::Open(options.model, open), what);
    return;
  }
  if (wanted == VectorsWanted::kOfImages) {
    images_ = Take(ImageEncoder::Open(options.model, open), what);
    return;
  }
  Result<TextEncoder> model = TextEncoder::Open(options.model, open);
  if (wanted == VectorsWanted::kEither && model.status().code() == ErrorCode::kUnsupported) {
    Result<MultiVectorEncoder> late = MultiVectorEncoder::Open(options.model, open);
    if (late.ok()) {
      late_ = *std::move(late);
      return;
    }
  }
  model_ = Take(std::move(model), what);
}

}  // namespace encore::tool
