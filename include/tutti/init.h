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

// `init` is where a program begins: it meets the other ranks.
namespace tutti {

class Store;

// `InitOptions` are what `init` may be told. Members that are left empty come from the URL, then from the
// environment.
struct InitOptions {
  std::string url =
      {};  // "env://", "tcp://host:port?rank=0&world_size=2", "file:///path?rank=0&world_size=2"
  std::optional<int> rank = {};
  std::optional<int> world_size = {};
  // The time for meeting all ranks. Zero means TUTTI_INIT_TIMEOUT.
  std::chrono::nanoseconds timeout{0};
  // The transports to use, in order of preference. "auto", by itself, means all that work here. If the list
  // is empty, TUTTI_TRANSPORTS decides, or else all that work here are used.
  std::vector<std::string> transports = {};
  // `init` calls this several times a second while the ranks meet, on the thread that is inside `init`. Once
  // it returns true, `init` ends with `aborted`, and so it does on the other ranks, naming this one. It also
  // ends a request to a store or a name service that does not answer; a request to a user's store is not
  // interrupted.
  std::function<bool()> interrupted = {};
};

// Meets the other ranks and returns the communicator of all of them. It blocks until every rank has arrived,
// and throws `Error` (timeout names the ranks that have not). Without any launcher, URL or variable this is a
// world of one rank.
TUTTI_API Communicator init(const InitOptions& options = {});
TUTTI_API Communicator init(std::string_view url);

// Does the same over a store that the caller already has, under separate keys, for programs that embed tutti.
TUTTI_API Communicator init(std::shared_ptr<Store> store, int rank, int world_size,
                            const InitOptions& options = {});

// `Placement` is the rank that `init` would give this process, by its options and the environment.
// `placement` contacts no other rank. It throws `Error` if rank or size is missing, as `init` would.
struct Placement {
  int rank = 0;
  int world_size = 1;
};
TUTTI_API Placement placement(const InitOptions& options = {});

}  // namespace tutti
