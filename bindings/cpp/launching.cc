#include "bindings/cpp/launching.h"

#include <mutex>
#include <string>

#include "bindings/cpp/mpi_process.h"
#include "rendezvous/launch/environment.h"
#include "rendezvous/launch/url.h"

namespace tutti {
namespace {

// Returns the URL by which the ranks meet through MPI, or nothing if they meet elsewhere. If the program and
// TUTTI_INIT_METHOD both name a place, the program's URL counts. (`discover` reports places that differ.)
std::optional<InitUrl> mpi_url(const InitOptions& given, const Config& config) {
  for (const std::string& text : {given.url, config.init_method}) {
    const Result<InitUrl> url = parse_url(text);
    if (!url.ok() || url->scheme == InitUrl::Scheme::env) continue;
    return url->scheme == InitUrl::Scheme::mpi ? std::optional(*url) : std::nullopt;
  }
  return std::nullopt;
}

// Returns the launch of ranks that meet through MPI, and begins the meeting. MPI says which rank this process
// is.
Launch meet_through_mpi(const InitOptions& given, const Config& config, const std::string& url,
                        Deadline deadline, std::unique_ptr<MpiMeeting>& mpi) {
  mpi = MpiMeeting::begin(config.mpi_library, given.interrupted, deadline).take();
  if (given.rank.value_or(mpi->rank()) != mpi->rank() ||
      given.world_size.value_or(mpi->size()) != mpi->size()) {
    throw Error(Status(Code::invalid_argument,
                       "the options of init contradict MPI, which says that this is rank " +
                           std::to_string(mpi->rank()) + " of " + std::to_string(mpi->size())));
  }
  return discover({.url = url, .rank = mpi->rank(), .world_size = mpi->size(), .said_by = "MPI"}).take();
}

}  // namespace

Launch launch_of(const InitOptions& given) {
  return discover({.url = given.url, .rank = given.rank, .world_size = given.world_size}).take();
}

Launch launch_of(const InitOptions& given, const Config& config, bool names_mpi,
                 std::unique_ptr<MpiMeeting>& mpi) {
  if (const std::optional<InitUrl> url = mpi_url(given, config))
    return meet_through_mpi(given, config, given.url, init_deadline(given, config, url->timeout), mpi);
  Launch launch = launch_of(given);
  if (!names_mpi) return launch;
  const Deadline deadline = init_deadline(given, config, launch.timeout);
  // MPI speaks to the launcher itself, over the socket through which the ranks would meet.
  if (launch.store.kind == StoreLocation::Kind::pmi || launch.store.kind == StoreLocation::Kind::pmix) {
    const auto timeout = launch.timeout;
    launch = meet_through_mpi(given, config, "mpi://", deadline, mpi);
    launch.timeout = timeout;
  } else {
    join_mpi(given, config, deadline);
  }
  return launch;
}

void join_mpi(const InitOptions& given, const Config& config, Deadline deadline) {
  std::unique_lock<std::mutex> turn;
  const Status joined = MpiProcess::instance().begin(turn, config.mpi_library, given.interrupted, deadline);
  if (!joined.ok()) throw Error(joined.with_context("transport mpi"));
}

Deadline init_deadline(const InitOptions& given, const Config& config,
                       const std::optional<std::chrono::nanoseconds>& from_url) {
  if (given.timeout.count() > 0) return Deadline::after(given.timeout);
  return Deadline::after(from_url.value_or(config.init_timeout));
}

}  // namespace tutti
