#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "tools/run/agent_control.h"
#include "tools/run/callback.h"
#include "tools/run/event_loop.h"
#include "tools/run/exit_order.h"
#include "tools/run/host_commands.h"
#include "tools/run/host_plan.h"
#include "tools/run/input_source.h"
#include "tools/run/options.h"
#include "tools/run/progress.h"
#include "tools/run/remote_agent.h"
#include "tools/run/spawn.h"
#include "tools/run/visit.h"

namespace tutti::tools {

class HostsEvents;

// `Hosts` runs the ranks of a job on several hosts. It starts an agent on each host, and waits
// until all agents have called back. The agent on the host of rank 0 then opens the meeting place,
// and all agents start their ranks. If a host is lost, `Hosts` tries once to end the job's
// remaining processes there.
class Hosts final : public AgentControl, private RemoteAgentEvents {
 public:
  // The start commands run with `defaults`.
  Hosts(asio::io_context& io, HostsEvents& events, const RunOptions& options, HostPlan plan,
        const SpawnDefaults& defaults);
  ~Hosts() override;

  // `task` must have no ranks, and no variables of the meeting place, since this class adds both.
  void start(const AgentTask& task) override;
  void signal(int number) override;
  void stop(int number = SIGTERM) override;
  void kill() override;
  void set_reading(bool reading) override;
  std::string host_of(int rank) const override;

 private:
  void on_secret(RemoteAgent& agent, std::string_view secret) override;
  void on_up(RemoteAgent& agent) override;
  void on_met(RemoteAgent& agent, const record::Met& met) override;
  void on_started(RemoteAgent& agent) override;
  void on_problem(RemoteAgent& agent, const StartFailure& failure) override;
  void on_output(int rank, Stream stream, std::string_view bytes) override;
  void on_exit(RemoteAgent& agent, const RankExit& exit) override;
  void on_settled(RemoteAgent& agent, std::uint64_t number) override;
  void on_taken(std::uint64_t bytes) override;
  void on_done(RemoteAgent& agent) override;
  void on_lost(RemoteAgent& agent, const std::string& why) override;
  void on_line(RemoteAgent& agent, const std::string& line) override;

  Status listen();
  StarterTask starter_task(const LocatedHost& host, std::uint32_t number, Deadline deadline) const;
  void start_agents();
  Progress::State progress() const;
  Status assign_ranks();
  void ask_for_meeting_place();
  Environment environment_for(const RemoteAgent& agent) const;
  bool fits(const record::FromLauncher& record);
  void fill(record::Start& start, const RemoteAgent& agent) const;
  void send_to_ranks(const record::FromLauncher& record);
  void finish_if_over();
  void await_commands();

  asio::io_context& io_;
  HostsEvents& events_;
  const RunOptions options_;
  HostPlan plan_;
  const SpawnDefaults defaults_;
  const std::string job_;  // the id of the job
  const HostCommands commands_;
  AsioLoop loop_;
  AgentTask task_;
  std::unique_ptr<Callback> callback_;
  // Each index is the number of a host in the plan.
  std::vector<std::unique_ptr<RemoteAgent>> agents_;
  // The agents with ranks; the first agent has rank 0.
  std::vector<RemoteAgent*> hosting_;
  Progress progress_;
  ExitOrder exits_;
  std::optional<InputSource> input_;
  std::vector<std::unique_ptr<Visit>> visits_;
  asio::steady_timer commands_timer_;
  bool ranks_may_run_ = false;  // the agents have been told to start ranks
  bool stopping_ = false;
  bool done_ = false;
};

// `HostsEvents` is the interface through which `Hosts` reports to the job.
class HostsEvents : public AgentEvents {
 public:
  // Called before any rank starts, if the number of ranks was not known earlier.
  virtual void on_placed(int ranks) = 0;
  // Called when a host is lost. `ranks` are its ranks that have not been reported as ended.
  virtual void on_lost(const std::string& host, std::span<const int> ranks, const std::string& why) = 0;
  // Called with a message for the user.
  virtual void on_note(const std::string& text) = 0;

 protected:
  ~HostsEvents() = default;
};

}  // namespace tutti::tools
