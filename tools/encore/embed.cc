// SPDX-License-Identifier: Apache-2.0
//
// `encore embed`: a vector for each text of a file or a pipe, some thousand texts at a time, to a
// file in one of three formats. Not here: reading texts (text_input).

#include <bit>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <optional>
#include <span>
#include <string>

#include "engine/platform/file_writer.h"
#include "tools/encore/commands.h"
#include "tools/encore/failure.h"
#include "tools/encore/progress.h"
#include "tools/encore/shared_options.h"
#include "tools/encore/text.h"
#include "tools/encore/text_input.h"

namespace encore::tool {
namespace {

// ---- Vectors to a file whose number of rows is known at the end --------------------------------
// npy is that of NumPy's NEP 1, version 1.0. The headers of npy and safetensors are written with
// room for any number of rows, and again at the end. The file appears whole or not at all.

enum class VectorFormat : uint8_t {
  kNpy,          // numpy.load: f32 [rows, columns]
  kSafetensors,  // one tensor "vectors", F32 [rows, columns]
  kJsonLines,    // an array of numbers a line, each the shortest that reads back as the same f32
};

static_assert(std::endian::native == std::endian::little, "both formats are little-endian");

// Both headers with everything before the numbers: a multiple of 64, so that these are aligned.
constexpr size_t kHeaderBytes = 256;

std::string Padded(std::string text, size_t size) {
  text.resize(size, ' ');
  return text;
}

// Bytes of a number that precedes a header, lowest first.
std::string LittleEndian(size_t value, size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i) text += static_cast<char>((value >> (8 * i)) & 0xFF);
  return text;
}

std::string NpyHeader(size_t rows, size_t columns) {
  const std::string magic = "\x93NUMPY\x01";
  const size_t length = kHeaderBytes - magic.size() - 3;
  std::string header = Padded("{'descr': '<f4', 'fortran_order': False, 'shape': (" +
                                  std::to_string(rows) + ", " + std::to_string(columns) + "), }",
                              length - 1);
  return magic + '\0' + LittleEndian(length, 2) + header + '\n';
}

std::string SafetensorsHeader(size_t rows, size_t columns) {
  const size_t length = kHeaderBytes - 8;
  return LittleEndian(length, 8) +
         Padded(R"({"vectors":{"dtype":"F32","shape":[)" + std::to_string(rows) + "," +
                    std::to_string(columns) + R"(],"data_offsets":[0,)" +
                    std::to_string(rows * columns * sizeof(float)) + "]}}",
                length);
}

// From the name's ending. Throws Failure for another than .npy, .safetensors and .jsonl.
VectorFormat FormatOf(const std::string& path) {
  const auto ends = [&](const std::string& ending) {
    return path.size() > ending.size() && path.ends_with(ending);
  };
  if (ends(".npy")) return VectorFormat::kNpy;
  if (ends(".safetensors")) return VectorFormat::kSafetensors;
  if (ends(".jsonl")) return VectorFormat::kJsonLines;
  throw Failure("--output " + path + ": wanted a name that ends in .npy, .safetensors or .jsonl");
}

class VectorWriter {
 public:
  // Throws Failure if the file cannot be made.
  VectorWriter(const std::string& path, size_t columns)
      : format_(FormatOf(path)),
        columns_(columns),
        file_(Take(internal::FileWriter::Create(path), "--output")) {
    Append(Header());
  }

  // rows [any, columns], dense.
  void Write(ConstView rows) {
    const std::span<const float> values(rows.data(), rows.dim(0) * columns_);
    rows_ += rows.dim(0);
    if (format_ != VectorFormat::kJsonLines) {
      Check(file_.Write(std::as_bytes(values)), "--output");
      return;
    }
    std::string text;
    for (size_t i = 0; i < values.size(); ++i) {
      text += (i % columns_ == 0 ? '[' : ',') + ShortestText(values[i]);
      if ((i + 1) % columns_ == 0) text += "]\n";
    }
    Append(text);
  }

  // Makes the file appear.
  void Commit() {
    const std::string header = Header();
    Check(file_.Replace(0, std::as_bytes(std::span(header))), "--output");
    Check(file_.Commit(), "--output");
  }

 private:
  std::string Header() const {
    return format_ == VectorFormat::kNpy           ? NpyHeader(rows_, columns_)
           : format_ == VectorFormat::kSafetensors ? SafetensorsHeader(rows_, columns_)
                                                   : "";
  }

  void Append(const std::string& text) {
    Check(file_.Write(std::as_bytes(std::span(text))), "--output");
  }

  VectorFormat format_;
  size_t columns_;
  size_t rows_ = 0;
  internal::FileWriter file_;
};

// ---- The command ------------------------------------------------------------------------------

constexpr const char* kFooter =
    R"(The folder's files say how texts are cut, pooled and normalized; `encore info FOLDER` tells.
The output has a row for each text, in the order of the input: f32 [texts, dimensions].
  .npy          numpy.load("out.npy")
  .safetensors  one tensor, "vectors"
  .jsonl        an array of numbers a line

Examples:
  encore embed --model all-MiniLM-L6-v2 --input texts.txt --output vectors.npy
  zcat texts.gz | encore embed --model all-MiniLM-L6-v2 --input - --output vectors.npy
  encore embed --model all-MiniLM-L6-v2 --input texts.txt --output vectors.npy --precision int8
  encore embed --model e5-small --input q.jsonl --jsonl --prompt "query: " --output q.safetensors)";

struct Options {
  TextOptions text;
  std::string output;
  std::string prompt_name;
  std::string prompt;
  bool no_prompt = false;
  std::optional<bool> normalize;
  size_t dimensions = 0;
};

EncodeOptions MakeEncodeOptions(const Options& options, const Executor& executor) {
  auto encode = options.text.SettingsOf<EncodeOptions>(executor);
  encode.normalize = options.normalize;
  encode.dimensions = options.dimensions;
  if (!options.prompt_name.empty()) encode.prompt_name = options.prompt_name;
  if (!options.prompt.empty()) encode.prompt = options.prompt;
  if (options.no_prompt) encode.prompt = "";
  return encode;
}

int Run(const Options& options) {
  (void)FormatOf(options.output);
  WantFolderOf(options.output);
  TextChunks input(options.text.input, options.text.jsonl);
  const TextSession session(options.text);
  const TextEncoder& model = session.model();
  const EncodeOptions encode = MakeEncodeOptions(options, session.executor());
  const size_t columns = options.dimensions > 0 ? options.dimensions : model.dimensions();
  // No texts at all would hide what is wrong with the options.
  Check(model.Encode(Texts(), encode).status());

  VectorWriter writer(options.output, columns);
  TextProgress progress(input);
  while (input.Next()) {
    const Result<Embeddings> embeddings = model.Encode(input.texts(), encode);
    input.Check(embeddings.status());
    writer.Write(embeddings->vectors.View<float>());
    progress.Add(embeddings->counts);
  }
  progress.Clear();
  writer.Commit();
  const size_t max_length = encode.max_length > 0 ? encode.max_length : model.max_length();
  std::cout << progress.Summary(max_length) << "\n";
  return kExitOk;
}

}  // namespace

void AddEmbed(CLI::App& app, Action& action) {
  const auto [sub, options] = AddCommand(
      app, action, "embed", "A vector for each text, from a model's folder", kFooter, Run);
  options->text.AddTo(*sub);
  AddRequired(*sub, "--output", "FILE", options->output,
              "Where the vectors go: .npy, .safetensors or .jsonl");
  CLI::Option* name = sub->add_option("--prompt-name", options->prompt_name,
                                      "The folder's prompt of this name before each text")
                          ->type_name("NAME");
  CLI::Option* prompt =
      sub->add_option("--prompt", options->prompt, "This before each text")->type_name("TEXT");
  prompt->excludes(name);
  sub->add_flag("--no-prompt", options->no_prompt, "Not even the folder's default prompt")
      ->excludes(name)
      ->excludes(prompt);
  sub->add_flag_function(
         "--normalize,!--no-normalize",
         [options = options](int64_t given) { options->normalize = given > 0; },
         "Vectors of length 1, or as long as they are; else as the folder says")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  sub->add_option("--dimensions", options->dimensions,
                  "The first columns only (for models that were trained for it); 0: as the folder "
                  "says")
      ->check(CLI::Range(0, 1 << 24))
      ->capture_default_str();
}

}  // namespace encore::tool
