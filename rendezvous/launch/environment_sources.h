#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tutti/secret.h>
#include <tutti/status.h>

#include "rendezvous/launch/launch.h"

namespace tutti::launch {

// `Found` is a number and its source.
struct Found {
  int value;
  std::string from;  // "RANK", "the URL tcp://..."
};

// `Source` is what one launcher's variables say, which may be incomplete or empty.
struct Source {
  std::optional<Found> rank;
  std::optional<Found> world_size;
  std::optional<Found> local_rank;
  std::optional<Found> local_world_size;
  StoreLocation store;  // of kind `none` if it is not known
  Secret launcher_key;  // see `Launch`
  std::string store_from;
  std::vector<std::string> names;  // the names of the variables that were found
  std::string missing;             // such as "RANK and MASTER_PORT"; empty if nothing is missing
  std::string remedy;              // the command that sets what is missing
  bool is_present() const { return !names.empty(); }
};

// `Reader` reads variables, and remembers the first one that has a wrong value.
class Reader {
 public:
  explicit Reader(const Environment& environment) : environment_(environment) {}

  std::optional<std::string> text(const std::string& name);
  // Reads an integer that is at least `least`.
  std::optional<Found> number(const std::string& name, int least);
  std::optional<std::uint16_t> port(const std::string& name);
  void fail(const std::string& message);
  const Status& status() const { return status_; }

 private:
  const Environment& environment_;
  Status status_;
};

// Reads MASTER_ADDR and MASTER_PORT into the source, and notes which of the two are set and which
// are missing. `fallback_host` and `fallback_port` replace a variable that is not set.
void read_master(Reader& reader, Source& source, const std::string& fallback_host = {},
                 std::uint16_t fallback_port = 0);

// Returns one function for each launcher, which reads that launcher's variables. `discover` calls the
// functions in the order of the list. There is no function for TUTTI_*, which `discover` itself reads.
using ReadSource = Source (*)(Reader& reader, const std::vector<std::string>& own_addresses);
const std::vector<ReadSource>& outer_sources();

// Open MPI's mpirun (up to version 4) sets this variable to the same 128 random bits on all ranks of a job.
inline constexpr const char* open_mpi_key = "OMPI_MCA_orte_precondition_transports";

// Describes an incomplete source, such as "RANK and WORLD_SIZE are set but MASTER_PORT is not".
std::string describe(const Source& source);
std::string list_names(const std::vector<std::string>& names);

}  // namespace tutti::launch
