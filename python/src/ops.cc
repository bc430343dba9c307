// SPDX-License-Identifier: Apache-2.0
//
// The operations of ops.h on arrays, on the calling thread.

#include "encore/ops.h"

#include <nanobind/stl/optional.h>

#include <optional>

#include "python/src/bindings.h"
#include "python/src/model_options.h"

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

encore::AttentionOptions Options(bool causal,
                                 const std::optional<nb::ndarray<const bool, nb::device::cpu>>& blocked,
                                 const MaybeFloats& additive, std::optional<size_t> window,
                                 double scale, const std::optional<FloatsOut>& weights) {
  encore::AttentionOptions options;
  options.mask.causal = causal;
  if (blocked) options.mask.blocked = ViewOf(*blocked);
  options.mask.additive = OptionalView(additive);
  options.window = window;
  options.scale = scale;
  if (weights) options.weights = ViewOf(*weights);
  return options;
}

}  // namespace

void BindOps(nb::module_& module) {
  nb::module_ ops = module.def_submodule("ops");
  BindUnary<&encore::Exp>(ops, "exp");
  BindUnary<&encore::Tanh>(ops, "tanh");
  BindUnary<&encore::Relu>(ops, "relu");
  BindUnary<&encore::Gelu>(ops, "gelu");
  BindUnary<&encore::GeluTanh>(ops, "gelu_tanh");
  BindUnary<&encore::Silu>(ops, "silu");
  BindUnary<&encore::Softmax>(ops, "softmax");
  ops.def(
      "add",
      [](const FloatsIn& a, const FloatsIn& b, const FloatsOut& c) {
        Check(encore::Add(ViewOf(a), ViewOf(b), ViewOf(c)));
      },
      nb::arg("a"), nb::arg("b"), nb::arg("c").noconvert());
  ops.def(
      "matmul",
      [](const FloatsIn& a, const FloatsIn& b, const MaybeFloats& bias, const FloatsOut& c) {
        encore::MatMulOptions options;
        options.bias = OptionalView(bias);
        const ConstView left = ViewOf(a);
        const ConstView right = ViewOf(b);
        const MutableView to = ViewOf(c);
        Check(WithoutGil([&] { return encore::MatMul(left, right, to, options); }));
      },
      nb::arg("a"), nb::arg("b"), nb::arg("bias").none(), nb::arg("c").noconvert());
  ops.def(
      "layer_norm",
      [](const FloatsIn& x, const MaybeFloats& weight, const MaybeFloats& bias, double epsilon,
         const FloatsOut& y) {
        Check(encore::LayerNorm(ViewOf(x), OptionalView(weight), OptionalView(bias), epsilon,
                                ViewOf(y)));
      },
      nb::arg("x"), nb::arg("weight").none(), nb::arg("bias").none(), nb::arg("epsilon"),
      nb::arg("y").noconvert());
  ops.def(
      "rms_norm",
      [](const FloatsIn& x, const MaybeFloats& weight, double epsilon, const FloatsOut& y) {
        Check(encore::RmsNorm(ViewOf(x), OptionalView(weight), epsilon, ViewOf(y)));
      },
      nb::arg("x"), nb::arg("weight").none(), nb::arg("epsilon"), nb::arg("y").noconvert());
  ops.def(
      "attention",
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
