#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include <tutti/config.h>
#include <tutti/deadline.h>
#include <tutti/init.h>

#include "bindings/cpp/mpi_meeting.h"
#include "rendezvous/launch/launch.h"

// These functions find out which rank a process is and where the ranks meet, and use MPI for it if the user
// has chosen MPI. They throw `Error`.
namespace tutti {

// Returns the launch that the arguments and the environment describe.
Launch launch_of(const InitOptions& given);
// Does the same, but also begins a meeting if the ranks meet through MPI. If `names_mpi` is set, the user has
// chosen the transport `mpi`, and all processes of the MPI world must make this call.
Launch launch_of(const InitOptions& given, const Config& config, bool names_mpi,
                 std::unique_ptr<MpiMeeting>& mpi);
// Joins the MPI world, for the transport `mpi`. All processes of that world must make this call.
void join_mpi(const InitOptions& given, const Config& config, Deadline deadline);
// Returns when `init` must be over. `from_url` is the timeout in the URL, if it has one.
Deadline init_deadline(const InitOptions& given, const Config& config,
                       const std::optional<std::chrono::nanoseconds>& from_url);

}  // namespace tutti
