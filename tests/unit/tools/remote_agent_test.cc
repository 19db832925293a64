// Tests the launcher's view of one host. The test plays the agent.
#include "tools/run/remote_agent.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>

#include <tutti/version.h>

#include "tests/support/link_peer.h"
#include "tests/support/process.h"
#include "tools/run/event_loop.h"

namespace tutti::tools {
namespace {

using namespace std::chrono_literals;
using record::FromAgent;
using record::FromLauncher;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

FromAgent hello_record() {
  FromAgent record;
  record.mutable_hello()->set_version(std::string(version()));
  record.mutable_hello()->set_build(std::string(build()));
  record.mutable_hello()->set_processors(2);
  return record;
}

FromAgent met_record(const std::string& address = "10.0.0.7", std::uint32_t store_port = 4711) {
  FromAgent record;
  record.mutable_met()->set_address(address);
  record.mutable_met()->set_store_port(store_port);
  record.mutable_met()->set_master_port(20000);
  return record;
}

FromAgent started_record() {
  FromAgent record;
  record.mutable_started();
  return record;
}

FromAgent output_record(std::uint32_t rank, const std::string& bytes) {
  FromAgent record;
  record.mutable_output()->set_rank(rank);
  record.mutable_output()->set_bytes(bytes);
  return record;
}

FromAgent exit_record(std::uint32_t rank, int code = 0, int signal = 0) {
  FromAgent record;
  record.mutable_exit()->set_rank(rank);
  record.mutable_exit()->set_code(code);
  record.mutable_exit()->set_signal(signal);
  return record;
}

FromAgent problem_record(std::uint32_t status, const std::string& text) {
  FromAgent record;
  record.mutable_problem()->set_exit_status(status);
  record.mutable_problem()->set_text(text);
  return record;
}

FromAgent done_record() {
  FromAgent record;
  record.mutable_done();
  return record;
}

FromAgent taken_record() {
  FromAgent record;
  record.set_taken(1);
  return record;
}

FromAgent settled_record() {
  FromAgent record;
  record.set_settled(1);
  return record;
}

FromLauncher start_record() {
  FromLauncher record;
  record.mutable_start();
  return record;
}

// The host beta has ranks 2 and 3. The fixture keeps the launcher's events as lines of text.
class RemoteAgentTest : public testing::Test, private RemoteAgentEvents {
 protected:
  void SetUp() override {
    LocatedHost host;
    host.listed.name = "beta";
    const std::string print_secret = "echo tutti-agent 1 " + std::string(64, 'a') + "; exec sleep 1000";
    agent_ = std::make_unique<RemoteAgent>(io_, loop_, static_cast<RemoteAgentEvents&>(*this), 1, host,
                                           StarterTask{.host = "beta",
                                                       .command = {"sh", "-c", print_secret},
                                                       .tool = "ssh",
                                                       .agent_path = "/opt/tutti/bin/tutti",
                                                       .deadline = Deadline::after(test::ample)});
    agent_->start();
    expect("secret");
  }

  // Lets the played agent call back.
  void call_back(std::chrono::nanoseconds lease = 1h) {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    played_ = test::PlayedAgent(meeting::Connection(Descriptor(ends[0])));
    agent_->take(meeting::Connection(Descriptor(ends[1])), lease);
    loop_.rearm();
    const auto record = played_.receive();
    ASSERT_TRUE(record && record->has_lease_ns());
  }
  void come_up() {
    call_back();
    played_.send(hello_record());
    expect("up");
    agent_->assign({2, 3});
  }
  void start_ranks() {
    come_up();
    agent_->run(start_record());
    played_.send(started_record());
    expect("started");
  }
  void expect_lost_by_nonsense() { expect("lost: its agent has sent something that makes no sense"); }
  // Waits for the launcher's next event, and expects that its text contains `line`.
  void expect(const std::string& line) {
    const Deadline deadline = Deadline::after(test::ample);
    while (heard_.empty() && !deadline.expired()) io_.run_one_for(1s);
    ASSERT_FALSE(heard_.empty()) << "nothing was heard instead of " << line;
    EXPECT_THAT(heard_.front(), HasSubstr(line));
    heard_.erase(heard_.begin());
  }

  asio::io_context io_;
  AsioLoop loop_{io_};
  std::unique_ptr<RemoteAgent> agent_;
  test::PlayedAgent played_;
  std::vector<std::string> heard_;

 private:
  void on_secret(RemoteAgent&, std::string_view) override { heard_.push_back("secret"); }
  void on_up(RemoteAgent&) override { heard_.push_back("up"); }
  void on_met(RemoteAgent&, const record::Met& met) override { heard_.push_back("met " + met.address()); }
  void on_started(RemoteAgent&) override { heard_.push_back("started"); }
  void on_problem(RemoteAgent&, const StartFailure& failure) override {
    heard_.push_back("problem " + std::to_string(failure.exit_status) + ": " + failure.message);
  }
  void on_output(int rank, Stream, std::string_view bytes) override {
    heard_.push_back("output of " + std::to_string(rank) + ": " + std::string(bytes));
  }
  void on_exit(RemoteAgent&, const RankExit& exit) override {
    heard_.push_back("exit of " + std::to_string(exit.rank) + ": " + std::to_string(exit.status.code));
  }
  void on_settled(RemoteAgent&, std::uint64_t number) override {
    heard_.push_back("settled " + std::to_string(number));
  }
  void on_taken(std::uint64_t bytes) override { heard_.push_back("taken " + std::to_string(bytes)); }
  void on_done(RemoteAgent&) override { heard_.push_back("done"); }
  void on_lost(RemoteAgent&, const std::string& why) override { heard_.push_back("lost: " + why); }
  void on_line(RemoteAgent&, const std::string& line) override { heard_.push_back("line: " + line); }
};

TEST_F(RemoteAgentTest, ReportsWhatTheAgentReports) {
  start_ranks();
  played_.send(output_record(3, "hello"));
  expect("output of 3: hello");
  played_.send(exit_record(2, 5));
  expect("exit of 2: 5");
  EXPECT_THAT(agent_->living_ranks(), ElementsAre(3));
  played_.send(exit_record(3));
  expect("exit of 3: 0");
  played_.send(done_record());
  expect("done");
  EXPECT_TRUE(agent_->is_over());
}

TEST_F(RemoteAgentTest, AnotherBuildIsAProblem) {
  call_back();
  FromAgent hello = hello_record();
  hello.mutable_hello()->set_build("77ab01cd99e2");
  played_.send(hello);
  expect("problem 1: host beta runs tutti " + std::string(version()) +
         " (build 77ab01cd99e2), this machine ");
}

TEST_F(RemoteAgentTest, ANumberOfProcessorsThatMakesNoSenseIsAProblem) {
  call_back();
  FromAgent hello = hello_record();
  hello.mutable_hello()->set_processors(0);
  played_.send(hello);
  expect("problem 1: host beta: its agent has sent something that makes no sense");
}

TEST_F(RemoteAgentTest, TheBuildOfAnAgentControlsNoTerminal) {
  call_back();
  FromAgent hello = hello_record();
  hello.mutable_hello()->set_build("\x1b[2J");
  played_.send(hello);
  expect("(build \\x1b[2J)");
}

TEST_F(RemoteAgentTest, TextsOfAnAgentControlNoTerminal) {
  come_up();
  agent_->run(start_record());
  played_.send(problem_record(1, "\x1b[2Jno\nfolder"));
  expect("problem 1: host beta: \\x1b[2Jno\\nfolder");
}

TEST_F(RemoteAgentTest, ASilentAgentIsLost) {
  call_back(100ms);
  played_.send(hello_record());
  expect("up");
  expect("lost: nothing has arrived from it for 100ms");
}

TEST_F(RemoteAgentTest, AnAgentThatEndsIsLost) {
  start_ranks();
  played_.close();
  expect("lost: its agent has ended");
}

TEST_F(RemoteAgentTest, WhoEndsBeforeItsHelloIsAProblem) {
  call_back();
  played_.close();
  expect("problem 1: host beta: its agent has ended");
}

// While reading is off, output that still arrives brings the agent no new credit (permission to send output).
// The agent gets this credit as soon as reading is on again.
TEST_F(RemoteAgentTest, OutputGetsCreditUnlessReadingIsOff) {
  start_ranks();
  agent_->set_reading(false);
  const std::string piece(100 * 1024, 'x');
  for (int i = 0; i < 3; ++i) {
    played_.send(output_record(2, piece));
    expect("output of 2: ");
  }
  agent_->set_reading(true);
  io_.run_one_for(10ms);
  std::optional<FromLauncher> record = played_.receive();  // the start
  record = played_.receive();
  ASSERT_TRUE(record);
  EXPECT_EQ(record->credit(), 3 * piece.size());
}

// The launcher accepts only reports about the agent's own ranks, at the right time. Each of these
// sequences counts as the loss of the host.
class SenselessReports : public RemoteAgentTest, public testing::WithParamInterface<int> {};

std::vector<std::vector<FromAgent>> senseless_reports() {
  return {
      {hello_record()},
      {met_record()},
      {started_record()},
      {output_record(1, "x")},
      {exit_record(0)},
      {exit_record(2), exit_record(2)},
      {exit_record(2, 1000)},
      {exit_record(2, -1)},
      {exit_record(2, 0, 128)},
      {exit_record(2, 0, -1)},
      {exit_record(2), done_record()},  // rank 3 still runs
      {exit_record(2), exit_record(3), done_record(), done_record()},
      {problem_record(1, "too late")},
      {taken_record()},  // only the agent of rank 0 may send this
      {FromAgent()},
  };
}

TEST_P(SenselessReports, LoseTheHost) {
  start_ranks();
  const auto sequences = senseless_reports();
  for (const FromAgent& record : sequences[static_cast<std::size_t>(GetParam())]) {
    if (record.ByteSizeLong() == 0) {
      played_.send_frame("\xa0\x06\x01");  // an unknown field
    } else {
      played_.send(record);
    }
  }
  const Deadline deadline = Deadline::after(test::ample);
  const auto lost = [this] { return !heard_.empty() && heard_.back().starts_with("lost: "); };
  while (!lost() && !deadline.expired()) io_.run_one_for(1s);
  EXPECT_THAT(heard_.back(), HasSubstr("lost: its agent has sent something that makes no sense"));
  EXPECT_TRUE(agent_->is_over());
}

INSTANTIATE_TEST_SUITE_P(All, SenselessReports,
                         testing::Range(0, static_cast<int>(senseless_reports().size())));

TEST_F(RemoteAgentTest, ARecordThatMakesSenseOnlyAtItsBeginningLosesTheHost) {
  start_ranks();
  played_.send_frame(exit_record(2).SerializeAsString() + "\xff");
  expect_lost_by_nonsense();
}

class SenselessMeetings : public RemoteAgentTest, public testing::WithParamInterface<int> {};

std::vector<FromAgent> senseless_meetings() {
  return {met_record("no.literal.address"), met_record("10.0.0.7", 0), met_record("10.0.0.7", 65536),
          problem_record(0, "nothing"), problem_record(1000, "x")};
}

TEST_P(SenselessMeetings, LoseTheHost) {
  come_up();
  FromLauncher meet;
  meet.mutable_meet();
  agent_->meet(meet);
  const auto records = senseless_meetings();
  played_.send(records[static_cast<std::size_t>(GetParam())]);
  expect_lost_by_nonsense();
}

INSTANTIATE_TEST_SUITE_P(All, SenselessMeetings, testing::Range(0, 5));

// An agent may send only a hello before the launcher's first command.
class EarlyReports : public RemoteAgentTest, public testing::WithParamInterface<int> {};

std::vector<FromAgent> early_reports() {
  return {met_record(),  started_record(), output_record(2, "x"), exit_record(2),
          done_record(), taken_record(),   settled_record(),      problem_record(1, "x")};
}

TEST_P(EarlyReports, LoseTheHost) {
  come_up();
  played_.send(early_reports()[static_cast<std::size_t>(GetParam())]);
  expect_lost_by_nonsense();
}

INSTANTIATE_TEST_SUITE_P(All, EarlyReports, testing::Range(0, static_cast<int>(early_reports().size())));

}  // namespace
}  // namespace tutti::tools
