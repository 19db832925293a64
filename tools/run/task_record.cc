#include "tools/run/task_record.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>

#include <tools/run/link.pb.h>

namespace tutti::tools {
namespace {

constexpr std::chrono::nanoseconds longest_time = std::chrono::years(1);

// Puts a folder in front of a list such as PATH.
void put_in_front(Environment& environment, const std::string& name, const std::string& folder) {
  std::string& folders = environment[name];
  folders = folders.empty() ? folder : folder + ":" + folders;
}

bool makes_sense(const record::Start& start) {
  const auto& ranks = start.ranks();
  return !start.program().empty() && !start.program(0).empty() && !ranks.empty() &&
         std::ranges::adjacent_find(ranks, std::greater_equal<>()) == ranks.end() &&
         *ranks.rbegin() < start.world_size() &&
         start.world_size() <= static_cast<std::uint32_t>(std::numeric_limits<int>::max()) &&
         start.binding() <= static_cast<std::uint32_t>(Binding::numa) && (!start.input() || ranks[0] == 0);
}

}  // namespace

std::chrono::nanoseconds time_of(std::uint64_t nanoseconds) {
  return std::chrono::nanoseconds(std::min<std::uint64_t>(nanoseconds, longest_time.count()));
}

Environment environment_here(const google::protobuf::RepeatedPtrField<record::Variable>& variables) {
  Environment environment = environment_of_process();
  for (const record::Variable& variable : variables) environment[variable.name()] = variable.value();
  return environment;
}

std::optional<AgentTask> task_of(const record::Start& start) {
  if (!makes_sense(start)) return std::nullopt;
  AgentTask task;
  task.program.assign(start.program().begin(), start.program().end());
  task.environment = environment_here(start.variables());
  if (!start.prefix().empty()) {
    put_in_front(task.environment, "PATH", start.prefix() + "/bin");
    put_in_front(task.environment, "LD_LIBRARY_PATH", start.prefix() + "/lib");
  }
  task.ranks.assign(start.ranks().begin(), start.ranks().end());
  task.world_size = static_cast<int>(start.world_size());
  task.merge_stderr = start.merge_stderr();
  task.binding = static_cast<Binding>(start.binding());
  task.mpi_variables = start.mpi_variables();
  task.kill_grace = time_of(start.kill_grace_ns());
  return task;
}

}  // namespace tutti::tools
