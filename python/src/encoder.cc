// SPDX-License-Identifier: Apache-2.0
//
// encore::Encoder on arrays: from the bytes or the path of a safetensors file with PyTorch's names,
// rows of packed sequences in and out, taps into arrays of the caller's.

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "encore/encoder.h"
#include "encore/torch_weights.h"
#include "python/src/bindings.h"
#include "python/src/model_options.h"
#include "python/src/threads.h"

namespace pyencore {
namespace {

using BoolsIn = nb::ndarray<const bool, nb::device::cpu>;

encore::SafetensorsFile OpenFile(nb::handle source) {
  if (PyBytes_Check(source.ptr())) {
    char* data = nullptr;
    Py_ssize_t size = 0;
    if (PyBytes_AsStringAndSize(source.ptr(), &data, &size) != 0) throw nb::python_error();
    return Take(encore::SafetensorsFile::FromBytes(
        {reinterpret_cast<const std::byte*>(data), static_cast<size_t>(size)}, "weights"));
  }
  return Take(encore::SafetensorsFile::Open(std::string(Utf8(source, "weights"))));
}

// The workspace of the last call, for the next one: to make it touches all of it. A call that comes
// meanwhile makes another.
class Spare {
 public:
  Spare() = default;
  Spare(const Spare&) = delete;
  Spare& operator=(const Spare&) = delete;
  ~Spare() { delete kept_.load(); }

  std::unique_ptr<encore::Workspace> Take() {
    std::unique_ptr<encore::Workspace> taken(kept_.exchange(nullptr));
    return taken ? std::move(taken) : std::make_unique<encore::Workspace>();
  }
  void Give(std::unique_ptr<encore::Workspace> workspace) {
    constexpr size_t kMostBytes = size_t{128} << 20;
    if (workspace->size_bytes() > kMostBytes) return;
    const std::unique_ptr<encore::Workspace> other(kept_.exchange(workspace.release()));
  }

 private:
  std::atomic<encore::Workspace*> kept_ = nullptr;
};

class ArrayEncoder {
 public:
  // `source`: bytes, which must live as long as the call, or a path.
  ArrayEncoder(nb::handle source, std::optional<size_t> num_heads,
               const std::optional<std::string>& activation, std::optional<bool> norm_first,
               std::optional<double> epsilon, const std::optional<std::string>& compute,
               const std::vector<std::string>& keep, int threads, int idle_spin, bool amx_bf16)
      : threads_(threads, idle_spin), encoder_([&] {
          encore::TorchOverrides overrides;
          overrides.num_heads = num_heads;
          overrides.epsilon = epsilon;
          if (activation) overrides.activation = Take(encore::ActivationFromName(*activation));
          if (norm_first) {
            overrides.norm_placement =
                *norm_first ? encore::NormPlacement::kPre : encore::NormPlacement::kPost;
          }
          const encore::SafetensorsFile file = OpenFile(source);
          const encore::TorchWeights weights =
              Take(encore::TorchWeights::FromFile(file, overrides));
          encore::EncoderOptions options;
          options.precision =
              compute ? Take(encore::PrecisionFromName(*compute)) : weights.precision();
          if (encore::IsInteger(options.precision)) options.keep = weights.keep();
          for (const std::string& name : keep) options.keep.push_back(MatrixFromName(name));
          options.amx_bf16 = amx_bf16;
          options.executor = Take(threads_.executor());
          return Take(WithoutGil([&] {
            return encore::Encoder::Create(weights.config(), weights.weights(), options);
          }));
        }()) {}

  // y [T, D] from x [T, D]; taps are lists of arrays, empty for none.
  void Forward(const nb::ndarray<const float, nb::ndim<2>, nb::device::cpu>& x,
               const std::vector<size_t>& starts, const std::vector<size_t>& positions, bool causal,
               const std::optional<BoolsIn>& blocked, const std::optional<FloatsIn>& additive,
               const nb::ndarray<float, nb::ndim<2>, nb::device::cpu>& y,
               const std::vector<FloatsOut>& attention,
               const std::vector<FloatsOut>& hidden) const {
    encore::Batch batch{.seq_starts = starts};
    batch.positions = positions;
    batch.mask.causal = causal;
    if (blocked) batch.mask.blocked = ViewOf(*blocked);
    if (additive) batch.mask.additive = ViewOf(*additive);
    std::vector<encore::MutableView> attention_views;
    for (const FloatsOut& array : attention) attention_views.push_back(ViewOf(array));
    std::vector<encore::MutableView> hidden_views;
    for (const FloatsOut& array : hidden) hidden_views.push_back(ViewOf(array));
    const encore::Taps taps{.attention = attention_views, .hidden = hidden_views};
    const encore::Executor executor = Take(threads_.executor());
    const encore::ConstView from = ViewOf(x);
    const encore::MutableView to = ViewOf(y);
    Check(WithoutGil([&]() -> encore::Status {
      const encore::Result<size_t> bytes = encoder_.WorkspaceBytes(batch, executor);
      if (!bytes.ok()) return bytes.status();
      std::unique_ptr<encore::Workspace> workspace = spare_.Take();
      if (encore::Status status = workspace->Reserve(*bytes); !status.ok()) return status;
      encore::Status status = encoder_.Forward(batch, from, to, *workspace, executor, taps);
      spare_.Give(std::move(workspace));
      return status;
    }));
  }

  const encore::Encoder& encoder() const { return encoder_; }
  int threads() const { return threads_.count(); }
  void ForgetAfterFork() { threads_.ForgetAfterFork(); }

 private:
  Threads threads_;
  encore::Encoder encoder_;
  mutable Spare spare_;
};

}  // namespace

void BindEncoder(nb::module_& module) {
  nb::class_<ArrayEncoder>(module, "ArrayEncoder", nb::is_weak_referenceable())
      .def(nb::init<nb::handle, std::optional<size_t>, const std::optional<std::string>&,
                    std::optional<bool>, std::optional<double>, const std::optional<std::string>&,
                    const std::vector<std::string>&, int, int, bool>(),
           nb::arg("source"), nb::arg("num_heads").none(), nb::arg("activation").none(),
           nb::arg("norm_first").none(), nb::arg("epsilon").none(), nb::arg("compute").none(),
           nb::arg("keep"), nb::arg("threads"), nb::arg("idle_spin"), nb::arg("amx_bf16"))
      .def("forward", &ArrayEncoder::Forward, nb::arg("x"), nb::arg("starts"), nb::arg("positions"),
           nb::arg("causal"), nb::arg("blocked").none(), nb::arg("additive").none(),
           nb::arg("y").noconvert(), nb::arg("attention"), nb::arg("hidden"))
      .def("forget_after_fork", &ArrayEncoder::ForgetAfterFork)
      .def_prop_ro("threads", &ArrayEncoder::threads)
      .def_prop_ro("d_model",
                   [](const ArrayEncoder& self) { return self.encoder().config().d_model; })
      .def_prop_ro("num_layers",
                   [](const ArrayEncoder& self) { return self.encoder().config().num_layers(); })
      .def_prop_ro(
          "num_heads",
          [](const ArrayEncoder& self) { return self.encoder().config().layers.front().num_heads; })
      .def_prop_ro("precision",
                   [](const ArrayEncoder& self) {
                     return encore::PrecisionName(self.encoder().precision());
                   })
      .def_prop_ro("amx_bf16", [](const ArrayEncoder& self) { return self.encoder().amx_bf16(); })
      .def_prop_ro("packed_bytes",
                   [](const ArrayEncoder& self) { return self.encoder().packed_bytes(); })
      .def_prop_ro("target", [](const ArrayEncoder& self) { return self.encoder().target(); });
}

}  // namespace pyencore
