#include "tools/run/dry_run.h"

#include <algorithm>
#include <iostream>
#include <numeric>
#include <optional>

#include <tutti/address.h>

#include "core/shown.h"
#include "tools/command_line.h"
#include "tools/run/environment.h"
#include "tools/run/host_commands.h"
#include "tools/run/meeting_place.h"

namespace tutti::tools {
namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += " " + shell_word(word);
  return text;
}

// Returns the address with `PORT` in place of its port.
std::string endpoint_of(const SocketAddress& address) {
  std::string text = format_endpoint(address.host(), 0);
  text.replace(text.rfind(':') + 1, std::string::npos, "PORT");
  return text;
}

// Lists the variables. A word such as `JOB` replaces each value that differs between runs.
std::string variables_text(const Environment& environment, const std::string& meeting_host) {
  Environment named = environment;
  for (const char* name : {"MASTER_ADDR", "MASTER_PORT", "TUTTI_STORE"}) {
    named[name] = "(of " + meeting_host + ")";
  }
  named["TUTTI_JOB_ID"] = "JOB";
  std::string text;
  for (const auto& [name, value] : named) text += " " + name + "=" + shown(name, value);
  return text;
}

// `Report` collects the lines about all hosts, one host after the other.
class Report {
 public:
  Report(const RunOptions& options, const Environment& environment, std::string meeting_host)
      : options_(options), environment_(environment), meeting_host_(std::move(meeting_host)) {}

  // `ranks` is absent if only the host knows its number of slots. `start` is empty if the launcher
  // runs the ranks itself.
  void add(const std::string& host, bool is_here, const std::optional<std::vector<int>>& ranks,
           const std::vector<std::string>& start) {
    text_ += host + ": ";
    text_ += ranks ? "ranks" : "the ranks depend on the numbers of processors, for which the hosts are asked";
    if (ranks) {
      for (const int rank : *ranks) text_ += " " + std::to_string(rank);
    }
    text_ += "\n";
    if (!start.empty()) text_ += "  start:" + joined(start) + "\n";
    text_ += "  folder: " + printable(folder_of(options_)) + "\n";
    text_ += "  variables:" + variables_text(passed_on(environment_, options_.exports), meeting_host_);
    text_ += is_here ? ", and all others of this machine\n" : "\n";
    text_ += "  run:" + joined(options_.program) + "\n";
  }

  std::string text() const { return text_; }

 private:
  const RunOptions& options_;
  const Environment& environment_;
  const std::string meeting_host_;
  std::string text_;
};

}  // namespace

Result<std::string> dry_run_report(const RunOptions& options, const HostPlan& plan,
                                   const Environment& environment) {
  if (plan.hosts.empty()) {
    std::vector<int> ranks(static_cast<std::size_t>(*plan.ranks));
    std::iota(ranks.begin(), ranks.end(), 0);
    Report report(options, environment, "this machine");
    report.add("this machine", true, ranks, {});
    return report.text();
  }
  const Result<std::vector<SocketAddress>> addresses = call_back_addresses(plan.hosts, options.call_back);
  if (!addresses.ok()) return addresses.status();
  std::vector<std::string> endpoints;
  std::ranges::transform(*addresses, std::back_inserter(endpoints), endpoint_of);
  const HostCommands commands(plan.way, options.prefix);
  Report report(options, environment, plan.hosts.front().listed.name);
  for (std::size_t number = 0; number < plan.hosts.size(); ++number) {
    const LocatedHost& host = plan.hosts[number];
    std::optional<std::vector<int>> ranks;
    if (plan.placed) ranks = (*plan.placed)[number].ranks;
    report.add("host " + host.listed.name, host.is_here, ranks,
               commands.start(host, "JOB", number, endpoints));
  }
  return report.text();
}

int dry_run(const RunOptions& options) {
  Environment environment = environment_of_process();
  for (const std::string& name : apply_exports(environment, options.exports)) {
    std::cerr << "tutti run: " << missing_export(name) << "\n";
  }
  provide_token(environment);
  const Result<HostPlan> plan = plan_hosts(options, environment);
  if (!plan.ok()) return usage_error("tutti run", plan.status().message());
  if (!plan->remark.empty()) std::cerr << "tutti run: " << plan->remark << "\n";
  const Result<std::string> report = dry_run_report(options, *plan, environment);
  if (!report.ok()) return usage_error("tutti run", report.status().message());
  std::cout << *report << std::flush;
  return std::cout ? 0 : exit_output_lost;
}

}  // namespace tutti::tools
