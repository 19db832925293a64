#include "rendezvous/launch/environment_sources.h"

#include <algorithm>
#include <cctype>

#include <unistd.h>

#include <tutti/config_values.h>
#include <tutti/types.h>

#include "core/shown.h"
#include "rendezvous/launch/slurm.h"

namespace tutti::launch {
namespace {

constexpr std::uint16_t default_port = 29500;

void note(Source& source, const std::optional<Found>& found) {
  if (found) source.names.push_back(found->from);
}

void note_missing(Source& source, const std::string& what) {
  const std::string word = " and ";
  const std::size_t last = source.missing.find(word);
  if (last != std::string::npos) source.missing.replace(last, word.size(), ", ");
  source.missing += (source.missing.empty() ? "" : word) + what;
}

// Reads rank and size from the variables with these names. If only one of them is set, the other is reported
// as missing.
Source read_identity(Reader& reader, const std::string& rank, const std::string& size,
                     const std::string& local_rank, const std::string& local_size = {}) {
  Source source;
  source.rank = reader.number(rank, 0);
  source.world_size = reader.number(size, 1);
  source.local_rank = reader.number(local_rank, 0);
  source.local_world_size = reader.number(local_size, 1);
  note(source, source.rank);
  note(source, source.world_size);
  if (!source.is_present()) return source;
  if (!source.rank) note_missing(source, rank);
  if (!source.world_size) note_missing(source, size);
  return source;
}

Source read_plain(Reader& reader, const std::vector<std::string>&) {
  Source source = read_identity(reader, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE");
  if (source.is_present()) read_master(reader, source);
  return source;
}

// Returns the path of the session file for a job whose ranks are all on one host. Even a path in /tmp is
// safe, since ranks reject a session file of another user.
std::string meeting_file(Reader& reader, std::string job) {
  std::ranges::replace_if(
      job, [](unsigned char letter) { return std::isalnum(letter) == 0; }, '_');
  const std::string folder = reader.text("XDG_RUNTIME_DIR").value_or("");
  const bool usable = !folder.empty() && access(folder.c_str(), W_OK) == 0;
  return (usable ? folder : "/tmp") + "/tutti-" + std::to_string(getuid()) + "-" + job;
}

// Returns whether the user has said where the ranks meet, at least in part. The user's choice takes
// precedence over the launcher's.
bool names_master(Reader& reader) { return reader.text("MASTER_ADDR") || reader.text("MASTER_PORT"); }

// Lets the ranks meet through the launcher's PMIx, if the launcher serves PMIx to this rank itself. A process
// that a rank has started inherits the rank's variables, but is not served.
bool meet_by_pmix(Reader& reader, Source& source) {
  const std::optional<Found> rank = reader.number("PMIX_RANK", 0);
  if (!rank || !source.rank || rank->value != source.rank->value) return false;
  source.store.kind = StoreLocation::Kind::pmix;
  source.store.path = reader.text("PMIX_PREFIX").value_or("");
  source.store_from = "PMIX_NAMESPACE";
  return true;
}

Source read_open_mpi(Reader& reader, const std::vector<std::string>&) {
  Source source = read_identity(reader, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                                "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE");
  if (!source.is_present()) return source;
  const std::optional<std::string> job = reader.text("PMIX_NAMESPACE");
  const bool one_host = source.world_size && source.local_world_size &&
                        source.world_size->value == source.local_world_size->value;
  // Ranks of one host meet in a file, which only their user can write. PMIx is not as safe
  // (docs/security.md).
  if (one_host && job && !names_master(reader)) {
    source.store = {StoreLocation::Kind::file, {}, 0, false, meeting_file(reader, *job)};
    source.store_from = "PMIX_NAMESPACE, on one host";
    return source;
  }
  if (job && !names_master(reader) && meet_by_pmix(reader, source)) {
    source.launcher_key = Secret(reader.text(open_mpi_key).value_or(""));
    return source;
  }
  read_master(reader, source);
  if (!source.missing.empty()) source.remedy = "mpirun -x MASTER_ADDR=HOST_OF_RANK_0 -x MASTER_PORT=29500";
  return source;
}

// Returns the job and the step that this process belongs to, such as "4711.0". Returns nothing outside a
// Slurm step.
std::optional<std::string> slurm_step(Reader& reader) {
  const std::optional<std::string> job = reader.text("SLURM_JOB_ID"), step = reader.text("SLURM_STEP_ID");
  return job && step ? std::optional(*job + "." + *step) : std::nullopt;
}

Source read_pmi(Reader& reader, const std::vector<std::string>&) {
  // PMI_JOBID names the step for which Slurm has set these variables. Steps that are started inside
  // that step inherit them.
  const std::optional<std::string> job = reader.text("PMI_JOBID"), step = slurm_step(reader);
  if (job && step && *job != *step) return {};
  Source source = read_identity(reader, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS");
  if (!source.is_present()) return source;
  if (!names_master(reader)) {
    if (const std::optional<Found> socket = reader.number("PMI_FD", 0)) {
      source.store.kind = StoreLocation::Kind::pmi;
      source.store.descriptor = socket->value;
      source.store_from = socket->from;
      return source;
    }
  }
  read_master(reader, source);
  if (!source.missing.empty())
    source.remedy = "mpiexec -genv MASTER_ADDR HOST_OF_RANK_0 -genv MASTER_PORT 29500";
  return source;
}

// Slurm's variables count only in a job step. A batch script and `salloc`'s shell have SLURM_PROCID, too, but
// they are not ranks.
Source read_slurm(Reader& reader, const std::vector<std::string>&) {
  const std::optional<std::string> step = reader.text("SLURM_STEP_ID");
  if (!step || !in_slurm_step(*step)) return {};
  const char* size = reader.text("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
  Source source = read_identity(reader, "SLURM_PROCID", size, "SLURM_LOCALID");
  if (!source.is_present()) return source;
  const std::string space = "slurm.pmix." + slurm_step(reader).value_or("");
  const bool serves_pmix = reader.text("PMIX_NAMESPACE") == space;
  if (serves_pmix && !names_master(reader) && meet_by_pmix(reader, source)) {
    // If the step does not use all nodes of its job, Slurm 22.05 fetches single texts from the wrong nodes.
    source.store.fence_only = reader.text("SLURM_STEP_NODELIST") != reader.text("SLURM_JOB_NODELIST");
    return source;
  }
  const std::vector<std::string> hosts = expand_slurm_hosts(reader.text("SLURM_STEP_NODELIST").value_or(""));
  std::string host = hosts.empty() ? reader.text("SLURM_LAUNCH_NODE_IPADDR").value_or("") : hosts.front();
  // With the distribution "arbitrary", rank 0 may be on any host.
  const bool arbitrary = reader.text("SLURM_DISTRIBUTION").value_or("").starts_with("arbitrary");
  if (arbitrary && hosts.size() > 1) host.clear();
  const std::optional<std::string> job = reader.text("SLURM_JOB_ID");
  read_master(reader, source, host, job ? slurm_port(*job, *step) : std::uint16_t{0});
  if (host.empty() && !source.missing.empty())
    source.remedy = "MASTER_ADDR=HOST_OF_RANK_0 srun --distribution=arbitrary ..., or srun --mpi=pmi2 ...";
  return source;
}

// An Indexed Job of Kubernetes sets the rank but not the number of ranks. The user must set WORLD_SIZE and
// MASTER_ADDR.
Source read_kubernetes(Reader& reader, const std::vector<std::string>&) {
  Source source;
  source.rank = reader.number("JOB_COMPLETION_INDEX", 0);
  if (!source.rank) return {};
  source.world_size = reader.number("WORLD_SIZE", 1);
  note(source, source.rank);
  note(source, source.world_size);
  if (!source.world_size) note_missing(source, "WORLD_SIZE");
  read_master(reader, source, {}, default_port);
  return source;
}

// NODES_IPS lists the hosts, with one process on each. A process's rank is NODE_RANK, or else the position of
// its host's address in the list.
Source read_node_list(Reader& reader, const std::vector<std::string>& own_addresses) {
  Source source;
  const std::optional<std::string> ips = reader.text("NODES_IPS");
  if (!ips) return {};
  source.names.push_back("NODES_IPS");
  std::string separated = *ips;
  std::ranges::replace(separated, ' ', ',');
  const std::vector<std::string> nodes = parse_list(separated);
  source.world_size = reader.number("NODES_NUM", 1);
  note(source, source.world_size);
  if (!source.world_size) note_missing(source, "NODES_NUM");
  if (source.world_size && static_cast<std::size_t>(source.world_size->value) != nodes.size()) {
    reader.fail("NODES_NUM is '" + std::to_string(source.world_size->value) + "' but NODES_IPS '" +
                shown("NODES_IPS", *ips) + "' lists " + std::to_string(nodes.size()));
  }
  source.rank = reader.number("NODE_RANK", 0);
  note(source, source.rank);
  for (std::size_t i = 0; i < nodes.size() && !source.rank; ++i) {
    if (std::ranges::find(own_addresses, nodes[i]) != own_addresses.end()) {
      source.rank = Found{static_cast<int>(i), "NODES_IPS"};
    }
  }
  if (!source.rank) note_missing(source, "NODE_RANK (and no address of this host is in NODES_IPS)");
  const std::optional<std::uint16_t> port = reader.port("NODE_PORT");
  if (!port) {
    note_missing(source, "NODE_PORT");
  } else if (!nodes.empty()) {
    source.names.push_back("NODE_PORT");
    source.store = {StoreLocation::Kind::tcp, nodes.front(), *port, false, {}};
    source.store_from = "NODES_IPS and NODE_PORT";
  }
  return source;
}

}  // namespace

std::optional<std::string> Reader::text(const std::string& name) {
  const auto found = environment_.find(name);
  if (found == environment_.end() || found->second.empty()) return std::nullopt;
  const std::string_view unmeant = unmeant_ends(found->second);
  if (unmeant.empty()) return found->second;
  fail(name + " is '" + shown(name, found->second) + "': " + std::string(unmeant));
  return std::nullopt;
}

void Reader::fail(const std::string& message) {
  if (status_.ok()) status_ = Status(Code::invalid_argument, message);
}

std::optional<Found> Reader::number(const std::string& name, int least) {
  const std::optional<std::string> value = text(name);
  if (!value) return std::nullopt;
  const std::optional<std::int64_t> number = parse_integer(*value);
  if (number && *number >= least && *number <= max_ranks) {
    return Found{static_cast<int>(*number), name};
  }
  fail(name + " is '" + shown(name, *value) + "'; expected an integer from " + std::to_string(least) +
       " to " + std::to_string(max_ranks));
  return std::nullopt;
}

std::optional<std::uint16_t> Reader::port(const std::string& name) {
  const std::optional<std::string> value = text(name);
  if (!value) return std::nullopt;
  const std::optional<std::int64_t> number = parse_integer(*value);
  if (number && *number >= 1 && *number <= 65535) return static_cast<std::uint16_t>(*number);
  fail(name + " is '" + shown(name, *value) + "'; expected a port from 1 to 65535");
  return std::nullopt;
}

void read_master(Reader& reader, Source& source, const std::string& fallback_host,
                 std::uint16_t fallback_port) {
  const std::optional<std::string> host = reader.text("MASTER_ADDR");
  const std::optional<std::uint16_t> port = reader.port("MASTER_PORT");
  if (host) source.names.push_back("MASTER_ADDR");
  if (port) source.names.push_back("MASTER_PORT");
  const std::string chosen_host = host.value_or(fallback_host);
  std::uint16_t chosen_port = port.value_or(fallback_port);
  // torchrun itself serves PyTorch's store on MASTER_PORT, so our store uses the next port on rank 0's host.
  const bool taken = reader.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  if (port && taken) chosen_port = static_cast<std::uint16_t>(*port < 65535 ? *port + 1 : *port - 1);
  // A world of one rank needs no place to meet.
  const bool needed = !source.world_size || source.world_size->value > 1;
  if (chosen_host.empty() && needed) note_missing(source, "MASTER_ADDR");
  if (chosen_port == 0 && needed) note_missing(source, "MASTER_PORT");
  if (chosen_host.empty() || chosen_port == 0) return;
  source.store = {StoreLocation::Kind::tcp, chosen_host, chosen_port, false, {}};
  source.store_from = "MASTER_ADDR and MASTER_PORT";
}

const std::vector<ReadSource>& outer_sources() {
  static const std::vector<ReadSource> sources = {read_plain, read_open_mpi,   read_pmi,
                                                  read_slurm, read_kubernetes, read_node_list};
  return sources;
}

std::string list_names(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
  }
  return text;
}

std::string describe(const Source& source) {
  const bool several_missing = source.missing.find(" and ") != std::string::npos;
  return list_names(source.names) + (source.names.size() > 1 ? " are" : " is") + " set but " +
         source.missing + (several_missing ? " are not" : " is not") +
         (source.remedy.empty() ? "" : " (" + source.remedy + ")");
}

}  // namespace tutti::launch
