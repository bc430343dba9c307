// SPDX-License-Identifier: Apache-2.0
//
// The list of executors.

#include "tests/executors.h"

// LLVM's OpenMP runtime keeps what it allocated for threads until the end of the process.
extern "C" const char* __lsan_default_suppressions() { return "leak:libomp.so"; }

namespace encore {

Executors::Executors() {
  all_.push_back({"inline", Executor::Inline()});
  for (const int threads : {1, 2, 3, 7}) {
    const std::string count = std::to_string(threads);
    all_.push_back({"OpenMP " + count, Executor::OpenMP(threads)});
    pools_.push_back(std::make_unique<HostPool>(threads));
    all_.push_back({"host pool " + count, Executor::HostPool(threads, *pools_.back())});
  }
  all_.push_back({"host loop 5", Executor::HostPool(5, loop_)});
}

}  // namespace encore
