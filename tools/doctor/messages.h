#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/status.h>

#include "tools/doctor/card_tester.h"
#include "tools/doctor/facts.h"
#include "tools/doctor/path.h"

// A `ProbeCommand` is a command to a probe, and a `ProbeAnswer` is its answer (docs/doctor.md).
// Each is a line of JSON.
namespace tutti::tools::doctor {

inline constexpr std::size_t longest_line = std::size_t{1} << 20;

// In `ProbeCommand`, a word in front of a colon names the command that uses the member.
struct ProbeCommand {
  std::string what = {};   // "begin", "clock", "routes", "test", "port" or "cards"
  std::uint32_t host = 0;  // begin: the number of the probe's host
  // begin: the secret that the probes of this run show each other.
  std::string pass = {};
  // begin: the folder in which a job would start its ranks.
  std::string folder = {};
  // begin: the launcher's addresses; routes: any addresses; port: the address that needs a port.
  std::vector<std::string> addresses = {};
  std::vector<Target> targets = {};  // test: the addresses to test
  CardTest cards = {};               // cards: the test of the RDMA devices
};

struct ProbeAnswer {
  std::string problem = {};  // empty if the command was carried out
  HostFacts facts = {};
  std::int64_t clock_ns = 0;  // since 1970
  // `routes` has an entry for each address of the command: the local address from which packets to that
  // address leave, or "" if there is no route.
  std::vector<std::string> routes = {};
  std::vector<Path> paths = {};  // one for each target
  std::uint16_t port = 0;        // port: a port that is free; 0 if there is none
  // port: why no port is free; cards: why no messages pass between the devices. Empty if all is well.
  std::string failure = {};
};

// The lines end without a newline.
std::string to_line(const ProbeCommand& command);
std::string to_line(const ProbeAnswer& answer);
// These return `protocol_error` if the line is not such a message. Missing members are empty.
Result<ProbeCommand> parse_command(std::string_view line);
Result<ProbeAnswer> parse_answer(std::string_view line);

}  // namespace tutti::tools::doctor
