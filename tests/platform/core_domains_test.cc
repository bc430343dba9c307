// SPDX-License-Identifier: Apache-2.0
//
// Tests of CoreDomains() of encore/cpu.h, on copies of sysfs as several machines have it.

#include "engine/platform/core_domains.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "encore/cpu.h"
#include "tests/support/safetensors_bytes.h"

namespace encore::inline v0_1::internal {
namespace {

// A folder like /sys/devices/system.
class Sysfs {
 public:
  std::string root() const { return folder_.path().string(); }
  void Nodes(const std::vector<std::string>& cores_of_node) const {
    const std::string last = std::to_string(cores_of_node.size() - 1);
    Write("node/online", cores_of_node.size() == 1 ? "0\n" : "0-" + last + "\n");
    for (size_t node = 0; node < cores_of_node.size(); ++node) {
      Write("node/node" + std::to_string(node) + "/cpulist", cores_of_node[node] + "\n");
    }
  }
  void Core(int core, const std::string& sharing_l3, const std::string& threads) const {
    const std::string name = "cpu/cpu" + std::to_string(core);
    for (const int index : {0, 1, 2}) {
      const std::string cache = name + "/cache/index" + std::to_string(index);
      Write(cache + "/level", index == 2 ? "2\n" : "1\n");
      Write(cache + "/shared_cpu_list", threads + "\n");
    }
    if (!sharing_l3.empty()) Cache(core, 3, "3", sharing_l3, "Unified");
    Write(name + "/topology/thread_siblings_list", threads + "\n");
  }
  void Cache(int core, int index, const std::string& level, const std::string& sharing,
             const std::string& type) const {
    const std::string cache =
        "cpu/cpu" + std::to_string(core) + "/cache/index" + std::to_string(index);
    Write(cache + "/level", level + "\n");
    Write(cache + "/shared_cpu_list", sharing + "\n");
    Write(cache + "/type", type + "\n");
  }

 private:
  void Write(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = folder_.path() / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  TemporaryFolder folder_;
};

std::vector<CoreDomain> DomainsBySysfs(const std::string& root, const std::vector<int>& allowed) {
  return JoinDomains(allowed, PlacesBySysfs(root, allowed));
}

TEST(CoreDomainsTest, CachesOfInstructionsDoNotCount) {
  const Sysfs sysfs;
  sysfs.Nodes({"0-1"});
  for (const int core : {0, 1}) {
    sysfs.Core(core, "0-1", std::to_string(core));
    // Before the one that counts; its list would part the cores.
    sysfs.Cache(core, 2, "3", std::to_string(core), "Instruction");
  }
  EXPECT_EQ(DomainsBySysfs(sysfs.root(), {0, 1}), (std::vector<CoreDomain>{{0, {0, 1}, {}}}));
  // The list is as long as a machine makes it.
  std::string list = "0-1";
  for (int core = 3; core < 600; core += 2) list += "," + std::to_string(core);
  for (const int core : {0, 1}) sysfs.Cache(core, 3, "3", list, "Unified");
  EXPECT_EQ(DomainsBySysfs(sysfs.root(), {0, 1}), (std::vector<CoreDomain>{{0, {0, 1}, {}}}));
}

TEST(CoreDomainsTest, ListsOfCores) {
  EXPECT_EQ(ParseCoreList("0-2,8\n"), (std::vector<int>{0, 1, 2, 8}));
  EXPECT_EQ(ParseCoreList("5"), (std::vector<int>{5}));
  for (const char* bad : {"", "\n", "a", "3-", "-3", "4-2", "1,", "1 2", "0-99999999", "1;2"}) {
    EXPECT_TRUE(ParseCoreList(bad).empty()) << bad;
  }
}

// Two processors of two L3 caches of two cores; the second threads of cores are 8 to 15.
TEST(CoreDomainsTest, TwoNodesOfTwoCaches) {
  const Sysfs sysfs;
  sysfs.Nodes({"0-3,8-11", "4-7,12-15"});
  for (int core = 0; core < 16; ++core) {
    const int first = core % 8 / 2 * 2;
    const auto pair = [](int a) { return std::to_string(a) + "-" + std::to_string(a + 1); };
    sysfs.Core(core, pair(first) + "," + pair(first + 8),
               std::to_string(core % 8) + "," + std::to_string(core % 8 + 8));
  }
  std::vector<int> all(16);
  for (int i = 0; i < 16; ++i) all[static_cast<size_t>(i)] = i;
  EXPECT_EQ(DomainsBySysfs(sysfs.root(), all), (std::vector<CoreDomain>{{0, {0, 1}, {8, 9}},
                                                                        {0, {2, 3}, {10, 11}},
                                                                        {1, {4, 5}, {12, 13}},
                                                                        {1, {6, 7}, {14, 15}}}));
  // Of a part of them; a second thread alone is a core.
  EXPECT_EQ(DomainsBySysfs(sysfs.root(), {1, 5, 6, 10, 14}),
            (std::vector<CoreDomain>{{0, {1}, {}}, {0, {10}, {}}, {1, {5}, {}}, {1, {6}, {14}}}));
}

TEST(CoreDomainsTest, ANodeIsADomainWithoutL3) {
  const Sysfs sysfs;
  sysfs.Nodes({"0,2", "1,3"});
  for (int core = 0; core < 4; ++core) sysfs.Core(core, "", std::to_string(core));
  EXPECT_EQ(DomainsBySysfs(sysfs.root(), {0, 1, 2, 3}),
            (std::vector<CoreDomain>{{0, {0, 2}, {}}, {1, {1, 3}, {}}}));
}

TEST(CoreDomainsTest, OneDomainWhereNothingIsTold) {
  const TemporaryFolder empty;
  EXPECT_EQ(DomainsBySysfs(empty.path().string(), {3, 7}),
            (std::vector<CoreDomain>{{0, {3, 7}, {}}}));
}

TEST(CoreDomainsTest, EachCoreOfThisMachineOnce) {
  std::vector<int> found;
  for (const CoreDomain& domain : CoreDomains()) {
    EXPECT_FALSE(domain.cores.empty());
    EXPECT_TRUE(std::is_sorted(domain.cores.begin(), domain.cores.end()));
    found.insert(found.end(), domain.cores.begin(), domain.cores.end());
    found.insert(found.end(), domain.siblings.begin(), domain.siblings.end());
  }
  std::sort(found.begin(), found.end());
  EXPECT_EQ(std::adjacent_find(found.begin(), found.end()), found.end());
  if (Cores().affinity > 0) {
    EXPECT_EQ(found.size(), static_cast<size_t>(Cores().affinity));
  }
}

}  // namespace
}  // namespace encore::internal
