#include "tools/run/host_options.h"

#include <optional>

#include "tools/command_line.h"

namespace tutti::tools {
namespace {

std::optional<std::string> parse_absolute_path(const std::string& path) {
  return path.starts_with('/') ? std::optional(path) : std::nullopt;
}

}  // namespace

void declare_host_list(CLI::App& app, HostOptions& options) {
  app.add_option("--hostfile", options.hostfile,
                 "The hosts, one on a line: HOST slots=N or HOST:N (also -machinefile, -f)")
      ->type_name("FILE");
  app.add_option("-H", options.hosts, "The hosts: HOST:N,HOST:N,... (also --host, --hosts)")
      ->type_name("HOSTS")
      ->allow_extra_args(false);
}

void declare_way(CLI::App& app, HostOptions& options) {
  using std::chrono::milliseconds;
  app.option_defaults()->group("How to reach the hosts");
  app.add_option("--ssh-port", options.ssh_port, "The port of sshd")
      ->check(CLI::Range(1, 65535).description(""))
      ->type_name("PORT");
  app.add_option("--ssh-args", options.ssh_args, "More options for ssh: '-i key -J gate'")->type_name("ARGS");
  app.add_option("--agent", options.agent,
                 "The command that reaches a host, in place of ssh: CMD HOST WORDS...")
      ->type_name("CMD");
  add_converted(app, "--prefix", options.prefix, parse_absolute_path, "an absolute path",
                "Where tutti is installed on the hosts: DIR/bin/tutti")
      ->type_name("DIR");
  app.add_option("--call-back", options.call_back,
                 "The address, or the interface, of this machine that the hosts can reach")
      ->type_name("ADDRESS");
  add_duration(app, "--start-timeout", options.start_timeout, milliseconds(1),
               "The time in which the hosts must come up");
  add_duration(app, "--lease", options.lease, milliseconds(100),
               "The time after which a silent host counts as lost");
}

}  // namespace tutti::tools
