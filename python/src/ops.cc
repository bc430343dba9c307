// SPDX-License-Identifier: Apache-2.0
//
// The operations of ops.h on arrays, on the calling thread.

#include "encore/ops.h"

#include <nanobind/stl/optional.h>

#include <optional>

#include "python/src/bindings.h"
#include "python/src/model_options.h"
#include "python/src/threads.h"

namespace pyencore {
namespace {

using encore::ConstView;
using encore::MutableView;
using MaybeFloats = std::optional<FloatsIn>;

ConstView OptionalView(const MaybeFloats& array) { return array ? ViewOf(*array) : ConstView(); }

// y = f(x), element by element or row by row.
template <encore::Status (*F)(ConstView, MutableView)>
void BindUnary(nb::module_& module, const char* name) {
  module.def(
      name,
      [](const FloatsIn& x, const FloatsOut& y) {
        const ConstView from = ViewOf(x);
        const MutableView to = ViewOf(y);
        Check(WithoutGil([&] { return F(from, to); }));
      },
      nb::arg("x"), nb::arg("y").noconvert());
}

encore::AttentionOptions Options(
    bool causal, const std::optional<nb::ndarray<const bool, nb::device::cpu>>& blocked,
    const MaybeFloats& additive, std::optional<size_t> window, double scale,
    const std::optional<FloatsOut>& weights) {
  encore::AttentionOptions options;
  options.mask.causal = causal;
  if (blocked) options.mask.blocked = ViewOf(*blocked);
  options.mask.additive = OptionalView(additive);
  options.window = window;
  options.scale = scale;
  if (weights) options.weights = ViewOf(*weights);
  return options;
}

class Linear {
 public:
  Linear(const FloatsIn& weight, const MaybeFloats& bias, int threads)
      : threads_(threads),
        linear_(Take(encore::PackedLinear::Create(ViewOf(weight), OptionalView(bias)))) {}

  void Apply(const FloatsIn& x, const FloatsOut& y) const {
    const ConstView from = ViewOf(x);
    const MutableView to = ViewOf(y);
    const encore::Executor executor = Take(threads_.executor());
    Check(WithoutGil([&] { return linear_.Apply(from, to, executor); }));
  }
  void ForgetAfterFork() { threads_.ForgetAfterFork(); }
  const encore::PackedLinear& linear() const { return linear_; }

 private:
  Threads threads_;
  encore::PackedLinear linear_;
};

}  // namespace

void BindOps(nb::module_& module) {
  nb::class_<Linear>(module, "Linear", nb::is_weak_referenceable())
      .def(nb::init<const FloatsIn&, const MaybeFloats&, int>(), nb::arg("weight"),
           nb::arg("bias").none(), nb::arg("threads"))
      .def("apply", &Linear::Apply, nb::arg("x"), nb::arg("y").noconvert())
      .def("forget_after_fork", &Linear::ForgetAfterFork)
      .def_prop_ro("out_features", [](const Linear& self) { return self.linear().out_features(); });
  BindUnary<&encore::Exp>(module, "ops_exp");
  BindUnary<&encore::Tanh>(module, "ops_tanh");
  BindUnary<&encore::Relu>(module, "ops_relu");
  BindUnary<&encore::Gelu>(module, "ops_gelu");
  BindUnary<&encore::GeluTanh>(module, "ops_gelu_tanh");
  BindUnary<&encore::Silu>(module, "ops_silu");
  BindUnary<&encore::Softmax>(module, "ops_softmax");
  module.def(
      "ops_add",
      [](const FloatsIn& a, const FloatsIn& b, const FloatsOut& c) {
        Check(encore::Add(ViewOf(a), ViewOf(b), ViewOf(c)));
      },
      nb::arg("a"), nb::arg("b"), nb::arg("c").noconvert());
  module.def(
      "ops_matmul",
      [](const FloatsIn& a, const FloatsIn& b, const MaybeFloats& bias, const FloatsOut& c) {
        encore::MatMulOptions options;
        options.bias = OptionalView(bias);
        const ConstView left = ViewOf(a);
        const ConstView right = ViewOf(b);
        const MutableView to = ViewOf(c);
        Check(WithoutGil([&] { return encore::MatMul(left, right, to, options); }));
      },
      nb::arg("a"), nb::arg("b"), nb::arg("bias").none(), nb::arg("c").noconvert());
  module.def(
      "ops_layer_norm",
      [](const FloatsIn& x, const MaybeFloats& weight, const MaybeFloats& bias, double epsilon,
         const FloatsOut& y) {
        Check(encore::LayerNorm(ViewOf(x), OptionalView(weight), OptionalView(bias), epsilon,
                                ViewOf(y)));
      },
      nb::arg("x"), nb::arg("weight").none(), nb::arg("bias").none(), nb::arg("epsilon"),
      nb::arg("y").noconvert());
  module.def(
      "ops_rms_norm",
      [](const FloatsIn& x, const MaybeFloats& weight, double epsilon, const FloatsOut& y) {
        Check(encore::RmsNorm(ViewOf(x), OptionalView(weight), epsilon, ViewOf(y)));
      },
      nb::arg("x"), nb::arg("weight").none(), nb::arg("epsilon"), nb::arg("y").noconvert());
  module.def(
      "ops_attention",
      [](const FloatsIn& q, const FloatsIn& k, const FloatsIn& v, bool causal,
         const std::optional<nb::ndarray<const bool, nb::device::cpu>>& blocked,
         const MaybeFloats& additive, std::optional<size_t> window, double scale,
         const std::optional<FloatsOut>& weights, const FloatsOut& out) {
        const encore::AttentionOptions options =
            Options(causal, blocked, additive, window, scale, weights);
        const ConstView queries = ViewOf(q);
        const ConstView keys = ViewOf(k);
        const ConstView values = ViewOf(v);
        const MutableView to = ViewOf(out);
        Check(WithoutGil([&] { return encore::Attention(queries, keys, values, to, options); }));
      },
      nb::arg("q"), nb::arg("k"), nb::arg("v"), nb::arg("causal"), nb::arg("blocked").none(),
      nb::arg("additive").none(), nb::arg("window").none(), nb::arg("scale"),
      nb::arg("weights").noconvert().none(), nb::arg("out").noconvert());
}

}  // namespace pyencore
