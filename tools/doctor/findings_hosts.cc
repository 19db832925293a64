// These are the findings about hosts that did not start or were lost, and about ports, limits, memory and
// clocks.
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/shown.h"
#include "tools/doctor/findings.h"
#include "tools/doctor/start_advice.h"
#include "tools/doctor/wording.h"

namespace tutti::tools::doctor {
namespace {

constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;
constexpr std::uint64_t least_memlock = mebibyte;
constexpr std::uint64_t least_open_files = 1024;
constexpr std::uint64_t least_shm = 64 * mebibyte;  // Docker gives a container this much by default
constexpr double most_clock_offset = 1;             // in seconds

// Returns the text with each of its lines made printable.
std::string printable_lines(const std::string& text) {
  std::string result;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    result += (begin > 0 ? "\n" : "") + printable(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return result;
}

// Hosts with the same flaw share one finding. `flaw_of` returns a host's flaw, if it has one.
// `finding_for` makes the finding from the flaw and the names of the hosts.
using FlawOf = std::function<std::optional<std::string>(const HostFacts&)>;
using FindingFor = std::function<Finding(const std::string& flaw, const std::string& hosts)>;

void add_by_flaw(const Examined& examined, const FlawOf& flaw_of, const FindingFor& finding_for,
                 std::vector<Finding>& findings) {
  std::map<std::string, std::vector<std::size_t>> flawed;
  for (std::size_t host = 0; host < examined.hosts.size(); ++host) {
    const auto& facts = examined.hosts[host].facts;
    if (const auto flaw = facts ? flaw_of(*facts) : std::nullopt) flawed[*flaw].push_back(host);
  }
  for (const auto& [flaw, hosts] : flawed) {
    findings.push_back(finding_for(flaw, names_of(examined, hosts)));
  }
}

std::optional<std::string> memlock_flaw(const HostFacts& facts) {
  const bool is_tiny = facts.memlock < least_memlock;
  if (!facts.rdma.empty() && facts.memlock != unlimited)
    return size_text(facts.memlock) + " of memory, which is too little for its RDMA devices,";
  return is_tiny ? std::optional("only " + size_text(facts.memlock) + " of memory") : std::nullopt;
}

Finding memlock_finding(const std::string& flaw, const std::string& hosts) {
  return {.what = flaw + " may be locked (ulimit -l) on " + hosts,
          .mend = "`* - memlock unlimited` in /etc/security/limits.conf on " + hosts +
                  " and a new login; LimitMEMLOCK=infinity in the unit of a service that starts jobs (sshd, "
                  "slurmd); in a container, docker run --ulimit memlock=-1"};
}

std::optional<std::string> open_files_flaw(const HostFacts& facts) {
  if (facts.open_files >= least_open_files) return std::nullopt;
  return std::to_string(facts.open_files);
}

Finding open_files_finding(const std::string& flaw, const std::string& hosts) {
  return {.what = "a process may have only " + flaw + " descriptors (ulimit -n) on " + hosts,
          .mend = "`* - nofile 65536` in /etc/security/limits.conf on " + hosts +
                  " and a new login; in a container, docker run --ulimit nofile=65536"};
}

std::optional<std::string> shm_flaw(const HostFacts& facts) {
  if (facts.shm_free >= least_shm) return std::nullopt;
  if (facts.shm_bytes == 0) return "there is no /dev/shm";
  return fmt::format("/dev/shm has only {} of {} free", size_text(facts.shm_free),
                     size_text(facts.shm_bytes));
}

// This is only a note, since tutti's own shared memory does not lie in /dev/shm.
Finding shm_finding(const std::string& flaw, const std::string& hosts) {
  return {.what = flaw + " on " + hosts + "; PyTorch's data loaders, NCCL and MPI libraries need more",
          .mend = "remove old files from /dev/shm on " + hosts +
                  ", or enlarge it: mount -o remount,size=50% /dev/shm; in a container, docker run "
                  "--shm-size=1g or --ipc=host",
          .is_problem = false};
}

std::optional<std::string> port_flaw(const HostFacts& facts) {
  return facts.listen_problem.empty() ? std::nullopt : std::optional(printable(facts.listen_problem));
}

Finding port_finding(const std::string& flaw, const std::string& hosts) {
  return {.what = "on " + hosts + ", " + flaw,
          .mend = "a wider TUTTI_PORT_RANGE, or end what uses its ports"};
}

void add_lost_hosts(const Examined& examined, std::vector<Finding>& findings) {
  for (const ExaminedHost& host : examined.hosts) {
    if (host.problem.empty()) continue;
    findings.push_back(
        {.what = printable_lines(host.problem), .mend = start_advice(host.name, host.problem)});
  }
}

void add_clocks(const Examined& examined, std::vector<Finding>& findings) {
  for (const ExaminedHost& host : examined.hosts) {
    if (!host.clock || std::abs(host.clock->ahead) <= most_clock_offset + host.clock->uncertainty) continue;
    findings.push_back({.what = fmt::format("the clock of {} differs from this machine's by {}", host.name,
                                            offset_text(host.clock->ahead)),
                        .mend = "timedatectl set-ntp true on " + host.name + " (or chronyc makestep)"});
  }
}

}  // namespace

std::vector<Finding> find_in_hosts(const Examined& examined) {
  std::vector<Finding> findings;
  add_lost_hosts(examined, findings);
  add_by_flaw(examined, port_flaw, port_finding, findings);
  add_by_flaw(examined, memlock_flaw, memlock_finding, findings);
  add_by_flaw(examined, open_files_flaw, open_files_finding, findings);
  add_by_flaw(examined, shm_flaw, shm_finding, findings);
  add_clocks(examined, findings);
  return findings;
}

}  // namespace tutti::tools::doctor
