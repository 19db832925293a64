// Tests the command `tutti agent`: how it calls the launcher back, and how its processes end.
#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <asio/io_context.hpp>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/link_peer.h"
#include "tests/support/process.h"
#include "tools/command_line.h"
#include "tools/commands.h"
#include "tools/run/callback.h"
#include "tools/run/descendants.h"
#include "tools/run/event_loop.h"
#include "tools/run/link_limits.h"

namespace tutti::tools {
namespace {

using namespace std::chrono_literals;

// The agent runs as a child of the test, and the test plays its launcher.
class AgentCommand : public testing::Test {
 protected:
  void SetUp() override {
    const SocketAddress loopback_address = *parse_address("127.0.0.1", 0);
    auto opened = Callback::open(loop_, {&loopback_address, 1}, "job 5",
                                 [this](std::uint32_t host, meeting::Connection connection) {
                                   EXPECT_EQ(host, 2u);
                                   launcher_ = test::PlayedLauncher(std::move(connection));
                                   called_ = true;
                                 });
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    callback_ = *std::move(opened);
    start({"--job", "job 5", "--host", "2", "--call", callback_->endpoints().front()});
  }
  void TearDown() override {
    if (agent_ <= 0) return;
    kill(agent_, SIGKILL);
    waitpid(agent_, nullptr, 0);
  }

  void start(const Arguments& arguments) {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    out_ = Descriptor(ends[0]);
    agent_ = fork();
    ASSERT_GE(agent_, 0);
    if (agent_ == 0) {
      dup2(ends[1], STDOUT_FILENO);
      close(ends[0]);
      close(ends[1]);
      _exit(agent_command(arguments));
    }
    close(ends[1]);
  }
  std::string line() const {
    std::string result;
    for (char byte = 0; byte != '\n' && read(out_.get(), &byte, 1) == 1;) result += byte;
    return result;
  }
  // Reads the secret, and accepts the agent's call.
  void take_call() {
    const std::string said = line();
    ASSERT_EQ(said.size(), std::string("tutti-agent 1 ").size() + 64 + 1) << said;
    EXPECT_TRUE(said.starts_with("tutti-agent 1 "));
    ASSERT_TRUE(callback_->expect(2, said.substr(said.size() - 65, 64)).ok());
    const Deadline limit = Deadline::after(test::ample);
    while (!called_ && !limit.expired()) {
      io_.restart();
      io_.run_one_for(10ms);
    }
    ASSERT_TRUE(called_);
    ASSERT_TRUE(launcher_.receive()->has_hello());
  }
  // Starts a rank. Returns its process id, and the id of its parent.
  std::pair<pid_t, pid_t> start_rank(std::chrono::nanoseconds lease) {
    record::FromLauncher record;
    record.set_lease_ns(static_cast<std::uint64_t>(lease.count()));
    launcher_.send(record);
    record::Start& start = *record.mutable_start();
    for (const char* word : {"sh", "-c", "echo $$ $PPID; trap '' TERM; while :; do sleep 0.1; done"}) {
      start.add_program(word);
    }
    start.set_folder("/");
    start.add_ranks(0);
    start.set_world_size(1);
    start.set_output_credit(output_credit);
    launcher_.send(record);
    while (const auto answer = launcher_.receive()) {
      if (!answer->has_output()) continue;
      const std::string& text = answer->output().bytes();
      return {std::stoi(text), std::stoi(text.substr(text.find(' ')))};
    }
    ADD_FAILURE() << "the rank has written nothing";
    return {-1, -1};
  }
  int agents_status() {
    int status = 0;
    EXPECT_GT(waitpid(std::exchange(agent_, -1), &status, 0), 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  static void expect_ended(pid_t process) {
    const Deadline limit = Deadline::after(test::ample);
    while (std::ranges::count(living_processes(), process) > 0 && !limit.expired()) usleep(1000);
    EXPECT_EQ(std::ranges::count(living_processes(), process), 0);
  }

  asio::io_context io_{1};
  AsioLoop loop_{io_};
  std::unique_ptr<Callback> callback_;
  test::PlayedLauncher launcher_;
  Descriptor out_;
  bool called_ = false;
  pid_t agent_ = -1;
};

TEST_F(AgentCommand, CallsBackAndLeaves) {
  take_call();
  record::FromLauncher record;
  record.set_lease_ns(1'000'000'000);
  launcher_.send(record);
  record.mutable_leave();
  launcher_.send(record);
  EXPECT_EQ(agents_status(), 0);
  EXPECT_EQ(line(), "");
}

TEST_F(AgentCommand, GivesUpWhenNobodyReadsItsSecret) {
  line();
  out_.reset();
  EXPECT_EQ(agents_status(), exit_failure);
}

TEST_F(AgentCommand, NothingRemainsWhenItsWorkingProcessIsStuck) {
  take_call();
  const auto [rank, worker] = start_rank(300ms);
  kill(worker, SIGSTOP);
  EXPECT_EQ(agents_status(), exit_signal_base + SIGKILL);
  expect_ended(rank);
}

TEST_F(AgentCommand, NothingRemainsWhenItsWorkingProcessIsKilled) {
  take_call();
  const auto [rank, worker] = start_rank(1min);
  kill(worker, SIGKILL);
  EXPECT_EQ(agents_status(), exit_signal_base + SIGKILL);
  expect_ended(rank);
}

TEST_F(AgentCommand, NothingRemainsWhenItsGuardIsKilled) {
  take_call();
  const auto [rank, worker] = start_rank(1min);
  kill(agent_, SIGKILL);
  EXPECT_EQ(agents_status(), -SIGKILL);
  expect_ended(rank);
  expect_ended(worker);
}

TEST(AgentWithoutStdout, EndsAtOnce) {
  const pid_t agent = fork();
  ASSERT_GE(agent, 0);
  if (agent == 0) {
    close(STDOUT_FILENO);
    _exit(agent_command({"--job", "5", "--call", "127.0.0.1:1"}));
  }
  int status = 0;
  ASSERT_EQ(waitpid(agent, &status, 0), agent);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), exit_output_lost);
}

TEST(AgentOptions, TheCallAndTheJobAreRequired) {
  EXPECT_EQ(agent_command({"--call", "127.0.0.1:1"}), exit_usage);
  EXPECT_EQ(agent_command({"--job", "5"}), exit_usage);
}

}  // namespace
}  // namespace tutti::tools
