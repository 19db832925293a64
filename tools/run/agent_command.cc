// `tutti agent` runs the part of a job that is on one host (docs/launching.md). Users do not type this
// command: `tutti run` starts it, on other hosts by ssh.
#include <chrono>
#include <cstdint>
#include <iostream>
#include <string>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "core/descriptor.h"
#include "core/random.h"
#include "tools/command_line.h"
#include "tools/commands.h"
#include "tools/run/agent_session.h"
#include "tools/run/dial.h"
#include "tools/run/guard.h"
#include "tools/run/job_processes.h"
#include "tools/run/standard_streams.h"
#include "tools/run/watch.h"

namespace tutti::tools {
namespace {

constexpr std::size_t secret_bytes = 32;

// Writes the secret to stdout for the launcher, and then replaces stdout with /dev/null. Returns a
// descriptor that shows whether stdout's reader is still there.
Descriptor tell(const std::string& secret) {
  Descriptor out(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0));
  const std::string line = "tutti-agent 1 " + secret + "\n";
  const bool told = write(out.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size());
  discard_stream(STDOUT_FILENO);
  return told ? std::move(out) : Descriptor();
}

int serve(Call call, Watch& watch) {
  call.secret = random_secret(secret_bytes).reveal();
  const Descriptor out = tell(call.secret);
  if (!out) {
    std::cerr << "tutti agent: cannot write to stdout\n";
    return exit_output_lost;
  }
  call.abandoned = out.get();
  Result<meeting::Connection> connection = dial(call);
  if (!connection.ok()) {
    std::cerr << "tutti agent: " << connection.status().message() << "\n";
    return exit_failure;
  }
  AgentSession session(*std::move(connection),
                       [&watch](std::chrono::nanoseconds lease) { watch.give_sign(lease); });
  return session.run();
}

}  // namespace

int agent_command(const Arguments& arguments) {
  Call call;
  std::string ended_job;
  CLI::App app("Runs the part of a job that is on this host. `tutti run` starts this command.",
               "tutti agent");
  app.add_option("--call", call.endpoints, "An address and port of the launcher")->allow_extra_args(false);
  app.add_option("--job", call.job, "The job's number");
  app.add_option("--host", call.host, "This host's number");
  app.add_option("--end", ended_job, "Kill all processes of this job on this host")->excludes("--call");
  if (const auto status = parse(app, arguments)) return *status;
  if (!ended_job.empty()) return end_processes_of(ended_job) ? 0 : exit_failure;
  if (call.endpoints.empty() || call.job.empty()) return usage_error(app, "--call and --job are required");

  // `open_standard_streams` would replace a closed stdout with /dev/null. The launcher would then
  // never receive the secret.
  if (fcntl(STDOUT_FILENO, F_GETFD) < 0) {
    std::cerr << "tutti agent: stdout is closed; a login script may have closed it\n";
    return exit_output_lost;
  }
  open_standard_streams();
  // The agent gives no sign of life while it calls the launcher. So the watch allows twice the time
  // limit of the call.
  Watch watch(2 * call.limit);
  return run_guarded(
      "tutti agent", [&] { return serve(std::move(call), watch); }, &watch);
}

}  // namespace tutti::tools
