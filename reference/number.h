// SPDX-License-Identifier: Apache-2.0
//
// What the references compute with. Each reference is a template of its number type: with double it
// gives the exact result (as far as f32 is concerned), with Rounded the result and, running along,
// how far rounding may take a computation in f32 from it.

#ifndef ENCORE_REFERENCE_NUMBER_H_
#define ENCORE_REFERENCE_NUMBER_H_

#include <cmath>

namespace encore::reference {

// A value and the variance of its error, to first order and with independent errors of mean zero:
// the model of Higham and Mary (2019, doi:10.1137/18M1226312), in which the errors of K steps grow
// as sqrt(K) and a result is off by more than lambda standard deviations with a probability of at
// most 2 exp(-lambda^2 / 2). A rounding error lies within u |result|, so u |result| stands for its
// standard deviation.
struct Rounded {
  static constexpr double kUnit = 0x1p-24;   // u: half the spacing of f32 at 1
  static constexpr double kTiny = 0x1p-150;  // half the spacing of subnormals
  static constexpr double kLambda = 8;       // 3e-14 a result

  double value = 0;
  double variance = 0;

  Rounded() = default;
  Rounded(double exact) : value(exact) {}  // NOLINT(google-explicit-constructor): like a double
  Rounded(double v, double inherited) : value(v), variance(inherited + OfRounding(v)) {}

  // What a result in f32 may differ by.
  double Bound() const { return kLambda * std::sqrt(variance); }
  static double OfRounding(double v) { return kUnit * v * (kUnit * v) + kTiny * kTiny; }
};

inline Rounded operator+(Rounded a, Rounded b) {
  return {a.value + b.value, a.variance + b.variance};
}
inline Rounded operator-(Rounded a, Rounded b) {
  return {a.value - b.value, a.variance + b.variance};
}
inline Rounded operator*(Rounded a, Rounded b) {
  return {a.value * b.value, a.value * a.value * b.variance + b.value * b.value * a.variance};
}
inline Rounded operator/(Rounded a, Rounded b) {
  const double q = a.value / b.value;
  return {q, (a.variance + q * q * b.variance) / (b.value * b.value)};
}

inline double Value(double x) { return x; }
inline double Value(Rounded x) { return x.value; }

// y = f(x) with slope f'(x), computed with an error of up to `error` besides the final rounding.
inline double Apply(double /*x*/, double y, double /*slope*/, double /*error*/) { return y; }
inline Rounded Apply(Rounded x, double y, double slope, double error) {
  return {y, slope * slope * x.variance + error * error};
}

inline double SquareRoot(double x) { return std::sqrt(x); }
inline Rounded SquareRoot(Rounded x) {
  const double root = std::sqrt(x.value);
  return Apply(x, root, root == 0 ? 0 : 0.5 / root, 0);
}

}  // namespace encore::reference

#endif  // ENCORE_REFERENCE_NUMBER_H_
