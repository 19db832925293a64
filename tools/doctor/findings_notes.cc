// These are the notes: facts that users should know, but that are not problems.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "core/shown.h"
#include "tools/doctor/findings.h"
#include "tools/doctor/wording.h"

namespace tutti::tools::doctor {
namespace {

// The ways between hosts are compared with each other only if there are at least this many ways.
constexpr std::size_t fewest_ways = 6;
constexpr double slow_bandwidth = 1.0 / 4;
constexpr double slow_round_trip = 5;
// A round trip of at most this time never counts as slow.
constexpr double short_round_trip_us = 200;

Finding note(const std::string& what, const std::string& mend = "") {
  return {.what = what, .mend = mend, .is_problem = false};
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// A `Way` is a measured path between two hosts.
struct Way {
  std::string hosts;  // "alpha -> beta"
  double bandwidth;
  double round_trip_us;
};

std::vector<Way> ways_in_use(const Examined& examined) {
  std::vector<Way> ways;
  for (const Connection& connection : examined.connections) {
    const ExaminedHost& to = examined.hosts[connection.to];
    for (const Path& path : connection.paths) {
      const bool is_used = std::ranges::count(to.usage.addresses, path.to) != 0;
      if (path.outcome != Outcome::reached || !is_used || !(path.bandwidth > 0) || !(path.round_trip_us > 0))
        continue;
      ways.push_back({.hosts = examined.hosts[connection.from].name + " -> " + to.name,
                      .bandwidth = path.bandwidth,
                      .round_trip_us = path.round_trip_us});
    }
  }
  return ways;
}

void add_slow_ways(const Examined& examined, std::vector<Finding>& findings) {
  const std::vector<Way> ways = ways_in_use(examined);
  if (ways.size() < fewest_ways) return;
  std::vector<double> bandwidths, round_trips;
  for (const Way& way : ways) {
    bandwidths.push_back(way.bandwidth);
    round_trips.push_back(way.round_trip_us);
  }
  const double usual_bandwidth = median(bandwidths), usual_round_trip = median(round_trips);
  std::vector<std::string> narrow, distant;
  for (const Way& way : ways) {
    if (way.bandwidth < usual_bandwidth * slow_bandwidth)
      narrow.push_back(way.hosts + " " + rate_text(way.bandwidth));
    if (way.round_trip_us > std::max(usual_round_trip * slow_round_trip, short_round_trip_us))
      distant.push_back(way.hosts + " " + time_text(way.round_trip_us));
  }
  if (!narrow.empty()) {
    findings.push_back(
        note(fmt::format("little bandwidth, compared with {} elsewhere: {}", rate_text(usual_bandwidth),
                         join(narrow)),
             "`ethtool` shows the speed that a card and its switch have agreed on, and errors"));
  }
  if (!distant.empty()) {
    findings.push_back(note(fmt::format("long round trips, compared with {} elsewhere: {}",
                                        time_text(usual_round_trip), join(distant))));
  }
}

// Adds a note if the hosts differ in `subject`. `value_of` returns a host's value as a text.
template <class ValueOf>
void add_difference(const Examined& examined, const std::string& subject, ValueOf value_of,
                    std::vector<Finding>& findings) {
  std::map<std::string, std::vector<std::size_t>> by_value;
  for (std::size_t host = 0; host < examined.hosts.size(); ++host) {
    const auto& facts = examined.hosts[host].facts;
    if (facts) by_value[value_of(*facts)].push_back(host);
  }
  if (by_value.size() < 2) return;
  std::string text;
  for (const auto& [value, hosts] : by_value) {
    text += (text.empty() ? "" : "; ") + printable(value) + " on " + names_of(examined, hosts);
  }
  findings.push_back(note("the hosts differ in their " + subject + ": " + text));
}

void add_inactive_ports(const Examined& examined, std::vector<Finding>& findings) {
  std::vector<std::string> inactive;
  for (const ExaminedHost& host : examined.hosts) {
    if (!host.facts) continue;
    for (const RdmaPort& port : host.facts->rdma) {
      if (!port.active) inactive.push_back(host.name + " " + port.name);
    }
  }
  if (!inactive.empty())
    findings.push_back(note("ports of RDMA devices are down: " + join(inactive), "`ibstat` says more"));
}

void add_missing_folders(const Examined& examined, std::vector<Finding>& findings) {
  std::vector<std::size_t> hosts;
  for (std::size_t host = 0; host < examined.hosts.size(); ++host) {
    const auto& facts = examined.hosts[host].facts;
    if (facts && !facts->has_folder) hosts.push_back(host);
  }
  if (hosts.empty()) return;
  findings.push_back(
      note("the current folder does not exist on " + names_of(examined, hosts) + ", and ranks start there",
           "tutti run --wdir DIR"));
}

}  // namespace

std::vector<Finding> find_notes(const Examined& examined) {
  std::vector<Finding> findings;
  add_slow_ways(examined, findings);
  add_inactive_ports(examined, findings);
  add_difference(
      examined, "number of GPUs", [](const HostFacts& facts) { return std::to_string(facts.gpus.size()); },
      findings);
  add_difference(
      examined, "number of RDMA ports",
      [](const HostFacts& facts) { return std::to_string(facts.rdma.size()); }, findings);
  add_difference(
      examined, "processors", [](const HostFacts& facts) { return facts.processor; }, findings);
  add_missing_folders(examined, findings);
  if (!examined.doubt.empty()) {
    findings.push_back(note(printable(examined.doubt), "TUTTI_SOCKET_IFNAME names one interface"));
  }
  if (!examined.all_pairs) {
    findings.push_back(note("there are so many hosts that each was tested with some of the others only"));
  }
  return findings;
}

}  // namespace tutti::tools::doctor
