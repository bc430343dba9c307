// SPDX-License-Identifier: Apache-2.0
//
// What the numeric contract costs on one thread: encore's exp, GELU, softmax, LayerNorm and matrix
// product ("contract/...") beside those that are free to round and to sum in any order
// ("free/...", free_functions.h and free_product.h), in L1 or with warm caches. Not here: what the
// library reaches of the peak on real sizes (bench_exp.cc, bench_matmul.cc and their like).

#include <string>

#include "bench/elementwise.h"
#include "bench/free_functions.h"
#include "bench/free_product.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/out_of_memory.h"
#include "engine/kernels/gemm_kernel.h"
#include "engine/ops/gemm.h"
#include "engine/ops/gemm_blocking.h"
#include "engine/ops/packed_matrix.h"

namespace encore::bench {
namespace {

constexpr size_t kElements = 4096;  // 16 KiB in, 16 KiB out
constexpr size_t kN = 768;
constexpr double kEpsilon = 1e-5;

Status NoMathematics() {
  return Status(ErrorCode::kUnsupported, "hwy/contrib/math was not found when this was built");
}

void RegisterUnary(const std::string& name, ElementwiseFn contract,
                   FreeFunctions::Unary FreeFunctions::*free, double flops) {
  RegisterElementwise("contract/" + name, contract, flops, kElements);
  Register("free/" + name + "/n:" + std::to_string(kElements), [=](benchmark::State& state) {
    const FreeFunctions::Unary call = GetFreeFunctions().*free;
    const Tensor x = RandomTensor(Shape(kElements), -8, 8);
    Tensor y = ZeroTensor(Shape(kElements));
    Measure(state, 1, ElementwiseWork(kElements, flops), [&](size_t) {
      if (call == nullptr) return NoMathematics();
      call(x.View<float>().data(), y.View<float>().data(), kElements);
      return Status();
    });
  });
}

void RegisterSoftmax(size_t cols, bool is_free) {
  Register((is_free ? "free" : "contract") + std::string("/softmax/cols:") + std::to_string(cols),
           [=](benchmark::State& state) {
             const size_t rows = kElements / cols;
             const Tensor x = RandomTensor(Shape(rows, cols), -8, 8);
             Tensor y = ZeroTensor(Shape(rows, cols));
             const FreeFunctions::Softmax call = GetFreeFunctions().softmax;
             Measure(state, 1, ElementwiseWork(kElements, kSoftmaxFlops), [&](size_t) {
               if (!is_free) return Softmax(x.View<float>(), y.View<float>());
               if (call == nullptr) return NoMathematics();
               call(x.View<float>().data(), y.View<float>().data(), rows, cols);
               return Status();
             });
           });
}

void RegisterLayerNorm(size_t cols, bool is_free) {
  Register(
      (is_free ? "free" : "contract") + std::string("/layer_norm/cols:") + std::to_string(cols),
      [=](benchmark::State& state) {
        const size_t rows = kElements / cols;
        const Tensor x = RandomTensor(Shape(rows, cols));
        const Tensor weight = RandomTensor(Shape(cols), 0.5f, 2);
        const Tensor bias = RandomTensor(Shape(cols));
        Tensor y = ZeroTensor(Shape(rows, cols));
        const FreeFunctions::LayerNorm call = GetFreeFunctions().layer_norm;
        Measure(state, 1, ElementwiseWork(rows * cols, kLayerNormFlops), [&](size_t) {
          if (!is_free) {
            return LayerNorm(x.View<float>(), weight.View<float>(), bias.View<float>(), kEpsilon,
                             y.View<float>());
          }
          call(x.View<float>().data(), weight.View<float>().data(), bias.View<float>().data(),
               static_cast<float>(kEpsilon), y.View<float>().data(), rows, cols);
          return Status();
        });
      });
}

// A [K, kN] matrix in panels for a kernel.
class Panels {
 public:
  Panels(const internal::GemmKernel& kernel, size_t nv, ConstView weight) {
    view_ = {.kernel = &kernel, .k = weight.dim(1), .n = kN, .nv = nv, .panel_rows = weight.dim(1)};
    if (!data_.Allocate(view_.packed_bytes())) Fail(internal::OutOfMemory());
    view_.data = data_.data();
    internal::PackInto(view_, weight.data(), weight.stride(1), weight.stride(0), data_.data());
    blocking_ = internal::ChooseGemmBlocking(internal::MachineCaches(), view_.k, view_.nr());
  }

  void Multiply(ConstView x, MutableView y) const {
    internal::GemmBlock(
        {.a = x.data(), .lda = view_.k, .b = view_, .c = y.data(), .ldc = kN, .groups = {}},
        blocking_, 0, x.dim(0), 0, view_.panels());
  }

 private:
  internal::PackedView view_;
  internal::AlignedBuffer<std::byte> data_;
  internal::GemmBlocking blocking_{};
};

// chains 1: the library's kernel and panels. More: panels of `nv` vectors.
void RegisterProduct(size_t m, size_t k, size_t chains, size_t nv) {
  std::string name = chains == 1 ? "contract/product" : "free/product";
  name += "/m:" + std::to_string(m) + "/k:" + std::to_string(k);
  if (chains > 1) name += "/chains:" + std::to_string(chains) + "/width:" + std::to_string(nv);
  Register(name, [=](benchmark::State& state) {
    const internal::GemmKernel& kernel =
        chains == 1 ? internal::GetGemmKernelF32() : FreeKernel(chains);
    const Tensor weight = RandomTensor(Shape(kN, k));
    const Tensor x = RandomTensor(Shape(m, k));
    Tensor y = ZeroTensor(Shape(m, kN));
    const Panels panels(kernel, chains == 1 ? internal::ChoosePanelVectors(kernel, kN) : nv,
                        weight.View<float>());
    const Work work{.flops = 2.0 * static_cast<double>(m * k * kN)};
    Measure(state, 1, work, [&](size_t) {
      panels.Multiply(x.View<float>(), y.View<float>());
      return Status();
    });
  });
}

}  // namespace

void RegisterBenchmarks() {
  RegisterUnary("exp", Exp, &FreeFunctions::exp, kExpFlops);
  RegisterUnary("gelu", Gelu, &FreeFunctions::gelu, kGeluFlops);
  for (const bool is_free : {false, true}) {
    for (const size_t cols : {size_t{128}, size_t{512}}) RegisterSoftmax(cols, is_free);
    for (const size_t cols : {size_t{384}, size_t{768}}) RegisterLayerNorm(cols, is_free);
  }
  for (const size_t m : {size_t{1}, size_t{4}, size_t{128}}) {
    for (const size_t k : {size_t{384}, size_t{768}}) {
      RegisterProduct(m, k, 1, 0);
      for (const size_t chains : kChainCounts) {
        for (const size_t nv : {size_t{1}, size_t{2}}) RegisterProduct(m, k, chains, nv);
      }
    }
  }
}

}  // namespace encore::bench
