#include "tools/run/agent.h"

#include <map>
#include <optional>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "core/descriptor.h"
#include "tools/command_line.h"
#include "tools/run/descendants.h"
#include "tools/run/start_failure.h"

namespace tutti::tools {
namespace {

// Runs an agent until all processes of its task have ended, and keeps its reports.
class AgentTest : public testing::Test, private AgentEvents {
 protected:
  AgentTest() {
    adopt_orphans();
    agent_ = std::make_unique<Agent>(io_, static_cast<AgentEvents&>(*this));
  }

  // Runs `ranks` of a world of five ranks. Each of them runs the shell script.
  void run(const std::string& script, const std::vector<int>& ranks = {1, 4}, int input = -1) {
    AgentTask task = task_of({"sh", "-c", script});
    task.ranks = ranks;
    task.input = input;
    run(task);
  }
  static AgentTask task_of(const std::vector<std::string>& program) {
    AgentTask task;
    task.program = program;
    task.environment = {{"PATH", "/usr/bin:/bin"}};
    task.ranks = {1, 4};
    task.world_size = 5;
    return task;
  }
  void run(const AgentTask& task) {
    agent_->start(task);
    io_.run_for(std::chrono::seconds(60));
    EXPECT_TRUE(done_);
  }

  std::map<int, std::string> output_;
  std::map<int, ExitStatus> exits_;
  std::optional<StartFailure> failure_;

 private:
  void on_output(int rank, Stream, std::string_view bytes) override { output_[rank] += bytes; }
  void on_exit(const RankExit& exit) override { exits_.emplace(exit.rank, exit.status); }
  void on_start_failure(const StartFailure& failure) override {
    failure_ = failure;
    agent_->stop();
  }
  void on_done() override {
    done_ = true;
    io_.stop();
  }

  asio::io_context io_{1};
  std::unique_ptr<Agent> agent_;
  bool done_ = false;
};

TEST_F(AgentTest, RanksNeedNotFollowEachOther) {
  run("echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE; exit $RANK");
  EXPECT_EQ(output_, (std::map<int, std::string>{{1, "1/5 0/2\n"}, {4, "4/5 1/2\n"}}));
  ASSERT_EQ(exits_.size(), 2u);
  EXPECT_EQ(exits_.at(1).code, 1);
  EXPECT_EQ(exits_.at(4).code, 4);
  EXPECT_FALSE(failure_);
}

TEST_F(AgentTest, OnlyRankZeroReadsTheInput) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const Descriptor input(ends[0]);
  ASSERT_EQ(write(ends[1], "hello\n", 6), 6);
  close(ends[1]);
  run("cat", {0, 3}, input.get());
  EXPECT_EQ(output_, (std::map<int, std::string>{{0, "hello\n"}}));
}

TEST_F(AgentTest, WithoutRankZeroNobodyReadsTheInput) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const Descriptor input(ends[0]);
  const Descriptor writer(ends[1]);
  run("cat", {1, 3}, input.get());
  EXPECT_TRUE(output_.empty());
}

TEST_F(AgentTest, ReportsAProgramThatIsMissing) {
  run(task_of({"no-such-program"}));
  ASSERT_TRUE(failure_);
  EXPECT_EQ(failure_->exit_status, exit_not_found);
  EXPECT_NE(failure_->message.find("no-such-program: not found"), std::string::npos);
  EXPECT_TRUE(exits_.empty());
}

TEST_F(AgentTest, TiesRanksToDifferentCores) {
  if (const auto sets = divide_processors(Binding::core, 2); !sets.ok())
    GTEST_SKIP() << sets.status().message();
  AgentTask task = task_of({"grep", "Cpus_allowed_list", "/proc/self/status"});
  task.binding = Binding::core;
  run(task);
  EXPECT_NE(output_[1], "");
  EXPECT_NE(output_[1], output_[4]);
}

TEST_F(AgentTest, StartsNoRankIfThereAreFewerCores) {
  AgentTask task = task_of({"true"});
  task.ranks.resize(CPU_SETSIZE + 1);
  task.binding = Binding::core;
  run(task);
  ASSERT_TRUE(failure_);
  EXPECT_EQ(failure_->exit_status, exit_usage);
  EXPECT_NE(failure_->message.find("--bind-to core: 1025 ranks"), std::string::npos) << failure_->message;
  EXPECT_TRUE(exits_.empty());
}

}  // namespace
}  // namespace tutti::tools
