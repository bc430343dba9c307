// SPDX-License-Identifier: Apache-2.0
//
// `encore tokenize`: the token ids of texts, a JSON array a line, or an object with all that the
// tokenizer tells.

#include <array>
#include <cstdint>
#include <iostream>
#include <limits>
#include <optional>
#include <string>

#include "encore/tokenizer.h"
#include "engine/text/folder_files.h"
#include "tools/encore/commands.h"
#include "tools/encore/failure.h"
#include "tools/encore/shared_options.h"
#include "tools/encore/text_input.h"

namespace encore::tool {
namespace {

constexpr const char* kTokenizeFooter =
    R"(In plain text a line is a text. In .jsonl a line is a JSON string, {"text": ...}, or
{"text": ..., "pair": ...} for two texts. In .csv and .tsv a row is a text, in the column "text".
--format and --field say otherwise.

Examples:
  encore tokenize --model all-MiniLM-L6-v2 --input texts.txt
  echo "Hello, world" | encore tokenize --model all-MiniLM-L6-v2 --input - --max-length 0)";

struct TokenizeCommandOptions {
  std::string model;
  InputOptions input;
  std::optional<size_t> max_length;
  bool plain_text = false;
  bool details = false;
  bool type_ids = false;
};

// "[101,7592,102]"
template <typename Items, typename AppendItem>
void AppendArray(const Items& items, std::string* out, const AppendItem& append) {
  *out += '[';
  for (size_t i = 0; i < items.size(); ++i) {
    if (i != 0) *out += ',';
    append(items[i]);
  }
  *out += ']';
}

template <typename Integers>
void AppendIntegers(const Integers& integers, std::string* out) {
  AppendArray(integers, out, [out](auto integer) { *out += std::to_string(integer); });
}

// {"ids":[101,7592,102],"type_ids":[0,0,0],"offsets":[[0,0],[0,5],[0,0]]}
void AppendDetails(const Tokens& tokens, std::string* out) {
  *out += R"({"ids":)";
  AppendIntegers(tokens.ids, out);
  *out += R"(,"type_ids":)";
  AppendIntegers(tokens.type_ids, out);
  *out += R"(,"offsets":)";
  AppendArray(tokens.offsets, out, [out](const ByteRange& range) {
    AppendIntegers(std::array{range.begin, range.end}, out);
  });
  *out += '}';
}

int Tokenize(const TokenizeCommandOptions& options) {
  constexpr size_t kWriteBytes = size_t{1} << 16;
  const internal::FolderTokenizer opened =
      Take(internal::OpenFolderTokenizer(options.model, true), "--model");
  const Tokenizer& tokenizer = opened.tokenizer;
  TokenizeOptions tokenize;
  tokenize.max_length = options.max_length.value_or(opened.max_length);
  tokenize.add_special_tokens = opened.add_special_tokens;
  tokenize.plain_text = options.plain_text;
  tokenize.offsets = options.details;
  tokenize.on_invalid_utf8 =
      options.input.replace_invalid ? OnInvalidUtf8::kReplace : OnInvalidUtf8::kError;
  TextReader reader(options.input.source());
  TextInput input;
  Tokens tokens;
  std::string out;
  const auto write = [&out] {
    std::cout.write(out.data(), static_cast<std::streamsize>(out.size()));
    out.clear();
  };
  const auto next = [&] {
    try {
      return reader.Next(&input);
    } catch (const Failure&) {
      write();  // what is right
      throw;
    }
  };
  while (next()) {
    const Status status = input.pair
                              ? tokenizer.EncodePair(input.text, *input.pair, &tokens, tokenize)
                              : tokenizer.Encode(input.text, &tokens, tokenize);
    if (!status.ok()) {
      write();
      Check(status, reader.Where());
    }
    if (options.details) {
      AppendDetails(tokens, &out);
    } else if (options.type_ids) {
      if (!opened.type_ids) tokens.type_ids.assign(tokens.ids.size(), 0);
      out += R"({"ids":)";
      AppendIntegers(tokens.ids, &out);
      out += R"(,"type_ids":)";
      AppendIntegers(tokens.type_ids, &out);
      out += '}';
    } else {
      AppendIntegers(tokens.ids, &out);
    }
    out += '\n';
    if (out.size() >= kWriteBytes) write();
    if (!std::cout) break;  // nobody reads on; main() says so
  }
  write();
  return kExitOk;
}

}  // namespace

void AddTokenize(CommandLine& line, Action& action) {
  const auto [command, options] = AddCommand(
      line, action, "tokenize", "Print the token ids of texts", kTokenizeFooter, Tokenize);
  command.Add("--model", &options->model, "A model's folder, with a tokenizer",
              {.type = "FOLDER", .required = true});
  options->input.AddTo(command);
  command.Add(
      "--max-length", &options->max_length,
      "Tokens per text or pair, at most, special ones included; 0: no limit; default: as many "
      "as the model takes (`encore info FOLDER`)",
      {.type = "N", .range = Range{0, std::numeric_limits<int64_t>::max()}});
  command.Add("--plain-text", &options->plain_text, kPlainTextHelp);
  command.Add("--type-ids", &options->type_ids,
              "Print an object with ids and type_ids a line, as a model with type ids gets them");
  command.Add("--details", &options->details,
              "Print an object a line: ids, type_ids, and offsets, the bytes [begin, end) of its "
              "text that each token came from");
}

}  // namespace encore::tool
