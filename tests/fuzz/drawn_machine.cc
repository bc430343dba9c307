// SPDX-License-Identifier: Apache-2.0
//
// Keeps the lists and the threads that all draws share.

#include "tests/fuzz/drawn_machine.h"

#include <vector>

#include "encore/cpu.h"
#include "encore/thread_pool.h"
#include "reference/accuracy.h"
#include "tests/fuzz/target.h"
#include "tests/support/executors.h"

namespace encore::fuzz {
namespace {

const std::vector<std::string>& AllTargets() {
  static const auto* const all = new std::vector<std::string>(SupportedTargets());
  return *all;
}

void UseTarget(const std::string& name) {
  const Status status = SetTarget(name);
  ENCORE_FUZZ_CHECK(status.ok(), status.message());
}

}  // namespace

DrawnTarget::DrawnTarget(Draw& draw)
    : name_(&AllTargets()[draw.Between(0, AllTargets().size() - 1)]) {
  UseTarget(*name_);
}

DrawnTarget::~DrawnTarget() { (void)SetTarget(""); }

bool DrawnTarget::has_fma() const { return reference::TargetHasFma(*name_); }

void DrawnTarget::UseThis() const { UseTarget(*name_); }

void DrawnTarget::UseTwin(Draw& draw) const {
  const std::string& other = AllTargets()[draw.Between(0, AllTargets().size() - 1)];
  UseTarget(has_fma() && reference::TargetHasFma(other) ? other : *name_);
}

Executor DrawExecutor(Draw& draw) {
  static BackwardLoop loop;
  static const auto* const pool = new ThreadPool(*ThreadPool::Create({.threads = 2}));
  switch (draw.Between(0, 15)) {
    case 0:
      return pool->executor();
    case 1:
    case 2:
    case 3:
      return Executor::HostPool(static_cast<int>(draw.Between(1, 9)), loop);
    default:
      return {};
  }
}

}  // namespace encore::fuzz
