#include "tools/run/starter.h"

#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <asio/executor_work_guard.hpp>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/support/process.h"
#include "tests/support/scratch_folder.h"

namespace tutti::tools {
namespace {

using std::chrono::seconds;

const std::string first_secret(64, 'a');
const std::string second_secret(64, 'b');
const std::string print_secret = "echo tutti-agent 1 " + first_secret + "; ";
const std::string refused = "echo ssh: connect to host beta port 22: Connection refused >&2; exit 255";

// Runs a starter whose command is a shell script, and keeps its reports. In a script, $1 is a folder for the
// script's files.
class StarterTest : public testing::Test, private StarterEvents {
 protected:
  void start(const std::string& script, seconds limit = seconds(300)) {
    start_command({"sh", "-c", script, "sh", folder_.path()}, limit);
  }
  void start_command(const std::vector<std::string>& command, seconds limit = seconds(300)) {
    starter_ = std::make_unique<Starter>(io_,
                                         StarterTask{.host = "beta",
                                                     .command = command,
                                                     .tool = tool_,
                                                     .agent_path = "/opt/tutti/bin/tutti",
                                                     .tries_again = tries_again_,
                                                     .deadline = Deadline::after(limit)},
                                         static_cast<StarterEvents&>(*this));
    starter_->start();
  }
  // Runs handlers until `condition` is true. Returns false if that takes too long.
  bool run_until(const std::function<bool()>& condition) {
    const Deadline deadline = Deadline::after(test::ample);
    while (!condition() && !deadline.expired()) io_.run_one_for(seconds(1));
    return condition();
  }
  // Returns the reason why no agent starts.
  std::string failure() {
    EXPECT_TRUE(run_until([this] { return !failures_.empty(); }));
    return failures_.empty() ? "" : failures_.front();
  }
  bool await_secrets(std::size_t count) {
    return run_until([this, count] { return secrets_.size() >= count; });
  }
  bool await_end() {
    return run_until([this] { return !starter_->runs(); });
  }
  // Returns the process whose id the script has written to the file.
  pid_t process_in(const std::string& file) const {
    pid_t pid = -1;
    std::ifstream(folder_ / file) >> pid;
    return pid;
  }

  std::string tool_ = "ssh";
  bool tries_again_ = true;
  test::ScratchFolder folder_;
  asio::io_context io_{1};
  std::unique_ptr<Starter> starter_;
  std::vector<std::string> secrets_;
  std::vector<std::string> failures_;
  std::vector<std::string> lines_;

 private:
  void on_secret(std::string_view secret) override { secrets_.emplace_back(secret); }
  void on_failure(const std::string& text) override { failures_.push_back(text); }
  void on_line(const std::string& line) override { lines_.push_back(line); }

  asio::executor_work_guard<asio::io_context::executor_type> work_ = asio::make_work_guard(io_);
};

TEST_F(StarterTest, FindsTheSecretAfterNoise) {
  start("echo Welcome to beta; printf 'tutti-agent 1 short\\nno end of line: '; " + print_secret +
        "sleep 1000");
  ASSERT_TRUE(await_secrets(1));
  EXPECT_EQ(secrets_.front(), first_secret);
  EXPECT_EQ(starter_->state(), "its agent has not called back");
}

TEST_F(StarterTest, ALineMayEndWithACarriageReturn) {
  start("printf 'tutti-agent 1 " + first_secret + "\\r\\n'; sleep 1000");
  ASSERT_TRUE(await_secrets(1));
  EXPECT_EQ(secrets_.front(), first_secret);
}

TEST_F(StarterTest, WaitsForASecretThatComesLate) {
  start("sleep 1; printf 'tutti-agent 1 '; sleep 1; echo " + first_secret + "; sleep 1000");
  EXPECT_EQ(starter_->state(), "ssh is running");
  ASSERT_TRUE(await_secrets(1));
  EXPECT_EQ(secrets_.front(), first_secret);
}

TEST_F(StarterTest, FailsIfTheCommandEndsWithoutASecret) {
  start("echo Go away; exit 0");
  EXPECT_EQ(failure(), "host beta: ssh exited with status 0:\n  Go away");
}

TEST_F(StarterTest, FailsIfStdoutHasNoEndBeforeTheSecret) {
  start("exec tr '\\0' x </dev/zero");
  EXPECT_EQ(failure(), "host beta: ssh has written more than 64K to stdout, without the secret of an agent");
  EXPECT_TRUE(await_end());
}

TEST_F(StarterTest, TriesAgainUntilTheHostIsUp) {
  start("echo try >>$1/tries; test $(wc -l <$1/tries) -eq 3 || { " + refused + "; }; " + print_secret +
        "sleep 1000");
  ASSERT_TRUE(run_until([this] { return starter_->state().ends_with("(tried once)"); }));
  EXPECT_EQ(starter_->state(), "ssh: connect to host beta port 22: Connection refused (tried once)");
  ASSERT_TRUE(run_until([this] { return starter_->state().ends_with("(tried 2 times)"); }));
  ASSERT_TRUE(await_secrets(1));
  EXPECT_TRUE(failures_.empty());
}

TEST_F(StarterTest, TriesAgainIfSshLosesTheAgent) {
  start("if mkdir $1/tried; then " + print_secret + "exit 255; fi; echo tutti-agent 1 " + second_secret +
        "; sleep 1000");
  ASSERT_TRUE(await_secrets(2));
  EXPECT_EQ(secrets_, (std::vector{first_secret, second_secret}));
}

TEST_F(StarterTest, TriesAgainWhateverTheStatusOfAnotherProgram) {
  tool_ = "kubexec.sh";
  start("mkdir $1/tried && { echo pod beta not found >&2; exit 1; }; " + print_secret + "sleep 1000");
  ASSERT_TRUE(run_until([this] { return starter_->state() == "pod beta not found (tried once)"; }));
  EXPECT_TRUE(await_secrets(1));
}

TEST_F(StarterTest, DoesNotTryAgainIfSshPassesAStatusOn) {
  start("echo no such command: agent >&2; exit 2");
  EXPECT_EQ(failure(), "host beta: ssh exited with status 2:\n  no such command: agent");
}

TEST_F(StarterTest, DoesNotTryAgainOnThisMachine) {
  tool_ = "tutti";
  tries_again_ = false;
  start("exit 255");
  EXPECT_EQ(failure(), "host beta: tutti exited with status 255");
}

TEST_F(StarterTest, GivesUpAtTheDeadline) {
  start(refused, seconds(1));
  EXPECT_EQ(failure(),
            "host beta did not come up within 1s:\n  ssh: connect to host beta port 22: Connection refused");
}

TEST_F(StarterTest, GivesUpOnACommandThatDoesNotAnswer) {
  start("sleep 1000", seconds(1));
  EXPECT_EQ(failure(), "host beta did not come up within 1s:\n  ssh is running");
  EXPECT_TRUE(await_end());
}

TEST_F(StarterTest, TheCommandMayEndOnceTheAgentHasStarted) {
  start(print_secret, seconds(2));
  ASSERT_TRUE(await_secrets(1));
  ASSERT_TRUE(await_end());
  EXPECT_TRUE(failures_.empty());
  EXPECT_EQ(failure(), "host beta did not come up within 2s:\n  its agent has not called back");
}

TEST_F(StarterTest, TellsWhatTheAgentSays) {
  start("echo Welcome; " + print_secret + "echo tutti agent: it is too late >&2; exit 1");
  EXPECT_EQ(failure(), "host beta: it is too late");
}

TEST_F(StarterTest, TuttiIsMissingOnTheHost) {
  const StartCommand played{.way = StartCommand::Way::other,
                            .command = {TUTTI_SOURCE_DIR "/tests/support/played_rsh.sh"}};
  tool_ = "played_rsh.sh";
  start_command(played.words("beta", "", {"/no/such/folder/bin/tutti", "agent"}));
  const std::string text = failure();
  EXPECT_TRUE(
      text.starts_with("host beta has no /opt/tutti/bin/tutti: install it there, or name its folder with "
                       "--prefix DIR\n"))
      << text;
  EXPECT_NE(text.find("/no/such/folder/bin/tutti: not found"), text.npos) << text;
}

TEST_F(StarterTest, TuttiCannotBeExecutedOnTheHost) {
  start("echo sh: /opt/tutti/bin/tutti: Permission denied >&2; exit 126");
  EXPECT_EQ(failure(),
            "host beta cannot execute /opt/tutti/bin/tutti:\n  sh: /opt/tutti/bin/tutti: Permission denied");
}

TEST_F(StarterTest, ASharedLibraryIsMissingOnTheHost) {
  start(
      "echo Welcome; echo /opt/tutti/bin/tutti: error while loading shared libraries: libx.so.1: cannot open "
      ">&2;"
      " exit 127");
  EXPECT_EQ(failure(),
            "host beta: /opt/tutti/bin/tutti: error while loading shared libraries: libx.so.1: cannot open");
}

// Returns a command that imitates an ssh whose login or host key is refused.
std::vector<std::string> refused_by(const std::string& line) {
  return {"sh", "-c", "printf '%s\\r\\n' \"$0\" >&2; exit 255", line, "exec", "tutti"};
}

TEST_F(StarterTest, DoesNotTryAgainIfSshIsRefused) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"alice@beta: Permission denied (publickey).", "Permission denied (publickey)."},
      {"Host key verification failed.", "Host key verification failed."},
      {"Received disconnect from 10.0.0.7 port 22:2: Too many authentication failures",
       "Too many authentication failures"}};
  for (const auto& [line, reason] : cases) {
    failures_.clear();
    start_command(refused_by(line));
    const std::string text = failure();
    EXPECT_TRUE(text.starts_with("host beta: " + reason + "\n  To see what is wrong, try: sh -c ")) << text;
    EXPECT_TRUE(text.ends_with(" true")) << text;
  }
}

TEST_F(StarterTest, DoesNotTryAgainIfSlurmRefuses) {
  tool_ = "srun";
  for (const std::string line :
       {"srun: error: Unable to create step for job 7: Invalid node name specified",
        "srun: error: Unable to confirm allocation for job 7: Invalid job id specified"}) {
    failures_.clear();
    start("echo " + line + " >&2; exit 1");
    EXPECT_EQ(failure(), "host beta: srun has failed:\n  " + line);
  }
}

TEST_F(StarterTest, TheToolItselfIsMissing) {
  start_command({"no-such-ssh", "beta", "exec", "tutti"});
  EXPECT_EQ(failure(), "host beta: no-such-ssh: not found in PATH or in the current folder");
}

TEST_F(StarterTest, ReportsLinesOnceTheAgentIsUp) {
  start("echo before >&2; " + print_secret +
        "until test -e $1/up; do sleep 0.1; done; printf 'colour \\033[1m\\r\\nno end' >&2");
  ASSERT_TRUE(await_secrets(1));
  starter_->came_up();
  std::ofstream(folder_ / "up");
  ASSERT_TRUE(await_end());
  EXPECT_EQ(lines_, (std::vector<std::string>{"colour \\x1b[1m", "no end"}));
  EXPECT_TRUE(failures_.empty());
}

TEST_F(StarterTest, StopKillsACommandThatIgnoresSigterm) {
  start("trap '' TERM; " + print_secret + "while :; do sleep 1; done");
  ASSERT_TRUE(await_secrets(1));
  starter_->stop();
  EXPECT_TRUE(starter_->runs());
  EXPECT_TRUE(await_end());
  EXPECT_TRUE(failures_.empty());
}

TEST_F(StarterTest, StopLetsTheCommandOfAnAgentEndByItself) {
  start(print_secret + "until test -e $1/up; do sleep 0.1; done; echo bye >&2");
  ASSERT_TRUE(await_secrets(1));
  starter_->came_up();
  starter_->stop();
  std::ofstream(folder_ / "up");
  ASSERT_TRUE(await_end());
  EXPECT_EQ(lines_, std::vector<std::string>{"bye"});
}

TEST_F(StarterTest, StopEndsThePauseBetweenTries) {
  start(refused);
  ASSERT_TRUE(run_until([this] { return !starter_->runs(); }));
  starter_->stop();
  io_.run_for(seconds(1));
  EXPECT_FALSE(starter_->runs());
  EXPECT_TRUE(failures_.empty());
}

TEST_F(StarterTest, TheDestructorKillsTheCommand) {
  start("echo $$ >$1/pid; " + print_secret + "sleep 1000");
  ASSERT_TRUE(await_secrets(1));
  const pid_t pid = process_in("pid");
  ASSERT_GT(pid, 0);
  starter_.reset();
  EXPECT_EQ(kill(pid, 0), -1);
  io_.run_for(seconds(0));  // runs the handlers that are already due
}

TEST_F(StarterTest, NothingIsLeftOfATryThatHasFailed) {
  start("sleep 1000 & echo $! >$1/pid; exit 2");
  failure();
  const pid_t pid = process_in("pid");
  ASSERT_GT(pid, 0);
  // The process may still exist as a zombie, if its new parent does not wait for it.
  std::string state;
  EXPECT_TRUE(run_until([&] {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string name;
    state = "none";
    file >> name >> name >> state;
    return state == "none" || state == "Z";
  })) << state;
}

}  // namespace
}  // namespace tutti::tools
