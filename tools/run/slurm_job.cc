#include "tools/run/slurm_job.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>

#include <tutti/config_values.h>
#include <tutti/types.h>

#include "core/shown.h"
#include "rendezvous/launch/slurm.h"

namespace tutti::tools {
namespace {

using launch::Reader;

// A variable sets an option of srun if its name begins with one of these texts, or is one of `srun_names`.
constexpr std::string_view srun_prefixes[] = {"SLURM_CPU_BIND", "SLURM_DIST",  "SLURM_GPU",
                                              "SLURM_GRES",     "SLURM_MEM_",  "SLURM_NTASKS_PER_",
                                              "SLURM_STD",      "SLURM_TRES_", "SRUN_"};
constexpr std::string_view srun_names[] = {
    "SLURM_CPUS_PER_GPU", "SLURM_EXACT",   "SLURM_EXCLUSIVE",  "SLURM_EXPORT_ENV",      "SLURM_HINT",
    "SLURM_HOSTFILE",     "SLURM_LABELIO", "SLURM_MPI_TYPE",   "SLURM_STEP_GRES",       "SLURM_THREADS",
    "SLURM_TIMELIMIT",    "SLURM_WHOLE",   "SLURM_OVERCOMMIT", "SLURM_THREADS_PER_CORE"};

bool is_srun_option(std::string_view name) {
  return std::ranges::count(srun_names, name) != 0 ||
         std::ranges::any_of(srun_prefixes, [name](auto prefix) { return name.starts_with(prefix); });
}

Status wrong_value_of(const char* variable, const std::string& value, const std::string& expected) {
  return Status(Code::invalid_argument,
                std::string(variable) + " is '" + shown(variable, value) + "'; expected " + expected);
}

// Returns the number of GPUs in a text such as "2", "a100:2" or "a100:1,v100:1", or 0 if there is
// none.
int count_gpus(std::string_view text) {
  std::int64_t count = 0;
  for (const std::string& item : parse_list(text)) {
    const std::optional<std::int64_t> number = parse_integer(item.substr(item.rfind(':') + 1));
    if (!number || *number < 1 || *number > max_ranks) return 0;
    count += *number;
  }
  return static_cast<int>(std::min<std::int64_t>(count, max_ranks));
}

// Returns how many GPUs a step with one task must request to get all of the job's GPUs on a host.
// The result is 0 if the step gets them without a request. The result depends on how the user has
// requested the job's GPUs. If the user gave a number for each node, the step inherits it. If the
// user gave a number for each task, the step would get too few GPUs, because it has only one task.
// If the user gave a number for the whole job, that number is too large for a single host. In that
// case this function assumes that all hosts have the same number of GPUs.
int gpus_to_ask_for(Reader& reader, int nodes, int tasks) {
  const int per_task = count_gpus(reader.text("SLURM_GPUS_PER_TASK").value_or(""));
  if (per_task > 0)
    return static_cast<int>(std::min<std::int64_t>(std::int64_t{per_task} * tasks, max_ranks));
  const int total = count_gpus(reader.text("SLURM_GPUS").value_or(""));
  if (total == 0) return 0;
  const int tasks_per_gpu = count_gpus(reader.text("SLURM_NTASKS_PER_GPU").value_or(""));
  if (tasks_per_gpu > 0) return (tasks + tasks_per_gpu - 1) / tasks_per_gpu;
  const int here = count_gpus(reader.text("SLURM_GPUS_ON_NODE").value_or(""));
  return here > 0 ? here : total / nodes;
}

}  // namespace

Result<SlurmJob> read_slurm_job(Reader& reader) {
  if (in_slurm_step(reader.text("SLURM_STEP_ID").value_or(""))) return SlurmJob{};
  if (reader.text("SLURM_HET_SIZE")) {
    return Status(Code::invalid_argument,
                  "SLURM_HET_SIZE is set: tutti run cannot use the hosts of a heterogeneous job; start the "
                  "ranks by srun --het-group");
  }
  const std::optional<std::string> nodes = reader.text("SLURM_JOB_NODELIST");
  if (!nodes) return SlurmJob{};
  const std::vector<std::string> names = expand_slurm_hosts(*nodes);
  if (names.empty()) return wrong_value_of("SLURM_JOB_NODELIST", *nodes, "a list of nodes");
  const std::string tasks = reader.text("SLURM_TASKS_PER_NODE").value_or("");
  const std::vector<int> slots = expand_slurm_counts(tasks);
  if (!tasks.empty() && slots.size() != names.size()) {
    return wrong_value_of(
        "SLURM_TASKS_PER_NODE", tasks,
        "a number for each of the " + std::to_string(names.size()) + " nodes of SLURM_JOB_NODELIST");
  }
  SlurmJob job;
  for (std::size_t i = 0; i < names.size(); ++i) {
    ListedHost host;
    host.name = names[i];
    if (!slots.empty()) host.slots = slots[i];
    job.hosts.push_back(host);
    const int gpus = gpus_to_ask_for(reader, static_cast<int>(names.size()), host.slots.value_or(1));
    if (gpus > 0) job.gpus[host.name] = gpus;
  }
  return job;
}

Environment without_srun_options(Environment environment) {
  std::erase_if(environment, [](const auto& variable) { return is_srun_option(variable.first); });
  return environment;
}

}  // namespace tutti::tools
