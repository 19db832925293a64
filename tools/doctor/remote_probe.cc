#include "tools/doctor/remote_probe.h"

#include <chrono>
#include <utility>

#include <asio/post.hpp>
#include <asio/write.hpp>

#include "core/shown.h"
#include "tools/run/host_commands.h"
#include "tools/run/report.h"
#include "tools/run/spawn.h"

namespace tutti::tools::doctor {
namespace {

// The doctor waits this long for an answer. A command takes at most about half of this time, even if all
// packets to all hosts are lost.
constexpr std::chrono::seconds longest_answer(90);
// A probe must end within this time after the end of its input.
constexpr std::chrono::seconds longest_end(5);
constexpr std::size_t most_said = 1000;

// Returns options that start the probe in `/`, a folder that every host has.
RunOptions anywhere(RunOptions options) {
  options.folder = "/";
  return options;
}

HostPlan plan_for(const LocatedHost& host, const StartCommand& way) {
  HostPlan plan;
  plan.hosts = {host};
  plan.placed = {PlacedHost{.index = 0, .ranks = {0}}};
  plan.way = way;
  return plan;
}

}  // namespace

RemoteProbe::RemoteProbe(asio::io_context& io, const RunOptions& options, const LocatedHost& host,
                         const StartCommand& way, const SpawnDefaults& defaults)
    : io_(io),
      host_(host.listed.name),
      tutti_(HostCommands(way, options.prefix).path_on(host)),
      job_(io, static_cast<HostsEvents&>(*this), anywhere(options), plan_for(host, way), defaults),
      commands_(io),
      patience_(io) {}

RemoteProbe::~RemoteProbe() = default;

void RemoteProbe::start(const Environment& environment) {
  Descriptor output;
  if (!open_pipe(input_, output)) return fail("no pipe to its probe can be opened");
  commands_.assign(output.release());
  AgentTask task;
  task.program = {tutti_, "doctor", "--probe"};
  task.environment = environment;
  task.input = input_.get();
  job_.start(task);
}

void RemoteProbe::ask(const ProbeCommand& command, OnAnswer on_answer) {
  on_answer_ = std::move(on_answer);
  if (!problem_.empty()) return asio::post(io_, [this] { answer(nullptr); });
  unwritten_ = to_line(command) + "\n";
  asio::async_write(commands_, asio::buffer(unwritten_), [](const asio::error_code&, std::size_t) {});
  patience_.expires_after(longest_answer);
  patience_.async_wait([this](const asio::error_code& error) {
    if (!error) fail("host " + host_ + ": its probe does not answer");
  });
}

void RemoteProbe::answer(const ProbeAnswer* answer) {
  patience_.cancel();
  if (const OnAnswer on_answer = std::exchange(on_answer_, {})) on_answer(answer);
}

void RemoteProbe::finish(std::function<void()> on_end) {
  finished_ = true;
  on_end_ = std::move(on_end);
  asio::error_code ignored;
  commands_.close(ignored);
  if (over_) return asio::post(io_, on_end_);
  patience_.expires_after(longest_end);
  patience_.async_wait([this](const asio::error_code& error) {
    if (!error) job_.stop();
  });
}

void RemoteProbe::kill() { job_.kill(); }

// Only the first reason is kept, since later reasons follow from the first.
void RemoteProbe::fail(const std::string& why) {
  if (problem_.empty() && !finished_) problem_ = why;
  job_.stop();
  asio::post(io_, [this] { answer(nullptr); });
}

void RemoteProbe::on_output(int, Stream stream, std::string_view bytes) {
  if (stream == Stream::err) {
    said_ += bytes;
    if (said_.size() > most_said) said_.erase(0, said_.size() - most_said);
    return;
  }
  incoming_ += bytes;
  if (incoming_.size() > longest_line) return fail("host " + host_ + ": its probe writes too much");
  for (std::size_t end = 0; (end = incoming_.find('\n')) != incoming_.npos;) {
    const std::string line = incoming_.substr(0, end);
    incoming_.erase(0, end + 1);
    take_line(line);
  }
}

void RemoteProbe::take_line(const std::string& line) {
  const Result<ProbeAnswer> answer = parse_answer(line);
  const std::string problem = answer.ok() ? answer->problem : answer.status().message();
  if (!problem.empty()) return fail("host " + host_ + ": its probe: " + printable(problem));
  this->answer(&*answer);
}

void RemoteProbe::on_exit(const RankExit& exit) {
  if (finished_) return;
  const std::string said = said_.empty() ? "" : ": " + printable(said_);
  fail("host " + host_ + ": its probe " + describe(exit.status) + said);
}

void RemoteProbe::on_start_failure(const StartFailure& failure) { fail(failure.message); }

void RemoteProbe::on_lost(const std::string&, std::span<const int>, const std::string& why) {
  fail("host " + host_ + " is lost: " + why);
}

void RemoteProbe::on_placed(int) {}

// The launcher's notes are not printed, since the doctor itself shows which hosts it waits for.
void RemoteProbe::on_note(const std::string&) {}

void RemoteProbe::on_done() {
  over_ = true;
  if (!finished_) return fail("host " + host_ + ": its probe has ended");
  patience_.cancel();
  if (on_end_) on_end_();
}

}  // namespace tutti::tools::doctor
