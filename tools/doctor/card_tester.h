#pragma once

#include <cstdint>
#include <string>

#include <tutti/config.h>
#include <tutti/status.h>

namespace tutti::tools::doctor {

// In a test of the RDMA devices of two hosts, a `CardTest` tells one of the two probes its rank, and where
// the two meet.
struct CardTest {
  int rank = 0;              // 0 or 1
  std::string address = {};  // a literal address of the host with rank 0
  std::uint16_t port = 0;    // a port at this address that was free
};

// Returns what the transport verbs would use on this host (`HostFacts::cards`), or the reason why ranks would
// not use verbs.
Result<std::string> cards_in_use(const Config& config);

// Returns a port that is free at a literal address, or why there is none.
Result<std::uint16_t> free_port(const std::string& address, const Config& config);

// Runs one rank of a job of two ranks that may use only `transport`. Returns an empty text if the two
// ranks have exchanged messages, and otherwise the reason why they could not. The probes of the two hosts
// must call it at about the same time.
std::string test_cards(const CardTest& test, const std::string& transport = "verbs");

}  // namespace tutti::tools::doctor
