// SPDX-License-Identifier: Apache-2.0
//
// What the numeric contract costs on one thread: encore's exp, GELU, softmax, LayerNorm and matrix
// product ("contract/...") beside those that are free to round and to sum in any order ("free/...",
// free.h), in L1 or with warm caches.

#include <string>

#include "bench/elementwise.h"
#include "bench/free.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/guarded.h"
#include "engine/kernels/gemm_kernel.h"
#include "engine/ops/gemm.h"
#include "engine/ops/gemm_blocking.h"
#include "engine/ops/packed_matrix.h"

namespace encore::bench {
namespace {

constexpr size_t kElements = 4096;  // 16 KiB in, 16 KiB out
constexpr size_t kN = 768;

void RegisterBoth(const std::string& name, ElementwiseFn contract, ElementwiseFn free, double flops,
                  const Shape& shape) {
  RegisterElementwise("contract/" + name, contract, flops, shape);
  RegisterElementwise("free/" + name, free, flops, shape);
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
    internal::GemmBlock({.a = internal::InputRows::Of(internal::ConstRows{x.data(), view_.k}),
                         .b = view_,
                         .c = {y.data(), kN},
                         .blocks = {}},
                        blocking_, 0, x.dim(0), 0, view_.panels());
  }

 private:
  internal::PackedView view_;
  internal::AlignedBuffer<std::byte> data_;
  internal::GemmBlocking blocking_{};
};

// chains 1: the library's kernel and panels. More: panels of `nv` vectors.
void RegisterProduct(size_t m, size_t k, size_t chains, size_t nv) {
  std::string name = chains == 1 ? "contract/product/f32" : "free/product/f32";
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
  RegisterBoth("exp", Exp, FreeExp, kExpFlops, Shape(kElements));
  RegisterBoth("gelu", Gelu, FreeGelu, kGeluFlops, Shape(kElements));
  for (const size_t cols : {size_t{128}, size_t{512}}) {
    RegisterBoth("softmax", Softmax, FreeSoftmax, kSoftmaxFlops, Shape(kElements / cols, cols));
  }
  for (const size_t cols : {size_t{384}, size_t{768}}) {
    RegisterBoth("layer_norm", LayerNormRows, FreeLayerNorm, kLayerNormFlops,
                 Shape(kElements / cols, cols));
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
