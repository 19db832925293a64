#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>

#include "tools/run/agent.h"
#include "tools/run/agent_events.h"
#include "tools/run/event_loop.h"
#include "tools/run/input_pipe.h"
#include "tools/run/link.h"
#include "tools/run/meeting_place.h"
#include "transport/meeting/connection.h"

namespace tutti::tools {

namespace record {
class FromAgent;
class FromLauncher;
class Input;
class Meet;
class Start;
}  // namespace record

// An `AgentSession` is the part of a job that one agent runs for its launcher. It carries out the
// launcher's commands, and reports events of the ranks. It ends the ranks if the launcher is lost.
// Call `adopt_orphans` before making a session. This process must have no children.
class AgentSession final : private AgentEvents, private LinkEvents {
 public:
  // Called at least once a second. `lease` is the time after which a silent launcher counts as lost.
  using OnAlive = std::function<void(std::chrono::nanoseconds lease)>;

  // The launcher must already have proved its identity on `connection`.
  AgentSession(meeting::Connection connection, OnAlive on_alive);
  ~AgentSession();

  // Runs the session, and returns the agent's exit status after all processes of the job have
  // ended. The session ends when the launcher releases the agent or is lost, or when a signal asks
  // this process to end. The status is 0 if the launcher released the agent. This function changes
  // the working folder of this process to the job's folder.
  int run();

 private:
  enum class State {
    called,   // the launcher has not sent the lease yet
    idle,     // there are no ranks yet
    running,  // the ranks have been started, or their start has failed
    done,     // no process of the job is left
  };

  void on_output(int rank, Stream stream, std::string_view bytes) override;
  void on_exit(const RankExit& exit) override;
  void on_start_failure(const StartFailure& failure) override;
  void on_done() override;
  void on_record(std::string_view bytes) override;
  void on_end(const Status& why) override;

  // Each of these returns whether the record is allowed in this state and has valid contents.
  bool handle(const record::FromLauncher& record);
  bool handle_running(const record::FromLauncher& record);
  bool take_lease(std::uint64_t nanoseconds);
  bool meet(const record::Meet& meet);
  bool start(const record::Start& start);
  bool take_input(const record::Input& input);
  bool take_credit(std::uint64_t bytes);

  void send(const record::FromAgent& record);
  void greet();
  void settle(std::uint64_t number);
  void leave();
  // Shows `why` on stderr, and ends the ranks without the launcher.
  void abandon(const std::string& why);
  void end_without_launcher();
  void show_life();
  void await_signals();

  asio::io_context io_{1};
  AsioLoop loop_{io_};
  asio::signal_set signals_;
  asio::steady_timer life_timer_;
  Agent agent_;
  const OnAlive on_alive_;
  std::unique_ptr<Link> link_;  // null once the session has given up the connection
  std::chrono::nanoseconds lease_;
  State state_ = State::called;
  MeetingPlace meeting_place_;
  std::optional<InputPipe> input_;
  std::string hint_;  // a text for the user, used if the program is not found
  bool has_problem_ = false;
  std::uint64_t output_credit_ = 0;
  // This many bytes of output were sent, but the launcher has not taken them yet.
  std::uint64_t untaken_output_ = 0;
  int exit_status_;
};

}  // namespace tutti::tools
