// SPDX-License-Identifier: Apache-2.0
//
// `encore convert`: a file of weights, or a model's folder, in another precision. This file has the
// options; folders are in weights_folder.cc, numbers in converted_tensors.cc.

#include <filesystem>
#include <iostream>
#include <map>
#include <string>
#include <system_error>
#include <vector>

#include "encore/safetensors.h"
#include "encore/torch_weights.h"
#include "engine/base/stored_precision.h"
#include "engine/io/safetensors_stream.h"
#include "engine/platform/path.h"
#include "tools/encore/commands.h"
#include "tools/encore/conversion_loss.h"
#include "tools/encore/converted_tensors.h"
#include "tools/encore/failure.h"
#include "tools/encore/shared_options.h"
#include "tools/encore/text.h"
#include "tools/encore/text_input.h"

namespace encore::tool {
namespace {

constexpr const char* kConvertFooter =
    R"(IN is a file as `encore run --weights` takes it, or a folder as `encore embed --model` does;
OUT must not exist, and appears whole or not at all. Matrices of the encoder's layers become bf16,
or int8 with an f32 scale for each row; everything else is copied. OUT gives the
same bits as IN with this --precision. OUT records the precision, and the other commands use it
unless told otherwise.

--embeddings rounds a folder's tables of embeddings (of words, positions, types) to bf16 or f16, or
makes them int8 with an f32 scale for each row, and prints how far vectors are then from those of IN
in f32. With --precision f32 the tables alone change.

In OUT, beside a matrix or table ...weight of int8:
  ...weight_scale   F32 [rows]: an element is the integer times its row's scale
  ...input_scale    F32 [columns], where inputs are smoothed: inputs are divided by it, and columns
                    of the matrix have been multiplied. Those of IN (`encore calibrate`) are used;
                    else the layer's norms give them.

Examples:
  encore convert w.safetensors w8.safetensors --precision int8
  encore convert w.safetensors w8.safetensors --precision int8 --keep 0.linear2
  encore convert all-MiniLM-L6-v2 all-MiniLM-L6-v2-bf16 --precision bf16
  encore convert all-MiniLM-L6-v2 small --precision int8 --embeddings int8 --texts mine.txt)";

struct ConvertOptions {
  std::string in;
  std::string out;
  PrecisionOptions precision;
  std::string embeddings;  // empty: they stay as they are
  std::string texts;       // empty: built-in sentences
};

const std::map<std::string, DType> kTableTypes = {
    {"f32", DType::kF32}, {"f16", DType::kF16}, {"bf16", DType::kBF16}, {"int8", DType::kI8}};

ConversionSizes ConvertFile(const std::string& in, const std::string& out,
                            const ConversionSettings& settings) {
  const SafetensorsFile file = Take(SafetensorsFile::Open(in), "IN");
  SafetensorsMetadata metadata = file.metadata();
  TorchOverrides overrides;
  // These change no weight. What the file does not tell, OUT will not either.
  if (!metadata.contains("nhead")) overrides.num_heads = 1;
  if (!metadata.contains("activation")) overrides.activation = Activation::kRelu;
  const TorchWeights weights = Take(TorchWeights::FromFile(file, overrides), "IN");
  if (weights.precision() != Precision::kF32) {
    throw Failure("IN: " + file.name() + " has been converted to " +
                  std::string(PrecisionName(weights.precision())) + ", wanted weights of floats");
  }
  const ConvertedTensors converted({{file}, weights.config(), weights.weights()}, settings);
  metadata[std::string(internal::kPrecisionKey)] = PrecisionName(settings.precision);
  CheckWritten(internal::WriteSafetensorsStream(out, converted.tensors(), metadata), "OUT");
  return converted.sizes();
}

ConversionSizes ConvertFolder(const std::string& in, const std::string& out,
                              const ConversionSettings& settings) {
  const WeightsFolder folder = OpenUnconvertedFolder(in);
  const ConvertedTensors converted(
      {folder.files.files(), folder.config.encoder, folder.weights, folder.EmbeddingNames()},
      settings);
  SafetensorsMetadata metadata = folder.metadata;
  if (settings.precision != Precision::kF32) {
    metadata[std::string(internal::kPrecisionKey)] = PrecisionName(settings.precision);
  }
  WriteWeightsFolder(in, out, folder, converted.tensors(), metadata);
  return converted.sizes();
}

std::string MegabytesOfWeights(size_t bytes) {
  return Number(static_cast<double>(bytes) / 1e6, bytes < 100'000'000 ? 2 : 1) + " MB";
}

std::string MatrixCount(size_t count) {
  return count == 1 ? "1 matrix" : Grouped(static_cast<double>(count)) + " matrices";
}

size_t CountOf(const ConvertedKind& kind, DType type) {
  const auto found = kind.types.find(type);
  return found == kind.types.end() ? 0 : found->second;
}

// "I8", or "BF16 1, I8 35".
std::string TypesOf(const ConvertedKind& kind) {
  std::string text;
  for (const auto& [type, count] : kind.types) {
    text += (text.empty() ? "" : ", ") + std::string(DTypeName(type));
    if (kind.types.size() > 1) text += " " + std::to_string(count);
  }
  return text;
}

void PrintSizes(const std::string& out, const ConversionSettings& settings,
                const ConversionSizes& sizes) {
  std::cout << Printable(out) << ": ";
  const bool int8 = settings.precision == Precision::kInt8;
  const size_t rounded = CountOf(sizes.matrices, DType::kBF16);
  if (settings.precision == Precision::kF32) {
    std::cout << MatrixCount(sizes.matrices.tensors) << " as they were";
  } else {
    std::cout << MatrixCount(int8 ? CountOf(sizes.matrices, DType::kI8) : rounded) << " in "
              << PrecisionName(settings.precision);
  }
  if (int8 && rounded > 0) std::cout << ", " << rounded << " kept in bf16";
  const size_t before =
      sizes.matrices.bytes_before + sizes.embeddings.bytes_before + sizes.others.bytes_before;
  const size_t after = sizes.matrices.bytes_after + sizes.embeddings.bytes_after +
                       sizes.others.bytes_after + sizes.scale_bytes;
  std::cout << "\n"
            << std::string(14, ' ') << PadLeft("before", 12) << PadLeft("after", 12) << "\n";
  const auto line = [](const std::string& name, size_t was, size_t is, const std::string& types) {
    std::cout << "  " << PadRight(name, 12) << PadLeft(MegabytesOfWeights(was), 12)
              << PadLeft(MegabytesOfWeights(is), 12) << (types.empty() ? "" : "  ") << types
              << "\n";
  };
  line("matrices", sizes.matrices.bytes_before, sizes.matrices.bytes_after,
       TypesOf(sizes.matrices));
  if (sizes.embeddings.tensors > 0) {
    line("embeddings", sizes.embeddings.bytes_before, sizes.embeddings.bytes_after,
         TypesOf(sizes.embeddings));
  }
  if (sizes.scale_bytes > 0) line("new scales", 0, sizes.scale_bytes, "F32");
  line("the rest", sizes.others.bytes_before, sizes.others.bytes_after, TypesOf(sizes.others));
  line("all weights", before, after, "");
}

// What the new tables cost, and what the matrices cost without them.
void PrintLoss(const ConvertOptions& options, const ConversionSettings& settings,
               const std::vector<std::string>& texts) {
  const OpenOptions f32 = {.ignore_unknown_keys = true, .precision = Precision::kF32};
  OpenOptions as_out = {.ignore_unknown_keys = true};
  const auto words = [](const CosineLoss& loss) {
    return Number(loss.mean, 6) + " on average, " + Number(loss.least, 6) + " at least";
  };
  try {
    const CosineLoss all = MeasureLoss(options.in, f32, options.out, as_out, texts);
    std::cout << "Cosine of the vectors of " << Counted(all.texts, "text")
              << " with those of IN in f32: " << words(all) << "\n";
    if (settings.precision == Precision::kF32 || !settings.embeddings) return;
    as_out.precision = settings.precision;
    as_out.keep = settings.keep;
    std::cout << "  with the embeddings of IN: "
              << words(MeasureLoss(options.in, f32, options.in, as_out, texts)) << "\n";
  } catch (const Failure& failure) {
    std::cout << "No cosine with IN in f32: " << Printable(failure.what()) << "\n";
  }
}

int RunConvert(const ConvertOptions& options) {
  ConversionSettings settings = {.precision = *options.precision.precision(),
                                 .keep = options.precision.kept()};
  if (!options.embeddings.empty()) settings.embeddings = kTableTypes.at(options.embeddings);
  if (settings.precision == Precision::kF32 && !settings.embeddings) {
    throw Failure("--precision is f32, wanted bf16 or int8, or --embeddings beside it");
  }
  WantNothingAt(options.out);
  std::error_code error;
  const bool folder = std::filesystem::is_directory(internal::ToPath(options.in), error);
  const bool told = settings.embeddings.has_value() || !options.texts.empty();
  if (told && !folder) throw Failure("--embeddings and --texts are for a folder, IN is a file");
  // Before the work rather than after it.
  std::vector<std::string> texts;
  if (told) {
    texts = options.texts.empty() ? BuiltInSentences() : SampleTexts(options.texts);
  }
  const ConversionSizes sizes = folder ? ConvertFolder(options.in, options.out, settings)
                                       : ConvertFile(options.in, options.out, settings);
  PrintSizes(options.out, settings, sizes);
  if (told) PrintLoss(options, settings, texts);
  return kExitOk;
}

}  // namespace

void AddConvert(CommandLine& line, Action& action) {
  const auto [command, options] = AddCommand(
      line, action, "convert", "Write weights in bf16 or int8", kConvertFooter, RunConvert);
  command.Add("IN", &options->in, "Weights (safetensors), or a model's folder",
              {.type = "FILE|FOLDER", .required = true});
  command.Add("OUT", &options->out, "Where they go; must not exist",
              {.type = "FILE|FOLDER", .required = true});
  options->precision.AddTo(command, {.required = true, .one_of = {"f32", "bf16", "int8"}});
  command.Add(
      "--embeddings", &options->embeddings,
      "Of a folder: what its tables of embeddings become (f32, f16, bf16 or int8 rows with a "
      "scale each); else they are copied",
      {.one_of = {"f32", "f16", "bf16", "int8"}});
  command.Add("--texts", &options->texts,
              "Texts, one a line, to tell the loss on; else built-in sentences", {.type = "FILE"});
}

}  // namespace encore::tool
