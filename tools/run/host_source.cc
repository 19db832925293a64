#include "tools/run/host_source.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include <tutti/config_values.h>
#include <tutti/types.h>

#include "core/descriptor.h"
#include "core/error_text.h"
#include "rendezvous/launch/environment_sources.h"
#include "tools/run/slurm_job.h"

namespace tutti::tools {
namespace {

using launch::Reader;

// `Variables` holds the names of the variables from which one kind of launcher learns its hosts.
struct Variables {
  const char* hostfile;
  const char* slots;     // the number of slots of hosts without a number in the file
  const char* agent;     // a command in place of ssh
  const char* ssh_args;  // further arguments of ssh
};

constexpr Variables open_mpi = {"OMPI_MCA_orte_default_hostfile", "OMPI_MCA_orte_set_default_slots",
                                "OMPI_MCA_plm_rsh_agent", "OMPI_MCA_plm_rsh_args"};
constexpr Variables mpich = {"HYDRA_HOST_FILE", "", "HYDRA_LAUNCHER_EXEC", "HYDRA_LAUNCH_EXTRA_ARGS"};
constexpr Variables intel_mpi = {"I_MPI_HYDRA_HOST_FILE", "I_MPI_PERHOST", "I_MPI_HYDRA_BOOTSTRAP_EXEC",
                                 "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS"};

// A `Way` says how the hosts are reached.
struct Way {
  StartCommand command;
  // The variable that chose the command or added arguments to it; empty if there is none.
  std::string variable;

  std::string describe() const {
    std::string text = command.way == StartCommand::Way::srun ? "srun" : "ssh";
    if (command.way == StartCommand::Way::other) text = command.command.front();
    return text + (variable.empty() ? "" : " (" + variable + ")");
  }
};

void append_words(std::vector<std::string>& words, std::string_view text) {
  for (std::string& word : split_words(text)) words.push_back(std::move(word));
}

// Returns the way that the options choose. If they choose none, the variables do. A command `ssh`
// in a variable does not replace the usual command; only its arguments are added.
Way choose_way(const RunOptions& options, Reader& reader, const Variables& names) {
  Way way;
  std::string agent = options.agent;
  if (const std::optional<std::string> value = reader.text(names.agent); value && agent.empty()) {
    // Only the first command counts in a list such as "ssh : rsh".
    agent = value->substr(0, value->find(':'));
    way.variable = names.agent;
  }
  const std::vector<std::string> words = split_words(agent);
  if (!words.empty() && words.front() != "ssh") {
    way.command.way = StartCommand::Way::other;
    way.command.command = words;
    return way;
  }
  way.command.ssh_port = options.ssh_port;
  if (!words.empty()) way.command.ssh_args.assign(words.begin() + 1, words.end());
  append_words(way.command.ssh_args, options.ssh_args);
  if (const std::optional<std::string> value = reader.text(names.ssh_args)) {
    // These words come after the user's options, since ssh uses the first value of each option.
    append_words(way.command.ssh_args, *value);
    way.variable = names.ssh_args;
  }
  return way;
}

// `source` is the option or variable that names the file.
Result<std::vector<ListedHost>> read_hostfile(const std::string& path, const std::string& source,
                                              const ReadText& read) {
  const Result<std::string> text = read(path);
  if (!text.ok()) return text.status().with_context(source);
  return parse_hostfile(path, *text);
}

Result<HostSource> hosts_of_options(const RunOptions& options, Reader& reader, const ReadText& read) {
  Result<std::vector<ListedHost>> hosts = options.hostfile.empty()
                                              ? parse_host_list(options.hosts)
                                              : read_hostfile(options.hostfile, "--hostfile", read);
  if (hosts.ok() && !options.hostfile.empty() && !options.hosts.empty())
    hosts = choose_hosts(*hosts, options.hosts);
  if (!hosts.ok()) return hosts.status();
  Way way = choose_way(options, reader, open_mpi);
  std::string remark = way.variable.empty() ? "" : "the hosts are reached by " + way.describe();
  return HostSource{*std::move(hosts), std::move(way.command), std::move(remark)};
}

HostSource hosts_of_slurm(const RunOptions& options, Reader& reader, SlurmJob job) {
  Way way;
  way.command.way = StartCommand::Way::srun;
  way.command.gpus = std::move(job.gpus);
  if (!options.agent.empty()) way = choose_way(options, reader, open_mpi);
  std::string remark = "the hosts are those of SLURM_JOB_NODELIST, reached by " + way.describe();
  return HostSource{std::move(job.hosts), std::move(way.command), std::move(remark)};
}

// Sets the number of slots of the hosts for which the list gives no number. `text` is the value of
// a variable. Words such as "cores" leave the number to the host.
void set_slots(std::vector<ListedHost>& hosts, std::string_view text) {
  const std::optional<std::int64_t> slots = parse_integer(text);
  if (!slots || *slots < 1 || *slots > max_ranks) return;
  for (ListedHost& host : hosts) {
    if (!host.slots) host.slots = std::min(static_cast<int>(*slots), host.most.value_or(max_ranks));
  }
}

Result<HostSource> hosts_of_file(const RunOptions& options, Reader& reader, const Variables& names,
                                 const std::string& path, const ReadText& read) {
  Result<std::vector<ListedHost>> hosts = read_hostfile(path, names.hostfile, read);
  if (!hosts.ok()) return hosts.status();
  set_slots(*hosts, reader.text(names.slots).value_or(""));
  Way way = choose_way(options, reader, names);
  std::string remark =
      "the hosts are those of " + path + " (" + names.hostfile + "), reached by " + way.describe();
  return HostSource{*std::move(hosts), std::move(way.command), std::move(remark)};
}

Result<HostSource> first_source(const RunOptions& options, Reader& reader, const ReadText& read) {
  if (!options.hostfile.empty() || !options.hosts.empty()) return hosts_of_options(options, reader, read);
  Result<SlurmJob> slurm = read_slurm_job(reader);
  if (!slurm.ok()) return slurm.status();
  if (!slurm->hosts.empty()) return hosts_of_slurm(options, reader, *std::move(slurm));
  for (const Variables& names : {open_mpi, mpich, intel_mpi}) {
    const std::optional<std::string> path = reader.text(names.hostfile);
    // For Open MPI, the name "none" means that there is no file.
    if (path && *path != "none") return hosts_of_file(options, reader, names, *path, read);
  }
  return HostSource{};
}

}  // namespace

Result<std::string> read_text(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  char piece[4096];
  ssize_t bytes = -1;
  while (file && (bytes = read(file.get(), piece, sizeof piece)) > 0) {
    text.append(piece, static_cast<std::size_t>(bytes));
  }
  if (bytes == 0) return text;
  return Status(Code::invalid_argument, "cannot read " + path + ": " + error_text(errno));
}

Result<HostSource> find_hosts(const RunOptions& options, const Environment& environment,
                              const ReadText& read) {
  Reader reader(environment);
  Result<HostSource> source = first_source(options, reader, read);
  if (!reader.status().ok()) return reader.status();
  return source;
}

}  // namespace tutti::tools
