// SPDX-License-Identifier: Apache-2.0
//
// Which cores share an L3 cache and a NUMA node, as the system says. Where it does not, all cores
// are one domain.

#include "engine/platform/core_domains.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "engine/platform/core_caches.h"
#include "engine/platform/core_mask.h"
#include "engine/platform/system_file.h"

namespace encore::inline v0_1 {
namespace internal {
namespace {

// More than any kernel has: a list that says otherwise is not understood.
constexpr int kMostCores = 1 << 16;

// Removes a number from the front of `text`; -1 if there is none or it is too large.
int TakeNumber(std::string_view& text) {
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0 || number >= kMostCores) return -1;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

bool Take(char c, std::string_view& text) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

std::vector<int> ReadCoreList(const std::string& path) {
  return ParseCoreList(ReadSystemFile(path));
}

// All cores of the L3 cache that a core uses; empty if the system does not say.
std::vector<int> CoresOfL3(const std::string& folder /* of the core */) {
  const CoreCaches caches(folder.c_str());
  std::vector<int> cores;
  caches.ForEachOfData([&](int index, char level) {
    char memory[4096];  // of sysfs, a file's most
    if (level == '3') cores = ParseCoreList(caches.Read(index, "shared_cpu_list", memory));
  });
  return cores;
}

}  // namespace

std::vector<int> ParseCoreList(std::string_view text) {
  std::vector<int> cores;
  do {
    const int first = TakeNumber(text);
    const int last = Take('-', text) ? TakeNumber(text) : first;
    if (first < 0 || last < first) return {};
    for (int core = first; core <= last; ++core) cores.push_back(core);
  } while (Take(',', text));
  if (!text.empty() && text != "\n") return {};
  return cores;
}

std::vector<CorePlace> PlacesBySysfs(const std::string& root, const std::vector<int>& cores) {
  std::map<int, int> node_of;  // core: node
  for (const int node : ReadCoreList(root + "/node/online")) {
    const std::string folder = root + "/node/node" + std::to_string(node);
    for (const int core : ReadCoreList(folder + "/cpulist")) node_of[core] = node;
  }
  std::vector<CorePlace> places;
  for (const int core : cores) {
    const std::string folder = root + "/cpu/cpu" + std::to_string(core);
    // The first core that shares the cache, whether allowed or not.
    const std::vector<int> sharing = CoresOfL3(folder);
    const std::vector<int> threads = ReadCoreList(folder + "/topology/thread_siblings_list");
    CorePlace& place = places.emplace_back();
    if (const auto found = node_of.find(core); found != node_of.end()) place.node = found->second;
    if (!sharing.empty()) place.cache = sharing.front();
    if (!threads.empty()) place.core = threads.front();
  }
  return places;
}

std::vector<CoreDomain> JoinDomains(const std::vector<int>& cores,
                                    const std::vector<CorePlace>& places) {
  std::map<std::pair<int, int>, CoreDomain> domains;  // by node and cache
  std::set<int> taken;                                // cores of which one thread is in a domain
  for (size_t i = 0; i < cores.size(); ++i) {
    const CorePlace& place = places[i];
    CoreDomain& domain = domains[{place.node, place.cache}];
    domain.node = place.node;
    const bool second = taken.contains(place.core) && !domain.cores.empty();
    (second ? domain.siblings : domain.cores).push_back(cores[i]);
    if (place.core >= 0) taken.insert(place.core);
  }
  std::vector<CoreDomain> sorted;
  for (auto& [key, domain] : domains) sorted.push_back(std::move(domain));
  return sorted;
}

}  // namespace internal

std::vector<CoreDomain> CoreDomains() {
  std::vector<int> allowed = internal::CoreMask::OfThisThread().cores();
  if (allowed.empty()) allowed = internal::SystemCoreList();
  if (allowed.empty()) {
    allowed.resize(static_cast<size_t>(UsableCores()));
    std::iota(allowed.begin(), allowed.end(), 0);
  }
  return internal::JoinDomains(allowed, internal::SystemPlaces(allowed));
}

}  // namespace encore
