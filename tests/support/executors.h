// SPDX-License-Identifier: Apache-2.0
//
// All the ways to run a call, for tests of results that must not depend on it.

#ifndef ENCORE_TESTS_SUPPORT_EXECUTORS_H_
#define ENCORE_TESTS_SUPPORT_EXECUTORS_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "encore/executor.h"
#include "encore/thread_pool.h"
#include "reference/host_pool.h"

namespace encore {

// A host that has no threads: runs the bodies one after another, the last one first.
struct BackwardLoop {
  template <typename F>
  void parallel_for(size_t count, F body) {
    for (size_t i = count; i-- > 0;) body(i);
  }
};

class Executors {
 public:
  struct Named {
    std::string name;
    Executor executor;
  };

  Executors();
  Executors(const Executors&) = delete;
  Executors& operator=(const Executors&) = delete;

  std::vector<Named>::const_iterator begin() const { return all_.begin(); }
  std::vector<Named>::const_iterator end() const { return all_.end(); }

 private:
  std::vector<std::unique_ptr<HostPool>> pools_;
  std::vector<ThreadPool> thread_pools_;
  BackwardLoop loop_;
  std::vector<Named> all_;
};

}  // namespace encore

#endif  // ENCORE_TESTS_SUPPORT_EXECUTORS_H_
