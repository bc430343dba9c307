// SPDX-License-Identifier: Apache-2.0
//
// `encore embed`: a vector for each text of a file or a pipe, some hundred texts at a time, to a
// file in one of three formats.

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "encore/version.h"
#include "engine/platform/path.h"
#include "tools/encore/commands.h"
#include "tools/encore/embed_images.h"
#include "tools/encore/embed_sparse.h"
#include "tools/encore/embed_tokens.h"
#include "tools/encore/failure.h"
#include "tools/encore/progress.h"
#include "tools/encore/resumable_output.h"
#include "tools/encore/shared_options.h"
#include "tools/encore/stop_signal.h"
#include "tools/encore/text.h"
#include "tools/encore/text_input.h"
#include "tools/encore/vector_file.h"

namespace encore::tool {
namespace {

constexpr const char* kEmbedFooter =
    R"(The folder's files say how texts are cut, pooled and normalized: see `encore info FOLDER`.

Input, by the name's ending or --format:
  text          one text per line
  jsonl         one JSON string per line, or one object whose member "text" (or --field) is the text
  csv, tsv      a header, then rows; the column "text" (or --field) is the text (RFC 4180)

The output has one row per text, in the order of the input: f32 [texts, dimensions], unless
--output-type says otherwise. int8 and ubinary are those of sentence-transformers'
quantize_embeddings, int8 with ranges of -1 and 1.
  .npy          numpy.load("out.npy")
  .safetensors  one tensor, "vectors"
  .jsonl        one array of numbers per line; an object with --output-field

Sparse vectors (a SparseEncoder's folder, or --vectors sparse with BGE-M3) go to
  .jsonl        an object per text, {"indices": [7, 12], "values": [0.5, 1.25]}, with the
                input's "id", if it has one
  .npz          scipy.sparse.load_npz("out.npz"): rows of CSR; needs 4 bytes of memory an entry

Vectors of tokens (a folder of late interaction, or --vectors tokens with BGE-M3) go to
  .npz          numpy.load("out.npz"): "vectors" [tokens, dimensions]; text i has the rows
                from "row_starts"[i] to [i + 1]. --output-type bf16 halves them (numpy has
                no bf16: uint16, its bits), int8 quarters them, with a row's scale in "scales"

Pictures (--images, with a folder of CLIP, SigLIP, ViT, DeiT or DINO): --input is a PNG, JPEG or
WebP file; a folder, of which all such files count in the order of their paths; or texts as above,
each the path of a picture. They are turned as their EXIF data say, and alpha channels are ignored,
as load_image of transformers has it. With --output-field "id" is the path.

With --shard I/N, row r (from 0) is text r N + I (from 1) of the input. A command that fails leaves
no output.

Ctrl-C keeps the vectors that are done (exit status 3). The same command with --resume computes the
others. OUTPUT.resume says what the rows were made of: texts, settings and model that differ, and a
changed output, are refused.

Examples:
  encore embed --model all-MiniLM-L6-v2 --input texts.txt --output vectors.npy
  zcat texts.gz | encore embed --model all-MiniLM-L6-v2 --input - --output vectors.npy
  encore embed --model all-MiniLM-L6-v2 --input texts.txt --output vectors.npy --precision int8
  encore embed --model all-MiniLM-L6-v2 --input texts.txt --output 2.npy --shard 2/8
  encore embed --model all-MiniLM-L6-v2 --input x.jsonl --field body --output y.jsonl \
      --output-field embedding
  encore embed --model clip-vit-b32 --images --input photos/ --output vectors.npy
  encore embed --model e5-small --input q.csv --field question --prompt "query: " --output q.npy)";

struct EmbedOptions {
  TextOptions text;
  std::string output;
  std::string output_type = "f32";
  std::string output_field;
  std::string shard;
  std::string prompt_name;
  std::string prompt;
  bool no_prompt = false;
  std::optional<bool> normalize;
  size_t dimensions = 0;
  size_t max_active_dims = 0;  // of sparse vectors
  std::string task;            // of these and of tokens; or of an adapter
  std::string vectors;         // empty: as the folder says
  bool resume = false;
  bool images = false;
};

EncodeOptions MakeEncodeOptions(const EmbedOptions& options, const Executor& executor) {
  auto encode = options.text.SettingsOf<EncodeOptions>(executor);
  encode.normalize = options.normalize;
  encode.dimensions = options.dimensions;
  if (!options.prompt_name.empty()) encode.prompt_name = options.prompt_name;
  if (!options.prompt.empty()) encode.prompt = options.prompt;
  if (options.no_prompt) encode.prompt = "";
  return encode;
}

// Neither the texts nor a file of the model may be lost to the output.
void WantOutputOfItsOwn(const EmbedOptions& options) {
  const std::string& input = options.text.input.path;
  for (const std::string& output : {options.output, options.output + ".resume"}) {
    WantOtherFile("--output", output, input == "-" ? "/dev/stdin" : input, "the file of --input");
  }
  std::error_code error;
  if (!std::filesystem::exists(internal::ToPath(options.output), error)) return;
  const std::filesystem::path model = internal::ToPath(options.text.model);
  for (std::filesystem::recursive_directory_iterator file(model, error), end; !error && file != end;
       file.increment(error)) {
    std::error_code unreadable;
    if (file->is_regular_file(unreadable)) {
      WantOtherFile("--output", options.output, internal::PathText(file->path()),
                    "a file of --model");
    }
  }
}

// All that decides about the rows but the texts.
ResumeSettings SettingsOfRows(const EmbedOptions& options, const VectorLayout& layout,
                              size_t max_length) {
  const TextOptions& text = options.text;
  ResumeSettings settings = ModelFiles(text.model);
  const auto flag = [](bool given) { return std::string(given ? "given" : ""); };
  settings["encore's version"] = ENCORE_VERSION_STRING;
  settings["--precision"] = text.precision.name;
  settings["--keep"] = Joined(text.precision.keep, ",");
  settings["--amx-bf16"] = flag(text.precision.amx_bf16);
  settings["--max-length"] = std::to_string(max_length);
  settings["--plain-text"] = flag(text.plain_text);
  settings["--replace-invalid"] = flag(text.input.replace_invalid);
  settings["--output-type"] = options.output_type;
  settings["--output-field"] = options.output_field;
  settings["--dimensions"] = std::to_string(layout.dimensions);
  settings["--shard"] = options.shard;
  settings["--prompt-name"] = options.prompt_name;
  settings["--prompt"] = options.prompt;
  settings["--no-prompt"] = flag(options.no_prompt);
  settings["--normalize"] = !options.normalize ? "" : *options.normalize ? "yes" : "no";
  settings["--task"] = options.task;
  settings["--images"] = flag(options.images);
  return settings;
}

void AddAll(const TextChunks& input, ResumableOutput* output) {
  for (size_t i = 0; i < input.texts().size(); ++i) output->Add(input.texts()[i], input.ids()[i]);
}

// Reads past the texts whose vectors an earlier run has written. Throws Failure unless they are
// those of then, and the vectors of some of them, the first and the last included, those of the
// file.
void SkipWritten(const TextEncoder& model, const EncodeOptions& encode, TextChunks* input,
                 ResumableOutput* output) {
  for (size_t row = 0; row < output->written();) {
    if (!input->Next(output->written() - row)) {
      if (StopRequested()) return;
      throw Failure("--resume: --output has " + Counted(output->written(), "row") +
                    ", --input only " + Counted(row, "text"));
    }
    AddAll(*input, output);
    for (size_t i = 0; i < input->texts().size(); ++i, ++row) {
      if (!output->IsSample(row)) continue;
      const Result<Embeddings> made = model.Encode({input->texts()[i]}, encode);
      Check(made.status(), input->Where(i));
      output->WantVector(row, made->vectors.View<float>(), input->ids()[i], input->Where(i));
    }
  }
  output->WantSameInputs();
}

void WriteVectors(const Embeddings& embeddings, const TextChunks& input, ResumableOutput* output) {
  const ConstView vectors = embeddings.vectors.View<float>();
  const size_t bad = output->FirstUnwritable(vectors);
  if (bad < vectors.dim(0)) {
    const size_t before = std::max(output->rows(), output->written());
    throw Failure(input.Where(bad) + ": text " + std::to_string(before + bad + 1) +
                  " has a vector with nan or inf, which JSON and integers cannot hold; .npy in f32 "
                  "can");
  }
  output->Write(vectors, input.ids());
}

// The input, or of "2/8" every eighth text from the second on.
TextSource SourceOf(const EmbedOptions& options) {
  TextSource source = options.text.input.source();
  if (options.shard.empty()) return source;
  const char* const end = options.shard.data() + options.shard.size();
  const auto [slash, error] = std::from_chars(options.shard.data(), end, source.shard);
  const bool has_slash = error == std::errc() && slash != end && *slash == '/';
  const auto [stop, wrong] = std::from_chars(has_slash ? slash + 1 : end, end, source.shards);
  if (wrong != std::errc() || stop != end || source.shard < 1 || source.shard > source.shards) {
    throw Failure("--shard: found '" + Printable(options.shard) +
                  "', wanted a number from 1, a slash and how many shards there are: 2/8");
  }
  --source.shard;
  return source;
}

// A route of a Router, or what texts of late interaction are; all other tasks are names of
// adapters.
bool IsRoute(const std::string& task) { return task == "query" || task == "document"; }

// Options that only some vectors have.
void WantNoOption(bool found, const std::string& options, const std::string& what) {
  if (!found) return;
  throw Failure("found an option of other vectors (" + options + "), wanted none, as the model's " +
                what);
}

SparseOptions MakeSparseOptions(const EmbedOptions& options, const Executor& executor) {
  auto sparse = options.text.SettingsOf<SparseOptions>(executor);
  const EncodeOptions encode = MakeEncodeOptions(options, executor);
  sparse.prompt_name = encode.prompt_name;
  sparse.prompt = encode.prompt;
  sparse.max_active_dims = options.max_active_dims;
  if (IsRoute(options.task)) sparse.task = options.task;
  WantNoOption(options.resume || options.dimensions > 0 || options.normalize ||
                   options.output_type != "f32" || !options.output_field.empty(),
               "--resume, --dimensions, --normalize, --output-type, --output-field", "are sparse");
  return sparse;
}

int RunEmbedTokens(const EmbedOptions& options, const TextSession& session, TextChunks* input) {
  WantNoOption(options.resume || options.dimensions > 0 || options.max_active_dims > 0 ||
                   !options.output_field.empty(),
               "--resume, --dimensions, --max-active-dims, --output-field", "are of tokens");
  const TextTask task = options.task == "query"      ? TextTask::kQuery
                        : options.task == "document" ? TextTask::kDocument
                                                     : TextTask::kNone;
  return EmbedTokens(*session.late(), MakeEncodeOptions(options, session.executor()), task,
                     options.output, options.output_type, input);
}

int RunEmbedImages(const EmbedOptions& options, VectorLayout layout) {
  WantNoOption(options.max_active_dims > 0 || !options.prompt_name.empty() ||
                   !options.prompt.empty() || options.no_prompt || !options.task.empty() ||
                   !options.vectors.empty() || options.text.max_length > 0,
               "--max-active-dims, --prompt-name, --prompt, --no-prompt, --task, --vectors, "
               "--max-length",
               "are of pictures");
  const TextSession session(options.text, VectorsWanted::kOfImages);
  const ImageEncoder& model = *session.images();
  layout.dimensions = options.dimensions > 0 ? options.dimensions : model.dimensions();
  const ImageOptions encode = {.executor = session.executor(),
                               .normalize = options.normalize,
                               .dimensions = options.dimensions,
                               .batch_tokens = options.text.batch_tokens};
  Check(model.Encode({}, encode).status());
  ResumableOutput output(options.output, layout, SettingsOfRows(options, layout, 0), options.resume,
                         "picture");
  return EmbedImages(model, encode, SourceOf(options), &output);
}

int EmbedDense(const EmbedOptions& options, const TextSession& session, const VectorLayout& layout,
               const EncodeOptions& encode, size_t max_length, TextChunks* input) {
  const TextEncoder& model = session.model();
  ResumableOutput output(options.output, layout, SettingsOfRows(options, layout, max_length),
                         options.resume, "text");
  TextProgress progress(*input);
  if (output.written() > 0) {
    SkipWritten(model, encode, input, &output);
    progress.Skip();
    std::cout << Counted(output.written(), "text") << " had been done before\n";
  }
  const auto compute = [&](const Texts& texts) { return model.Encode(texts, encode); };
  progress.ForAll(input, compute, [&](const Embeddings& embeddings) {
    WriteVectors(embeddings, *input, &output);
    AddAll(*input, &output);
  });
  output.Commit();
  std::cout << progress.Summary(max_length) << "\n";
  return output.ExitStatus();
}

int RunEmbed(const EmbedOptions& options) {
  const auto layout_of = [&] {
    return VectorLayout(options.output, options.output_type, options.output_field);
  };
  if (!options.output.ends_with(".npz")) layout_of();  // a name that cannot be is said at once
  WantFolderOf(options.output);
  WantOutputOfItsOwn(options);
  if (options.images) {
    CatchStopSignals();
    return RunEmbedImages(options, layout_of());
  }
  TextChunks input(SourceOf(options));
  CatchStopSignals();
  TextOptions opened = options.text;
  if (!IsRoute(options.task)) opened.task = options.task;
  const TextSession session(opened, options.vectors == "tokens" ? VectorsWanted::kOfTokens
                                    : options.vectors.empty()   ? VectorsWanted::kEither
                                                                : VectorsWanted::kOfTexts);
  if (session.late() != nullptr) return RunEmbedTokens(options, session, &input);
  const TextEncoder& model = session.model();
  const bool only_sparse = model.sparse_dimensions() > 0 && model.dimensions() == 0;
  if (options.vectors == "sparse" || (options.vectors.empty() && only_sparse)) {
    return EmbedSparse(model, MakeSparseOptions(options, session.executor()), options.output,
                       &input);
  }
  if (options.max_active_dims > 0 || IsRoute(options.task)) {
    throw Failure(
        "found --max-active-dims, or --task query or document, wanted neither, as the model's "
        "vectors are dense");
  }
  VectorLayout layout = layout_of();
  const EncodeOptions encode = MakeEncodeOptions(options, session.executor());
  layout.dimensions = options.dimensions > 0 ? options.dimensions : model.dimensions();
  // No texts at all would hide what is wrong with the options.
  Check(model.Encode(Texts(), encode).status());

  const size_t max_length = encode.max_length > 0 ? encode.max_length : model.max_length();
  return EmbedDense(options, session, layout, encode, max_length, &input);
}

}  // namespace

void AddEmbed(CommandLine& line, Action& action) {
  const auto [command, options] =
      AddCommand(line, action, "embed", "Turn texts into embeddings with a model's folder",
                 kEmbedFooter, RunEmbed);
  options->text.AddTo(command);
  command.Add("--output", &options->output, "Write the vectors there: .npy, .safetensors or .jsonl",
              {.type = "FILE", .required = true});
  command.Add("--output-type", &options->output_type,
              "Write numbers in f32 or f16; int8: from -1 to 1 in 255 steps, for vectors of length "
              "1; ubinary: 8 bits in a byte, 1 above 0; of tokens f32, bf16 or int8",
              {.show_default = true, .one_of = {"f32", "f16", "bf16", "int8", "ubinary"}});
  command.Add("--output-field", &options->output_field,
              "With .jsonl, write objects: the vector is this member, beside the input's \"id\"",
              {.type = "NAME"});
  command.Add("--images", &options->images, "Take pictures in place of texts");
  command.Add("--shard", &options->shard,
              "Take every N-th text from the I-th on, e.g. 2/8: N commands share the input",
              {.type = "I/N"});
  command.Add("--resume", &options->resume,
              "Keep the rows of --output and compute the remaining texts");
  const Option name =
      command.Add("--prompt-name", &options->prompt_name,
                  "Put this prompt of the folder before each text", {.type = "NAME"});
  const Option prompt = command.Add("--prompt", &options->prompt, "Put this before each text",
                                    {.type = "TEXT", .excludes = {name}});
  command.Add("--no-prompt", &options->no_prompt, "Disable the folder's default prompt",
              {.excludes = {name, prompt}});
  command.Add("--normalize,!--no-normalize", &options->normalize,
              "Scale vectors to length 1, or do not (default: as the folder says)");
  command.Add("--dimensions", &options->dimensions,
              "Keep only the first N columns, for models trained for it; 0: as the folder says",
              {.show_default = true, .range = Range{0, 1 << 24}});
  command.Add("--max-active-dims", &options->max_active_dims,
              "Of sparse vectors, keep the N largest entries; 0: as the folder says",
              {.show_default = true, .range = Range{0, 1 << 24}});
  command.Add("--vectors", &options->vectors,
              "Of a folder that gives several kinds (BGE-M3): dense, sparse, or tokens, a vector "
              "for each token (default: as the folder says, dense before others)",
              {.one_of = {"dense", "sparse", "tokens"}});
  command.Add(
      "--task", &options->task,
      "Of a folder with a Router or of late interaction: query or document (default: its own). Of "
      "one with adapters: the adapter's task, e.g. retrieval.query (default: none)",
      {.type = "TASK"});
}

}  // namespace encore::tool
