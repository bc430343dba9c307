// SPDX-License-Identifier: Apache-2.0
//
// What the exhaustive search tries: the functions of the public interface, the cheaper activations
// of a block, softmax's exponential, each with its errors and its promises, which come from
// reference.

#ifndef ENCORE_REFERENCE_EXHAUSTIVE_SUBJECT_H_
#define ENCORE_REFERENCE_EXHAUSTIVE_SUBJECT_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "engine/kernels/elementwise.h"
#include "engine/kernels/gemm_kernel.h"
#include "engine/kernels/softmax.h"

namespace encore::tool {

// The kernels of a SIMD target; the pointers stay good when the active target changes.
struct TargetKernels {
  std::string name;
  bool fma;
  const internal::ElementwiseKernels* elementwise;
  const internal::SoftmaxKernels* softmax;
  const internal::GemmKernel* gemm_bf16;
};

// Of every target that this machine can run, best first. The best is active afterwards.
std::vector<TargetKernels> AllTargetKernels();

// An error that is measured; infinite promises are none.
struct Measure {
  std::string name;
  double promise;  // on targets with FMA
  double promise_no_fma;
  std::string allowance{};  // what results may be off beside that: "less 3.0e-9 |s x|"
};

struct SpecialValue {
  float x;
  float y;
  bool either_zero = false;  // 0 for -0 will do
};

// Conversions are no subjects: conversions.h.
enum class Family { kFunction, kTile, kSoftmaxExp };

class Subject {
 public:
  virtual ~Subject() = default;
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;

  const std::string& name() const { return name_; }
  Family family() const { return family_; }
  const std::vector<Measure>& measures() const { return measures_; }
  const std::vector<SpecialValue>& special_values() const { return special_values_; }
  // f(x) <= f(next x) is watched from here on, and promised or not.
  float rises_from() const { return rises_from_; }
  bool monotone() const { return monotone_; }
  // Only floats with a sign, and 0, are arguments.
  bool non_positive_only() const { return family_ == Family::kSoftmaxExp; }

  // y[i] = f(x[i]), n > 0.
  virtual void Run(const TargetKernels& kernels, const float* x, float* y, size_t n) const = 0;

  // For finite x, within kFastError (fast_reference.h).
  virtual void FastExact(const float* x, double* exact, size_t n) const = 0;
  // Errors of finite x in f32, of either sign, NaN for those that are none.
  virtual void FastErrors(size_t measure, const float* x, const float* y, const double* exact,
                          size_t n, float* errors) const = 0;

  // By the C library; and the error as the promise defines it.
  virtual double Exact(float x) const = 0;
  virtual double Error(size_t measure, float x, float y) const = 0;

 protected:
  Subject(std::string name, Family family) : name_(std::move(name)), family_(family) {}

  std::string name_;
  Family family_;
  std::vector<Measure> measures_;
  std::vector<SpecialValue> special_values_;
  float rises_from_ = 0;
  bool monotone_ = false;
};

// Functions, then activations of tiles, then the exponential at the scales of head sizes.
std::vector<std::unique_ptr<Subject>> AllSubjects();

}  // namespace encore::tool

#endif  // ENCORE_REFERENCE_EXHAUSTIVE_SUBJECT_H_
