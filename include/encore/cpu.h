// SPDX-License-Identifier: Apache-2.0
//
// What encore sees of the machine: SIMD targets, caches, usable cores.

#ifndef ENCORE_CPU_H_
#define ENCORE_CPU_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "encore/export.h"
#include "encore/status.h"

namespace encore::inline v0_1 {

// Sizes in bytes; 0 where the system does not tell. l1d and l2 are of one core; l3 is the whole
// cache that a core shares.
struct CacheSizes {
  size_t l1d = 0;
  size_t l2 = 0;
  size_t l3 = 0;
};
ENCORE_API CacheSizes Caches() noexcept;  // allocates nothing

// How many threads are useful here, and why: the smaller of the number of cores in the calling
// thread's affinity mask and the cgroup's CPU quota (rounded up), at least 1. Read at each call.
struct CoreCount {
  int usable = 1;
  int online = 0;           // cores the system has
  int affinity = 0;         // cores in the calling thread's affinity mask; 0 if unknown
  double cgroup_quota = 0;  // CPUs the cgroup may use, e.g. 1.5; 0 if not limited
  std::string reason;       // "2: the affinity mask has 2 of 8 cores"
};
ENCORE_API CoreCount Cores();
ENCORE_API int UsableCores() noexcept;

// Cores that share an L3 cache and belong to one NUMA node. A machine of two processors with eight
// L3 caches each has 16 of them.
//
//   for (const encore::CoreDomain& domain : encore::CoreDomains()) {
//     // a ThreadPool of these cores: ThreadPoolOptions::cores
//   }
//
// A physical core may have several hardware threads, which share its multiply-add units. `cores`
// has one of them for each core, the one of the lowest number; `siblings` has the others.
struct CoreDomain {
  int node = 0;               // the NUMA node, as the system counts them
  std::vector<int> cores;     // ascending, never empty
  std::vector<int> siblings;  // ascending
  friend bool operator==(const CoreDomain&, const CoreDomain&) = default;
};
// Those of the cores that the calling thread may use, node by node, and within a node by the lowest
// core; at least one. Where the system tells no L3 cache, a node is one domain; where it tells no
// node, all is node 0. A cgroup's CPU quota does not count here. Read at each call.
ENCORE_API std::vector<CoreDomain> CoreDomains();

// SIMD targets by Highway's names ("AVX3_ZEN4", "AVX3_DL", "AVX3", "AVX2", "SSE4", "SSE2", "NEON",
// "EMU128"), best first. "NEON" is for ARM's processors that multiply bytes (SDOT); older ones have
// "NEON_WITHOUT_AES". And "AMX", which is AVX3_DL but for the products of int8 encoders: those
// of 32 rows and more, and of k that is a multiple of 64 from 256 on, use Intel's matrix
// extensions, with the same bits. Linux is asked for its permission when the first such encoder is
// made, for the whole process and for good; if it refuses, AVX3_DL it is. Where it grants it,
// alternate signal stacks (sigaltstack) that are made later must have room for 8 KiB more, as
// getauxval(AT_MINSIGSTKSZ) says: a process that cannot have that calls SetTarget("AVX3_DL") first.
ENCORE_API std::vector<std::string> CompiledTargets();   // all that this library was compiled for
ENCORE_API std::vector<std::string> SupportedTargets();  // those of them that this machine can run
ENCORE_API std::string ActiveTarget();  // the one that new calls and new encoders use

// These three, Cores() and CoreDomains() return standard containers. They may throw std::bad_alloc
// and nothing else.

// New calls and new encoders of the whole process use this target; "" or "auto" means the best one.
// kInvalidArgument (naming the compiled and supported ones) if it is unknown; kUnsupported if this
// machine cannot run it. Do not call it while another thread is inside the library. An Encoder or
// PackedLinear keeps the target that it was made with.
ENCORE_API Status SetTarget(std::string_view name);

}  // namespace encore

#endif  // ENCORE_CPU_H_
