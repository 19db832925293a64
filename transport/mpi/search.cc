#include "transport/mpi/search.h"

#include <algorithm>

#include <tutti/config_values.h>

namespace tutti::mpi {

std::optional<Launcher> launcher_of(const std::map<std::string, std::string>& environment) {
  const auto started_by = [&](const char* name, const std::string& variable,
                              bool is_open_mpi) -> std::optional<Launcher> {
    const auto found = environment.find(variable);
    if (found == environment.end()) return std::nullopt;
    const std::optional<std::int64_t> size = parse_integer(found->second);
    if (!size || *size < 1) return std::nullopt;
    return Launcher{std::string(name) + " (" + variable + "=" + found->second + ")", static_cast<int>(*size),
                    is_open_mpi};
  };
  if (auto launcher = started_by("Open MPI's mpirun", "OMPI_COMM_WORLD_SIZE", true)) return launcher;
  return started_by("an mpiexec with PMI, such as MPICH's", "PMI_SIZE", false);
}

std::vector<std::string> library_names(const std::string& chosen, const std::optional<Launcher>& launcher) {
  if (!chosen.empty()) return {chosen};
  // Debian's MPICH has a name of its own.
  std::vector<std::string> names = {"libmpich.so.12", "libmpi.so.12", "libmpi_abi.so.1", "libmpi_abi.so",
                                    "libmpi.so.40"};
  if (launcher && launcher->is_open_mpi) std::rotate(names.begin(), names.end() - 1, names.end());
  return names;
}

}  // namespace tutti::mpi
