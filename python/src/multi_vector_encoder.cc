// SPDX-License-Identifier: Apache-2.0
//
// encore::MultiVectorEncoder with its threads: token vectors in one numpy array with row starts,
// MaxSim, and documents in fewer bytes.

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "encore/multi_vector_encoder.h"
#include "python/src/bindings.h"
#include "python/src/model_options.h"
#include "python/src/watch.h"

namespace pyencore {
namespace {

using encore::TextTask;
using Matrix = nb::ndarray<const float, nb::ndim<2>, nb::device::cpu>;
using Scores = nb::ndarray<float, nb::ndim<2>, nb::device::cpu>;
template <typename T>
using StoredMatrix = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;
using Scales = nb::ndarray<const float, nb::ndim<1>, nb::device::cpu>;

TextTask TaskFromName(const std::string& name) {
  if (name == "query") return TextTask::kQuery;
  if (name == "document") return TextTask::kDocument;
  return TextTask::kNone;
}

class LateModel : public Opened<encore::MultiVectorEncoder> {
 public:
  using Opened::Opened;

  // Rows [rows, dimensions], and where each text's begin.
  std::pair<Array, std::vector<size_t>> Encode(const TextList& texts, const std::string& task,
                                               const std::optional<std::string>& prompt,
                                               std::optional<bool> normalize, size_t max_length,
                                               Watch* watch) const {
    const std::vector<std::string_view> views = Utf8OfAll(texts);
    encore::EncodeOptions options;
    options.prompt = prompt;
    options.normalize = normalize;
    options.max_length = max_length;
    options.executor = executor();
    const TextTask text_task = TaskFromName(task);
    auto found =
        Take(Watched(watch, &options, [&] { return model().Encode(views, options, text_task); }));
    return {ArrayOf(std::move(found.vectors)), std::move(found.row_starts)};
  }

  // scores [queries, documents].
  void MaxSim(const Matrix& queries, const std::vector<size_t>& query_starts,
              const Matrix& documents, const std::vector<size_t>& document_starts,
              const Scores& scores, bool mean) const {
    const encore::RowGroups q{ViewOf(queries), query_starts};
    const encore::RowGroups d{ViewOf(documents), document_starts};
    const encore::MaxSimOptions options{.mean = mean, .executor = executor()};
    const encore::MutableView out = ViewOf(scores);
    Check(WithoutGil([&] { return encore::MaxSim(q, d, out, options); }));
  }

  // The same of documents that StoreVectors made.
  template <typename T>
  void MaxSimStored(const Matrix& queries, const std::vector<size_t>& query_starts,
                    const StoredMatrix<T>& documents, const std::optional<Scales>& scales,
                    const std::vector<size_t>& document_starts, const Scores& scores,
                    bool mean) const {
    const encore::RowGroups q{ViewOf(queries), query_starts};
    const encore::TensorView<const T> view = ViewOf(documents);
    const encore::DType type = sizeof(T) == 1 ? encore::DType::kI8 : encore::DType::kBF16;
    const encore::StoredRowGroups d{
        encore::WeightView(type, view.data(), view.shape(), view.strides()),
        scales ? ViewOf(*scales) : encore::ConstView(), document_starts};
    const encore::MaxSimOptions options{.mean = mean, .executor = executor()};
    const encore::MutableView out = ViewOf(scores);
    Check(WithoutGil([&] { return encore::MaxSim(q, d, out, options); }));
  }
};

// Values, of bf16 its bits, and of int8 scales.
nb::tuple StoreRows(const Matrix& vectors, bool int8) {
  const encore::ConstView view = ViewOf(vectors);
  auto stored = Take(WithoutGil([&] {
    return encore::StoreVectors(view, int8 ? encore::DType::kI8 : encore::DType::kBF16);
  }));
  if (!int8) return nb::make_tuple(ArrayOf<uint16_t>(std::move(stored.vectors)), nb::none());
  return nb::make_tuple(ArrayOf<int8_t>(std::move(stored.vectors)),
                        ArrayOf(std::move(stored.scales)));
}

// One for each type of values: numpy's arrays say which.
template <typename T>
void BindMaxSimStored(nb::class_<LateModel>& bound) {
  bound.def("max_sim_stored", &LateModel::MaxSimStored<T>, nb::arg("queries"),
            nb::arg("query_starts"), nb::arg("documents").noconvert(), nb::arg("scales").none(),
            nb::arg("document_starts"), nb::arg("scores").noconvert(), nb::arg("mean"));
}

}  // namespace

void BindMultiVectorEncoder(nb::module_& module) {
  nb::class_<LateModel> bound(module, "LateModel", nb::is_weak_referenceable());
  BindOpened(bound);
  BindMaxSimStored<int8_t>(bound);
  BindMaxSimStored<uint16_t>(bound);
  module.def("store_vectors", &StoreRows, nb::arg("vectors"), nb::arg("int8"));
  bound
      .def("encode", &LateModel::Encode, nb::arg("texts"), nb::arg("task"),
           nb::arg("prompt").none(), nb::arg("normalize").none(), nb::arg("max_length"),
           nb::arg("watch").none())
      .def("max_sim", &LateModel::MaxSim, nb::arg("queries"), nb::arg("query_starts"),
           nb::arg("documents"), nb::arg("document_starts"), nb::arg("scores").noconvert(),
           nb::arg("mean"))
      .def_prop_ro("mean_similarity",
                   [](const LateModel& model) { return model.model().mean_similarity(); })
      .def("max_length_of",
           [](const LateModel& model, const std::string& task) {
             return model.model().max_length(TaskFromName(task));
           })
      .def("has_own_length",
           [](const LateModel& model, const std::string& task) {
             return model.model().has_own_length(TaskFromName(task));
           })
      .def_prop_ro("prompts", [](const LateModel& model) { return model.model().prompts(); })
      .def_prop_ro("tokenizer", [](const LateModel& model) -> std::optional<encore::Tokenizer> {
        return model.model().tokenizer();
      });
}

}  // namespace pyencore
