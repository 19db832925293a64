#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "rendezvous/launch/environment.h"
#include "tools/run/agent_control.h"

namespace google::protobuf {
template <typename Element>
class RepeatedPtrField;
}

namespace tutti::tools {

namespace record {
class Start;
class Variable;
}  // namespace record

// Converts a time of a record. The result is at most a year, so that adding it to a clock's time
// cannot overflow.
std::chrono::nanoseconds time_of(std::uint64_t nanoseconds);

// Returns the variables of a job on this host: the variables of this process, in which the
// launcher's variables replace those with the same names.
Environment environment_here(const google::protobuf::RepeatedPtrField<record::Variable>& variables);

// Returns the task that the record describes, without the input. Returns nothing if the record is
// not valid.
std::optional<AgentTask> task_of(const record::Start& start);

}  // namespace tutti::tools
