#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/status.h>

namespace tutti::tools {

// A `RankDump` is the parsed dump of one rank (docs/debugging.md). All rank numbers in it are world ranks,
// except in the text of a call, which uses the communicator's ranks.
struct RankDump {
  struct Operation {
    std::uint64_t number = 0;
    std::string call;
    bool running = false;
    bool failed = false;
    std::int64_t issued_us = 0;  // 0 if unknown
    std::int64_t ended_us = 0;
    std::vector<int> waiting_for = {};
  };
  struct Communicator {
    std::uint64_t context = 0;
    std::vector<int> ranks;
    std::string status;
    std::uint64_t issued = 0;  // how many collectives the rank has called
    std::map<int, std::string> names;
    std::vector<Operation> operations;
    std::vector<Operation> transfers;
  };

  std::string job;
  int rank = 0;
  int size = 0;
  std::string host;
  std::int64_t pid = 0;
  std::string reason;
  std::int64_t time_us = 0;
  bool progress = true;  // false if the driving thread gave no answer
  std::vector<Communicator> communicators;

  // Returns "rank 3 (host b, pid 4711)".
  std::string name() const;
};

// Parses a dump. Fails with `invalid_argument` if the text is not a dump.
Result<RankDump> parse_dump(std::string_view text);

}  // namespace tutti::tools
