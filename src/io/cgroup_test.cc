#include "io/cgroup.h"

#include <gtest/gtest.h>

#include "io/test_directory.h"

namespace sluice::io {
namespace {

TEST(CgroupTest, TheSmallestLimitOfTheLevelsCounts) {
  TestDirectory root;
  root.write("cpu.max", "max 100000\n");
  root.write("pod/cpu.max", "150000 100000\n");
  root.write("pod/box/cpu.max", "400000 100000\n");
  root.write("pod/memory.max", "1000\n");
  root.write("pod/memory.current", "900\n");
  root.write("pod/memory.stat", "anon 100\ninactive_file 300\nactive_file 70\n");
  root.write("pod/box/memory.max", "800\n");
  root.write("pod/box/memory.current", "100\n");
  const auto limits = read_cgroup_limits("0::/pod/box\n", root.path());
  EXPECT_EQ(limits, (CgroupLimits{.cores = 1.5, .memory_bytes = 800, .memory_available = 400}));
}

TEST(CgroupTest, AGroupThatIsNotToBeSeenLeavesTheRoot) {
  TestDirectory root;
  root.write("cpu.max", "50000 100000\n");
  const auto limits = read_cgroup_limits("0::/machine/scope/of/the/host\n", root.path());
  EXPECT_EQ(limits, (CgroupLimits{.cores = 0.5}));
}

TEST(CgroupTest, VersionOneHasAHierarchyForEachController) {
  TestDirectory root;
  root.write("cpu/box/cpu.cfs_quota_us", "250000\n");
  root.write("cpu/box/cpu.cfs_period_us", "100000\n");
  root.write("memory/box/memory.limit_in_bytes", "5000\n");
  root.write("memory/box/memory.usage_in_bytes", "6000\n");
  root.write("memory/box/memory.stat", "inactive_file 1\ntotal_inactive_file 2000\n");
  root.write("memory/memory.limit_in_bytes", "9223372036854771712\n");
  const auto limits = read_cgroup_limits("5:cpuacct,cpu:/box\n4:memory:/box\n1:cpuset:/other\n", root.path());
  EXPECT_EQ(limits, (CgroupLimits{.cores = 2.5, .memory_bytes = 5000, .memory_available = 1000}));
}

TEST(CgroupTest, NoLimitAndNoSenseSetNone) {
  TestDirectory root;
  root.write("cpu/cpu.cfs_quota_us", "-1\n");
  root.write("cpu/cpu.cfs_period_us", "100000\n");
  root.write("cpu.max", "100000 0\n");
  root.write("memory.max", "max\n");
  for (const char* membership : {"", "0::/", "2:cpu:/\n0::/\n", "nonsense", ":", "0:cpu"}) {
    EXPECT_EQ(read_cgroup_limits(membership, root.path()), CgroupLimits{}) << membership;
  }
}

}  // namespace
}  // namespace sluice::io
