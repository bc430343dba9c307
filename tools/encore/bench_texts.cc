// SPDX-License-Identifier: Apache-2.0
//
// The texts, the models, and their calls.

#include "tools/encore/bench_texts.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <string_view>
#include <utility>

#include "bench/measure/os.h"
#include "bench/measure/threads.h"
#include "encore/executor.h"
#include "encore/safetensors.h"
#include "engine/io/folder.h"
#include "engine/models/weight_files.h"
#include "engine/nn/layer_sizes.h"
#include "engine/platform/path.h"
#include "tools/encore/failure.h"
#include "tools/encore/new_folder.h"
#include "tools/encore/text.h"
#include "tools/encore/text_input.h"

namespace encore::tool {
namespace {

constexpr const char* kQuery = "How do I renew a passport that expired three years ago?";
constexpr const char* kWords =
    "the of and to in for is on that by this with you it not or be are from at as your all have "
    "new more an was we will home can us about if page my has search free but our one other do "
    "time they site he up may what which their news out use any there see only so his when here "
    "business also how people between water house travel children weather history music hospital "
    "government engine computer language morning mountain contract insurance passport library";
constexpr size_t kTexts = 64;

double Uniform(std::mt19937& random) { return (random() + 0.5) / 4294967296.0; }

// Lengths are log-normal, by the same steps everywhere: std's distributions differ.
std::vector<std::string> DrawnTexts() {
  constexpr double kPi = 3.14159265358979323846;
  const std::vector<std::string> words = SplitWords(kWords);
  std::mt19937 random(1);
  std::vector<std::string> texts;
  while (texts.size() < kTexts) {
    const double normal =
        std::sqrt(-2 * std::log(Uniform(random))) * std::cos(2 * kPi * Uniform(random));
    const size_t count = static_cast<size_t>(std::clamp(std::exp(3.0 + 0.7 * normal), 3.0, 100.0));
    std::string text;
    for (size_t i = 0; i < count; ++i) {
      text += (i == 0 ? "" : " ") + words[random() % words.size()];
    }
    texts.push_back(std::move(text));
  }
  return texts;
}

Answer AnswerOf(Tensor values, TextCounts counts) {
  const auto* data = static_cast<const float*>(std::as_const(values).data());
  const size_t count = values.size_bytes() / sizeof(float);
  return {{data, data + count}, std::move(counts.tokens)};
}

ReportModel AboutFolder(const std::string& path) {
  ReportModel about;
  about.name = FolderName(path);
  const internal::Folder folder = Take(internal::Folder::Open(path), "--model");
  const internal::WeightFiles files = Take(internal::WeightFiles::Open(folder), "--model");
  for (const SafetensorsFile& file : files.files()) {
    for (const SafetensorsEntry& entry : file.tensors()) {
      about.bytes += entry.bytes.size();
      about.values += entry.bytes.size() / DTypeSize(entry.dtype);
      std::byte sum{};  // the pages are read, so that opening does not wait for a disk
      for (size_t i = 0; i < entry.bytes.size(); i += 4096) sum ^= entry.bytes[i];
      volatile std::byte seen = sum;
      (void)seen;
    }
  }
  return about;
}

}  // namespace

std::vector<TextWorkload> TextWorkloads(const std::string& path) {
  std::vector<std::string> texts = path.empty() ? DrawnTexts() : SampleTexts(path, kMostTexts);
  const std::string name = Counted(texts.size(), "text");
  return {{"query", {kQuery}}, {name, std::move(texts)}};
}

std::string TextOfWords(size_t words) {
  static const std::vector<std::string> kAll = SplitWords(kWords);
  std::string text;
  for (size_t i = 0; i < words; ++i) text += (i == 0 ? "" : " ") + kAll[i % kAll.size()];
  return text;
}

BenchModel::BenchModel(const std::string& folder, std::vector<Precision> precisions,
                       OpenOptions options)
    : folder_(folder), options_(std::move(options)), about_(AboutFolder(folder)) {
  const bool chosen = !precisions.empty();
  precisions_ =
      chosen ? std::move(precisions)
             : std::vector{Precision::kF32, Precision::kBF16, Precision::kInt8, Precision::kInt4};
  if (chosen) options_.precision = precisions_[0];
  for (size_t i = 0; i < precisions_.size(); ++i) {
    const size_t before = bench::ResidentBytes();
    ReportOpening& opening = openings_.emplace_back();
    opening.seconds = bench::SecondsOf([&] { models_.push_back(OpenCopy(i)); });
    const TextEncoder& model = models_[i];
    if (!model.has_encoder()) {
      throw Failure("--model " + Printable(folder) + ": found static embeddings, wanted layers");
    }
    if (!model.has_tokenizer()) {
      throw Failure("--model " + Printable(folder) + ": found no tokenizer, wanted one");
    }
    const std::vector<std::string> query = {kQuery};
    opening.first_call = bench::SecondsOf([&] { (void)Call(model, query, Executor::Inline()); });
    const size_t after = bench::ResidentBytes();
    opening.packed_bytes = model.encoder().packed_bytes();
    opening.resident_bytes = after - std::min(before, after);
    const Precision first = model.encoder().precision();
    if (!chosen && i == 0 && first != Precision::kF32) precisions_ = {first};  // converted
  }
}

void BenchModel::MeasureCachedOpening() {
  const NewFolder made(internal::PathText(std::filesystem::temp_directory_path() / "encore-bench"));
  const std::string cache = internal::PathText(made.temporary() / "packed");
  for (size_t i = 0; i < precisions_.size(); ++i) {
    (void)OpenCopy(i, cache);
    std::optional<TextEncoder> model;
    const double seconds = bench::SecondsOf([&] { model = OpenCopy(i, cache); });
    if (model->encoder().cache_use().starts_with("mapped")) openings_[i].cached = seconds;
  }
}

TextEncoder BenchModel::OpenCopy(size_t precision, const std::string& cache) const {
  OpenOptions options = options_;
  if (options.precision || precision > 0) options.precision = precisions_[precision];
  options.cache = cache;
  return Take(TextEncoder::Open(folder_, options), "--model");
}

Answer BenchModel::Call(const TextEncoder& model, std::span<const std::string> texts,
                        const Executor& executor, size_t max_length) {
  if (model.dimensions() > 0) {
    Embeddings made = Take(model.Encode(texts, {.executor = executor, .max_length = max_length}));
    return AnswerOf(std::move(made.vectors), std::move(made.counts));
  }
  const ScoreOptions options = {.executor = executor, .max_length = max_length};
  if (model.labels().size() == 1) {
    Scores made = Take(model.Score(kQuery, texts, options));
    return {std::move(made.values), std::move(made.counts.tokens)};
  }
  Predictions made = Take(model.Classify(texts, options));
  return AnswerOf(std::move(made.values), std::move(made.counts));
}

Answer BenchModel::CheckedCall(size_t precision, std::span<const std::string> texts,
                               const Executor& executor, size_t max_length) const {
  Answer answer = Call(models_[precision], texts, executor, max_length);
  const Answer alone = Call(models_[precision], texts, Executor::Inline(), max_length);
  const auto finite = [](float value) { return std::isfinite(value); };
  const auto bits = [](const Answer& a) { return std::as_bytes(std::span(a.values)); };
  if (!std::ranges::equal(bits(answer), bits(alone)) ||
      !std::all_of(answer.values.begin(), answer.values.end(), finite)) {
    throw Failure(about_.name + " in " + std::string(PrecisionName(precisions_[precision])) +
                      ": found other bits than the calling thread alone computes, or no numbers",
                  kExitCheckFailed);
  }
  return answer;
}

ReportRow BenchModel::RowOf(const std::string& name, size_t precision,
                            const std::vector<size_t>& tokens) const {
  const Encoder& encoder = models_[precision].encoder();
  const EncoderConfig& config = encoder.config();
  ReportRow row;
  row.workload = about_.name + " " + name;
  row.model = about_;
  row.opening = openings_[precision];
  row.d_model = config.d_model;
  row.heads = config.layers[0].num_heads;
  row.d_ff = config.layers[0].d_ff;
  row.activation = ActivationName(config.layers[0].activation);
  row.layers = config.num_layers();
  row.sequences = tokens.size();
  row.tokens = std::accumulate(tokens.begin(), tokens.end(), size_t{0});
  row.useful_tokens = row.tokens;
  row.amx_bf16 = encoder.amx_bf16();
  row.weights = "warm";
  for (const LayerConfig& layer : config.layers) {
    for (const size_t count : tokens) {
      row.flops += internal::LayerFlops(config.d_model, layer, count);
    }
  }
  row.weight_bytes = static_cast<double>(encoder.packed_bytes());
  row.verified = true;
  return row;
}

ReportRow BenchModel::RowOfOne(const std::string& name, size_t precision,
                               std::span<const std::string> texts, const Executor& executor) const {
  ReportRow row = RowOf(name, precision, CheckedCall(precision, texts, executor).tokens);
  row.sequences = 1;
  row.tokens = std::max<size_t>(1, (row.tokens + texts.size() / 2) / texts.size());
  row.useful_tokens = row.tokens;
  row.flops /= static_cast<double>(texts.size());
  return row;
}

const ReportRow& BenchModel::Measure(const TextWorkload& workload, size_t precision, int threads,
                                     BenchMeasurer* measurer) {
  TimedCall timed;
  timed.name = about_.name + " " + workload.name + "," + std::to_string(precision) + "," +
               std::to_string(threads);
  bench::BindFor(threads);
  const Executor executor = ExecutorFor(threads);
  const TextEncoder& model = models_[precision];
  const auto call = [&] { return Call(model, workload.texts, executor); };
  Answer answer;
  timed.first_seconds = bench::SecondsOf([&] { answer = call(); });
  timed.bits = std::hash<std::string_view>()(
      {reinterpret_cast<const char*>(answer.values.data()), answer.values.size() * sizeof(float)});
  if (measurer->Find(timed.name) == nullptr) {
    answer = CheckedCall(precision, workload.texts, executor);
  }
  timed.run = [&](size_t) { (void)call(); };
  timed.row = RowOf(workload.name, precision, answer.tokens);
  return measurer->Time(std::move(timed), products(precision), threads, executor);
}

}  // namespace encore::tool
