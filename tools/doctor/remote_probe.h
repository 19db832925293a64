#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>

#include "core/descriptor.h"
#include "tools/doctor/messages.h"
#include "tools/run/hosts.h"

namespace tutti::tools::doctor {

// A `RemoteProbe` is the doctor's end of the probe on one host. It runs a job there, and the only
// rank of this job is the probe. Only the thread that runs `io` may use it.
class RemoteProbe final : private HostsEvents {
 public:
  // Receives the answer to a command. `answer` is null if no answer will come, and `problem` then
  // says why.
  using OnAnswer = std::function<void(const ProbeAnswer* answer)>;

  // `way` is the command by which the host is reached.
  RemoteProbe(asio::io_context& io, const RunOptions& options, const LocatedHost& host,
              const StartCommand& way, const SpawnDefaults& defaults);
  ~RemoteProbe();

  // Starts the probe. `environment` is the environment of its job.
  void start(const Environment& environment);
  // Sends a command. Only one command may be unanswered at a time. `on_answer` is never called
  // before this function returns.
  void ask(const ProbeCommand& command, OnAnswer on_answer);
  // Closes the probe's input, which makes the probe end. `on_end` is called after the whole job has ended.
  void finish(std::function<void()> on_end);
  // Ends the job at once.
  void kill();

  // Returns why the host or its probe failed. The text is empty if neither failed.
  const std::string& problem() const { return problem_; }

 private:
  void on_output(int rank, Stream stream, std::string_view bytes) override;
  void on_exit(const RankExit& exit) override;
  void on_start_failure(const StartFailure& failure) override;
  void on_done() override;
  void on_placed(int ranks) override;
  void on_lost(const std::string& host, std::span<const int> ranks, const std::string& why) override;
  void on_note(const std::string& text) override;

  void take_line(const std::string& line);
  void answer(const ProbeAnswer* answer);
  void fail(const std::string& why);

  asio::io_context& io_;
  const std::string host_;
  const std::string tutti_;  // the path of `tutti` on the host
  Hosts job_;
  Descriptor input_;                         // the end of the pipe from which the job reads
  asio::posix::stream_descriptor commands_;  // the end of the pipe into which this object writes
  std::string unwritten_;
  std::string incoming_;  // an incomplete line of output
  std::string said_;      // the end of the probe's output on stderr
  asio::steady_timer patience_;
  OnAnswer on_answer_;
  std::function<void()> on_end_;
  std::string problem_;
  bool finished_ = false;
  bool over_ = false;
};

}  // namespace tutti::tools::doctor
