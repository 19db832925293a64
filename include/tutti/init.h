#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/communicator.h>
#include <tutti/export.h>

namespace tutti {

class Store;

// What `init` may be told; whatever is left empty comes from the URL, then from the environment.
struct InitOptions {
  std::string url =
      {};  // "env://", "tcp://host:port?rank=0&world_size=2", "file:///path?rank=0&world_size=2"
  std::optional<int> rank = {};
  std::optional<int> world_size = {};
  // For meeting all ranks. Zero: TUTTI_INIT_TIMEOUT.
  std::chrono::nanoseconds timeout{0};
  // Transports to use, in order of preference; "auto", by itself: all that work here. Empty:
  // TUTTI_TRANSPORTS, else all that work here.
  std::vector<std::string> transports = {};
  // Asked several times a second while the ranks meet, on the thread that is inside `init`. Once it says
  // true, `init` ends with `aborted`, and so it does on the other ranks, naming this one. A store that does
  // not answer, or a name service, is interrupted too; a store of the user's own only between two requests.
  std::function<bool()> interrupted = {};
};

// Meets the other ranks and returns the communicator of all of them. Blocks until every rank has come; throws
// `Error` (timeout names who has not). Without any launcher, URL or variable this is a world of one rank.
TUTTI_API Communicator init(const InitOptions& options = {});
TUTTI_API Communicator init(std::string_view url);

// The same over a store that the caller already has, under keys of its own; for embedding.
TUTTI_API Communicator init(std::shared_ptr<Store> store, int rank, int world_size,
                            const InitOptions& options = {});

// Who `init` would make this process, by what it is told and what the environment says; meets nobody. Throws
// `Error` where `init` would for want of rank or size.
struct Placement {
  int rank = 0;
  int world_size = 1;
};
TUTTI_API Placement placement(const InitOptions& options = {});

}  // namespace tutti
