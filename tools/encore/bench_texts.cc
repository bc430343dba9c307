// SPDX-License-Identifier: Apache-2.0
//
// The texts, the models, and their calls.

#include "tools/encore/bench_texts.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
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
#include "tools/encore/failure.h"
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
    : precisions_(std::move(precisions)) {
  const bool chosen = !precisions_.empty();
  if (!chosen) precisions_ = {Precision::kF32, Precision::kBF16, Precision::kInt8};
  if (chosen) options.precision = precisions_[0];
  models_.push_back(Take(TextEncoder::Open(folder, options), "--model"));
  if (!models_[0].has_encoder()) {
    throw Failure("--model " + Printable(folder) + ": found static embeddings, wanted layers");
  }
  const Precision first = models_[0].encoder().precision();
  if (!chosen && first != Precision::kF32) precisions_ = {first};  // it has been converted
  for (size_t i = 1; i < precisions_.size(); ++i) {
    options.precision = precisions_[i];
    models_.push_back(Take(TextEncoder::Open(folder, options), "--model"));
  }
  if (!models_[0].has_tokenizer()) {
    throw Failure("--model " + Printable(folder) + ": found no tokenizer, wanted one");
  }
  about_ = AboutFolder(folder);
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
