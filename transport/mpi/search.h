#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tutti::mpi {

// `Launcher` describes the MPI launcher that has started this process, as this process's variables show it.
struct Launcher {
  std::string description;  // "mpiexec (PMI_SIZE=4)"
  int size = 0;             // the number of ranks that the launcher has started
  bool is_open_mpi = false;
};

// Returns the launcher of this process, or nothing if no MPI launcher has started the process.
std::optional<Launcher> launcher_of(const std::map<std::string, std::string>& environment);

// Returns the names under which to look for MPI. If the user has chosen a file, the file is the only name. If
// not, the libraries of the launcher's MPI come first.
std::vector<std::string> library_names(const std::string& chosen, const std::optional<Launcher>& launcher);

}  // namespace tutti::mpi
