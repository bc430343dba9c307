// SPDX-License-Identifier: Apache-2.0
//
// A folder's tokenizer class of transformers, which decides how the files are read: tokenizer.json
// as it is, or its vocabulary alone.

#ifndef ENCORE_ENGINE_TOKENIZER_TOKENIZER_CLASS_H_
#define ENCORE_ENGINE_TOKENIZER_TOKENIZER_CLASS_H_

#include <optional>
#include <string>
#include <string_view>

#include "encore/status.h"
#include "engine/io/folder.h"
#include "engine/io/json_value.h"

namespace encore::inline v0_1::internal {

// How a class makes its tokenizer.
enum class TokenizerKind : uint8_t {
  kAsWritten,  // tokenizer.json as it is
  // The model's vocabulary and merges from the files, all else by the class.
  kBert,
  kMpnet,
  kFunnel,
  kRoberta,
  kGpt2,
  kQwen2,
  kXlmRoberta,
  kCamembert,
  kAlbert,
  kDebertaV2,
  kT5,
  kLlama,
  kGemma,
  kSiglip2,  // Gemma's, made lower case
  kHerbert,
  kClip,
  kEsm,       // vocab.txt alone, whose tokens are all found in the raw text
  kSiglip,    // spiece.model alone, as sentencepiece's own library computes it
  kConvBert,  // tokenizer.json as it is, but for BERT's special tokens and template
  kOther,     // unknown to encore, or made in ways that it does not have: tokenizer.json as it is
  kPython,    // in Python, without `tokenizers`
};

struct TokenizerClass {
  std::string name = "TokenizersBackend";  // without "Fast"
  TokenizerKind kind = TokenizerKind::kAsWritten;
  bool type_ids = false;     // the model is given type ids
  bool old_type_ids = true;  // transformers 4 gave it some
  bool pads_left = false;    // where no file says a side
  bool is_named = false;     // a file names the class, or the model's type has one
  std::string source;        // the file and key that decide
};

// By the rules of AutoTokenizer in transformers 5: tokenizer_class of tokenizer_config.json, else
// of config.json, else the class of config.json's model_type; some types of models have one class
// whatever the files say. Either may be absent. `tokenizer_json` is the text of that file: a
// LlamaTokenizer whose file has ByteLevel is taken as written. An error if tokenizer_class or
// model_type is no string.
Result<TokenizerClass> ChooseTokenizerClass(const std::optional<JsonValue>& tokenizer_config,
                                            const std::optional<JsonValue>& config,
                                            std::string_view tokenizer_json);
// Reads the three files. kIo, kCorruptData.
Result<TokenizerClass> ChooseTokenizerClass(const Folder& folder);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_TOKENIZER_CLASS_H_
