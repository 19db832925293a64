#include <algorithm>
#include <set>

#include "core/shown.h"
#include "tools/doctor/findings.h"
#include "tools/doctor/wording.h"

namespace tutti::tools::doctor {
namespace {

std::string cards_of(const ExaminedHost& host) {
  return host.name + (host.facts ? " (" + printable(host.facts->cards) + ")" : "");
}

// Counts the pairs of hosts that a finding does not name. `failed` is the number of all pairs.
std::string more_text(std::size_t failed, const std::string& before) {
  if (failed == 1) return "";
  return before + std::to_string(failed - 1) + (failed == 2 ? " more pair of hosts" : " more pairs of hosts");
}

// Adds a finding for the pairs whose devices could not be tested. It describes the first one, and only counts
// the others.
void add_untestable(const Examined& examined, std::vector<Finding>& findings) {
  const auto first = std::ranges::find_if(examined.cards, &CardResult::lacks_ports);
  if (first == examined.cards.end()) return;
  const auto all = static_cast<std::size_t>(std::ranges::count_if(examined.cards, &CardResult::lacks_ports));
  findings.push_back({.what = "the RDMA devices of " + examined.hosts[first->one].name + " and " +
                              examined.hosts[first->other].name + more_text(all, ", and of ") +
                              " cannot be tested, since a job of one rank on each host does not have enough "
                              "ports: " +
                              printable(first->failure),
                      .mend = "a wider TUTTI_PORT_RANGE, or end what uses its ports"});
}

void add_unused(const Examined& examined, std::vector<Finding>& findings) {
  for (const ExaminedHost& host : examined.hosts) {
    if (!host.facts || host.facts->no_cards.empty()) continue;
    if (std::ranges::none_of(host.facts->rdma, &RdmaPort::active)) continue;
    findings.push_back({.what = "ranks on " + host.name +
                                " would not use its RDMA devices: " + printable(host.facts->no_cards),
                        .is_problem = false});
  }
}

}  // namespace

// Describes the first pair of hosts between whose devices no messages pass, and only counts the other such
// pairs.
std::vector<Finding> find_in_cards(const Examined& examined) {
  std::vector<Finding> findings;
  const CardResult* first = nullptr;
  std::size_t failed = 0;
  std::set<std::size_t> working;
  for (const CardResult& result : examined.cards) {
    if (result.failure.empty()) {
      working.insert({result.one, result.other});
    } else if (!result.lacks_ports()) {
      first = first == nullptr ? &result : first;
      ++failed;
    }
  }
  if (first != nullptr) {
    const std::string more = more_text(failed, ", nor between those of ");
    findings.push_back({.what = "no messages pass between the RDMA devices of " +
                                cards_of(examined.hosts[first->one]) + " and " +
                                cards_of(examined.hosts[first->other]) + more +
                                ", so ranks would use TCP: " + printable(first->failure),
                        .mend = "TUTTI_IB_HCA=NAME with devices that are on one network; "
                                "TUTTI_TRANSPORTS=shm,tcp to use none"});
  }
  if (!working.empty()) {
    findings.push_back({.what = "messages pass between the RDMA devices of " +
                                names_of(examined, {working.begin(), working.end()}),
                        .is_problem = false});
  }
  add_untestable(examined, findings);
  add_unused(examined, findings);
  return findings;
}

}  // namespace tutti::tools::doctor
