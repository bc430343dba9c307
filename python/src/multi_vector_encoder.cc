// SPDX-License-Identifier: Apache-2.0
//
// encore::MultiVectorEncoder with its threads: token vectors in one numpy array with row starts,
// and MaxSim.

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <utility>

#include "encore/multi_vector_encoder.h"
#include "python/src/bindings.h"
#include "python/src/model_options.h"
#include "python/src/threads.h"

namespace pyencore {
namespace {

using encore::TextTask;
using Matrix = nb::ndarray<const float, nb::ndim<2>, nb::device::cpu>;
using Scores = nb::ndarray<float, nb::ndim<2>, nb::device::cpu>;

TextTask TaskFromName(const std::string& name) {
  if (name == "query") return TextTask::kQuery;
  if (name == "document") return TextTask::kDocument;
  return TextTask::kNone;
}

class LateModel {
 public:
  LateModel(const std::string& folder, int threads, const encore::OpenOptions& options)
      : threads_(threads), model_(Open(folder, options)) {}

  // Of texts[begin, end): rows [rows, dimensions], and where each text's begin.
  std::pair<Array, std::vector<size_t>> Encode(const TextList& texts, size_t begin, size_t end,
                                               const std::string& task,
                                               const std::optional<std::string>& prompt,
                                               std::optional<bool> normalize,
                                               size_t max_length) const {
    const std::vector<std::string_view> views = Utf8OfRange(texts, begin, end);
    encore::EncodeOptions options;
    options.prompt = prompt;
    options.normalize = normalize;
    options.max_length = max_length;
    options.executor = Take(threads_.executor());
    const TextTask text_task = TaskFromName(task);
    auto found = Take(WithoutGil([&] { return model_.Encode(views, options, text_task); }));
    return {ArrayOf(std::move(found.vectors)), std::move(found.row_starts)};
  }

  // scores [queries, documents].
  void MaxSim(const Matrix& queries, const std::vector<size_t>& query_starts,
              const Matrix& documents, const std::vector<size_t>& document_starts,
              const Scores& scores, bool mean) const {
    const encore::RowGroups q{ViewOf(queries), query_starts};
    const encore::RowGroups d{ViewOf(documents), document_starts};
    const encore::MaxSimOptions options{.mean = mean, .executor = Take(threads_.executor())};
    const encore::MutableView out = ViewOf(scores);
    Check(WithoutGil([&] { return encore::MaxSim(q, d, out, options); }));
  }

  const encore::MultiVectorEncoder& model() const { return model_; }
  int threads() const { return threads_.count(); }
  void ForgetAfterFork() { threads_.ForgetAfterFork(); }

 private:
  encore::MultiVectorEncoder Open(const std::string& folder, encore::OpenOptions options) const {
    options.executor = Take(threads_.executor());
    return Take(WithoutGil([&] { return encore::MultiVectorEncoder::Open(folder, options); }));
  }

  Threads threads_;
  encore::MultiVectorEncoder model_;
};

}  // namespace

void BindMultiVectorEncoder(nb::module_& module) {
  nb::class_<LateModel> bound(module, "LateModel", nb::is_weak_referenceable());
  BindOpen(bound);
  bound
      .def("encode", &LateModel::Encode, nb::arg("texts"), nb::arg("begin"), nb::arg("end"),
           nb::arg("task"), nb::arg("prompt").none(), nb::arg("normalize").none(),
           nb::arg("max_length"))
      .def("max_sim", &LateModel::MaxSim, nb::arg("queries"), nb::arg("query_starts"),
           nb::arg("documents"), nb::arg("document_starts"), nb::arg("scores").noconvert(),
           nb::arg("mean"))
      .def("forget_after_fork", &LateModel::ForgetAfterFork)
      .def_prop_ro("threads", &LateModel::threads)
      .def_prop_ro("dimensions", [](const LateModel& model) { return model.model().dimensions(); })
      .def_prop_ro("mean_similarity",
                   [](const LateModel& model) { return model.model().mean_similarity(); })
      .def_prop_ro(
          "max_length",
          [](const LateModel& model) { return model.model().max_length(TextTask::kDocument); })
      .def_prop_ro(
          "query_length",
          [](const LateModel& model) { return model.model().max_length(TextTask::kQuery); })
      .def_prop_ro("precision",
                   [](const LateModel& model) {
                     return encore::PrecisionName(model.model().encoder().precision());
                   })
      .def_prop_ro("prompts", [](const LateModel& model) { return model.model().prompts(); })
      .def_prop_ro("tokenizer",
                   [](const LateModel& model) -> std::optional<encore::Tokenizer> {
                     return model.model().tokenizer();
                   })
      .def("describe",
           [](const LateModel& model) { return DecisionsOf(model.model().Describe()); });
}

}  // namespace pyencore
