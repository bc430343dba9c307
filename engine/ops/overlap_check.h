// SPDX-License-Identifier: Apache-2.0
//
// Finds outputs that overlap inputs in a way that the operations forbid. Only what is certain is
// refused: two views that interleave in memory without sharing an element pass, and so do cases
// that are not cheap to prove.

#ifndef ENCORE_ENGINE_OPS_OVERLAP_CHECK_H_
#define ENCORE_ENGINE_OPS_OVERLAP_CHECK_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "encore/status.h"
#include "encore/tensor.h"

namespace encore::inline v0_1::internal {

// How far a step of this stride goes, to either side.
inline size_t Distance(ptrdiff_t stride) {
  const size_t forward = static_cast<size_t>(stride);
  return stride < 0 ? size_t{0} - forward : forward;
}

// The addresses between a view's lowest and highest element, and whether all of them are its own.
struct AddressRange {
  uintptr_t begin = 0;
  uintptr_t end = 0;  // behind the last byte; equal to begin for a view without elements
  bool dense = false;
};

template <typename T>
AddressRange AddressesOf(const TensorView<T>& view) {
  size_t below = 0;  // elements before data()
  size_t above = 0;  // and after it
  size_t count = 1;
  for (size_t i = 0; i < view.rank(); ++i) {
    count *= view.dim(i);
    if (view.dim(i) <= 1) continue;
    const ptrdiff_t stride = view.stride(i);
    (stride < 0 ? below : above) += (view.dim(i) - 1) * Distance(stride);
  }
  const uintptr_t data = reinterpret_cast<uintptr_t>(view.data());
  if (count == 0) return {data, data, true};
  return {data - below * sizeof(T), data + (above + 1) * sizeof(T), count == below + above + 1};
}

// Whether the two show the same memory in the same way.
inline bool SameView(const TensorView<const float>& a, const TensorView<const float>& b) {
  if (a.data() != b.data() || !(a.shape() == b.shape())) return false;
  for (size_t i = 0; i < a.rank(); ++i) {
    if (a.dim(i) > 1 && a.stride(i) != b.stride(i)) return false;
  }
  return true;
}

// `out` shares no element with `in`.
inline Status CheckNoOverlap(const char* out_name, const TensorView<float>& out,
                             const char* in_name, const TensorView<const float>& in) {
  const AddressRange a = AddressesOf(out);
  const AddressRange b = AddressesOf(in);
  const bool apart = a.begin == a.end || b.begin == b.end || a.end <= b.begin || b.end <= a.begin;
  const bool certain = (a.dense && b.dense) || out.data() == in.data();
  if (apart || !certain) return {};
  return InvalidArgument(std::string(out_name) + " of shape " + out.shape().ToString() +
                         " shares memory with " + in_name + " of shape " + in.shape().ToString() +
                         "; wanted other memory, or the very same view where that is allowed");
}

// The same for operations that may work in place.
inline Status CheckInPlaceOrApart(const char* out_name, const TensorView<float>& out,
                                  const char* in_name, const TensorView<const float>& in) {
  return SameView(in, out) ? Status() : CheckNoOverlap(out_name, out, in_name, in);
}

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_OPS_OVERLAP_CHECK_H_
