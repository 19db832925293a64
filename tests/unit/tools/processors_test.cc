#include "tools/processors.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

namespace tutti::tools {
namespace {

namespace fs = std::filesystem;

// The test writes its own versions of the system's files.
class Processors : public ::testing::Test {
 protected:
  Processors() : root_(::testing::TempDir() + "tutti_processors_" + std::to_string(getpid())) {}
  ~Processors() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  std::string root_;
  const int all_ = usable_processors("/no/such/system");  // the result without control groups
};

TEST_F(Processors, OfTheAffinity) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(all_, CPU_COUNT(&before));
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++i) {
    if (CPU_ISSET(i, &before)) CPU_SET(i, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(usable_processors(root_), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

TEST_F(Processors, OfTheControlGroupAndThoseAboveIt) {
  write("/proc/self/cgroup", "0::/jobs/job_7\n");
  write("/sys/fs/cgroup/jobs/job_7/cpu.max", "max 100000\n");
  EXPECT_EQ(usable_processors(root_), all_);
  // The parent group has half a processor, which counts as a whole processor.
  write("/sys/fs/cgroup/jobs/cpu.max", "50000 100000\n");
  EXPECT_EQ(usable_processors(root_), 1);
  write("/sys/fs/cgroup/jobs/cpu.max", "99900000 100000\n");
  EXPECT_EQ(usable_processors(root_), all_);
}

TEST_F(Processors, OfTheOlderControlGroups) {
  write("/proc/self/cgroup", "5:memory:/a\n4:cpu,cpuacct:/jobs\n");
  write("/sys/fs/cgroup/cpu/jobs/cpu.cfs_quota_us", "-1\n");
  write("/sys/fs/cgroup/cpu/jobs/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(usable_processors(root_), all_);
  write("/sys/fs/cgroup/cpu/jobs/cpu.cfs_quota_us", "100000\n");
  EXPECT_EQ(usable_processors(root_), 1);
}

}  // namespace
}  // namespace tutti::tools
