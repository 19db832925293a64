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

// A program starts with `init`, which meets the other ranks.
namespace tutti {

class Store;

// `InitOptions` are the options of `init`. `init` fills in empty members from the URL, and then from the
// environment.
struct InitOptions {
  // "env://", "tcp://host:port?rank=0&world_size=2", "file:///path?rank=0&world_size=2" or "mpi://". If it is
  // empty, TUTTI_INIT_METHOD applies, or else the launcher's variables.
  std::string url = {};
  std::optional<int> rank = {};
  std::optional<int> world_size = {};
  // The time for meeting all ranks. Zero means TUTTI_INIT_TIMEOUT.
  std::chrono::nanoseconds timeout{0};
  // The transports to use, in order of preference. {"auto"} means all that work on this host. If it is empty,
  // TUTTI_TRANSPORTS applies, or else {"auto"}.
  std::vector<std::string> transports = {};
  // While the ranks meet, `init` calls this several times a second, on the calling thread. Once it returns
  // true, `init` fails with `aborted`, here and on the other ranks, with an error that names this rank.
  // Returning true also ends a wait for an answer of the name service or the store, unless the store is the
  // caller's own.
  std::function<bool()> interrupted = {};
};

// Meets the other ranks and returns the communicator of all of them. It blocks until every rank has arrived.
// Without a launcher, URL or variables, the world has this rank only. Any thread may call it. If it fails, it
// throws `Error`. These are the most frequent codes:
// - timeout: some ranks have not arrived; the message names them.
// - peer_lost: a rank died while the ranks met.
// - mismatch: the ranks contradict each other.
// - unauthenticated: a rank has another token.
// - unreachable: this rank cannot connect to an address.
// - invalid_argument: an option or a variable is wrong.
TUTTI_API Communicator init(const InitOptions& options = {});
TUTTI_API Communicator init(std::string_view url);

// Meets the other ranks over the caller's own store. Its keys begin with "tutti/" and the value of
// TUTTI_JOB_ID. `options.url`, `options.rank` and `options.world_size` are ignored.
TUTTI_API Communicator init(std::shared_ptr<Store> store, int rank, int world_size,
                            const InitOptions& options = {});

// A `Placement` is the rank and the world size that `init` would give this process, from the options and the
// environment. `placement` communicates with no other rank. It throws `Error` if the rank or the world size
// is missing or wrong.
struct Placement {
  int rank = 0;
  int world_size = 1;
};
TUTTI_API Placement placement(const InitOptions& options = {});

}  // namespace tutti
