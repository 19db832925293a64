#include <algorithm>
#include <chrono>
#include <thread>

#include <tutti/core/log.h>
#include <tutti/rendezvous/bootstrap.h>
#include <tutti/rendezvous/prefix_store.h>

namespace tutti {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds first_pause{20};
constexpr milliseconds longest_pause{300};
// For telling the others that this rank cannot come.
constexpr milliseconds patience{5000};

// Whether the next attempt may find a better session.
bool is_over(const Status& status) {
  return status.code() == Code::peer_lost || status.code() == Code::unreachable;
}

// Somebody that was turned away may be the one that is missing.
Status with_refusal(const Status& failure, const Session& session) {
  const std::string refusal = session.last_refusal();
  if (failure.code() != Code::timeout || refusal.empty()) return failure;
  return Status(failure.code(), failure.message() + "; turned away meanwhile: " + refusal, failure.peer());
}

Result<Joined> attempt(const Launch& launch, const JoinOptions& options, Introduction self,
                       Deadline deadline) {
  Result<Session> session = serve_or_connect(launch, options.session, deadline);
  if (!session.ok()) return session.status();
  PrefixStore store(options.prefix, session->store);
  ExchangeOptions exchange_options{session->single_use, [&] { session->keep_alive(); },
                                   to_string(launch.store)};
  if (options.addresses) {
    Result<std::map<std::string, std::string>> addresses = options.addresses(*session);
    if (!addresses.ok()) {
      const Status& why = addresses.status();
      if (is_over(why)) return why;
      // The others are not to wait for this rank.
      exchange_options.failure = why.with_context(self.describe());
      static_cast<void>(
          exchange(store, self, exchange_options, earlier(deadline, Deadline::after(patience))).ok());
      return why;
    }
    self.addresses = *std::move(addresses);
  }
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
  milliseconds pause = first_pause;
  std::string earlier_failure;
  for (;;) {
    Result<Joined> joined = attempt(launch, options, self, deadline);
    if (joined.ok() || !is_over(joined.status())) return joined;
    if (deadline.remaining() <= pause) {
      const Status& last = joined.status();
      return earlier_failure.empty() || earlier_failure == last.message()
                 ? last
                 : Status(last.code(), last.message() + "; before that: " + earlier_failure);
    }
    log::debug("meeting the other ranks starts over: ", joined.status());
    earlier_failure = joined.status().message();
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, longest_pause);
  }
}

}  // namespace tutti
