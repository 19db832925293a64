#include "tools/doctor/doctor.h"

#include <algorithm>
#include <iostream>
#include <optional>
#include <utility>
#include <vector>

#include <unistd.h>

#include <tutti/config.h>

#include "rendezvous/launch/environment.h"
#include "tools/command_line.h"
#include "tools/doctor/examination.h"
#include "tools/doctor/findings.h"
#include "tools/doctor/probe.h"
#include "tools/doctor/report.h"
#include "tools/run/guard.h"
#include "tools/run/host_lookup.h"
#include "tools/run/host_options.h"
#include "tools/run/host_source.h"
#include "tools/run/spellings.h"
#include "tools/run/standard_streams.h"

namespace tutti::tools {
namespace doctor {
namespace {

LocatedHost this_machine() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  LocatedHost here;
  here.listed.name = name;
  here.is_here = true;
  return here;
}

// Runs the examination in the child process of `run_guarded`.
int run(const RunOptions& options, const std::vector<LocatedHost>& hosts, const StartCommand& way,
        const ReportOptions& report) {
  Examination examination(options, hosts, way);
  const std::optional<Examined> examined = examination.run();
  if (!examined) return exit_signal_base + examination.signal();
  const std::vector<Finding> findings = find_all(*examined);
  std::cout << tables(*examined, report.all_pairs) << "\n" << verdict(findings) << std::flush;
  if (!std::cout) return exit_output_lost;
  return std::ranges::any_of(findings, &Finding::is_problem) ? exit_failure : 0;
}

}  // namespace

int examine(const RunOptions& options, const ReportOptions& report) {
  const auto config = Config::from_environment();
  const auto source = find_hosts(options, environment_of_process());
  for (const Status& status : {config.status(), source.status()}) {
    if (status.ok()) continue;
    std::cerr << "tutti doctor: " << status.message() << "\n";
    return exit_usage;
  }
  if (!source->remark.empty()) std::cerr << "tutti doctor: " << source->remark << "\n";
  std::vector<LocatedHost> hosts = locate(source->hosts);
  if (hosts.empty()) hosts.push_back(this_machine());
  RunOptions once = options;
  once.tries_again = false;
  open_standard_streams();
  return run_guarded("tutti doctor", [&] { return run(once, hosts, source->start_command, report); });
}

}  // namespace doctor

int doctor_command(const Arguments& arguments) {
  CLI::App app(
      "Tests the hosts of a job: ssh, versions, limits, and the connections between all pairs. Says what is\n"
      "wrong, and how to fix it. Without hosts, it tests this machine. The exit status is 0 if nothing is\n"
      "wrong, 1 if something is.",
      "tutti doctor");
  RunOptions options;
  options.start_timeout = std::chrono::seconds(20);
  doctor::ReportOptions report;
  bool is_probe = false;
  declare_host_list(app, options);
  app.add_flag("--all-pairs", report.all_pairs, "Print each pair of hosts, even if there are many");
  declare_way(app, options);
  // The help does not show this option, since only agents start a probe.
  app.add_flag("--probe", is_probe)->group("");
  const Result<Translation> translation =
      translate(arguments, [&app](const std::string& name) { return takes_value(app, name); });
  if (!translation.ok()) return usage_error(app, translation.status().message());
  if (const auto status = parse(app, translation->options)) return *status;
  if (!translation->program.empty())
    return usage_error(app, "no program is run, so `" + translation->program.front() + "` has no meaning");
  return is_probe ? doctor::run_probe() : doctor::examine(options, report);
}

}  // namespace tutti::tools
