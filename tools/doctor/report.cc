#include "tools/doctor/report.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/shown.h"
#include "tools/doctor/table.h"
#include "tools/doctor/wording.h"

namespace tutti::tools::doctor {
namespace {

constexpr std::size_t most_hosts_in_full = 8;

std::string rdma_text(const HostFacts& facts) {
  std::vector<std::string> ports;
  for (const RdmaPort& port : facts.rdma) ports.push_back(port.name + (port.active ? " up" : " down"));
  return ports.empty() ? "-" : join(ports);
}

std::string shm_text(const HostFacts& facts) {
  return facts.shm_bytes == 0 ? "none" : size_text(facts.shm_free) + " of " + size_text(facts.shm_bytes);
}

std::string hosts_table(const Examined& examined) {
  Table table("lllrrrlrrl");
  table.add({"host", "tutti", "kernel", "cores", "memlock", "nofile", "/dev/shm", "clock", "GPUs", "RDMA"});
  for (const ExaminedHost& host : examined.hosts) {
    if (!host.facts) {
      table.add({host.name, "not up"});
      continue;
    }
    const HostFacts& facts = *host.facts;
    table.add({host.name, printable(facts.version) + " (" + printable(facts.build) + ")",
               printable(facts.kernel), std::to_string(facts.cores), size_text(facts.memlock),
               facts.open_files == unlimited ? "unlimited" : std::to_string(facts.open_files),
               shm_text(facts), host.clock ? offset_text(host.clock->ahead) : "-",
               std::to_string(facts.gpus.size()), rdma_text(facts)});
  }
  return table.text();
}

std::string interfaces_table(const Examined& examined) {
  Table table("lllrrl");
  table.add({"host", "interface", "address", "MTU", "speed", "used"});
  for (const ExaminedHost& host : examined.hosts) {
    if (!host.facts) continue;
    for (const InterfaceFacts& interface : host.facts->interfaces) {
      for (const AddressFacts& address : interface.addresses) {
        const bool is_used = std::ranges::count(host.usage.addresses, address.address) != 0;
        if (address.port == 0 && !is_used) continue;  // a loopback or link-local address
        table.add({host.name, printable(interface.name),
                   printable(address.address) + "/" + std::to_string(address.prefix),
                   std::to_string(interface.mtu), rate_text(static_cast<double>(interface.speed) * 1e6 / 8),
                   is_used ? "yes" : "no"});
      }
    }
  }
  return table.text();
}

std::string packet_text(const Path& path) {
  if (path.full_packet == 0) return "-";
  if (path.largest_packet == path.full_packet) return std::to_string(path.full_packet);
  return fmt::format("{} of {}", path.largest_packet, path.full_packet);
}

std::string connections_table(const Examined& examined) {
  Table table("llllrrr");
  table.add({"from", "to", "over", "address", "round trip", "bandwidth", "packet"});
  std::vector<const Connection*> sorted;
  for (const Connection& connection : examined.connections) sorted.push_back(&connection);
  std::ranges::sort(sorted, {}, [](const Connection* one) { return std::pair(one->from, one->to); });
  for (const Connection* connection : sorted) {
    const ExaminedHost &from = examined.hosts[connection->from], &to = examined.hosts[connection->to];
    for (const Path& path : connection->paths) {
      const std::string source = path.from.empty() ? "?" : interface_text(from, path.from);
      const std::vector<std::string> way = {from.name, to.name, source + " -> " + interface_text(to, path.to),
                                            printable(path.to)};
      std::vector<std::string> row = way;
      if (path.outcome == Outcome::reached) {
        row.insert(row.end(), {time_text(path.round_trip_us), rate_text(path.bandwidth), packet_text(path)});
      } else {
        row.back() += fmt::format(" port {}: {}", path.port, failure_text(path));
      }
      table.add(row);
    }
  }
  return table.text();
}

// `Sum` holds the sorted measurements of a host's connections, and the number of hosts that this host did not
// reach.
struct Sum {
  // The text is the name of the other host.
  std::vector<std::pair<double, std::string>> round_trips, bandwidths;
  std::size_t failed = 0;
};

Sum sum_of(const Examined& examined, std::size_t host) {
  Sum sum;
  for (const Connection& connection : examined.connections) {
    if (connection.from != host) continue;
    const std::string& to = examined.hosts[connection.to].name;
    bool reached = false;
    for (const Path& path : connection.paths) {
      if (path.outcome != Outcome::reached) continue;
      reached = true;
      sum.round_trips.emplace_back(path.round_trip_us, to);
      sum.bandwidths.emplace_back(path.bandwidth, to);
    }
    sum.failed += reached ? 0 : 1;
  }
  std::ranges::sort(sum.round_trips);
  std::ranges::sort(sum.bandwidths);
  return sum;
}

std::string sums_table(const Examined& examined) {
  Table table("lrrlrrlr");
  table.add({"from", "round trip", "longest", "to", "bandwidth", "least", "to", "not reached"});
  for (std::size_t host = 0; host < examined.hosts.size(); ++host) {
    if (!examined.hosts[host].facts) continue;
    const Sum sum = sum_of(examined, host);
    const std::size_t middle = sum.round_trips.size() / 2;
    std::vector<std::string> row = {examined.hosts[host].name, "-", "-", "", "-", "-", ""};
    if (!sum.round_trips.empty()) {
      row = {examined.hosts[host].name,
             time_text(sum.round_trips[middle].first),
             time_text(sum.round_trips.back().first),
             sum.round_trips.back().second,
             rate_text(sum.bandwidths[middle].first),
             rate_text(sum.bandwidths.front().first),
             sum.bandwidths.front().second};
    }
    row.push_back(std::to_string(sum.failed));
    table.add(row);
  }
  return table.text();
}

// Returns the text with `indent` in front of each line but the first.
std::string indented(std::string text, const std::string& indent) {
  for (std::size_t at = 0; (at = text.find('\n', at)) != text.npos; at += indent.size() + 1) {
    text.insert(at + 1, indent);
  }
  return text;
}

}  // namespace

std::string tables(const Examined& examined, bool all_pairs) {
  const bool in_full = all_pairs || examined.hosts.size() <= most_hosts_in_full;
  std::string text;
  for (const std::string& table : {hosts_table(examined), interfaces_table(examined),
                                   in_full ? connections_table(examined) : sums_table(examined)}) {
    if (!table.empty()) text += (text.empty() ? "" : "\n") + table;
  }
  return text;
}

std::string verdict(const std::vector<Finding>& findings) {
  const auto problems = std::ranges::count_if(findings, &Finding::is_problem);
  std::string text = problems == 0   ? "nothing is wrong\n"
                     : problems == 1 ? "1 problem:\n"
                                     : fmt::format("{} problems:\n", problems);
  int number = 0;
  for (const Finding& finding : findings) {
    const std::string label = finding.is_problem ? std::to_string(++number) + ". " : "note: ";
    text += label + indented(finding.what, "   ") + "\n";
    if (!finding.mend.empty()) text += "   to fix it: " + finding.mend + "\n";
  }
  return text;
}

}  // namespace tutti::tools::doctor
