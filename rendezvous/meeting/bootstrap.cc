#include "rendezvous/meeting/bootstrap.h"

#include <chrono>
#include <thread>

#include <tutti/log.h>

#include "core/backoff.h"
#include "rendezvous/store/prefix_store.h"

namespace tutti {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds first_rejoin_pause{20};
constexpr milliseconds longest_rejoin_pause{300};

// Returns whether the session has ended. In that case the next attempt may find a new session. A failure that
// names a rank is final.
bool is_over(const Status& status) {
  return status.peer() < 0 && (status.code() == Code::peer_lost || status.code() == Code::unreachable);
}

// If `failure` is a timeout, adds the process that the store refused last, which may be the missing rank.
Status with_refusal(const Status& failure, const Session& session) {
  const std::string refusal = session.last_refusal();
  if (failure.code() != Code::timeout || refusal.empty()) return failure;
  return Status(failure.code(), failure.message() + "; turned away meanwhile: " + refusal, failure.peer());
}

// Makes one attempt to meet. Sets `connecting` once the ranks have met; after that there is no other attempt.
Result<Joined> attempt(const Launch& launch, const JoinOptions& options, Introduction self, Deadline deadline,
                       bool& connecting) {
  Result<Session> session = serve_or_connect(launch, options.session, deadline);
  if (!session.ok()) return session.status();
  PrefixStore store(session->single_use ? "tutti" : options.prefix, session->store);
  ExchangeOptions exchange_options{session->single_use, [&] { session->keep_alive(); },
                                   to_string(launch.store) + session->doubt};
  exchange_options.interrupted = options.session.interrupted;
  exchange_options.approve = options.approve;
  if (options.addresses) exchange_options.addresses = [&] { return options.addresses(*session); };
  exchange_options.connect = [&](const std::vector<PeerInfo>& peers) {
    connecting = true;
    return options.connect ? options.connect(peers) : Status();
  };
  Result<std::vector<PeerInfo>> peers = exchange(store, self, exchange_options, deadline);
  if (!peers.ok()) return with_refusal(peers.status(), *session);
  return Joined{std::move(self), *std::move(peers), *std::move(session)};
}

}  // namespace

Result<Joined> join(const Launch& launch, const JoinOptions& options, Deadline deadline) {
  Introduction self = describe_this_process();
  self.rank = launch.rank;
  self.world_size = launch.world_size;
  self.wire_digest = options.wire_digest;
  self.version = options.version;
  self.offloads = options.offloads;
  Backoff backoff(first_rejoin_pause, longest_rejoin_pause);
  std::string earlier_failure;
  for (;;) {
    bool connecting = false;
    Result<Joined> joined = attempt(launch, options, self, deadline, connecting);
    if (joined.ok() || connecting || !is_over(joined.status())) return joined;
    if (deadline.remaining() <= backoff.pause()) {
      const Status& last = joined.status();
      return earlier_failure.empty() || earlier_failure == last.message()
                 ? last
                 : Status(last.code(), last.message() + "; before that: " + earlier_failure);
    }
    log::debug("meeting the other ranks starts over: ", joined.status());
    earlier_failure = joined.status().message();
    if (options.session.interrupted && options.session.interrupted())
      return Status(Code::aborted, self.describe() + " was interrupted while the ranks met", self.rank);
    std::this_thread::sleep_for(backoff.next());
  }
}

}  // namespace tutti
