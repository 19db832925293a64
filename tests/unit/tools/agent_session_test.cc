// Tests the part of a job that one agent runs. The test plays the launcher.
#include "tools/run/agent_session.h"

#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/link_peer.h"
#include "tests/support/process.h"
#include "tests/support/scratch_folder.h"
#include "tools/command_line.h"
#include "tools/run/descendants.h"
#include "tools/run/link_limits.h"

namespace tutti::tools {
namespace {

using namespace std::chrono_literals;
using record::FromAgent;
using record::FromLauncher;
using ::testing::HasSubstr;

FromLauncher lease_record(std::chrono::nanoseconds lease) {
  FromLauncher record;
  record.set_lease_ns(static_cast<std::uint64_t>(lease.count()));
  return record;
}

FromLauncher stop_record(int number) {
  FromLauncher record;
  record.set_stop(number);
  return record;
}

FromLauncher input_record(const std::string& bytes, bool end) {
  FromLauncher record;
  record.mutable_input()->set_bytes(bytes);
  record.mutable_input()->set_end(end);
  return record;
}

FromLauncher credit_record(std::uint64_t bytes) {
  FromLauncher record;
  record.set_credit(bytes);
  return record;
}

FromLauncher settle_record(std::uint64_t number) {
  FromLauncher record;
  record.set_settle(number);
  return record;
}

// Makes a record that starts `ranks` of a world of five ranks. Each of them runs the shell script.
FromLauncher start_record(const std::string& script, const std::vector<std::uint32_t>& ranks = {0, 3}) {
  FromLauncher record;
  record::Start& start = *record.mutable_start();
  for (const char* word : {"sh", "-c", script.c_str()}) start.add_program(word);
  start.set_folder("/");
  for (const std::uint32_t rank : ranks) start.add_ranks(rank);
  start.set_world_size(5);
  start.set_input(ranks.front() == 0);
  start.set_kill_grace_ns(static_cast<std::uint64_t>(std::chrono::nanoseconds(1min).count()));
  start.set_output_credit(output_credit);
  return record;
}

FromLauncher with(FromLauncher record, const std::function<void(record::Start&)>& change) {
  change(*record.mutable_start());
  return record;
}

// The session runs in a separate process, since it changes its folder and reaps all of its
// children.
class AgentSessionTest : public testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    agent_ = fork();
    ASSERT_GE(agent_, 0);
    if (agent_ == 0) {
      close(ends[0]);
      dup2(open((folder_ / "stderr").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600), STDERR_FILENO);
      adopt_orphans();
      AgentSession session(meeting::Connection(Descriptor(ends[1])), [](auto) {});
      _exit(session.run());
    }
    close(ends[1]);
    launcher_ = test::PlayedLauncher(meeting::Connection(Descriptor(ends[0])));
    const auto hello = launcher_.receive();
    ASSERT_TRUE(hello && hello->has_hello());
    EXPECT_GE(hello->hello().processors(), 1u);
  }
  void TearDown() override {
    if (agent_ <= 0) return;
    kill(agent_, SIGKILL);
    waitpid(agent_, nullptr, 0);
  }

  void start(const FromLauncher& start) {
    launcher_.send(lease_record(1min));
    launcher_.send(start);
  }
  // Receives and keeps records until one of this kind arrives. Fails if the connection ends before
  // that.
  std::optional<FromAgent> receive_until(FromAgent::WhatCase what) {
    while (std::optional<FromAgent> record = launcher_.receive()) {
      if (record->has_output()) output_[record->output().rank()] += record->output().bytes();
      if (record->has_exit()) exits_[record->exit().rank()] = record->exit();
      if (record->what_case() == FromAgent::kTaken) taken_ += record->taken();
      if (record->what_case() == what) return record;
    }
    ADD_FAILURE() << "the connection has ended";
    return std::nullopt;
  }
  // Waits until the rank has written a line. Returns the line as a number.
  pid_t pid_from(std::uint32_t rank) {
    while (output_[rank].find('\n') == std::string::npos) {
      if (!receive_until(FromAgent::kOutput)) return -1;
    }
    return static_cast<pid_t>(std::stol(output_[rank]));
  }
  void leave() {
    FromLauncher record;
    record.mutable_leave();
    launcher_.send(record);
    EXPECT_EQ(agents_status(), 0);
  }
  void expect_the_connection_ends() {
    while (launcher_.receive()) {
    }
    EXPECT_EQ(agents_status(), exit_failure);
  }
  // The test must distinguish a refusal from an expired lease, which also ends the connection.
  void expect_the_records_are_refused() {
    expect_the_connection_ends();
    std::ifstream file(folder_ / "stderr");
    EXPECT_THAT(std::string(std::istreambuf_iterator<char>(file), {}), HasSubstr("makes no sense"));
  }
  int agents_status() {
    int status = 0;
    EXPECT_GT(waitpid(std::exchange(agent_, -1), &status, 0), 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  const test::ScratchFolder folder_;
  pid_t agent_ = -1;
  test::PlayedLauncher launcher_;
  std::map<std::uint32_t, std::string> output_;
  std::map<std::uint32_t, record::Exit> exits_;
  std::uint64_t taken_ = 0;
};

TEST_F(AgentSessionTest, RunsRanks) {
  start(start_record("cat; echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $PWD >&2; exit $RANK"));
  receive_until(FromAgent::kStarted);
  launcher_.send(input_record("hello ", false));
  launcher_.send(input_record("", true));
  receive_until(FromAgent::kDone);
  EXPECT_EQ(output_, (std::map<std::uint32_t, std::string>{{0, "hello 0/5 0/2 /\n"}, {3, "3/5 1/2 /\n"}}));
  EXPECT_EQ(exits_[0].code(), 0);
  EXPECT_EQ(exits_[3].code(), 3);
  EXPECT_EQ(taken_, 6u);
  leave();
}

TEST_F(AgentSessionTest, SetsTheVariablesThatTheLauncherSends) {
  start(with(start_record("echo $MINE $PATH $LD_LIBRARY_PATH $OMPI_COMM_WORLD_RANK"), [](auto& start) {
    auto& mine = *start.add_variables();
    mine.set_name("MINE");
    mine.set_value("yes");
    auto& path = *start.add_variables();
    path.set_name("PATH");
    path.set_value("/usr/bin:/bin");
    auto& libraries = *start.add_variables();
    libraries.set_name("LD_LIBRARY_PATH");
    start.set_prefix("/opt/tutti");
    start.set_mpi_variables(true);
  }));
  receive_until(FromAgent::kDone);
  EXPECT_EQ(output_[3], "yes /opt/tutti/bin:/usr/bin:/bin /opt/tutti/lib 3\n");
}

TEST_F(AgentSessionTest, InputThatNobodyReadsCountsAsTaken) {
  start(start_record("exec <&-; echo closed; sleep 1000", {0}));
  while (output_[0] != "closed\n") ASSERT_TRUE(receive_until(FromAgent::kOutput));
  for (int round = 0; round < 4; ++round) {
    launcher_.send(input_record(std::string(input_credit, 'x'), false));
    while (taken_ < (round + 1) * input_credit) ASSERT_TRUE(receive_until(FromAgent::kTaken));
  }
}

TEST_F(AgentSessionTest, OutputWaitsForCredit) {
  constexpr std::uint64_t all = 500'000;
  start(with(start_record("head -c 500000 /dev/zero", {1}),
             [](auto& start) { start.set_output_credit(1000); }));
  receive_until(FromAgent::kOutput);
  launcher_.send(settle_record(1));
  receive_until(FromAgent::kSettled);
  EXPECT_LT(output_[1].size(), 200'000u);
  EXPECT_TRUE(exits_.empty());
  std::uint64_t returned = 0;
  while (output_[1].size() < all) {
    launcher_.send(credit_record(output_[1].size() - returned));
    returned = output_[1].size();
    ASSERT_TRUE(receive_until(FromAgent::kOutput));
  }
  receive_until(FromAgent::kDone);
  EXPECT_EQ(output_[1].size(), all);
}

TEST_F(AgentSessionTest, StopsRanks) {
  start(start_record("trap 'exit 7' TERM; echo $$; while :; do sleep 0.1; done", {1}));
  pid_from(1);
  launcher_.send(stop_record(SIGTERM));
  receive_until(FromAgent::kDone);
  EXPECT_EQ(exits_[1].code(), 7);
  leave();
}

TEST_F(AgentSessionTest, KillsRanksAfterTheGraceTime) {
  start(with(start_record("trap '' TERM; echo $$; while :; do sleep 0.1; done", {1}),
             [](auto& start) { start.set_kill_grace_ns(1'000'000); }));
  pid_from(1);
  launcher_.send(stop_record(SIGTERM));
  receive_until(FromAgent::kDone);
  EXPECT_EQ(exits_[1].signal(), SIGKILL);
}

TEST_F(AgentSessionTest, KillsRanksAtOnce) {
  start(start_record("trap '' TERM; echo $$; while :; do sleep 0.1; done", {1}));
  pid_from(1);
  FromLauncher record;
  record.mutable_kill();
  launcher_.send(record);
  receive_until(FromAgent::kDone);
  EXPECT_EQ(exits_[1].signal(), SIGKILL);
}

TEST_F(AgentSessionTest, PassesSignalsOn) {
  start(start_record("trap 'exit 8' USR1; echo $$; while :; do sleep 0.1; done", {1}));
  pid_from(1);
  FromLauncher record;
  record.set_signal(SIGUSR1);
  launcher_.send(record);
  receive_until(FromAgent::kDone);
  EXPECT_EQ(exits_[1].code(), 8);
}

TEST_F(AgentSessionTest, SettlesAfterTheExits) {
  start(start_record("echo $$; test $RANK = 1 || sleep 1000", {1, 2}));
  const pid_t rank = pid_from(1);
  // This loop ends when the rank has ended. The agent must report that end before it answers `settle`.
  while (kill(rank, 0) == 0 && std::ranges::count(living_processes(), rank) > 0) usleep(1000);
  launcher_.send(settle_record(6));
  const auto settled = receive_until(FromAgent::kSettled);
  ASSERT_TRUE(settled);
  EXPECT_EQ(settled->settled(), 6u);
  EXPECT_TRUE(exits_.contains(1));
}

TEST_F(AgentSessionTest, OpensTheMeetingPlace) {
  launcher_.send(lease_record(1min));
  FromLauncher record;
  record.mutable_meet()->add_peers("127.0.0.1");
  launcher_.send(record);
  const auto met = receive_until(FromAgent::kMet);
  ASSERT_TRUE(met);
  EXPECT_EQ(met->met().address(), "127.0.0.1");
  EXPECT_GT(met->met().store_port(), 0u);
  EXPECT_GT(met->met().master_port(), 0u);
  leave();
}

TEST_F(AgentSessionTest, TellsWhyThereIsNoMeetingPlace) {
  launcher_.send(lease_record(1min));
  FromLauncher record;
  auto& variable = *record.mutable_meet()->add_variables();
  variable.set_name("TUTTI_PORT_RANGE");
  variable.set_value("nonsense");
  launcher_.send(record);
  const auto problem = receive_until(FromAgent::kProblem);
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->problem().exit_status(), static_cast<std::uint32_t>(exit_failure));
  EXPECT_THAT(problem->problem().text(), HasSubstr("TUTTI_PORT_RANGE"));
  leave();
}

TEST_F(AgentSessionTest, TellsThatTheProgramIsMissing) {
  start(with(start_record(""), [](auto& start) { start.set_program(0, "no-such-program"); }));
  const auto problem = receive_until(FromAgent::kProblem);
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->problem().exit_status(), static_cast<std::uint32_t>(exit_not_found));
  EXPECT_EQ(problem->problem().text(),
            "no-such-program: not found in PATH or in the current folder; -x PATH passes on where programs "
            "are found here");
  launcher_.send(stop_record(SIGTERM));
  receive_until(FromAgent::kDone);
  leave();
}

// The error must not mention PATH, because the program's name contains a path.
TEST_F(AgentSessionTest, TellsThatTheProgramIsMissingAtItsPath) {
  start(with(start_record(""), [](auto& start) { start.set_program(0, "./no-such-program"); }));
  const auto problem = receive_until(FromAgent::kProblem);
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->problem().text(),
            "./no-such-program: not found; each host needs the program at the same path");
  launcher_.send(stop_record(SIGTERM));
  receive_until(FromAgent::kDone);
  leave();
}

TEST_F(AgentSessionTest, TellsThatTheFolderIsMissing) {
  start(with(start_record("true"), [](auto& start) { start.set_folder("/no/such/folder"); }));
  const auto problem = receive_until(FromAgent::kProblem);
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->problem().exit_status(), static_cast<std::uint32_t>(exit_failure));
  EXPECT_EQ(problem->problem().text(),
            "/no/such/folder: No such file or directory (--wdir DIR names another folder)");
  launcher_.send(stop_record(SIGTERM));
  receive_until(FromAgent::kDone);
  leave();
}

TEST_F(AgentSessionTest, EndsItsRanksWhenTheLauncherEnds) {
  start(start_record("echo $$; exec sleep 1000"));
  const pid_t rank = pid_from(3);
  launcher_.close();
  EXPECT_EQ(agents_status(), exit_failure);
  EXPECT_EQ(kill(rank, 0), -1);
}

TEST_F(AgentSessionTest, EndsItsRanksWhenTheLauncherIsSilent) {
  start(start_record("echo $$; exec sleep 1000"));
  const pid_t rank = pid_from(3);
  launcher_.send(lease_record(200ms));
  expect_the_connection_ends();
  EXPECT_EQ(kill(rank, 0), -1);
}

TEST_F(AgentSessionTest, EndsRanksThatWaitForCreditWhenTheLauncherEnds) {
  start(with(start_record("trap 'exit 0' TERM; while :; do echo much; done", {1}),
             [](auto& start) { start.set_output_credit(1); }));
  receive_until(FromAgent::kOutput);
  launcher_.close();
  EXPECT_EQ(agents_status(), exit_failure);
}

TEST_F(AgentSessionTest, EndsItsRanksWhenItIsAskedToEnd) {
  start(start_record("echo $$; exec sleep 1000"));
  const pid_t rank = pid_from(3);
  kill(agent_, SIGHUP);  // has no effect, since ssh may end before the job
  launcher_.send(settle_record(1));
  receive_until(FromAgent::kSettled);
  kill(agent_, SIGTERM);
  expect_the_connection_ends();
  EXPECT_EQ(kill(rank, 0), -1);
}

// Each of these sequences ends the connection.
class SenselessRecords : public AgentSessionTest, public testing::WithParamInterface<int> {};

std::vector<std::vector<FromLauncher>> senseless_records() {
  const FromLauncher lease = lease_record(1min);
  const FromLauncher run = start_record("sleep 1000");
  FromLauncher no_signal;
  no_signal.set_signal(0);
  FromLauncher meet_at_a_name;
  meet_at_a_name.mutable_meet()->add_peers("no.literal.address");
  FromLauncher meet;
  meet.mutable_meet();
  return {
      {run},
      {stop_record(SIGTERM)},
      {lease_record(0s)},
      {lease, stop_record(SIGTERM)},
      {lease, settle_record(1)},
      {lease, meet_at_a_name},
      {lease, meet, meet},
      {lease, run, run},
      {lease, run, no_signal},
      {lease, run, stop_record(1000)},
      {lease, run, credit_record(1)},
      {lease, run, input_record(std::string(3 * input_credit, 'x'), false)},
      {lease, run, input_record("x", true), input_record("y", false)},
      {lease, start_record("sleep 1000", {1}), input_record("x", false)},
      {lease, start_record("true", {3, 1})},
      {lease, start_record("true", {1, 1})},
      {lease, start_record("true", {1, 5})},
      {lease, with(run, [](auto& start) { start.clear_ranks(); })},
      {lease, with(run, [](auto& start) { start.clear_program(); })},
      {lease, with(run, [](auto& start) { start.set_program(0, ""); })},
      {lease, with(run, [](auto& start) { start.set_binding(3); })},
      {lease, with(start_record("true", {1}), [](auto& start) { start.set_input(true); })},
  };
}

TEST_P(SenselessRecords, EndTheConnection) {
  const auto sequences = senseless_records();
  for (const FromLauncher& record : sequences[static_cast<std::size_t>(GetParam())]) launcher_.send(record);
  expect_the_records_are_refused();
}

INSTANTIATE_TEST_SUITE_P(All, SenselessRecords,
                         testing::Range(0, static_cast<int>(senseless_records().size())));

TEST_F(AgentSessionTest, BytesThatAreNoRecordEndTheConnection) {
  // The beginning is a valid record.
  launcher_.send_frame(lease_record(1min).SerializeAsString() + "\xff");
  expect_the_records_are_refused();
}

TEST_F(AgentSessionTest, ARecordOfAnUnknownKindEndsTheConnection) {
  launcher_.send(lease_record(1min));
  launcher_.send_frame("\xa0\x06\x01");  // field 100
  expect_the_records_are_refused();
}

}  // namespace
}  // namespace tutti::tools
