// SPDX-License-Identifier: Apache-2.0
//
// Machine and build in words, from the library, the compiler's macros and the environment.

#include "bench/measure/context.h"

#include <cstdlib>
#include <ctime>
#include <initializer_list>

#include "bench/measure/machine.h"
#include "bench/measure/threads.h"
#include "encore/cpu.h"
#include "encore/version.h"

#if defined(__unix__) || defined(__APPLE__)
#include <sys/utsname.h>
#endif

namespace encore::bench {
namespace {

std::string KibiBytes(size_t bytes) {
  return bytes == 0 ? "unknown" : std::to_string(bytes >> 10) + " KiB";
}

std::string CachesInWords() {
  const CacheSizes caches = Caches();
  return "L1d " + KibiBytes(caches.l1d) + ", L2 " + KibiBytes(caches.l2) + ", L3 " +
         KibiBytes(caches.l3);
}

std::string IdleSpin() { return std::to_string(ChosenThreads().idle_spin.count()) + " us"; }

// "A=x B=y" of those variables of the environment that are set.
std::string Ordered(std::initializer_list<const char*> names) {
  std::string ordered;
  for (const char* name : names) {
    if (const char* value = std::getenv(name)) {
      ordered += (ordered.empty() ? "" : " ") + std::string(name) + "=" + value;
    }
  }
  return ordered;
}

}  // namespace

std::string Compiler() {
#if defined(__clang__)
  return "clang++ " __clang_version__;
#elif defined(__GNUC__)
  return "g++ " __VERSION__;
#elif defined(_MSC_VER)
  return "MSVC " + std::to_string(_MSC_VER);
#else
  return "unknown";
#endif
}

std::string SourceCommit() {
#if defined(ENCORE_BUILD_COMMIT)
  return ENCORE_BUILD_COMMIT;
#else
  return "";
#endif
}

std::string CompilerFlags() { return ENCORE_BUILD_FLAGS; }

std::string Now() {
  const std::time_t now = std::time(nullptr);
  char text[32] = "unknown";
  if (const std::tm* utc = std::gmtime(&now)) {
    std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", utc);
  }
  return text;
}

std::string Architecture() {
#if defined(__unix__) || defined(__APPLE__)
  utsname names{};
  if (uname(&names) == 0) return names.machine;
#endif
  return "unknown";
}

std::string OperatingSystem() {
#if defined(__unix__) || defined(__APPLE__)
  utsname names{};
  if (uname(&names) == 0) return std::string(names.sysname) + " " + names.release;
#endif
  return "unknown";
}

std::string WaitPolicy() {
  if (ChosenThreads().source == ThreadSource::kPool) {
    return ChosenThreads().idle_spin.count() == 0
               ? "the pool's threads sleep between calls"
               : "the pool's threads spin for " + IdleSpin() + " after a call, then sleep";
  }
  const std::string ordered = Ordered({"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"});
  return ordered.empty()
             ? "OpenMP's threads wait as its runtime has it (OMP_WAIT_POLICY is not set)"
             : "OpenMP's threads wait as " + ordered + " orders";
}

std::string Binding() {
  const std::string& cpus = ChosenThreads().cpus;
  const std::string any = "any core" + (cpus.empty() ? "" : " of " + cpus);
  if (ChosenThreads().source == ThreadSource::kPool) return "the pool's threads run on " + any;
  const std::string ordered = Ordered({"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY"});
  return ordered.empty() ? "OpenMP's threads run on " + any + " (OMP_PROC_BIND is not set)"
                         : "OpenMP's threads are bound as " + ordered + " orders";
}

std::vector<std::pair<std::string, std::string>> Context() {
  std::vector<std::pair<std::string, std::string>> context = {
      {"version", ENCORE_VERSION_STRING +
                      (SourceCommit().empty() ? "" : std::string(", commit ") + SourceCommit())},
      {"date", Now()},
      {"cpu", CpuModel(ReadCpuInfo(SystemTree()))},
      {"caches", CachesInWords()},
      {"cores", Cores().reason},
      {"compiler", Compiler() + ", " + CompilerFlags()},
      {"target", ActiveTarget()},
      {"executor", std::string(ThreadSourceName(ChosenThreads().source))}};
  if (ChosenThreads().source == ThreadSource::kPool) context.emplace_back("idle_spin", IdleSpin());
  context.emplace_back("wait_policy", WaitPolicy());
  context.emplace_back("binding", Binding());
  return context;
}

}  // namespace encore::bench
