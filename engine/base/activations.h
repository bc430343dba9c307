// SPDX-License-Identifier: Apache-2.0
//
// The table of activations: a row for each function of a layer or a head, with all its names. A
// layer's rows come first, by enumerator; kernels/activation_math-inl.h has their form in a tile.
//
// Heads apply a function of encore/ops.h where there is one, with its bits. The others are computed
// in double from +, -, *, / alone and rounded once: a libm's bits differ from machine to machine.

#ifndef ENCORE_ENGINE_BASE_ACTIVATIONS_H_
#define ENCORE_ENGINE_BASE_ACTIVATIONS_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "encore/layer.h"
#include "encore/ops.h"
#include "engine/base/double_math.h"

namespace encore::inline v0_1::internal {
namespace formulas {

// e^x within 4e-16 of it, relatively: 2^k e^r, |r| <= ln 2 / 2, by its series up to r^13 / 13!.
// PortableExp is not as accurate.
inline double PreciseExp(double x) {
  if (std::isnan(x)) return x;
  if (x > 700) return HUGE_VAL;
  if (x < -700) return 0;
  constexpr double kHigh = 0x1.62e42fefap-1;  // of ln 2; its last bits are 0
  constexpr double kLow = 0x1.cf79abc9e3b3ap-40;
  const double k = std::floor(x * 0x1.71547652b82fep+0 + 0.5);
  const double r = (x - k * kHigh) - k * kLow;
  double sum = 1;
  for (int i = 13; i > 0; --i) sum = 1 + sum * r / i;
  return std::ldexp(sum, static_cast<int>(k));
}
// ln(1 + e), 0 <= e <= 1, within 4e-16: 2 artanh(s), s = e / (2 + e), up to s^31 / 31.
inline double Log1p(double e) {
  const double s = e / (2 + e);
  const double square = s * s;
  double sum = 0;
  for (int i = 31; i > 0; i -= 2) sum = sum * square + 1.0 / i;
  return 2 * s * sum;
}
// e^x - 1, x <= 0; by its series where it is small.
inline double Expm1(double x) {
  if (x > -1e-3) return x * (1 + x / 2 * (1 + x / 3 * (1 + x / 4)));
  return PreciseExp(x) - 1;
}
inline double Elu(double x) { return x > 0 ? x : Expm1(x); }
inline double Selu(double x) {
  return 1.0507009873554804934193349852946 *
         (x > 0 ? x : 1.6732632423543772848170429916717 * Expm1(x));
}
inline double LeakyRelu(double x) { return x > 0 ? x : 0.01 * x; }
inline double Rrelu(double x) { return x > 0 ? x : 11.0 / 48 * x; }  // the mean of 1/8 and 1/3
inline double Softplus(double x) {
  return std::isnan(x) ? x : std::max(x, 0.0) + Log1p(PreciseExp(-std::abs(x)));
}
inline double LogSigmoid(double x) { return -Softplus(-x); }
// x tanh(ln(1 + e^x)) = x n / (n + 2), n = e^x (e^x + 2).
inline double Mish(double x) {
  if (x > 40) return x;
  const double e = PreciseExp(x);
  const double n = e * (e + 2);
  return x * (n / (n + 2));
}
inline double Hardtanh(double x) { return std::clamp(x, -1.0, 1.0); }
inline double Relu6(double x) { return std::clamp(x, 0.0, 6.0); }
inline double Hardsigmoid(double x) { return std::clamp(x + 3, 0.0, 6.0) / 6; }
inline double Hardswish(double x) { return x * Hardsigmoid(x); }
inline double Softsign(double x) { return x / (1 + std::abs(x)); }
inline double Hardshrink(double x) { return std::abs(x) <= 0.5 ? 0 : x; }
inline double Softshrink(double x) { return x > 0.5 ? x - 0.5 : x < -0.5 ? x + 0.5 : x * 0; }
// tanh x = 1 - 2 / (e^2x + 1); below 0.02 the series of the difference.
inline double Tanhshrink(double x) {
  const double square = x * x;
  if (square < 4e-4) {
    return x * square * (1.0 / 3 - square * (2.0 / 15 - square * (17.0 / 315)));
  }
  return x - (1 - 2 / (PreciseExp(2 * x) + 1));
}

template <double (*kFormula)(double)>
void InDouble(float* x, size_t n) {
  for (size_t i = 0; i < n; ++i) x[i] = static_cast<float>(kFormula(static_cast<double>(x[i])));
}
// The view is right, so the call cannot fail.
template <Status (*kFunction)(ConstView, MutableView)>
void OfOps(float* x, size_t n) {
  const MutableView view(x, Shape(n));
  (void)kFunction(view, view);
}
inline void Identity(float* /*x*/, size_t /*n*/) {}
// 1 / (1 + e^-x).
inline void Sigmoid(float* x, size_t n) {
  for (size_t i = 0; i < n; ++i) x[i] = -x[i];
  OfOps<Exp>(x, n);
  for (size_t i = 0; i < n; ++i) x[i] = 1 / (1 + x[i]);
}

}  // namespace formulas

struct ActivationRow {
  std::string_view text;  // for Describe()
  // The class of torch.nn, with its default arguments; empty: none.
  std::string_view torch;
  // In heads: x [n] in place, in the default rounding mode; softmax is of all of x. Bits depend on
  // the values alone, and are the same on every machine with FMA. null: of layers only.
  void (*apply)(float* x, size_t n);
  // Of a layer: the enumerator, its ActivationName(), and transformers' names (activations.py).
  std::optional<Activation> layer = {};
  std::string_view name = {};
  std::array<std::string_view, 5> transformers = {};
};

// clang-format off
inline constexpr ActivationRow kActivations[] = {
    {"relu", "ReLU", formulas::OfOps<Relu>, Activation::kRelu, "relu", {"relu"}},
    {"gelu (erf)", "GELU", formulas::OfOps<Gelu>, Activation::kGelu, "gelu",
     {"gelu", "gelu_python"}},
    {"gelu (tanh)", "", formulas::OfOps<GeluTanh>, Activation::kGeluTanh, "gelu_tanh",
     // computed in different ways
     {"gelu_new", "gelu_fast", "gelu_accurate", "gelu_pytorch_tanh", "gelu_python_tanh"}},
    {"silu", "SiLU", formulas::OfOps<Silu>, Activation::kSilu, "silu", {"silu", "swish"}},
    {"quick_gelu", "", nullptr, Activation::kQuickGelu, "quick_gelu", {"quick_gelu"}},

    {"tanh", "Tanh", formulas::OfOps<Tanh>},
    {"identity", "Identity", formulas::Identity},
    {"celu", "CELU", formulas::InDouble<formulas::Elu>},  // alpha is 1 in both
    {"elu", "ELU", formulas::InDouble<formulas::Elu>},
    {"hardshrink", "Hardshrink", formulas::InDouble<formulas::Hardshrink>},
    {"hardsigmoid", "Hardsigmoid", formulas::InDouble<formulas::Hardsigmoid>},
    {"hardswish", "Hardswish", formulas::InDouble<formulas::Hardswish>},
    {"hardtanh", "Hardtanh", formulas::InDouble<formulas::Hardtanh>},
    {"leaky relu, slope 0.01", "LeakyReLU", formulas::InDouble<formulas::LeakyRelu>},
    {"log sigmoid", "LogSigmoid", formulas::InDouble<formulas::LogSigmoid>},
    {"mish", "Mish", formulas::InDouble<formulas::Mish>},
    {"leaky relu, slope 11/48", "RReLU", formulas::InDouble<formulas::Rrelu>},
    {"relu6", "ReLU6", formulas::InDouble<formulas::Relu6>},
    {"selu", "SELU", formulas::InDouble<formulas::Selu>},
    {"sigmoid", "Sigmoid", formulas::Sigmoid},
    {"softmax", "Softmax", formulas::OfOps<Softmax>},
    {"softplus", "Softplus", formulas::InDouble<formulas::Softplus>},
    {"softshrink", "Softshrink", formulas::InDouble<formulas::Softshrink>},
    {"softsign", "Softsign", formulas::InDouble<formulas::Softsign>},
    {"tanhshrink", "Tanhshrink", formulas::InDouble<formulas::Tanhshrink>},
};
// clang-format on

inline constexpr size_t kLayerActivations =
    std::count_if(std::begin(kActivations), std::end(kActivations),
                  [](const ActivationRow& row) { return row.layer.has_value(); });
inline constexpr Activation kLastActivation = static_cast<Activation>(kLayerActivations - 1);

constexpr const ActivationRow& ActivationRowOf(Activation activation) {
  return kActivations[static_cast<size_t>(activation)];
}
static_assert([] {  // in the order of the enumerators
  for (size_t i = 0; i < kLayerActivations; ++i) {
    if (kActivations[i].layer != static_cast<Activation>(i)) return false;
  }
  return true;
}());

inline constexpr const ActivationRow& kTanhRow = kActivations[kLayerActivations];
static_assert(kTanhRow.torch == "Tanh");

// "relu, gelu, gelu_tanh, silu or quick_gelu".
inline std::string LayerActivationNames() {
  std::string all(kActivations[0].name);
  for (size_t i = 1; i < kLayerActivations; ++i) {
    all += (i + 1 < kLayerActivations ? ", " : " or ") + std::string(kActivations[i].name);
  }
  return all;
}

// A layer's by a name that transformers has for it; null for any other.
inline const ActivationRow* FindTransformersActivation(std::string_view name) {
  for (size_t i = 0; i < kLayerActivations; ++i) {
    for (const std::string_view known : kActivations[i].transformers) {
      if (!known.empty() && name == known) return &kActivations[i];
    }
  }
  return nullptr;
}

// "relu, gelu, gelu_python, ...".
inline std::string TransformersActivationNames() {
  std::string all;
  for (size_t i = 0; i < kLayerActivations; ++i) {
    for (const std::string_view name : kActivations[i].transformers) {
      if (!name.empty()) all += (all.empty() ? "" : ", ") + std::string(name);
    }
  }
  return all;
}

constexpr std::string_view TorchModuleOf(const ActivationRow& row) {
  return row.torch == "Identity" ? "torch.nn.modules.linear." : "torch.nn.modules.activation.";
}

// "torch.nn.GELU" or "torch.nn.modules.activation.GELU" (of Identity
// "torch.nn.modules.linear.Identity"); null for any other.
inline const ActivationRow* FindTorchActivation(std::string_view path) {
  for (const ActivationRow& row : kActivations) {
    if (row.torch.empty() || !path.ends_with(row.torch)) continue;
    const std::string_view module = path.substr(0, path.size() - row.torch.size());
    if (module == "torch.nn." || module == TorchModuleOf(row)) return &row;
  }
  return nullptr;
}

// "torch.nn.modules.activation.ReLU, ...": what there is.
inline std::string TorchActivationNames() {
  std::string all;
  for (const ActivationRow& row : kActivations) {
    if (row.torch.empty()) continue;
    all += (all.empty() ? "" : ", ") + std::string(TorchModuleOf(row)) + std::string(row.torch);
  }
  return all;
}

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_BASE_ACTIVATIONS_H_
