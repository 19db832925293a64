#pragma once

#include <memory>
#include <optional>
#include <string>

#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>

#include "tools/run/agent_control.h"
#include "tools/run/agent_events.h"
#include "tools/run/meeting_place.h"
#include "tools/run/options.h"
#include "tools/run/output.h"

namespace tutti::tools {

// `Job` runs one world from its start to its end: it opens the meeting place, has the ranks started, and
// decides when the job has ended and with which exit status.
class Job final : private AgentEvents {
 public:
  explicit Job(RunOptions options);
  // Runs the job. Returns its exit status once no process of the job is left.
  int run();

 private:
  void on_output(int rank, Stream stream, std::string_view bytes) override;
  void on_exit(const RankExit& exit) override;
  void on_start_failure(const StartFailure& failure) override;
  void on_done() override;

  // Prepares the job. If that fails, tells the user the reason and returns false.
  bool prepare(AgentTask& task);
  bool enter_folder(Environment& environment);
  void end_unread();
  void await_signals();
  void on_signal(int number);
  bool is_consequence() const;
  void report_failure(const RankExit& exit);
  int exit_status() const;

  const RunOptions options_;
  asio::io_context io_{1};
  asio::signal_set signals_;
  Output output_;
  const std::unique_ptr<AgentControl> agent_;
  MeetingPlace meeting_place_;
  bool done_ = false;
  bool all_succeeded_ = true;
  bool any_succeeded_ = false;
  int running_ = 0;
  std::optional<int> failure_;  // the exit status of the first failure that the job has not survived
  // This is the first signal that asked to end the job, or SIGPIPE if the reader of the output has exited.
  std::optional<int> ending_signal_;
};

}  // namespace tutti::tools
