// SPDX-License-Identifier: Apache-2.0
//
// What the parts of the fuzz target `operations` share: drawn shapes, and views that an operation
// has to refuse.

#ifndef ENCORE_TESTS_FUZZ_OPERATIONS_H_
#define ENCORE_TESTS_FUZZ_OPERATIONS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "encore/ops.h"
#include "tests/fuzz/drawn_machine.h"
#include "tests/fuzz/drawn_views.h"

namespace encore::fuzz {

// What one call is drawn from.
struct OperationDraw {
  Draw& draw;
  const DrawnTarget& target;
  NumberSource source;
  Numbers kind;

  DrawnInput Input(const Shape& shape) { return Input(shape, kind); }
  DrawnInput Input(const Shape& shape, Numbers numbers) {
    return DrawnInput(draw, shape, source, numbers);
  }
};

// 0 and 1 now and then, and beyond `most` now and then.
inline size_t DrawExtent(Draw& draw, size_t most) {
  if (draw.Chance(16)) return draw.Between(0, 1);
  return draw.Chance(24) ? most + draw.Between(1, 100) : draw.Between(1, most);
}

// Such as no operation may take in the place of `view`: another shape on memory that cannot be
// read, a size that overflows, no data, and for outputs a stride of 0.
template <typename T>
TensorView<T> Spoiled(Draw& draw, const TensorView<T>& view) {
  constexpr size_t kMost = std::numeric_limits<size_t>::max();
  constexpr size_t kHuge[] = {kMost, kMost / 2, kMost / 2 + 1, size_t{1} << 62, kMost / 4 + 2};
  T* const nowhere = reinterpret_cast<T*>(uintptr_t{64});
  const size_t rank = view.rank();
  std::array<size_t, Shape::kMaxRank> extents{};
  for (size_t i = 0; i < rank; ++i) extents[i] = view.dim(i);
  const size_t axis = rank == 0 ? 0 : draw.Between(0, rank - 1);
  switch (draw.Between(0, 4)) {
    case 0:
      if (!HasElements(view.shape())) break;
      return TensorView<T>(nullptr, view.shape(), view.strides());
    case 1:
      if (rank == 0) break;
      extents[axis] = kHuge[draw.Between(0, 4)];
      return TensorView<T>(nowhere, *Shape::Create(extents.data(), rank), view.strides());
    case 2: {
      if (std::is_const_v<T> || rank == 0 || extents[axis] < 2) break;
      if (!HasElements(view.shape())) break;
      typename TensorView<T>::Strides strides = view.strides();
      strides[axis] = 0;
      return TensorView<T>(view.data(), view.shape(), strides);
    }
    case 3:
      if (rank == 0) break;
      extents[axis] += 1;
      return TensorView<T>(nowhere, *Shape::Create(extents.data(), rank));
    default:
      break;
  }
  // Another rank.
  if (rank == Shape::kMaxRank) {
    return TensorView<T>(nowhere, *Shape::Create(extents.data(), rank - 1));
  }
  extents[rank] = 1;
  return TensorView<T>(nowhere, *Shape::Create(extents.data(), rank + 1));
}

// A call that must fail, and write nothing.
inline void CheckRefused(const Status& status, const DrawnOutput& out) {
  ENCORE_FUZZ_CHECK(!status.ok(), "a view that cannot be was taken");
  CheckError(status);
  out.CheckUntouched();
}

inline void CheckTaken(const Status& status) { ENCORE_FUZZ_CHECK(status.ok(), status.message()); }

// Each result lies as near to the exact one as a documented bound says.
template <typename Exact>
void CheckBound(std::span<const float> got, const Exact& exact, const char* what) {
  for (size_t i = 0; i < got.size(); ++i) {
    const double value = exact.value.data[i];
    // To first order; the reference's own sums are rounded too.
    const double error = 1.001 * exact.error.data[i] + 1e-37;
    if (!(error < std::numeric_limits<float>::max())) continue;
    ENCORE_FUZZ_CHECK(std::fabs(static_cast<double>(got[i]) - value) <= error,
                      std::string(what) + ": [" + std::to_string(i) + "] is " +
                          std::to_string(got[i]) + "; the exact value is " + std::to_string(value));
  }
}

void RunAttention(OperationDraw& run);
void RunMultiHeadAttention(OperationDraw& run);

}  // namespace encore::fuzz

#endif  // ENCORE_TESTS_FUZZ_OPERATIONS_H_
