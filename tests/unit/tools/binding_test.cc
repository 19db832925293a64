#include "tools/run/binding.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/descriptor.h"
#include "tools/run/spawn.h"

namespace tutti::tools {
namespace {

namespace fs = std::filesystem;

using Numbers = std::vector<std::size_t>;

cpu_set_t set_of(const Numbers& numbers) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const std::size_t number : numbers) CPU_SET(number, &set);
  return set;
}

Numbers numbers_of(const cpu_set_t& set) {
  Numbers numbers;
  for (std::size_t number = 0; number < CPU_SETSIZE; ++number) {
    if (CPU_ISSET(number, &set)) numbers.push_back(number);
  }
  return numbers;
}

// The tests write their own version of the kernel's files, for a machine with four cores and three NUMA
// nodes. Each core has two hyperthreads: processors 0 and 4 are the first core, 1 and 5 are the second core,
// and so on. Node 0 has the first two cores, and node 2 has the other two.
class BindingTest : public testing::Test {
 protected:
  BindingTest() : root_(testing::TempDir() + "tutti_binding_" + std::to_string(getpid())) {
    for (int number = 0; number < 8; ++number) {
      const std::string siblings = std::to_string(number % 4) + "," + std::to_string(number % 4 + 4);
      write("cpu/cpu" + std::to_string(number) + "/topology/thread_siblings_list", siblings);
    }
    write("node/online", "0-2");
    write("node/node0/cpulist", "0-1,4-5");
    write("node/node1/cpulist", "");  // a node that has only memory
    write("node/node2/cpulist", "2-3,6-7");
  }
  ~BindingTest() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    const fs::path file = root_ + "/sys/devices/system/" + path;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }

  // Returns the processors of each rank.
  std::vector<Numbers> divide(Binding binding, int ranks, const Numbers& usable) {
    const auto sets = divide_processors(binding, ranks, set_of(usable), root_);
    EXPECT_TRUE(sets.ok()) << sets.status().to_string();
    std::vector<Numbers> result;
    if (!sets.ok()) return result;
    for (const ProcessorSet& set : *sets) result.push_back(set ? numbers_of(*set) : Numbers{});
    return result;
  }

  const Numbers all_ = {0, 1, 2, 3, 4, 5, 6, 7};
  const std::string root_;
};

TEST_F(BindingTest, NoneTiesNoRank) {
  EXPECT_EQ(divide(Binding::none, 2, all_), (std::vector<Numbers>{{}, {}}));
}

TEST_F(BindingTest, CoresWithTheirHyperthreads) {
  EXPECT_EQ(divide(Binding::core, 3, all_), (std::vector<Numbers>{{0, 4}, {1, 5}, {2, 6}}));
}

TEST_F(BindingTest, OnlyUsableProcessors) {
  EXPECT_EQ(divide(Binding::core, 3, {1, 2, 4, 5}), (std::vector<Numbers>{{1, 5}, {2}, {4}}));
  EXPECT_EQ(divide(Binding::numa, 2, {1, 2, 3, 5}), (std::vector<Numbers>{{1, 5}, {2, 3}}));
}

TEST_F(BindingTest, NodesAreDealtInTurn) {
  EXPECT_EQ(divide(Binding::numa, 3, all_), (std::vector<Numbers>{{0, 1, 4, 5}, {2, 3, 6, 7}, {0, 1, 4, 5}}));
}

TEST_F(BindingTest, NodesWithoutUsableProcessorsDoNotCount) {
  EXPECT_EQ(divide(Binding::numa, 2, {3, 6}), (std::vector<Numbers>{{3, 6}, {3, 6}}));
}

TEST_F(BindingTest, TooFewCores) {
  const auto sets = divide_processors(Binding::core, 5, set_of(all_), root_);
  EXPECT_EQ(sets.status().message(), "--bind-to core: 5 ranks need as many cores, but may use only 4");
}

// Some containers hide these files.
TEST_F(BindingTest, WithoutTheKernelsFiles) {
  fs::remove_all(root_);
  EXPECT_EQ(divide(Binding::core, 2, {0, 4, 6}), (std::vector<Numbers>{{0}, {4}}));
  EXPECT_EQ(divide(Binding::numa, 2, {0, 4}), (std::vector<Numbers>{{0, 4}, {0, 4}}));
}

TEST_F(BindingTest, FilesOfAnotherForm) {
  write("cpu/cpu0/topology/thread_siblings_list", "all of them");
  write("cpu/cpu1/topology/thread_siblings_list", "1,-5,99999999999,4-");
  EXPECT_EQ(divide(Binding::core, 2, {0, 1, 4}), (std::vector<Numbers>{{0}, {1}}));
}

TEST(Spawn, TiesTheProcess) {
  const auto sets = divide_processors(Binding::core, 1);
  ASSERT_TRUE(sets.ok()) << sets.status().to_string();
  const Descriptor nothing(open("/dev/null", O_RDWR | O_CLOEXEC));
  SpawnRequest request;
  request.path = "/bin/sleep";
  request.arguments = {"sleep", "60"};
  request.input = request.output = request.error = nothing.get();
  request.processors = sets->front();
  const pid_t pid = spawn(request, SpawnDefaults::of_this_process());
  ASSERT_GT(pid, 0);
  cpu_set_t processors;
  const bool known = sched_getaffinity(pid, sizeof processors, &processors) == 0;
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  ASSERT_TRUE(known);
  EXPECT_EQ(numbers_of(processors), numbers_of(*sets->front()));
}

}  // namespace
}  // namespace tutti::tools
