#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <asio/io_context.hpp>

#include <tutti/address.h>

#include "tools/run/agent_events.h"
#include "tools/run/host_lookup.h"
#include "tools/run/link.h"
#include "tools/run/starter.h"

namespace tutti::tools {

namespace record {
class Exit;
class FromAgent;
class FromLauncher;
class Hello;
class Met;
class Output;
class Problem;
class Start;
}  // namespace record

class RemoteAgentEvents;

// A `RemoteAgent` is the launcher's view of one host: the command that starts the agent there, the
// link to the agent, and the agent's reports. An agent that reports about a rank of another host
// counts as lost.
class RemoteAgent final : private StarterEvents, private LinkEvents {
 public:
  RemoteAgent(asio::io_context& io, EventLoop& loop, RemoteAgentEvents& events, std::uint32_t number,
              const LocatedHost& host, StarterTask task);
  ~RemoteAgent();

  std::uint32_t number() const { return number_; }
  const LocatedHost& host() const { return host_; }
  // Returns the host's name, for messages.
  const std::string& name() const { return host_.listed.name; }
  int processors() const { return processors_; }
  const std::vector<int>& ranks() const { return ranks_; }
  // Returns the ranks that have not been reported as ended.
  std::vector<int> living_ranks() const;
  // Returns the address of the agent's end of the link.
  std::optional<SocketAddress> peer() const { return peer_; }

  // Gives the host its ranks.
  void assign(const std::vector<int>& ranks) { ranks_ = ranks; }

  // Starts the agent.
  void start();
  // Takes the connection over which the agent has proved its secret.
  void take(meeting::Connection connection, std::chrono::nanoseconds lease);
  // Makes the agent serve the meeting place.
  void meet(const record::FromLauncher& meet);
  // Makes the agent start its ranks.
  void run(const record::FromLauncher& start);
  // Sends a record if there is a link.
  void send(const record::FromLauncher& record);
  // The agent gets no credit for more output while reading is off.
  void set_reading(bool reading);
  // Releases the agent, which then exits.
  void leave();

  bool is_idle() const { return state_ == State::idle; }
  bool is_starting() const { return state_ == State::starting || state_ == State::called; }
  // Returns whether the agent has sent its hello, and still has a link.
  bool is_up() const { return state_ >= State::up && state_ <= State::done; }
  // Returns whether the agent has been told to start ranks, and has not yet reported that all
  // processes have ended.
  bool is_busy() const { return state_ == State::starting_ranks || state_ == State::running; }
  // Returns whether the agent has reported the end of all processes, or is gone.
  bool is_over() const { return state_ >= State::done; }
  // Returns whether the command that started the agent still runs.
  bool start_command_runs() const { return starter_.runs(); }
  // Returns a text for the user that says why a host is not up yet.
  std::string awaited() const;

 private:
  // The order matters: see is_up() and is_over().
  enum class State { idle, starting, called, up, meeting, met, starting_ranks, running, done, over };

  void on_secret(std::string_view secret) override;
  void on_failure(const std::string& text) override;
  void on_line(const std::string& line) override;
  void on_record(std::string_view bytes) override;
  void on_end(const Status& why) override;

  // Each of these returns whether the record is allowed in this state and has valid contents.
  bool handle(const record::FromAgent& record);
  bool take_hello(const record::Hello& hello);
  bool take_met(const record::Met& met);
  bool take_problem(const record::Problem& problem);
  bool take_output(const record::Output& output);
  bool take_exit(const record::Exit& exit);
  bool take_done();

  void give_credit();
  void end_by(State state);
  void lose(const std::string& why);

  EventLoop& loop_;
  RemoteAgentEvents& events_;
  const std::uint32_t number_;
  const LocatedHost host_;
  Starter starter_;
  std::unique_ptr<Link> link_;
  std::chrono::nanoseconds lease_{0};
  std::optional<SocketAddress> peer_;
  State state_ = State::idle;
  int processors_ = 0;
  std::vector<int> ranks_;
  std::set<int> ended_;
  bool had_problem_ = false;
  bool reading_ = true;
  std::uint64_t owed_ = 0;  // bytes of output for which the agent has not got new credit yet
};

// `RemoteAgentEvents` is the interface through which the agents report to `Hosts`.
class RemoteAgentEvents {
 public:
  // Called with the secret that the host's agent will prove.
  virtual void on_secret(RemoteAgent& agent, std::string_view secret) = 0;
  // Called when the agent has called back and has the same build as the launcher.
  virtual void on_up(RemoteAgent& agent) = 0;
  virtual void on_met(RemoteAgent& agent, const record::Met& met) = 0;
  virtual void on_started(RemoteAgent& agent) = 0;
  // Called when the agent did not start, or when it cannot do what the job needs. The message names
  // the host.
  virtual void on_problem(RemoteAgent& agent, const StartFailure& failure) = 0;
  virtual void on_output(int rank, Stream stream, std::string_view bytes) = 0;
  // The time of the exit is converted to the clock of this machine.
  virtual void on_exit(RemoteAgent& agent, const RankExit& exit) = 0;
  virtual void on_settled(RemoteAgent& agent, std::uint64_t number) = 0;
  // Called when `bytes` bytes of the input have been passed on.
  virtual void on_taken(std::uint64_t bytes) = 0;
  // Called when all processes of the job on the host have ended.
  virtual void on_done(RemoteAgent& agent) = 0;
  // Called when an agent that was up has fallen silent, has ended, or has sent an invalid record.
  virtual void on_lost(RemoteAgent& agent, const std::string& why) = 0;
  // Called for each line that the agent writes to its stderr.
  virtual void on_line(RemoteAgent& agent, const std::string& line) = 0;

 protected:
  ~RemoteAgentEvents() = default;
};

}  // namespace tutti::tools
