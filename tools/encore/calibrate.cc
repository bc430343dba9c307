// SPDX-License-Identifier: Apache-2.0
//
// `encore calibrate`: scales of inputs from samples, written beside the weights. This file has the
// options, the samples and the order of things; scales are in calibration.cc.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "encore/safetensors.h"
#include "encore/thread_pool.h"
#include "encore/torch_weights.h"
#include "engine/io/safetensors_stream.h"
#include "engine/models/embeddings.h"
#include "engine/platform/path.h"
#include "engine/text/folder_files.h"
#include "tools/encore/calibration.h"
#include "tools/encore/commands.h"
#include "tools/encore/converted_tensors.h"
#include "tools/encore/failure.h"
#include "tools/encore/run_batch.h"
#include "tools/encore/shared_options.h"
#include "tools/encore/text.h"
#include "tools/encore/text_input.h"

namespace encore::tool {
namespace {

constexpr const char* kCalibrateFooter =
    R"(Finds how large the inputs of each product get, channel by channel, and writes OUT: a copy of
IN with a scale for each channel (...input_scale), by which int8 divides inputs and multiplies
weights, so that channels far above the others cost less of a row's 8 bits (SmoothQuant,
arXiv:2211.10438). `encore convert`, --precision int8 and the library take the scales from OUT. f32
and bf16 compute from OUT what they compute from IN.

Samples are what `encore run --input` takes where IN is a file, and texts, one a line, where it is a
folder. A few hundred sentences of the kind that will come are enough.

Examples:
  encore calibrate w.safetensors calibrated.safetensors --input x.safetensors
  encore calibrate all-MiniLM-L6-v2 calibrated --input texts.txt --suggest-keep)";

struct CalibrateOptions {
  std::string in;
  std::string out;
  std::string input;
  bool suggest_keep = false;
  TorchOptions torch;  // of a file
};

// All tensors of the files, scales behind the matrices that they are of.
std::vector<internal::StreamedTensor> WithScales(const std::vector<SafetensorsFile>& files,
                                                 const EncoderWeights& weights,
                                                 const std::vector<CalibratedMatrix>& found) {
  std::vector<internal::StreamedTensor> tensors;
  const MatrixTensors matrices(weights);
  for (const SafetensorsFile& file : files) {
    for (const SafetensorsEntry& entry : file.tensors()) {
      tensors.push_back(CopiedTensor(file, entry));
      const MatrixTensor* const matrix = matrices.Find(entry);
      if (matrix == nullptr || !matrix->first) continue;
      const std::vector<float>& scale = found[matrix->index].input_scale;
      tensors.push_back({InputScaleName(entry.name), DType::kF32, Shape(scale.size()),
                         [&scale](const internal::ByteSink& sink) {
                           return sink(std::as_bytes(std::span(scale)));
                         }});
    }
  }
  return tensors;
}

// The worst products, and those among them that stand out: 4 times the median and more.
void PrintWorst(std::vector<CalibratedMatrix> found) {
  constexpr size_t kShown = 8;
  constexpr double kStandsOut = 4;
  std::stable_sort(
      found.begin(), found.end(),
      [](const CalibratedMatrix& a, const CalibratedMatrix& b) { return a.error > b.error; });
  const double median = found[found.size() / 2].error;
  std::cout << "Products in int8 with these scales, |error|^2 / |product|^2 on the samples; median "
            << Number(median * 1e6, 1) << "e-6\n";
  std::string keep;
  for (size_t i = 0; i < std::min(kShown, found.size()); ++i) {
    const std::string name = MatrixName(found[i].matrix);
    std::cout << "  " << PadRight(name, 12) << PadLeft(Number(found[i].error * 1e6, 1), 10)
              << "e-6\n";
    if (found[i].error > kStandsOut * median) keep += (keep.empty() ? "" : ",") + name;
  }
  if (keep.empty()) {
    std::cout << "None stands out.\n";
  } else {
    std::cout << "Above " << kStandsOut << " times the median: --keep " << keep << "\n";
  }
}

// A file as of `encore run --input`.
void AddSampleTensors(const std::string& path, Calibration* calibration) {
  const SafetensorsFile file = Take(SafetensorsFile::Open(path), "--input");
  const RunInput input = ReadRunInput(file, calibration->encoder().config().d_model);
  if (input.tokens() == 0) return;
  Tensor packed;
  calibration->Add(input.MakeBatch(/*causal=*/false), input.Packed(&packed));
}

// Texts, one a line, through the tokenizer and the embeddings of the folder at `path`, cut at the
// length that the model is given.
void AddSampleTexts(const std::string& texts, const std::string& path, WeightsFolder* folder,
                    Calibration* calibration) {
  constexpr size_t kBatchTokens = 2048;
  const internal::FolderTokenizer opened =
      Take(internal::OpenFolderTokenizer(path, /*ignore_unknown_keys=*/true), "IN");
  const size_t d_model = calibration->encoder().config().d_model;
  const internal::Embeddings embeddings = Take(
      internal::Embeddings::Create(folder->config.embeddings, d_model, &folder->tensors), "IN");
  TokenizeOptions tokenize;
  tokenize.max_length = opened.max_length == 0
                            ? embeddings.spec().usual_tokens()
                            : std::min(opened.max_length, embeddings.spec().max_tokens());
  std::vector<int32_t> ids;
  std::vector<uint8_t> type_ids;
  std::vector<size_t> starts = {0};
  internal::BatchScratch scratch;
  const auto add = [&] {
    if (ids.empty()) return;
    const internal::TokenBatch batch = {.ids = ids,
                                        .type_ids = embeddings.spec().type_vocab_size > 0
                                                        ? std::span<const uint8_t>(type_ids)
                                                        : std::span<const uint8_t>(),
                                        .seq_starts = starts};
    Check(embeddings.Check(batch), "--input");
    Tensor x = NewTensor({ids.size(), d_model}, "x");
    Check(embeddings.Apply(batch, x.View<float>(), &scratch, Executor::Inline()), "--input");
    calibration->Add(Batch{.seq_starts = starts}, x.View<float>());
    ids.clear();
    type_ids.clear();
    starts.assign(1, 0);
  };
  TextReader reader({.path = texts});
  TextInput input;
  Tokens tokens;
  while (reader.Next(&input)) {
    Check(opened.tokenizer.Encode(input.text, &tokens, tokenize), reader.Where());
    if (tokens.ids.empty()) continue;
    if (ids.size() + tokens.ids.size() > kBatchTokens) add();
    ids.insert(ids.end(), tokens.ids.begin(), tokens.ids.end());
    type_ids.insert(type_ids.end(), tokens.type_ids.begin(), tokens.type_ids.end());
    starts.push_back(ids.size());
  }
  add();
}

std::vector<CalibratedMatrix> CalibrateFile(const CalibrateOptions& options,
                                            const Executor& executor, size_t* tokens) {
  const SafetensorsFile file = Take(SafetensorsFile::Open(options.in), "IN");
  const TorchWeights weights = Take(TorchWeights::FromFile(file, options.torch.overrides()), "IN");
  Calibration calibration(weights.config(), weights.weights(), executor);
  AddSampleTensors(options.input, &calibration);
  std::vector<CalibratedMatrix> found = calibration.Finish(executor);
  CheckWritten(internal::WriteSafetensorsStream(
                   options.out, WithScales({file}, weights.weights(), found), file.metadata()),
               "OUT");
  *tokens = calibration.tokens();
  return found;
}

std::vector<CalibratedMatrix> CalibrateFolder(const CalibrateOptions& options,
                                              const Executor& executor, size_t* tokens) {
  WeightsFolder folder = OpenUnconvertedFolder(options.in);
  Calibration calibration(folder.config.encoder, folder.weights, executor);
  AddSampleTexts(options.input, options.in, &folder, &calibration);
  std::vector<CalibratedMatrix> found = calibration.Finish(executor);
  WriteWeightsFolder(options.in, options.out, folder,
                     WithScales(folder.files.files(), folder.weights, found), folder.metadata);
  *tokens = calibration.tokens();
  return found;
}

int RunCalibrate(const CalibrateOptions& options) {
  WantNothingAt(options.out);
  const ThreadPool pool = Take(ThreadPool::Create({}));
  std::error_code error;
  size_t tokens = 0;
  const std::vector<CalibratedMatrix> found =
      std::filesystem::is_directory(internal::ToPath(options.in), error)
          ? CalibrateFolder(options, pool.executor(), &tokens)
          : CalibrateFile(options, pool.executor(), &tokens);
  std::cout << Printable(options.out) << ": input scales of " << found.size() << " matrices from "
            << Counted(tokens, "token") << "\n";
  if (options.suggest_keep) PrintWorst(found);
  return kExitOk;
}

}  // namespace

void AddCalibrate(CommandLine& line, Action& action) {
  const auto [command, options] = AddCommand(line, action, "calibrate", "Fit int8 to sample inputs",
                                             kCalibrateFooter, RunCalibrate);
  command.Add("IN", &options->in, "Weights (safetensors), or a model's folder",
              {.type = "FILE|FOLDER", .required = true});
  command.Add("OUT", &options->out, "A copy with scales; must not exist",
              {.type = "FILE|FOLDER", .required = true});
  command.Add("--input", &options->input, "Inputs (safetensors), or texts for a folder",
              {.type = "FILE", .required = true});
  command.Add("--suggest-keep", &options->suggest_keep,
              "Also print the products that int8 hurts most");
  options->torch.AddTo(command);
}

}  // namespace encore::tool
