#include "tools/run/environment.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <random>
#include <string_view>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/error_text.h"
#include "core/random.h"
#include "tools/processors.h"

namespace tutti::tools {
namespace {

constexpr std::size_t token_bytes = 32;
constexpr int first_port = 20000;
constexpr int last_port = 32767;  // the kernel picks ports from 32768 upwards

// Returns 0 if a server could listen on the port on all addresses, as PyTorch's store does. Otherwise returns
// an errno.
int problem_with(int port) {
  int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 any6 = {};
  any6.sin6_family = AF_INET6;
  any6.sin6_port = htons(static_cast<std::uint16_t>(port));
  sockaddr_in any4 = {};
  any4.sin_family = AF_INET;
  any4.sin_port = any6.sin6_port;
  int bound = -1;
  if (fd >= 0) {
    bound = bind(fd, reinterpret_cast<const sockaddr*>(&any6), sizeof any6);
  } else {
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) bound = bind(fd, reinterpret_cast<const sockaddr*>(&any4), sizeof any4);
  }
  const int problem = bound == 0 ? 0 : errno;
  if (fd >= 0) close(fd);
  return problem;
}

// Returns whether the variable only concerns the launcher's host or login.
bool stays_here(std::string_view name) {
  static constexpr std::array<std::string_view, 6> names = {
      "DISPLAY", "HOSTNAME", "PWD", "SHLVL", "TUTTI_ADVERTISE_ADDRESS", "TUTTI_BIND_ADDRESS"};
  return name.starts_with("SSH_") || std::ranges::find(names, name) != names.end();
}

// Returns whether the -x option `entry` ("VAR", "VAR*" or "VAR=VALUE") matches the variable.
bool means(std::string_view entry, std::string_view name) {
  const std::string_view pattern = entry.substr(0, entry.find('='));
  if (!pattern.ends_with('*')) return name == pattern;
  return name.starts_with(pattern.substr(0, pattern.size() - 1)) && !stays_here(name);
}

}  // namespace

std::vector<std::string> to_strings(const Environment& environment) {
  std::vector<std::string> result;
  for (const auto& [name, value] : environment) result.push_back(name + "=" + value);
  return result;
}

std::vector<std::string> apply_exports(Environment& environment, const std::vector<std::string>& exports) {
  std::vector<std::string> missing;
  for (const std::string& entry : exports) {
    const std::size_t equals = entry.find('=');
    if (equals != std::string::npos) {
      environment[entry.substr(0, equals)] = entry.substr(equals + 1);
    } else if (std::ranges::none_of(environment,
                                    [&](const auto& variable) { return means(entry, variable.first); })) {
      missing.push_back(entry);
    }
  }
  return missing;
}

std::string missing_export(const std::string& name) {
  return "-x " + name + ": not set here, so the ranks do not have it either";
}

Environment passed_on(const Environment& environment, const std::vector<std::string>& exports) {
  Environment result;
  for (const auto& variable : environment) {
    const std::string& name = variable.first;
    if ((name.starts_with("TUTTI_") && !stays_here(name)) ||
        std::ranges::any_of(exports, [&](const std::string& entry) { return means(entry, name); })) {
      result.insert(variable);
    }
  }
  return result;
}

void provide_token(Environment& environment) {
  for (const char* name : {"TUTTI_TOKEN", "TUTTI_TOKEN_FILE"}) {
    if (environment.contains(name)) return;
  }
  environment["TUTTI_TOKEN"] = random_hex(token_bytes);
}

void set_job_variables(Environment& environment, const JobPlace& job) {
  environment["MASTER_ADDR"] = job.master_address;
  environment["MASTER_PORT"] = std::to_string(job.master_port);
  environment["TUTTI_STORE"] = job.store;
  environment["TUTTI_JOB_ID"] = job.id;
  // An outer torchrun may have set this variable, but its store has another port.
  environment.erase("TORCHELASTIC_USE_AGENT_STORE");
}

void set_rank_variables(Environment& environment, const RankPlace& place) {
  for (const std::string prefix : {"", "TUTTI_"}) {
    environment[prefix + "RANK"] = std::to_string(place.rank);
    environment[prefix + "WORLD_SIZE"] = std::to_string(place.world_size);
    environment[prefix + "LOCAL_RANK"] = std::to_string(place.local_rank);
    environment[prefix + "LOCAL_WORLD_SIZE"] = std::to_string(place.local_world_size);
  }
}

void set_mpi_variables(Environment& environment, const RankPlace& place) {
  const std::string prefix = "OMPI_COMM_WORLD_";
  environment[prefix + "RANK"] = std::to_string(place.rank);
  environment[prefix + "SIZE"] = std::to_string(place.world_size);
  environment[prefix + "LOCAL_RANK"] = std::to_string(place.local_rank);
  environment[prefix + "LOCAL_SIZE"] = std::to_string(place.local_world_size);
  // Open MPI counts the ranks of all jobs on the host in this variable. tutti counts only the ranks of this
  // job.
  environment[prefix + "NODE_RANK"] = std::to_string(place.local_rank);
  environment["OMPI_UNIVERSE_SIZE"] = std::to_string(place.world_size);
}

void limit_spinning(Environment& environment, int local_ranks) {
  if (local_ranks > usable_processors()) environment.try_emplace("TUTTI_SPIN", "0");
}

void share_processors(Environment& environment, int local_ranks, const ProcessorSet& tied_to) {
  if (local_ranks == 1) return;
  int share = std::max(1, usable_processors() / local_ranks);
  if (tied_to) share = std::min(share, CPU_COUNT(&*tied_to));
  environment.try_emplace("OMP_NUM_THREADS", std::to_string(share));
}

Result<int> find_free_port() {
  std::random_device random;
  std::uniform_int_distribution<int> any_port(first_port, last_port);
  int problem = 0;
  for (int attempt = 0; attempt < 200; ++attempt) {
    const int port = any_port(random);
    problem = problem_with(port);
    if (problem == 0) return port;
  }
  return Status(Code::resource_exhausted, "no free port for MASTER_PORT: " + error_text(problem));
}

}  // namespace tutti::tools
