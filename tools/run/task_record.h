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

// Returns a time of a record. At most a year long, it can be added to a clock's time.
std::chrono::nanoseconds time_of(std::uint64_t nanoseconds);

// Returns the variables of a job on this host: those of this process, and over them those that the launcher
// has sent.
Environment environment_here(const google::protobuf::RepeatedPtrField<record::Variable>& variables);

// Returns the task that the record describes, without the input, or nothing if it describes none.
std::optional<AgentTask> task_of(const record::Start& start);

}  // namespace tutti::tools
