#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include <tutti/secret.h>

namespace tutti {

// A `StoreLocation` is where the ranks of a world meet.
struct StoreLocation {
  enum class Kind {
    none,  // nowhere: a world of one rank
    tcp,
    file,
    pmi,   // through the launcher, by the protocol PMI-1
    pmix,  // through the launcher, by the library PMIx
    mpi,   // through MPI
  };

  Kind kind = Kind::none;
  std::string host;
  std::uint16_t port = 0;
  bool served = false;  // tcp only: whether a launcher serves the store; if not, rank 0 does
  std::string path;     // file: the session file; pmix: the folder of the launcher, if the launcher names it
  int descriptor = -1;  // pmi only: the launcher's socket
  bool fence_only = false;  // pmix only: whether ranks can get the session only by the launcher's fence
  friend bool operator==(const StoreLocation&, const StoreLocation&) = default;
};

// Returns a text such as "tcp://10.0.0.1:29500", "file:///path" or "none".
std::string to_string(const StoreLocation& location);

// `Launch` says which rank this process is, and where the ranks meet.
struct Launch {
  int rank = 0;
  int world_size = 1;
  std::optional<int> local_rank;
  std::optional<int> local_world_size;
  StoreLocation store;
  std::optional<std::chrono::nanoseconds> timeout;
  // A random text that the launcher has given to the ranks of this launch only. It is empty if the
  // launcher gives no such text, or if the ranks do not meet through the launcher.
  Secret launcher_key = {};
  std::string source;  // how messages name the source: "RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT"
};

// `LaunchArguments` are what the program itself passes. All of them may be left out.
struct LaunchArguments {
  std::string url;
  std::optional<int> rank;
  std::optional<int> world_size;
  std::string said_by = "the arguments";  // what messages call the arguments
};

// `Environment` holds the variables of a process, by name.
using Environment = std::map<std::string, std::string>;

}  // namespace tutti
