// These are the findings about interfaces, and about hosts that do not reach each other.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/shown.h"
#include "tools/doctor/filter_advice.h"
#include "tools/doctor/findings.h"
#include "tools/doctor/rounds.h"
#include "tools/doctor/wording.h"

namespace tutti::tools::doctor {
namespace {

using HostNumbers = std::vector<std::size_t>;

// `Reach` holds two examples of paths from one host to another: a path that failed, and a path that
// works.
struct Reach {
  const Path* missing = nullptr;  // a path that failed, although a job would use its address
  const Path* found = nullptr;    // a path that works
};

using Reaches = std::map<Pair, Reach>;

Reaches reaches_of(const Examined& examined) {
  Reaches reaches;
  for (const Connection& connection : examined.connections) {
    const std::vector<std::string>& used = examined.hosts[connection.to].usage.addresses;
    Reach& reach = reaches[{connection.from, connection.to}];
    for (const Path& path : connection.paths) {
      const bool is_used = std::ranges::count(used, path.to) != 0;
      if (path.outcome == Outcome::reached) {
        reach.found = &path;
      } else if (is_used || used.empty()) {
        reach.missing = &path;
      }
    }
  }
  return reaches;
}

// Returns "beta's eth1 (10.203.1.2)".
std::string place_of(const ExaminedHost& host, const Path& path) {
  return printable(host.name) + "'s " + interface_text(host, path.to) + " (" + printable(path.to) + ")";
}

std::string filter_mend(const Examined& examined) {
  const std::string filter = find_filter(examined);
  if (!filter.empty()) return "TUTTI_SOCKET_IFNAME=" + printable(filter);
  return "no interface reaches all hosts; TUTTI_SOCKET_IFNAME chooses among those of the first table";
}

void add_filters_without_match(const Examined& examined, std::vector<Finding>& findings) {
  std::map<std::string, HostNumbers> problems;
  for (std::size_t host = 0; host < examined.hosts.size(); ++host) {
    const ExaminedHost& one = examined.hosts[host];
    if (!one.facts || one.usage.problem.empty()) continue;
    const std::string choice = one.facts->filter_variable + "=" + one.facts->filter;
    problems[one.facts->filter.empty() ? one.usage.problem : choice + " chooses no interface"].push_back(
        host);
  }
  for (const auto& [problem, hosts] : problems) {
    findings.push_back(
        {.what = printable(problem) + " on " + names_of(examined, hosts), .mend = filter_mend(examined)});
  }
}

// Adds at most one finding for all hosts, since one variable solves the problem on all hosts.
void add_wrong_interfaces(const Examined& examined, const Reaches& reaches, std::vector<Finding>& findings) {
  std::map<std::string, HostNumbers> missed;  // maps a place to the hosts that do not reach it
  std::string instead;
  for (const auto& [pair, reach] : reaches) {
    if (reach.missing == nullptr || reach.found == nullptr) continue;
    const ExaminedHost& to = examined.hosts[pair.second];
    missed[place_of(to, *reach.missing) + " by"].push_back(pair.first);
    if (instead.empty()) instead = place_of(to, *reach.found);
  }
  if (missed.empty()) return;
  std::vector<std::string> places;
  for (const auto& [place, hosts] : missed) places.push_back(place + " " + names_of(examined, hosts));
  findings.push_back({.what = "wrong interface: jobs would use addresses that are not reached, " +
                              join(places) + "; others are reached, such as " + instead,
                      .mend = filter_mend(examined)});
}

bool is_ipv4(const std::string& address) { return address.find(':') == address.npos; }

// Returns the addresses from which packets of the sources reach the targets, in the form of `iptables -s`: a
// list of addresses, or a network. `path` leads to a host of that network. The result is empty if nothing is
// known.
std::string senders(const Examined& examined, const Path& path, const HostNumbers& targets,
                    const HostNumbers& sources) {
  std::set<std::string> addresses;
  for (const Connection& connection : examined.connections) {
    if (std::ranges::count(sources, connection.from) == 0) continue;
    if (std::ranges::count(targets, connection.to) == 0) continue;
    for (const Path& tried : connection.paths) {
      if (!tried.from.empty() && is_ipv4(tried.from) == is_ipv4(path.to)) addresses.insert(tried.from);
    }
  }
  constexpr std::size_t most_addresses = 4;
  if (!addresses.empty() && addresses.size() <= most_addresses) {
    std::string list = join({addresses.begin(), addresses.end()}, addresses.size());
    std::erase(list, ' ');
    return list;
  }
  for (const ExaminedHost& host : examined.hosts) {
    if (host.facts && owner_of(*host.facts, path.to) != nullptr) return network_of(*host.facts, path.to);
  }
  return {};
}

constexpr const char* default_ports = "20000-21000";

// Returns the rule of `iptables` or `ip6tables` by which the targets accept packets from the sources.
// `match` is the option that takes the range of ports.
std::string opening_rule(const Examined& examined, const Path& path, const HostNumbers& targets,
                         const HostNumbers& sources, const std::string& match) {
  const std::string& range = examined.hosts[targets.front()].facts->port_range;
  std::string ports = range.empty() ? default_ports : printable(range);
  std::ranges::replace(ports, '-', ':');
  const std::string from = senders(examined, path, targets, sources);
  return std::string(is_ipv4(path.to) ? "iptables" : "ip6tables") + " -I INPUT -p tcp" +
         (from.empty() ? "" : " -s " + from) + " " + match + " " + ports + " -j ACCEPT on " +
         names_of(examined, targets);
}

// Returns the advice to set a range of ports, in front of a rule that opens these ports. The result is empty
// if the user has set a range.
std::string range_advice(const Examined& examined, std::size_t host) {
  const bool is_set = !examined.hosts[host].facts->port_range.empty();
  return is_set ? "" : "TUTTI_PORT_RANGE=" + std::string(default_ports) + ", and ";
}

std::string at(const Path& path) {
  return "at " + printable(path.to) + " port " + std::to_string(path.port) + " (" + failure_text(path) + ")";
}

// Adds a finding for each firewall that lets connections through in one direction only.
void add_one_way(const Examined& examined, const Reaches& reaches, std::vector<Finding>& findings) {
  // Maps a host to the hosts that do not reach it, although it reaches them.
  std::map<std::size_t, HostNumbers> cut;
  std::map<std::size_t, const Path*> example;
  for (const auto& [pair, reach] : reaches) {
    const auto back = reaches.find({pair.second, pair.first});
    const bool is_cut = reach.missing != nullptr && reach.found == nullptr;
    if (!is_cut || back == reaches.end() || back->second.found == nullptr) continue;
    cut[pair.second].push_back(pair.first);
    example[pair.second] = reach.missing;
  }
  for (const auto& [to, sources] : cut) {
    const Path& path = *example[to];
    const std::string name = examined.hosts[to].name, from = names_of(examined, sources);
    findings.push_back(
        {.what = from + " cannot connect to " + name + " " + at(path) + ", but " + name + " can connect to " +
                 from + ": a firewall on " + name + ", or between them, lets only one direction through",
         .mend = range_advice(examined, to) + opening_rule(examined, path, {to}, sources, "--dport")});
  }
}

// Finds the host that occurs in the most pairs, and removes these pairs from `pairs`. Returns this
// host and the other hosts of the removed pairs.
std::pair<std::size_t, HostNumbers> take_most_frequent(std::set<Pair>& pairs) {
  std::map<std::size_t, std::size_t> counts;
  for (const auto& [one, other] : pairs) {
    ++counts[one];
    ++counts[other];
  }
  const std::size_t most =
      std::ranges::max_element(counts, {}, [](const auto& count) { return count.second; })->first;
  HostNumbers others;
  for (const auto& [one, other] : pairs) {
    if (one == most || other == most) others.push_back(one == most ? other : one);
  }
  std::erase_if(pairs, [&](const Pair& pair) { return pair.first == most || pair.second == most; });
  return {most, others};
}

// Returns the direction in which one of two hosts did not reach an address that a job would use.
Pair failed_direction(const Reaches& reaches, std::size_t one, std::size_t other) {
  const auto there = reaches.find({other, one});
  const bool failed = there != reaches.end() && there->second.missing != nullptr;
  return failed ? Pair(other, one) : Pair(one, other);
}

void add_separated(const Examined& examined, const Reaches& reaches, std::vector<Finding>& findings) {
  std::set<Pair> separated;
  for (const auto& [pair, reach] : reaches) {
    const auto back = reaches.find({pair.second, pair.first});
    if (reach.missing == nullptr || reach.found != nullptr) continue;
    if (back != reaches.end() && back->second.found != nullptr) continue;
    separated.insert({std::min(pair.first, pair.second), std::max(pair.first, pair.second)});
  }
  while (!separated.empty()) {
    const auto [host, others] = take_most_frequent(separated);
    const Pair pair = failed_direction(reaches, host, others.front());
    const Path& path = *reaches.at(pair).missing;
    const std::string name = examined.hosts[host].name, rest = names_of(examined, others);
    const std::string from = examined.hosts[pair.first].name;
    // A firewall that drops the answers, too, must open the ports of both ends of a connection.
    const std::string match = "-m multiport --ports";
    findings.push_back(
        {.what = name + " and " + rest + " cannot connect to each other, in neither direction: " + from +
                 " fails " + at(path),
         .mend = "see `ip route get " + printable(path.to) + "` on " + from +
                 " and the firewalls of both; to let connections in: " + range_advice(examined, pair.second) +
                 opening_rule(examined, path, {host}, others, match) + ", and " +
                 opening_rule(examined, path, others, {host}, match)});
  }
}

// Returns whether two hosts have an address in common that other hosts can reach.
bool have_common_address(const HostFacts& one, const HostFacts& other) {
  return std::ranges::any_of(one.interfaces, [&](const InterfaceFacts& interface) {
    return std::ranges::any_of(interface.addresses, [&](const AddressFacts& address) {
      return address.port != 0 && owner_of(other, address.address) != nullptr;
    });
  });
}

// Adds findings for the hosts that have no address that could be tested.
void add_untested(const Examined& examined, std::vector<Finding>& findings) {
  std::set<std::size_t> doubled, isolated;
  for (const Connection& connection : examined.connections) {
    const auto &from = examined.hosts[connection.from].facts, &to = examined.hosts[connection.to].facts;
    if (!connection.paths.empty() || !from || !to) continue;
    (have_common_address(*from, *to) ? doubled : isolated).insert(connection.to);
  }
  if (!doubled.empty()) {
    findings.push_back(
        {.what = names_of(examined, {doubled.begin(), doubled.end()}) +
                 " have the same addresses: they are one machine, or their addresses are wrong",
         .is_problem = false});
  }
  if (!isolated.empty()) {
    const std::string names = names_of(examined, {isolated.begin(), isolated.end()});
    findings.push_back({.what = "no other host can reach " + names + ", which has loopback addresses only",
                        .mend = "see `ip address` on " + names});
  }
}

}  // namespace

std::vector<Finding> find_unreached(const Examined& examined) {
  const Reaches reaches = reaches_of(examined);
  std::vector<Finding> findings;
  add_filters_without_match(examined, findings);
  add_wrong_interfaces(examined, reaches, findings);
  add_one_way(examined, reaches, findings);
  add_separated(examined, reaches, findings);
  add_untested(examined, findings);
  return findings;
}

}  // namespace tutti::tools::doctor
