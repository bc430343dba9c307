// SPDX-License-Identifier: Apache-2.0
//
// encore::Tokenizer: ids, type ids and offsets of texts. Offsets are in characters, as Python
// counts them; encore's are in bytes.

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <utility>

#include "encore/tokenizer.h"
#include "python/src/bindings.h"
#include "python/src/model_options.h"

namespace pyencore {
namespace {

using OffsetList = nb::typed<nb::list, nb::typed<nb::tuple, nb::int_, nb::int_>>;
using IntList = nb::typed<nb::list, nb::int_>;

// The number of characters before each byte of a text, and after its last.
std::vector<size_t> CharactersBefore(std::string_view text) {
  std::vector<size_t> before(text.size() + 1);
  size_t characters = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool starts = (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80;
    // A byte inside a character belongs to it.
    before[i] = starts ? characters++ : characters - 1;
  }
  before[text.size()] = characters;
  return before;
}

// (begin, end) of each token; an end inside a character takes it in.
OffsetList OffsetsOf(const encore::Tokens& tokens, std::string_view first,
                     std::string_view second) {
  const std::vector<size_t> of_first = CharactersBefore(first);
  const std::vector<size_t> of_second = CharactersBefore(second);
  OffsetList offsets;
  for (size_t i = 0; i < tokens.ids.size(); ++i) {
    const encore::ByteRange range = tokens.offsets[i];
    const bool in_second = i >= tokens.second_begin && i < tokens.second_end;
    const std::vector<size_t>& before = in_second ? of_second : of_first;
    const std::string_view text = in_second ? second : first;
    const bool inside =
        range.end < text.size() && (static_cast<unsigned char>(text[range.end]) & 0xC0) == 0x80;
    offsets.append(nb::make_tuple(before[range.begin], before[range.end] + (inside ? 1 : 0)));
  }
  return offsets;
}

// (ids, type ids, offsets, tokens left out)
nb::typed<nb::tuple, IntList, IntList, OffsetList, nb::int_> Encode(
    const encore::Tokenizer& tokenizer, nb::handle text, nb::handle pair, size_t max_length,
    bool from_error, bool special, bool plain_text) {
  encore::TokenizeOptions options;
  options.max_length = max_length;
  options.on_long = from_error ? encore::OnLong::kError : encore::OnLong::kCut;
  options.add_special_tokens = special;
  options.plain_text = plain_text;
  options.offsets = true;
  const std::string_view first = Utf8(text, "sequence");
  const std::string_view second = pair.is_none() ? std::string_view() : Utf8(pair, "pair");
  encore::Tokens tokens;
  Check(WithoutGil([&] {
    return pair.is_none() ? tokenizer.Encode(first, &tokens, options)
                          : tokenizer.EncodePair(first, second, &tokens, options);
  }));
  IntList ids;
  for (const int32_t id : tokens.ids) ids.append(id);
  IntList types;
  for (const uint8_t type : tokens.type_ids) types.append(type);
  return nb::make_tuple(ids, types, OffsetsOf(tokens, first, second), tokens.cut);
}

// The ids of all texts, uncut, one text after another, and how many each has.
nb::typed<nb::tuple, nb::ndarray<nb::numpy, int32_t>, nb::ndarray<nb::numpy, int64_t>> EncodeMany(
    const encore::Tokenizer& tokenizer, const TextList& texts, bool special) {
  const std::vector<std::string_view> views = Utf8OfAll(texts);
  std::vector<int32_t> ids;
  std::vector<int64_t> counts;
  encore::TokenizeOptions options;
  options.add_special_tokens = special;
  Check(WithoutGil([&] {
    encore::Tokens tokens;
    for (const std::string_view text : views) {
      if (encore::Status s = tokenizer.Encode(text, &tokens, options); !s.ok()) return s;
      ids.insert(ids.end(), tokens.ids.begin(), tokens.ids.end());
      counts.push_back(static_cast<int64_t>(tokens.ids.size()));
    }
    return encore::Status();
  }));
  return nb::make_tuple(ArrayOfVector(std::move(ids)), ArrayOfVector(std::move(counts)));
}

}  // namespace

void BindTokenizer(nb::module_& module) {
  module.def("check_texts", &CheckTexts, nb::arg("texts"), nb::arg("name"), nb::arg("first"),
             nb::arg("part"));
  nb::class_<encore::Tokenizer>(module, "Tokenizer")
      .def_static(
          "open",
          [](const std::string& folder, bool lowercase) {
            return Take(WithoutGil(
                [&] { return encore::Tokenizer::Open(folder, {.lowercase = lowercase}); }));
          },
          nb::arg("folder"), nb::arg("lowercase"))
      .def("encode", &Encode, nb::arg("text"), nb::arg("pair").none(), nb::arg("max_length"),
           nb::arg("long_is_error"), nb::arg("add_special_tokens"), nb::arg("plain_text"))
      .def("encode_many", &EncodeMany, nb::arg("texts"), nb::arg("add_special_tokens"))
      .def("token_to_id", &encore::Tokenizer::TokenToId, nb::arg("token"))
      .def(
          "id_to_token",
          [](const encore::Tokenizer& tokenizer, int32_t id) -> std::optional<nb::str> {
            const std::string_view token = tokenizer.IdToToken(id);
            if (token.empty()) return std::nullopt;
            return nb::steal<nb::str>(PyUnicode_DecodeUTF8(
                token.data(), static_cast<Py_ssize_t>(token.size()), "replace"));
          },
          nb::arg("id"))
      .def_prop_ro("vocab_size", &encore::Tokenizer::vocab_size)
      .def_prop_ro("special_tokens_of_text", &encore::Tokenizer::special_tokens_of_text)
      .def_prop_ro("special_tokens_of_pair", &encore::Tokenizer::special_tokens_of_pair)
      .def_prop_ro("model_max_length", &encore::Tokenizer::model_max_length)
      .def("describe",
           [](const encore::Tokenizer& tokenizer) { return DecisionsOf(tokenizer.Describe()); });
}

}  // namespace pyencore
