#include "tools/doctor/card_tester.h"

#include <algorithm>
#include <chrono>

#include <tutti/address.h>
#include <tutti/tutti.h>

#include "bindings/cpp/transports.h"
#include "transport/meeting/socket.h"

namespace tutti::tools::doctor {
namespace {

using namespace std::chrono_literals;

// The transport gives up after 3 seconds if packets do not pass and both hosts are awake.
constexpr std::chrono::nanoseconds meeting_limit = 20s;
constexpr std::chrono::nanoseconds exchange_limit = 30s;

Status reason_against(const TransportEntry& entry, const Config& config) {
  const auto& names = config.transports;
  if (names.empty() || names == std::vector<std::string>{"auto"})
    return entry.left_out == nullptr ? Status() : entry.left_out(config);
  if (std::ranges::find(names, entry.name) != names.end()) return {};
  return Status(Code::unsupported, "TUTTI_TRANSPORTS does not name " + std::string(entry.name));
}

}  // namespace

Result<std::string> cards_in_use(const Config& config) {
  const auto entries = transport_entries();
  const TransportEntry& verbs = *std::ranges::find(entries, "verbs", &TransportEntry::name);
  if (Status against = reason_against(verbs, config); !against.ok()) return against;
  const auto made = verbs.create({.config = config});
  if (!made.ok()) return made.status();
  return (*made)->facts();
}

Result<std::uint16_t> free_port(const std::string& address, const Config& config) {
  const PortRange range = config.port_range.value_or(PortRange{0, 0});
  const Result<Descriptor> socket = meeting::listen_on("the probe", address, range.first, range.last);
  if (!socket.ok()) return socket.status();
  const auto found = meeting::local_address(socket->get());
  if (!found) return Status(Code::internal, "the probe: a socket at " + address + " has no address");
  return found->port();
}

std::string test_cards(const CardTest& test, const std::string& transport) {
  try {
    tutti::Communicator comm = init({.url = "tcp://" + format_endpoint(test.address, test.port),
                                     .rank = test.rank,
                                     .world_size = 2,
                                     .timeout = meeting_limit,
                                     .transports = {transport}});
    comm.barrier({.timeout = exchange_limit}).wait();
    return {};
  } catch (const Error& error) {
    return error.status().message();
  }
}

}  // namespace tutti::tools::doctor
