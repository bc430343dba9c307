// SPDX-License-Identifier: Apache-2.0
//
// encore::TextEncoder with its threads: vectors, token vectors and scores into numpy's arrays.

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <utility>

#include "encore/text_encoder.h"
#include "python/src/bindings.h"
#include "python/src/model_options.h"
#include "python/src/watch.h"

namespace pyencore {
namespace {

using encore::Executor;
using encore::Status;
using Rows = nb::ndarray<float, nb::ndim<2>, nb::device::cpu>;
using Row = nb::ndarray<float, nb::ndim<1>, nb::device::cpu>;

class Model : public Opened<encore::TextEncoder> {
 public:
  using Opened::Opened;

  // The list is the caller's own: nobody changes it meanwhile. `watch` is null where nothing is to
  // be seen of the call.
  void Encode(const TextList& texts, const Rows& out, const std::optional<std::string>& prompt,
              std::optional<bool> normalize, size_t dimensions, size_t max_length,
              Watch* watch) const {
    const std::vector<std::string_view> views = Utf8OfAll(texts);
    EncodeInto(views, ViewOf(out), prompt, normalize, dimensions, max_length, watch);
  }

  void EncodeOne(nb::handle text, const Row& out, const std::optional<std::string>& prompt,
                 std::optional<bool> normalize, size_t dimensions, size_t max_length,
                 Watch* watch) const {
    const std::string_view view = Utf8(text, "inputs");
    const encore::MutableView row(out.data(), {1, out.shape(0)},
                                  {static_cast<ptrdiff_t>(out.shape(0)), out.stride(0)});
    EncodeInto({&view, 1}, row, prompt, normalize, dimensions, max_length, watch);
  }

  // Vectors of lists of token ids, which are taken as they are.
  Array EncodeIds(const std::vector<std::vector<int32_t>>& ids, std::optional<bool> normalize,
                  size_t dimensions, Watch* watch) const {
    encore::EncodeOptions options;
    options.normalize = normalize;
    options.dimensions = dimensions;
    options.executor = executor();
    auto found = Watched(watch, &options, [&] { return model().EncodeIds(ids, options); });
    return ArrayOf(Take(std::move(found)).vectors);
  }

  // The token vectors of one text, [tokens, d_model].
  Array EncodeTokens(nb::handle text, const std::optional<std::string>& prompt, size_t max_length,
                     Watch* watch) const {
    const std::string_view view = Utf8(text, "inputs");
    encore::EncodeOptions options;
    options.prompt = prompt;
    options.max_length = max_length;
    options.executor = executor();
    auto found = Watched(watch, &options, [&] { return model().EncodeTokens(view, options); });
    return ArrayOf(Take(std::move(found)).vectors);
  }

  // What the head says of texts, or of pairs: [texts, labels].
  Array Classify(const TextList& first, const std::optional<TextList>& second,
                 const std::optional<std::string>& activation, size_t max_length,
                 const std::optional<std::string>& prompt, Watch* watch) const {
    const std::vector<std::string_view> a = Utf8OfAll(first);
    std::vector<std::string_view> b;
    if (second) b = Utf8OfAll(*second);
    encore::ScoreOptions options;
    options.prompt = prompt;
    options.max_length = max_length;
    options.executor = executor();
    if (activation) options.activation = Take(encore::ScoreActivationFromName(*activation));
    auto found = Watched(watch, &options, [&] {
      return second ? model().Classify(a, b, options) : model().Classify(a, options);
    });
    return ArrayOf(Take(std::move(found)).values);
  }

  // Compressed rows: starts [texts + 1], indices, values.
  nb::tuple EncodeSparse(const TextList& texts, const std::optional<std::string>& prompt,
                         const std::optional<std::string>& task, size_t max_active_dims,
                         size_t max_length, Watch* watch) const {
    const std::vector<std::string_view> views = Utf8OfAll(texts);
    encore::SparseOptions options;
    options.prompt = prompt;
    options.task = task;
    options.max_active_dims = max_active_dims;
    options.max_length = max_length;
    options.executor = executor();
    auto found =
        Take(Watched(watch, &options, [&] { return model().EncodeSparse(views, options); }));
    return nb::make_tuple(
        ArrayOfVector(std::vector<int64_t>(found.row_starts.begin(), found.row_starts.end())),
        ArrayOfVector(std::move(found.indices)), ArrayOfVector(std::move(found.values)));
  }

  // Of each text a list of (label, score, begin, end), in bytes of UTF-8.
  nb::list Entities(const TextList& texts, const std::string& aggregation,
                    const std::vector<std::string>& ignore_labels, size_t max_length,
                    Watch* watch) const {
    const std::vector<std::string_view> views = Utf8OfAll(texts);
    encore::LabelOptions options;
    for (const auto known :
         {encore::Aggregation::kNone, encore::Aggregation::kSimple, encore::Aggregation::kFirst,
          encore::Aggregation::kAverage, encore::Aggregation::kMax}) {
      if (aggregation == encore::AggregationName(known)) options.aggregation = known;
    }
    options.ignore_labels = ignore_labels;
    options.max_length = max_length;
    options.executor = executor();
    const auto found =
        Take(Watched(watch, &options, [&] { return model().FindEntities(views, options); }));
    nb::list all;
    for (const std::vector<encore::Entity>& entities : found.of_texts) {
      nb::list of_text;
      for (const encore::Entity& entity : entities) {
        of_text.append(nb::make_tuple(nb::str(entity.label.data(), entity.label.size()),
                                      entity.score, entity.place.begin, entity.place.end));
      }
      all.append(of_text);
    }
    return all;
  }

  // The logits [tokens, labels] of one text.
  Array LabelTokens(nb::handle text, size_t max_length, Watch* watch) const {
    const std::string_view view = Utf8(text, "inputs");
    encore::LabelOptions options;
    options.max_length = max_length;
    options.executor = executor();
    return ArrayOf(
        Take(Watched(watch, &options, [&] { return model().LabelTokens(view, options); })).logits);
  }

  // The logits [positions, vocabulary] of one text.
  Array PredictTokens(nb::handle text, const std::vector<size_t>& positions, size_t max_length,
                      Watch* watch) const {
    const std::string_view view = Utf8(text, "inputs");
    encore::LabelOptions options;
    options.max_length = max_length;
    options.executor = executor();
    auto found =
        Watched(watch, &options, [&] { return model().PredictTokens(view, positions, options); });
    return ArrayOf(Take(std::move(found)).logits);
  }

 private:
  void EncodeInto(std::span<const std::string_view> texts, encore::MutableView rows,
                  const std::optional<std::string>& prompt, std::optional<bool> normalize,
                  size_t dimensions, size_t max_length, Watch* watch) const {
    encore::EncodeOptions options;
    options.prompt = prompt;
    options.normalize = normalize;
    options.dimensions = dimensions;
    options.max_length = max_length;
    options.executor = executor();
    Check(Watched(watch, &options, [&] { return model().Encode(texts, rows, nullptr, options); }));
  }
};

}  // namespace

void BindTextEncoder(nb::module_& module) {
  // encore's own name of an activation.
  module.def(
      "score_activation",
      [](nb::handle name) {
        const std::string_view view = Utf8(name, "activation_fn");
        return encore::ScoreActivationName(Take(encore::ScoreActivationFromName(view)));
      },
      nb::arg("name"));
  nb::class_<Model> bound(module, "Model", nb::is_weak_referenceable());
  BindOpened(bound);
  bound
      .def("encode_sparse", &Model::EncodeSparse, nb::arg("texts"), nb::arg("prompt").none(),
           nb::arg("task").none(), nb::arg("max_active_dims"), nb::arg("max_length"),
           nb::arg("watch").none())
      .def("entities", &Model::Entities, nb::arg("texts"), nb::arg("aggregation"),
           nb::arg("ignore_labels"), nb::arg("max_length"), nb::arg("watch").none())
      .def("label_tokens", &Model::LabelTokens, nb::arg("text"), nb::arg("max_length"),
           nb::arg("watch").none())
      .def("predict_tokens", &Model::PredictTokens, nb::arg("text"), nb::arg("positions"),
           nb::arg("max_length"), nb::arg("watch").none())
      .def("encode", &Model::Encode, nb::arg("texts"), nb::arg("out").noconvert(),
           nb::arg("prompt").none(), nb::arg("normalize").none(), nb::arg("dimensions"),
           nb::arg("max_length"), nb::arg("watch").none())
      .def("encode_one", &Model::EncodeOne, nb::arg("text"), nb::arg("out").noconvert(),
           nb::arg("prompt").none(), nb::arg("normalize").none(), nb::arg("dimensions"),
           nb::arg("max_length"), nb::arg("watch").none())
      .def("encode_ids", &Model::EncodeIds, nb::arg("ids"), nb::arg("normalize").none(),
           nb::arg("dimensions"), nb::arg("watch").none())
      .def("encode_tokens", &Model::EncodeTokens, nb::arg("text"), nb::arg("prompt").none(),
           nb::arg("max_length"), nb::arg("watch").none())
      .def("classify", &Model::Classify, nb::arg("first"), nb::arg("second").none(),
           nb::arg("activation").none(), nb::arg("max_length"), nb::arg("prompt").none(),
           nb::arg("watch").none())
      .def_prop_ro("max_dimensions",
                   [](const Model& model) { return model.model().max_dimensions(); })
      .def_prop_ro("sparse_dimensions",
                   [](const Model& model) { return model.model().sparse_dimensions(); })
      .def_prop_ro("labels_tokens",
                   [](const Model& model) { return model.model().labels_tokens(); })
      .def_prop_ro("d_model", [](const Model& model) { return model.model().d_model(); })
      .def_prop_ro("max_length", [](const Model& model) { return model.model().max_length(); })
      .def_prop_ro("labels", [](const Model& model) { return model.model().labels(); })
      .def_prop_ro("prompts", [](const Model& model) { return model.model().prompts(); })
      .def_prop_ro("tokenizer", [](const Model& model) -> std::optional<encore::Tokenizer> {
        if (!model.model().has_tokenizer()) return std::nullopt;
        return model.model().tokenizer();
      });
}

}  // namespace pyencore
