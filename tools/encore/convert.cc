// SPDX-License-Identifier: Apache-2.0
//
// `encore convert`: a file of weights, or a model's folder, in another precision. This file has the
// options; folders are in weights_folder.cc, numbers in converted_tensors.cc.

#include <filesystem>
#include <iostream>
#include <string>
#include <system_error>

#include "encore/safetensors.h"
#include "encore/torch_weights.h"
#include "engine/base/stored_precision.h"
#include "engine/io/safetensors_stream.h"
#include "tools/encore/commands.h"
#include "tools/encore/converted_tensors.h"
#include "tools/encore/failure.h"
#include "tools/encore/shared_options.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

constexpr const char* kFooter =
    R"(IN is a file as `encore run --weights` takes it, or a folder as `encore embed --model` does;
OUT must not exist. Matrices of the encoder's layers become bf16, or int8 with an f32 scale for each
row; everything else is copied. What is computed from OUT has the bits of IN with the same
--precision, and OUT says which that is: run, embed and the others take it from there.

In OUT, beside a matrix ...weight of int8:
  ...weight_scale   F32 [rows]: an element is the integer times its row's scale
  ...input_scale    F32 [columns], where inputs are smoothed: inputs are divided by it, and columns
                    of the matrix have been multiplied. Those of IN (`encore calibrate`) are used;
                    else the layer's norms give them.

Examples:
  encore convert w.safetensors w8.safetensors --precision int8
  encore convert w.safetensors w8.safetensors --precision int8 --keep 0.linear2
  encore convert all-MiniLM-L6-v2 all-MiniLM-L6-v2-bf16 --precision bf16)";

struct Options {
  std::string in;
  std::string out;
  PrecisionOptions precision;
};

size_t ConvertFile(const std::string& in, const std::string& out,
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
  Check(internal::WriteSafetensorsStream(out, converted.tensors(), metadata), "OUT");
  return converted.matrices();
}

size_t ConvertFolder(const std::string& in, const std::string& out,
                     const ConversionSettings& settings) {
  const WeightsFolder folder = OpenWeightsFolder(in);
  const ConvertedTensors converted(
      {folder.files.files(), folder.config.plan.encoder, folder.weights}, settings);
  SafetensorsMetadata metadata = folder.metadata;
  metadata[std::string(internal::kPrecisionKey)] = PrecisionName(settings.precision);
  WriteWeightsFolder(in, out, folder, converted.tensors(), metadata);
  return converted.matrices();
}

int Run(const Options& options) {
  const ConversionSettings settings = {.precision = *options.precision.precision(),
                                       .keep = options.precision.kept()};
  if (settings.precision == Precision::kF32) {
    throw Failure("--precision is f32, wanted bf16 or int8");
  }
  WantNothingAt(options.out);
  std::error_code error;
  const bool folder = std::filesystem::is_directory(options.in, error);
  const size_t matrices = folder ? ConvertFolder(options.in, options.out, settings)
                                 : ConvertFile(options.in, options.out, settings);
  std::cout << Printable(options.out) << ": " << (matrices == 1 ? "1 matrix" : "")
            << (matrices == 1 ? "" : Grouped(static_cast<double>(matrices)) + " matrices") << " in "
            << PrecisionName(settings.precision);
  if (!settings.keep.empty()) std::cout << ", " << settings.keep.size() << " kept in bf16";
  std::cout << "\n";
  return kExitOk;
}

}  // namespace

void AddConvert(CLI::App& app, Action& action) {
  const auto [sub, options] =
      AddCommand(app, action, "convert", "Write weights in bf16 or int8", kFooter, Run);
  AddRequired(*sub, "IN", "FILE|FOLDER", options->in, "Weights (safetensors), or a model's folder");
  AddRequired(*sub, "OUT", "FILE|FOLDER", options->out, "Where they go; must not exist");
  options->precision.AddTo(*sub)->required();
}

}  // namespace encore::tool
