// SPDX-License-Identifier: Apache-2.0
//
// `encore embed`: a vector for each text of a file or a pipe, some thousand texts at a time. Not
// here: reading texts (text_input), writing vectors (vector_writer).

#include <cstdint>
#include <iostream>
#include <optional>
#include <string>

#include "tools/encore/commands.h"
#include "tools/encore/failure.h"
#include "tools/encore/progress.h"
#include "tools/encore/shared_options.h"
#include "tools/encore/text_input.h"
#include "tools/encore/vector_writer.h"

namespace encore::tool {
namespace {

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
  EncodeOptions encode{.executor = executor,
                       .max_length = options.text.max_length,
                       .on_long = options.text.OnLongTexts(),
                       .on_invalid_utf8 = options.text.OnInvalidBytes(),
                       .plain_text = options.text.plain_text,
                       .normalize = options.normalize,
                       .dimensions = options.dimensions,
                       .batch_tokens = options.text.batch_tokens};
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
  sub->add_option("--output", options->output, "Where the vectors go: .npy, .safetensors or .jsonl")
      ->required()
      ->type_name("FILE");
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
      "Vectors of length 1, or as long as they are; else as the folder says");
  sub->add_option("--dimensions", options->dimensions,
                  "The first columns only (for models that were trained for it); 0: as the folder "
                  "says")
      ->check(CLI::Range(0, 1 << 24))
      ->capture_default_str();
}

}  // namespace encore::tool
