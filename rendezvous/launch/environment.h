#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <tutti/status.h>

namespace tutti {

// Where the ranks of a world meet.
struct StoreLocation {
  enum class Kind {
    none,  // nowhere: a world of one rank
    tcp,
    file,
  };

  Kind kind = Kind::none;
  std::string host;
  std::uint16_t port = 0;
  bool served = false;  // tcp: somebody (a launcher) serves already; otherwise rank 0 does
  std::string path;
  friend bool operator==(const StoreLocation&, const StoreLocation&) = default;
};

// "tcp://10.0.0.1:29500", "file:///path", "none".
std::string to_string(const StoreLocation& location);

// Who this process is and where the others are.
struct Launch {
  int rank = 0;
  int world_size = 1;
  std::optional<int> local_rank;
  std::optional<int> local_world_size;
  StoreLocation store;
  std::optional<std::chrono::nanoseconds> timeout;
  std::string source;  // for people: "RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT"
};

// What the program itself says. Everything may be left out.
struct LaunchArguments {
  std::string url;
  std::optional<int> rank;
  std::optional<int> world_size;
};

using Environment = std::map<std::string, std::string>;

// Finds the launch in the order: arguments, URL, TUTTI_*, RANK and WORLD_SIZE, OMPI_COMM_WORLD_*, PMI_*,
// SLURM_* (in a step), JOB_COMPLETION_INDEX, NODES_IPS. What the arguments, the URL and TUTTI_* say must not
// contradict each other; what they leave open comes from the first later source that has all of it. An empty
// variable counts as not set. With nothing anywhere and no URL, the world is this process alone.
//
// `invalid_argument` names the variable and value that cannot be, the two that contradict each other, or all
// that was found and what each find lacks. `own_addresses`: this host's, to find it in NODES_IPS.
Result<Launch> discover(const LaunchArguments& arguments, const Environment& environment,
                        const std::vector<std::string>& own_addresses = {});

// The same with the environment and the addresses of this process.
Result<Launch> discover(const LaunchArguments& arguments = {});

Environment environment_of_process();

}  // namespace tutti
