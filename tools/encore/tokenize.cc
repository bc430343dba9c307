// SPDX-License-Identifier: Apache-2.0
//
// `encore tokenize`: the token ids of texts, a JSON array a line. Not here: reading lines
// (text_input.h), the tokenizer (the library).

#include <cstdint>
#include <iostream>
#include <optional>
#include <string>

#include "encore/tokenizer.h"
#include "engine/text/folder_tokenizer.h"
#include "tools/encore/commands.h"
#include "tools/encore/failure.h"
#include "tools/encore/shared_options.h"
#include "tools/encore/text_input.h"

namespace encore::tool {
namespace {

constexpr const char* kFooter =
    R"(In plain text a line is a text. In .jsonl a line is a JSON string, {"text": ...}, or
{"text": ..., "pair": ...} for two texts. In .csv and .tsv a row is a text, in the column "text".
--format and --field say otherwise.

Examples:
  encore tokenize --model all-MiniLM-L6-v2 --input texts.txt
  echo "Hello, world" | encore tokenize --model all-MiniLM-L6-v2 --input - --max-length 0)";

struct Options {
  std::string model;
  InputOptions input;
  std::optional<int64_t> max_length;  // signed, or -2 would pass for 2^64 - 2
  bool plain_text = false;
  bool replace_invalid = false;
};

// "[101,7592,102]\n"
void AppendIds(const Tokens& tokens, std::string* out) {
  *out += '[';
  for (size_t i = 0; i < tokens.ids.size(); ++i) {
    if (i != 0) *out += ',';
    *out += std::to_string(tokens.ids[i]);
  }
  *out += "]\n";
}

int Tokenize(const Options& options) {
  constexpr size_t kWriteBytes = size_t{1} << 16;
  const internal::FolderTokenizer opened =
      Take(internal::OpenFolderTokenizer(options.model, true), "--model");
  const Tokenizer& tokenizer = opened.tokenizer;
  TokenizeOptions tokenize;
  tokenize.max_length =
      options.max_length ? static_cast<size_t>(*options.max_length) : opened.max_length;
  tokenize.plain_text = options.plain_text;
  tokenize.on_invalid_utf8 =
      options.replace_invalid ? OnInvalidUtf8::kReplace : OnInvalidUtf8::kError;
  TextReader reader(options.input.source());
  TextInput input;
  Tokens tokens;
  std::string out;
  const auto write = [&out] {
    std::cout.write(out.data(), static_cast<std::streamsize>(out.size()));
    out.clear();
  };
  while (reader.Next(&input)) {
    const Status status = input.pair
                              ? tokenizer.EncodePair(input.text, *input.pair, &tokens, tokenize)
                              : tokenizer.Encode(input.text, &tokens, tokenize);
    if (!status.ok()) {
      write();  // what is right
      Check(status, reader.Where());
    }
    AppendIds(tokens, &out);
    if (out.size() >= kWriteBytes) write();
    if (!std::cout) break;  // nobody reads on; main() says so
  }
  write();
  return kExitOk;
}

}  // namespace

void AddTokenize(CLI::App& app, Action& action) {
  const auto [sub, options] =
      AddCommand(app, action, "tokenize", "Print the token ids of texts", kFooter, Tokenize);
  AddRequired(*sub, "--model", "FOLDER", options->model,
              "A model's folder, with tokenizer.json or vocab.txt");
  options->input.AddTo(*sub);
  sub->add_option("--max-length", options->max_length,
                  "Tokens per text or pair, at most, special ones included; 0: no limit; default: "
                  "as many as the model takes (`encore info FOLDER`)")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
  sub->add_flag("--plain-text", options->plain_text, kPlainTextHelp);
  sub->add_flag("--replace-invalid", options->replace_invalid, kReplaceInvalidHelp);
}

}  // namespace encore::tool
