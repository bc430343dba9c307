// SPDX-License-Identifier: Apache-2.0
//
// Tests of encore/cpu.h and of the parsing behind it (engine/platform/cgroup.h, cpu_info.h).

#include "engine/platform/cpu_info.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "encore/cpu.h"
#include "encore/ops.h"
#include "engine/platform/cgroup.h"
#include "hwy/targets.h"
#include "tests/support/results.h"

#if defined(__linux__)
#include <sched.h>
#endif

namespace encore {
namespace {

using internal::CgroupFolder;
using internal::ChooseCores;
using internal::CpuQuotaFolders;
using internal::ParseCacheSize;
using internal::ParseCfsQuota;
using internal::ParseCpuMax;

using Folders = std::vector<CgroupFolder>;

constexpr std::string_view kV2Mounts =
    "22 1 0:21 / /proc rw,relatime - proc proc rw\n"
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
constexpr std::string_view kV1Mounts =
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 master:1 - cgroup cgroup "
    "rw,cpu,cpuacct\n"
    "34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

TEST(CgroupTest, V2ListsTheGroupAndItsParents) {
  EXPECT_EQ(CpuQuotaFolders("0::/user.slice/session:1.scope\n", kV2Mounts),
            (Folders{{true, "/sys/fs/cgroup/user.slice/session:1.scope"},
                     {true, "/sys/fs/cgroup/user.slice"},
                     {true, "/sys/fs/cgroup"}}));
  EXPECT_EQ(CpuQuotaFolders("0::/\n", kV2Mounts), (Folders{{true, "/sys/fs/cgroup"}}));
  EXPECT_EQ(CpuQuotaFolders("0::/a", kV2Mounts),
            (Folders{{true, "/sys/fs/cgroup/a"}, {true, "/sys/fs/cgroup"}}));
}

TEST(CgroupTest, V1TakesTheCpuController) {
  EXPECT_EQ(CpuQuotaFolders("9:name=systemd:/x\n3:cpuset:/y\n2:cpu,cpuacct:/docker/ab\n0::/z\n",
                            kV1Mounts),
            (Folders{{false, "/sys/fs/cgroup/cpu,cpuacct/docker/ab"},
                     {false, "/sys/fs/cgroup/cpu,cpuacct/docker"},
                     {false, "/sys/fs/cgroup/cpu,cpuacct"},
                     {true, "/sys/fs/cgroup/unified/z"},
                     {true, "/sys/fs/cgroup/unified"}}));
  // What names a controller is of v1, whatever its number.
  EXPECT_EQ(CpuQuotaFolders("0:cpu,cpuacct:/\n", kV1Mounts),
            (Folders{{false, "/sys/fs/cgroup/cpu,cpuacct"}}));
}

TEST(CgroupTest, AContainerSeesItsOwnPartOfTheTree) {
  constexpr std::string_view kMounts =
      "5 4 0:29 /docker/ab /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
  EXPECT_EQ(CpuQuotaFolders("0::/docker/ab\n", kMounts), (Folders{{true, "/sys/fs/cgroup"}}));
  EXPECT_EQ(CpuQuotaFolders("0::/docker/ab/job\n", kMounts),
            (Folders{{true, "/sys/fs/cgroup/job"}, {true, "/sys/fs/cgroup"}}));
  EXPECT_EQ(CpuQuotaFolders("0::/docker/abc\n", kMounts), (Folders{{true, "/sys/fs/cgroup"}}));
  EXPECT_EQ(CpuQuotaFolders("0::/../other\n", kV2Mounts), (Folders{{true, "/sys/fs/cgroup"}}));
}

TEST(CgroupTest, MountPointsMayHoldSpaces) {
  EXPECT_EQ(CpuQuotaFolders("0::/\n", "5 4 0:29 / /my\\040groups rw - cgroup2 none rw\n"),
            (Folders{{true, "/my groups"}}));
}

TEST(CgroupTest, OddTextGivesNothing) {
  for (const std::string_view text : {"", "\n", ":", "::", "0", "0:", "garbage\n\n\n", "1:cpu\n"}) {
    for (const std::string_view mounts :
         {"", "\n", " - ", "a b c - cgroup", "1 2 3 / /x rw - ext4 d rw\n"}) {
      EXPECT_EQ(CpuQuotaFolders(text, mounts), Folders{}) << text << " with " << mounts;
    }
  }
}

TEST(CgroupTest, ParsesQuotas) {
  EXPECT_EQ(ParseCpuMax("max 100000\n"), 0);
  EXPECT_EQ(ParseCpuMax("150000 100000\n"), 1.5);
  EXPECT_EQ(ParseCpuMax("50000 100000"), 0.5);
  EXPECT_EQ(ParseCfsQuota("-1\n", "100000\n"), 0);
  EXPECT_EQ(ParseCfsQuota("300000\n", "100000\n"), 3);
  for (const std::string_view text : {"", "\n", "max", "100000", "1 0", "0 1", "-5 7", "x y",
                                      "1 2 3", "9e9 1", "99999999999999999999 100000"}) {
    EXPECT_EQ(ParseCpuMax(text), 0) << text;
  }
}

TEST(CoresTest, TheLeastWinsAndSaysWhy) {
  EXPECT_EQ(ChooseCores(8, 8, 0).reason, "8: all cores of the system");
  EXPECT_EQ(ChooseCores(8, 2, 0).reason, "2: the affinity mask has 2 of 8 cores");
  EXPECT_EQ(ChooseCores(8, 2, 0).usable, 2);
  EXPECT_EQ(ChooseCores(8, 4, 1.5).reason, "2: the cgroup's CPU quota is 1.5");
  EXPECT_EQ(ChooseCores(8, 4, 1.5).usable, 2);
  EXPECT_EQ(ChooseCores(8, 4, 1.5).online, 8);
  EXPECT_EQ(ChooseCores(8, 4, 1.5).affinity, 4);
  EXPECT_EQ(ChooseCores(8, 4, 1.5).cgroup_quota, 1.5);
  EXPECT_EQ(ChooseCores(8, 2, 1.5).reason, "2: the affinity mask has 2 of 8 cores");
  EXPECT_EQ(ChooseCores(8, 8, 0.25).usable, 1);
  EXPECT_EQ(ChooseCores(8, 8, 1e12).usable, 8);
  EXPECT_EQ(ChooseCores(0, 0, 0).usable, 1);
  EXPECT_EQ(ChooseCores(-1, 3, 0).usable, 3);
  EXPECT_EQ(ChooseCores(4, 0, 0).usable, 4);
}

TEST(CoresTest, ThisMachineHasOne) {
  const CoreCount cores = Cores();
  EXPECT_GE(cores.usable, 1);
  EXPECT_EQ(UsableCores(), cores.usable);
  EXPECT_EQ(cores.reason.find(std::to_string(cores.usable) + ": "), 0u) << cores.reason;
  std::printf("cores: online %d, affinity %d, quota %g: %s\n", cores.online, cores.affinity,
              cores.cgroup_quota, cores.reason.c_str());
}

#if defined(__linux__)
TEST(CoresTest, FollowsTheAffinityMask) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  size_t first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  const CoreCount cores = Cores();
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
  EXPECT_EQ(cores.affinity, 1);
  EXPECT_EQ(cores.usable, 1);
}
#endif

TEST(CachesTest, ParsesSizes) {
  EXPECT_EQ(ParseCacheSize("48K\n"), 49152u);
  EXPECT_EQ(ParseCacheSize("32M"), size_t{32} << 20);
  EXPECT_EQ(ParseCacheSize("1G\n"), size_t{1} << 30);
  EXPECT_EQ(ParseCacheSize("512"), 512u);
  EXPECT_EQ(ParseCacheSize(""), 0u);
  EXPECT_EQ(ParseCacheSize("K"), 0u);
}

TEST(CachesTest, ThisMachinesAreOrdered) {
  const CacheSizes caches = Caches();
  std::printf("caches: L1d %zu, L2 %zu, L3 %zu bytes\n", caches.l1d, caches.l2, caches.l3);
  if (caches.l1d > 0 && caches.l2 > 0) {
    EXPECT_LT(caches.l1d, caches.l2);
  }
}

class TargetTest : public testing::Test {
 protected:
  ~TargetTest() override { EXPECT_TRUE(SetTarget("").ok()); }
};

TEST_F(TargetTest, TheBestIsActive) {
  const std::vector<std::string> supported = SupportedTargets();
  const std::vector<std::string> compiled = CompiledTargets();
  ASSERT_FALSE(supported.empty());
  EXPECT_EQ(ActiveTarget(), supported.front());
  for (const std::string& name : supported) {
    EXPECT_NE(std::find(compiled.begin(), compiled.end(), name), compiled.end()) << name;
  }
}

TEST_F(TargetTest, EachSupportedOneCanBeSet) {
  const std::vector<std::string> supported = SupportedTargets();
  for (const std::string& name : supported) {
    ASSERT_TRUE(SetTarget(name).ok()) << name;
    EXPECT_EQ(ActiveTarget(), name);
    EXPECT_EQ(SupportedTargets(), supported) << "the machine is what it was";
  }
  ASSERT_TRUE(SetTarget("auto").ok());
  EXPECT_EQ(ActiveTarget(), supported.front());
}

// (1 + e) (1 - e) - 1, which tells kernels with FMA from those without.
float Product() {
  const float a[] = {1, 1 + 0x1p-13f};
  const float b[] = {-1, 1 - 0x1p-13f};
  float c = 1;
  EXPECT_TRUE(
      MatMul(ConstView(a, Shape(1, 2)), ConstView(b, Shape(2, 1)), MutableView(&c, Shape(1, 1)))
          .ok());
  return c;
}

TEST_F(TargetTest, AnotherUserOfHighwayChangesNothing) {
  const std::string best = ActiveTarget();
  const std::vector<std::string> supported = SupportedTargets();
  const float product = Product();
  const int64_t all = hwy::SupportedTargets();
  // Only the worst target is left to others, which have a choice of their own.
  int64_t worst = all;
  while ((worst & (worst - 1)) != 0) worst &= worst - 1;
  hwy::SetSupportedTargetsForTest(worst);
  EXPECT_EQ(ActiveTarget(), best);
  EXPECT_EQ(SupportedTargets(), supported);
  EXPECT_EQ(Product(), product);
  hwy::SetSupportedTargetsForTest(0);
  ASSERT_TRUE(SetTarget(supported.back()).ok());
  EXPECT_EQ(hwy::SupportedTargets(), all);
}

TEST_F(TargetTest, UnknownAndUnsupportedOnesAreRefused) {
  const Status unknown = SetTarget("AVX9000");
  EXPECT_TRUE(FailsWith(unknown, {"'AVX9000'"}));
  for (const std::string& name : CompiledTargets()) {
    EXPECT_NE(unknown.message().find(name), std::string::npos) << unknown.message();
  }
  const std::vector<std::string> supported = SupportedTargets();
  for (const std::string& name : CompiledTargets()) {
    if (std::find(supported.begin(), supported.end(), name) != supported.end()) continue;
    EXPECT_EQ(SetTarget(name).code(), ErrorCode::kUnsupported) << name;
  }
  EXPECT_EQ(ActiveTarget(), supported.front());
}

}  // namespace
}  // namespace encore
