#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>

#include "tools/run/agent_control.h"
#include "tools/run/agent_events.h"
#include "tools/run/host_plan.h"
#include "tools/run/hosts.h"
#include "tools/run/meeting_place.h"
#include "tools/run/options.h"
#include "tools/run/output.h"
#include "tools/run/spawn.h"

namespace tutti::tools {

// `Job` runs one world from its start to its end. It finds the hosts, lets the agents start the
// ranks, and decides when the job has ended and with which exit status.
class Job final : private HostsEvents {
 public:
  explicit Job(RunOptions options);
  // Runs the job. Returns its exit status after all of its processes have ended.
  int run();

 private:
  void on_output(int rank, Stream stream, std::string_view bytes) override;
  void on_exit(const RankExit& exit) override;
  void on_start_failure(const StartFailure& failure) override;
  void on_done() override;
  void on_placed(int ranks) override;
  void on_lost(const std::string& host, std::span<const int> ranks, const std::string& why) override;
  void on_note(const std::string& text) override;

  // Each of these prepares a part of the job. It returns the reason and the exit status if it
  // fails.
  std::optional<StartFailure> prepare(AgentTask& task);
  std::optional<StartFailure> prepare_here(AgentTask& task);
  std::optional<StartFailure> enter_folder(Environment& environment);
  std::optional<StartFailure> set_ranks(int ranks);
  void end_unread();
  void await_signals();
  void on_signal(int number);
  void end();
  bool survives(const ExitStatus& status) const;
  std::string what_others_do(bool survives) const;
  void report_failure(const RankExit& exit);
  int exit_status() const;

  const RunOptions options_;
  const SpawnDefaults defaults_;
  asio::io_context io_{1};
  asio::signal_set signals_;
  Output output_;
  // All agents of the job, or the single agent in this process.
  std::unique_ptr<AgentControl> agents_;
  MeetingPlace meeting_place_;  // unused if an agent in another process serves it
  bool done_ = false;
  int ranks_ = 0;  // 0 while the number is unknown
  int running_ = 0;
  int succeeded_ = 0;
  bool ending_ = false;  // a failure has ended the job
  // The exit status of the first failure. With recovery enabled, the first rank that succeeds clears it.
  std::optional<int> failure_;
  // The first signal that asked the job to end, or SIGPIPE if the reader of the output has exited.
  std::optional<int> ending_signal_;
};

}  // namespace tutti::tools
