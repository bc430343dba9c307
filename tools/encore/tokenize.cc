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
    R"(A text is a line. With --jsonl a line is JSON: a string, {"text": ...}, or
{"text": ..., "pair": ...} for two texts.

Examples:
  encore tokenize --model all-MiniLM-L6-v2 --input texts.txt
  echo "Hello, world" | encore tokenize --model all-MiniLM-L6-v2 --input - --max-length 0)";

struct Options {
  std::string model;
  std::string input;
  bool jsonl = false;
  std::optional<int64_t> max_length;  // signed, or -2 would pass for 2^64 - 2
  bool plain_text = false;
  bool replace_invalid = false;
  bool type_ids = false;
};

// "[101,7592,102]"
template <class Ids>
void AppendIds(const Ids& ids, std::string* out) {
  *out += '[';
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i != 0) *out += ',';
    *out += std::to_string(ids[i]);
  }
  *out += ']';
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
  TextReader reader(options.input, options.jsonl);
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
    Check(status, reader.Where());
    if (options.type_ids) {
      if (!opened.type_ids) tokens.type_ids.assign(tokens.ids.size(), 0);
      out += R"({"ids":)";
      AppendIds(tokens.ids, &out);
      out += R"(,"type_ids":)";
      AppendIds(tokens.type_ids, &out);
      out += "}\n";
    } else {
      AppendIds(tokens.ids, &out);
      out += '\n';
    }
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
  AddRequired(*sub, "--model", "DIR", options->model, "A model's folder, with a tokenizer");
  AddRequired(*sub, "--input", "FILE", options->input,
              "Texts, one a line; - is the standard input");
  sub->add_flag("--jsonl", options->jsonl, "Lines are JSON");
  sub->add_option("--max-length", options->max_length,
                  "Tokens of a text or pair, special ones included; 0: no limit. Default: as "
                  "many as the model is given (`encore info FOLDER`)")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
  sub->add_flag("--type-ids", options->type_ids,
                "A line is an object with ids and type_ids, as a model with type ids gets them");
  sub->add_flag("--plain-text", options->plain_text,
                "Special tokens such as [SEP] in a text are ordinary text");
  sub->add_flag("--replace-invalid", options->replace_invalid,
                "Bytes that are not UTF-8 become U+FFFD; else they are an error");
}

}  // namespace encore::tool
