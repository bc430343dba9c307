// SPDX-License-Identifier: Apache-2.0
//
// Runs a test's body on every SIMD target that was compiled and that this machine supports.

#ifndef ENCORE_TESTS_SUPPORT_TARGETS_H_
#define ENCORE_TESTS_SUPPORT_TARGETS_H_

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "encore/cpu.h"
#include "gtest/gtest.h"
#include "tests/support/sanitizers.h"

namespace encore {

// Whether the target that a kernel names may be in use while `active` is. "AMX" is another target
// but for products of int8. Files with engine/kernels/fewer_avx3.h have the kernels of the target
// `shared` for `users` too.
inline bool IsKernelOf(std::string_view kernel, std::string_view active,
                       std::string_view shared = "",
                       std::initializer_list<std::string_view> users = {}) {
  if (kernel == shared && std::count(users.begin(), users.end(), active) != 0) return true;
  if (active == "AMX" && (kernel == "AVX3_DL" || kernel == "AVX3_SPR")) return true;
  return kernel == active;
}

// Calls body(name) with each target active (under an emulator not its twins), and makes sure that
// it is: a request for one that some file was not compiled for would silently run another. The best
// target is active again at the end, whatever happens in between.
template <class Body>
void ForEachTarget(Body body) {
  struct Restore {
    ~Restore() { (void)SetTarget(""); }
  } restore;
  const std::vector<std::string> targets = SupportedTargets();
  ASSERT_FALSE(targets.empty());
  for (const std::string& name : targets) {
    // For these kernels the same instructions as NEON, and emulation is slow; `encore verify` runs
    // it all the same.
    if (kEmulated && name == "NEON_WITHOUT_AES" && name != targets.front()) continue;
    SCOPED_TRACE("SIMD target " + name);
    const Status status = SetTarget(name);
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_EQ(ActiveTarget(), name);
    body(name);
    ASSERT_EQ(ActiveTarget(), name) << "the body changed the target";
  }
}

}  // namespace encore

#endif  // ENCORE_TESTS_SUPPORT_TARGETS_H_
