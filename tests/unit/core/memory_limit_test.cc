#include "core/memory_limit.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

namespace tutti {
namespace {

namespace fs = std::filesystem;

// The test writes its own versions of the system's files.
class MemoryLimitTest : public ::testing::Test {
 protected:
  MemoryLimitTest() : root_(::testing::TempDir() + "tutti_memory_" + std::to_string(getpid())) {
    write("/proc/meminfo", "MemTotal:  1000 kB\nMemFree: 5 kB\nSwapTotal:  24 kB\n");
  }
  ~MemoryLimitTest() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  std::string root_;
};

TEST_F(MemoryLimitTest, OfTheMachine) {
  EXPECT_EQ(memory_limits(root_).machine, 1024u * 1024);
  write("/proc/self/cgroup", "0::/\n");
  write("/sys/fs/cgroup/memory.max", "max\n");
  EXPECT_EQ(memory_limits(root_).least(), 1024u * 1024);
}

TEST_F(MemoryLimitTest, OfTheControlGroupAndThoseAboveIt) {
  write("/proc/self/cgroup", "0::/jobs/job_7/rank_0\n");
  write("/sys/fs/cgroup/jobs/job_7/rank_0/memory.max", "max\n");
  write("/sys/fs/cgroup/jobs/job_7/memory.max", "500000\n");
  write("/sys/fs/cgroup/jobs/memory.max", "700000\n");
  EXPECT_EQ(memory_limits(root_).group, 500'000u);
  EXPECT_EQ(memory_limits(root_).machine, 1024u * 1024);
  EXPECT_EQ(memory_limits(root_).least(), 500'000u);
  const std::uint64_t id = memory_limits(root_).group_id;
  EXPECT_EQ(memory_limits(root_).group_id, id);
  write("/proc/self/cgroup", "0::/jobs/job_7/rank_1\n");
  EXPECT_EQ(memory_limits(root_).group, 500'000u);
  EXPECT_NE(memory_limits(root_).group_id, id);
}

TEST_F(MemoryLimitTest, OfTheFirstVersionsGroups) {
  write("/proc/self/cgroup", "9:name=systemd:/\n4:memory:/docker/0123\n2:cpuacct:/docker/0123\n0::/\n");
  // This is the limit of the container itself.
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "400000\n");
  EXPECT_EQ(memory_limits(root_).group, 400'000u);
  write("/sys/fs/cgroup/memory/docker/0123/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(memory_limits(root_).group, 400'000u);
}

TEST_F(MemoryLimitTest, NothingKnownIsNoLimit) {
  EXPECT_EQ(memory_limits(root_ + "/nowhere").least(), UINT64_MAX);
  write("/proc/self/cgroup", "\nnonsense\n4:memory:\n");
  EXPECT_EQ(memory_limits(root_).least(), 1024u * 1024);
}

TEST_F(MemoryLimitTest, HalfMayBeTouchedLater) {
  EXPECT_EQ(lazy_memory(root_), 512u * 1024);
  write("/proc/self/cgroup", "0::/\n");
  write("/sys/fs/cgroup/memory.max", "500000\n");
  EXPECT_EQ(lazy_memory(root_), 250'000u);
}

TEST_F(MemoryLimitTest, NothingMayBeTouchedLaterIfTheKernelNeverOvercommits) {
  write("/proc/sys/vm/overcommit_memory", "1\n");
  EXPECT_GT(lazy_memory(root_), 0u);
  write("/proc/sys/vm/overcommit_memory", "2\n");
  EXPECT_EQ(lazy_memory(root_), 0u);
}

TEST_F(MemoryLimitTest, AQuarterOfTheFreeAddressSpaceMayBeTouchedLater) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  write("/proc/meminfo", "MemTotal:  100000000000 kB\n");
  write("/proc/self/statm", "1 1 1 0 0 0 0\n");
  const rlimit space{std::uint64_t{1} << 46, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &space), 0);
  EXPECT_EQ(lazy_memory(root_), (space.rlim_cur - static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE))) / 4);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
}

TEST_F(MemoryLimitTest, OfThisSystem) { EXPECT_GT(memory_limits().least(), std::uint64_t{16} << 20); }

}  // namespace
}  // namespace tutti
