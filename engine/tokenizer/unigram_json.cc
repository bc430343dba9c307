// SPDX-License-Identifier: Apache-2.0
//
// tokenizer.json: a "model" of type Unigram. Its vocabulary is a list of tokens with scores; ids
// count from 0.

#include "engine/base/quoted.h"
#include "engine/tokenizer/component_json.h"
#include "engine/tokenizer/unigram.h"

namespace encore::inline v0_1::internal {

Status ReadUnigram(JsonMembers* members, TokenizerParts* parts) {
  const std::string& where = members->where();
  const std::optional<size_t> unk_id = members->OptionalSize("unk_id");
  UnigramSettings settings = {.unk_id = unk_id.value_or(0),
                              .byte_fallback = members->Bool("byte_fallback", false)};
  const JsonValue& vocab = members->RequiredArray("vocab");
  if (!members->ok()) return members->status();
  Status status = RefuseUnread(*members);
  if (!status.ok()) return status;
  if (!unk_id) {
    return Status(ErrorCode::kUnsupported,
                  where + ": unk_id is null; encore needs a token for unknown characters");
  }
  Vocabulary vocabulary;
  std::vector<double> scores;
  vocabulary.reserve(vocab.items().size());
  for (size_t i = 0; i < vocab.items().size(); ++i) {
    const JsonValue& item = vocab.items()[i];
    const bool pair = item.is_array() && item.items().size() == 2 && item.items()[0].is_string() &&
                      item.items()[1].is_number();
    if (!pair) {
      return InvalidArgument(where + ": vocab[" + std::to_string(i) + "] is " + item.Described() +
                             "; wanted a token and its score");
    }
    if (i > ByteTrie::kMaxValue) {
      return InvalidArgument(where + ": vocab is " + vocab.Described() + "; wanted at most " +
                             std::to_string(ByteTrie::kMaxValue) + " tokens");
    }
    vocabulary.emplace_back(item.items()[0].text(), static_cast<uint32_t>(i));
    scores.push_back(item.items()[1].number());
  }
  Result<std::unique_ptr<const Model>> model =
      Unigram::Create(vocabulary, std::move(scores), settings, where);
  if (!model.ok()) return model.status();
  parts->model = *std::move(model);
  parts->unk_token = parts->model->IdToToken(static_cast<int32_t>(settings.unk_id));
  parts->decisions.push_back({"unknown token",
                              (settings.byte_fallback ? "bytes, else " : "") + parts->unk_token,
                              where + ": unk_id"});
  return {};
}

}  // namespace encore::internal
