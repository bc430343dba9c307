// SPDX-License-Identifier: Apache-2.0
//
// sentencepiece's model file: a ModelProto of protocol buffers (sentencepiece_model.proto), of
// which pieces, their scores and types, and some of the trainer's and the normalizer's settings are
// read.

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/tokenizer/tokenizer_json.h"
#include "engine/tokenizer/utf8.h"

namespace encore::inline v0_1::internal {
namespace {

// A field of a message: a number, or bytes.
struct Field {
  uint64_t number = 0;
  uint64_t value = 0;           // of a varint, or the bits of a fixed one
  std::string_view bytes = {};  // of a string or a message
};

// Reads the fields of one message in their order (protobuf.dev/programming-guides/encoding).
class Message {
 public:
  explicit Message(std::string_view bytes) : bytes_(bytes) {}

  // False at the end, and where the bytes are none of a message.
  bool Next(Field* field) {
    *field = {};
    uint64_t key = 0;
    if (bytes_.empty() || !Varint(&key)) return false;
    field->number = key >> 3;
    good_ = field->number != 0;
    switch (key & 7) {
      case 0:
        return good_ && Varint(&field->value);
      case 1:
        return good_ && Fixed(8, &field->value);
      case 2: {
        uint64_t size = 0;
        if (!good_ || !Varint(&size)) return false;
        good_ = size <= bytes_.size();
        if (!good_) return false;
        field->bytes = Take(static_cast<size_t>(size));
        return true;
      }
      case 5:
        return good_ && Fixed(4, &field->value);
      default:  // groups, which nobody writes
        good_ = false;
        return false;
    }
  }
  bool good() const { return good_; }

 private:
  std::string_view Take(size_t size) {
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }
  bool Varint(uint64_t* value) {
    *value = 0;
    for (unsigned shift = 0; shift < 64 && !bytes_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(Take(1)[0]);
      *value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return true;
    }
    good_ = false;
    return false;
  }
  bool Fixed(size_t size, uint64_t* value) {
    good_ = size <= bytes_.size();
    if (!good_) return false;
    const std::string_view taken = Take(size);
    *value = 0;
    for (size_t i = 0; i < size; ++i) {
      *value |= static_cast<uint64_t>(static_cast<unsigned char>(taken[i])) << (8 * i);
    }
    return true;
  }

  std::string_view bytes_;
  bool good_ = true;
};

using Type = SentencePieceModel::Type;

[[nodiscard]] bool ReadPiece(std::string_view bytes, SentencePieceModel::Piece* piece) {
  Message message(bytes);
  for (Field field; message.Next(&field);) {
    if (field.number == 1) piece->text = field.bytes;
    if (field.number == 2) piece->score = std::bit_cast<float>(static_cast<uint32_t>(field.value));
    if (field.number == 3) piece->type = static_cast<Type>(field.value);
  }
  return message.good() && ValidUtf8Length(piece->text) == piece->text.size();
}

// TrainerSpec.
struct Trainer {
  uint64_t model_type = 1;  // UNIGRAM
  uint64_t unk_id = 0;
};

[[nodiscard]] bool ReadTrainer(std::string_view bytes, Trainer* trainer,
                               SentencePieceModel* model) {
  Message message(bytes);
  for (Field field; message.Next(&field);) {
    if (field.number == 3) trainer->model_type = field.value;
    if (field.number == 24) model->treat_whitespace_as_suffix = field.value != 0;
    if (field.number == 35) model->byte_fallback = field.value != 0;
    if (field.number == 40) trainer->unk_id = field.value;
  }
  return message.good();
}

// NormalizerSpec.
[[nodiscard]] bool ReadNormalizerSpec(std::string_view bytes, SentencePieceModel* model) {
  Message message(bytes);
  for (Field field; message.Next(&field);) {
    if (field.number == 2) model->charsmap = field.bytes;
    if (field.number == 3) model->add_dummy_prefix = field.value != 0;
    if (field.number == 4) model->remove_extra_whitespaces = field.value != 0;
    if (field.number == 5) model->escape_whitespaces = field.value != 0;
  }
  return message.good();
}

}  // namespace

Result<SentencePieceModel> ModelOfSentencePiece(const char* file, std::string_view bytes) {
  const auto corrupt = [&](const std::string& what) {
    return Status(ErrorCode::kCorruptData,
                  std::string(file) + ": " + what + "; wanted a model of sentencepiece");
  };
  SentencePieceModel model;
  Trainer trainer;
  std::vector<JsonValue> pieces;
  Message message(bytes);
  for (Field field; message.Next(&field);) {
    if (field.number == 2 && !ReadTrainer(field.bytes, &trainer, &model)) {
      return corrupt("trainer_spec cannot be read");
    }
    if (field.number == 3 && !ReadNormalizerSpec(field.bytes, &model)) {
      return corrupt("normalizer_spec cannot be read");
    }
    if (field.number != 1) continue;
    const std::string name = "piece " + std::to_string(pieces.size());
    SentencePieceModel::Piece& piece = model.pieces.emplace_back();
    if (!ReadPiece(field.bytes, &piece)) return corrupt(name + " cannot be read");
    // Each is three values of JSON.
    if (pieces.size() == JsonValue::kMaxValues / 3 - 1)
      return corrupt("more pieces than encore reads");
    if (piece.type == Type::kControl || piece.type == Type::kUserDefined) {
      AddedToken token;
      token.content = piece.text;
      token.normalized = false;
      token.special = piece.type == Type::kControl;
      model.added_tokens.push_back(std::move(token));
    }
    pieces.push_back(JsonValue::Array({piece.text, static_cast<double>(piece.score)}));
  }
  if (!message.good()) return corrupt("the file breaks off, or is another one");
  if (pieces.empty()) return corrupt("there are no pieces");
  if (trainer.model_type != 1) {
    return Status(ErrorCode::kUnsupported, std::string(file) + ": model_type is " +
                                               std::to_string(trainer.model_type) +
                                               "; encore reads 1, UNIGRAM, only");
  }
  model.unk_id = static_cast<size_t>(trainer.unk_id);
  model.json = JsonValue::Object(
      {{"model",
        JsonValue::Object({{"type", "Unigram"}, {"vocab", JsonValue::Array(std::move(pieces))}})}});
  return model;
}

}  // namespace encore::internal
