// Fuzzes hostfiles, the values of -H, and the placement of ranks on the hosts. The first byte of
// the input chooses options of the placement. The rest is the text.
#include "tools/run/hostfile.h"

#include <tutti/types.h>

#include "core/shown.h"
#include "tests/fuzz/input.h"
#include "tools/run/placement.h"

namespace {

using namespace tutti;
using Hosts = std::vector<tools::ListedHost>;

void check_error(const Status& status) {
  fuzz::require(status.code() == Code::invalid_argument && printable(status.message()) == status.message());
}

// Returns the text of a hostfile for `hosts`.
std::string written(const Hosts& hosts) {
  std::string text;
  for (const tools::ListedHost& host : hosts) {
    text += (host.user.empty() ? "" : host.user + "@") + host.name;
    if (host.slots) text += " slots=" + std::to_string(*host.slots);
    if (host.most) text += " max_slots=" + std::to_string(*host.most);
    text += "\n";
  }
  return text;
}

void check_hosts(const Result<Hosts>& hosts) {
  if (!hosts.ok()) return check_error(hosts.status());
  fuzz::require(!hosts->empty());
  for (const tools::ListedHost& host : *hosts) {
    fuzz::require(!host.name.empty() && host.name.front() != '-' && !host.user.starts_with('-'));
    fuzz::require(host.slots.value_or(1) >= 1 && host.most.value_or(max_ranks) >= host.slots.value_or(1));
  }
  fuzz::require(tools::parse_hostfile("again", written(*hosts)).take() == *hosts);
}

void check_placement(const Hosts& hosts, std::uint8_t choice) {
  std::vector<tools::SlottedHost> slotted;
  for (const tools::ListedHost& host : hosts) slotted.push_back({host.slots.value_or(2), host.most});
  const tools::PlacementOptions options = {.ranks = 1 + choice % 32,
                                           .per_host = choice & 32 ? std::optional(3) : std::nullopt,
                                           .map_by = choice & 64 ? tools::MapBy::node : tools::MapBy::slot,
                                           .oversubscribe = (choice & 128) != 0};
  const auto placed = tools::place(slotted, options);
  if (!placed.ok()) return check_error(placed.status());
  std::size_t ranks = 0;
  for (const tools::PlacedHost& host : *placed) ranks += host.ranks.size();
  fuzz::require(ranks == static_cast<std::size_t>(*options.ranks) && placed->front().ranks.front() == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::uint8_t choice = input.byte();
  const std::string text(input.rest());
  const Result<Hosts> hosts = tools::parse_hostfile("hosts", text);
  check_hosts(hosts);
  check_hosts(tools::parse_host_list({text}));
  if (!hosts.ok()) return 0;
  check_hosts(tools::choose_hosts(*hosts, {text}));
  check_placement(*hosts, choice);
  return 0;
}
