// SPDX-License-Identifier: Apache-2.0
//
// torch's activations. Where the engine has the function, its bits are the engine's; the others are
// computed in double from +, -, *, / alone and rounded once, as a libm's bits differ from machine
// to machine.

#include "engine/text/torch_activation.h"

#include <algorithm>
#include <cmath>

#include "encore/ops.h"

namespace encore::inline v0_1::internal {
namespace {

// e^x within 4e-16 of it, relatively: 2^k e^r, |r| <= ln 2 / 2, whose series ends with r^13 / 13!
// (2e-16 of the rest is left out).
double ExpOf(double x) {
  if (std::isnan(x)) return x;
  if (x > 700) return HUGE_VAL;
  if (x < -700) return 0;
  constexpr double kLn2 = 0x1.62e42fefap-1;        // ln 2, whose last bits are 0,
  constexpr double kRest = 0x1.cf79abc9e3b3ap-40;  // and what is missing
  const double k = std::floor(x * 0x1.71547652b82fep+0 + 0.5);
  const double r = (x - k * kLn2) - k * kRest;
  double sum = 1;
  for (int i = 13; i > 0; --i) sum = 1 + sum * r / i;
  return std::ldexp(sum, static_cast<int>(k));
}

// ln(1 + e) of 0 <= e <= 1 within 4e-16: 2 artanh(s), s = e / (2 + e) <= 1/3, whose series ends
// with s^31 / 31.
double Log1pOf(double e) {
  const double s = e / (2 + e);
  const double square = s * s;
  double sum = 0;
  for (int i = 31; i > 0; i -= 2) sum = sum * square + 1.0 / i;
  return 2 * s * sum;
}

double SoftplusOf(double x) { return std::max(x, 0.0) + Log1pOf(ExpOf(-std::abs(x))); }

// e^x - 1 of x <= 0; where it is small, by its series.
double Expm1Of(double x) {
  if (x > -1e-3) return x * (1 + x / 2 * (1 + x / 3 * (1 + x / 4)));
  return ExpOf(x) - 1;
}

double EluOf(double x) { return x > 0 ? x : Expm1Of(x); }
double SeluOf(double x) {
  return 1.0507009873554804934193349852946 *
         (x > 0 ? x : 1.6732632423543772848170429916717 * Expm1Of(x));
}
double LeakyReluOf(double x) { return x > 0 ? x : 0.01 * x; }
double RreluOf(double x) { return x > 0 ? x : 11.0 / 48 * x; }  // the mean of 1/8 and 1/3
double SoftplusFor(double x) { return std::isnan(x) ? x : SoftplusOf(x); }
double LogSigmoidOf(double x) { return std::isnan(x) ? x : -SoftplusOf(-x); }
// x tanh(ln(1 + e^x)) = x n / (n + 2), n = e^x (e^x + 2).
double MishOf(double x) {
  if (x > 40) return x;
  const double e = ExpOf(x);
  const double n = e * (e + 2);
  return x * (n / (n + 2));
}
double HardtanhOf(double x) { return std::clamp(x, -1.0, 1.0); }
double Relu6Of(double x) { return std::clamp(x, 0.0, 6.0); }
double HardsigmoidOf(double x) { return std::clamp(x + 3, 0.0, 6.0) / 6; }
double HardswishOf(double x) { return x * (std::clamp(x + 3, 0.0, 6.0) / 6); }
double SoftsignOf(double x) { return x / (1 + std::abs(x)); }
double HardshrinkOf(double x) { return std::abs(x) <= 0.5 ? 0 : x; }
double SoftshrinkOf(double x) { return x > 0.5 ? x - 0.5 : x < -0.5 ? x + 0.5 : x * 0; }
// tanh x = 1 - 2 / (e^2x + 1); below 0.02 the series of the difference.
double TanhshrinkOf(double x) {
  const double square = x * x;
  if (square < 4e-4) {
    return x * square * (1.0 / 3 - square * (2.0 / 15 - square * (17.0 / 315)));
  }
  return x - (1 - 2 / (ExpOf(2 * x) + 1));
}

template <double (*F)(double)>
void Each(float* row, size_t width) {
  for (size_t i = 0; i < width; ++i) row[i] = static_cast<float>(F(static_cast<double>(row[i])));
}

// Of the engine: the views are right, so none of them can fail.
template <Status (*F)(ConstView, MutableView)>
void Engine(float* row, size_t width) {
  const MutableView view(row, Shape(width));
  (void)F(view, view);
}

void Nothing(float*, size_t) {}

// 1 / (1 + e^-x).
void Sigmoid(float* row, size_t width) {
  for (size_t i = 0; i < width; ++i) row[i] = -row[i];
  Engine<Exp>(row, width);
  for (size_t i = 0; i < width; ++i) row[i] = 1 / (1 + row[i]);
}

constexpr std::string_view kIdentity = "Identity";

constexpr TorchActivation kActivations[] = {
    {"Tanh", "tanh", Engine<Tanh>},
    {kIdentity, "identity", Nothing},
    {"CELU", "celu", Each<EluOf>},  // alpha is 1 in both
    {"ELU", "elu", Each<EluOf>},
    {"GELU", "gelu (erf)", Engine<Gelu>},
    {"Hardshrink", "hardshrink", Each<HardshrinkOf>},
    {"Hardsigmoid", "hardsigmoid", Each<HardsigmoidOf>},
    {"Hardswish", "hardswish", Each<HardswishOf>},
    {"Hardtanh", "hardtanh", Each<HardtanhOf>},
    {"LeakyReLU", "leaky relu, slope 0.01", Each<LeakyReluOf>},
    {"LogSigmoid", "log sigmoid", Each<LogSigmoidOf>},
    {"Mish", "mish", Each<MishOf>},
    {"RReLU", "leaky relu, slope 11/48", Each<RreluOf>},
    {"ReLU", "relu", Engine<Relu>},
    {"ReLU6", "relu6", Each<Relu6Of>},
    {"SELU", "selu", Each<SeluOf>},
    {"SiLU", "silu", Engine<Silu>},
    {"Sigmoid", "sigmoid", Sigmoid},
    {"Softmax", "softmax", Engine<Softmax>},
    {"Softplus", "softplus", Each<SoftplusFor>},
    {"Softshrink", "softshrink", Each<SoftshrinkOf>},
    {"Softsign", "softsign", Each<SoftsignOf>},
    {"Tanhshrink", "tanhshrink", Each<TanhshrinkOf>},
};

constexpr std::string_view kShort = "torch.nn.";
constexpr std::string_view kModule = "torch.nn.modules.activation.";
constexpr std::string_view kLinear = "torch.nn.modules.linear.";

}  // namespace

const TorchActivation* FindTorchActivation(std::string_view path) {
  for (const TorchActivation& known : kActivations) {
    if (!path.ends_with(known.name)) continue;
    const std::string_view before = path.substr(0, path.size() - known.name.size());
    if (before == kShort || before == (known.name == kIdentity ? kLinear : kModule)) return &known;
  }
  return nullptr;
}

std::string TorchActivationNames() {
  std::string all;
  for (const TorchActivation& known : kActivations) {
    all += (all.empty() ? "" : ", ") + std::string(known.name == kIdentity ? kLinear : kModule);
    all += known.name;
  }
  return all;
}

}  // namespace encore::internal
