#include "rendezvous/meeting/ending.h"

#include <chrono>
#include <thread>
#include <utility>

#include "rendezvous/meeting/arrivals.h"

namespace tutti::rendezvous {
namespace {

using std::chrono::milliseconds;
using Phase = Meeting::Phase;

// Ranks stay this long after a failure (the first limit) or a death (the second), so that ranks that arrive
// later learn what has happened.
constexpr milliseconds told_within{2000};
constexpr milliseconds death_told_within{800};
// When rank 0 has finished, it waits this long for ranks that are still connecting.
constexpr milliseconds others_limit{10'000};

// The key `done` has this value if nothing went wrong.
constexpr const char* all_left = "1";

}  // namespace

Status Ending::publish(const Status& failure) {
  MeetingStore& store = meeting_.store;
  const Result<std::string> table = store.compare_set("table", "", encode_failure(failure), store.closing());
  if (!table.ok()) return failure;
  const Result<std::vector<Introduction>> published = decode_table(*table);
  meeting_.failure_stands = !published.ok();
  if (meeting_.failure_stands) return published.status();
  if (!meeting_.knows_us(*published)) return failure;
  meeting_.phase = Phase::connecting;
  return settle(failure);
}

Status Ending::settle(const Status& failure) {
  MeetingStore& store = meeting_.store;
  const Result<std::string> held = store.compare_set("done", "", encode_failure(failure), store.closing());
  if (!held.ok()) {
    // If the store is gone because rank 0 has died, rank 0's death is the cause of all other losses. But it
    // is not the cause of a timeout or of an unreachable rank.
    const bool own = failure.code() == Code::timeout || failure.code() == Code::unreachable;
    const Status cause = first_cause(held.status());
    return own || failure.peer() == 0 || cause.peer() != 0 ? failure : cause;
  }
  meeting_.failure_stands = true;
  // If the key is damaged, this rank's own failure stands.
  return published_failure(*held).value_or(failure);
}

Status Ending::first_cause(const Status& failure) const {
  if (failure.code() != Code::peer_lost || failure.peer() >= 0 || meeting_.server.empty()) return failure;
  return Status(Code::peer_lost, meeting_.server + ", which serves the store, is gone: " + failure.message(),
                0);
}

void Ending::take_leave(const Status& outcome) {
  const bool failed = !outcome.ok();
  // A timeout before all ranks have met means that ranks are very late. They are unlikely to arrive
  // within the short time that this rank could stay, so it leaves at once. Once all ranks have met,
  // this rank stays even after a timeout.
  const bool connecting = meeting_.phase == Phase::connecting;
  const bool lingers = failed && meeting_.failure_stands && (connecting || outcome.code() != Code::timeout);
  if (lingers) linger(outcome, 1);
  leave(failed, !lingers);
}

// Stays for a moment, so that ranks that are still starting learn of the failure instead of waiting.
// With `single_use` only rank 0 stays, since it serves the store. Without `single_use`, all ranks stay if
// they have not all met yet, since the last rank to leave removes the failure from the store. The wait ends
// early once every rank knows.
void Ending::linger(const Status& failure, int counted) {
  MeetingStore& store = meeting_.store;
  const bool connecting = meeting_.phase == Phase::connecting;
  const bool died = failure.code() == Code::peer_lost;
  const int dead = died ? 1 : 0;
  const Deadline limit = earlier(Deadline::after(died ? death_told_within : told_within), store.closing());
  if (!connecting && !store.add("told", 1, limit).ok()) return;
  // With `single_use`, rank 0 stays on behalf of all ranks. Without `single_use`, no rank stays once all have
  // met, since the ranks then notice the failure over their connections.
  if (meeting_.follows() || (connecting && !meeting_.options.single_use)) return;
  for (; !limit.expired(); std::this_thread::sleep_for(short_pause)) {
    const Result<std::int64_t> count = store.add(connecting ? "present" : "told", 0, limit);
    if (!count.ok()) return;
    if (connecting ? *count <= dead + counted : *count >= meeting_.self.world_size - dead) return;
  }
}

// Ignores failures of the store, since the outcome is already known, and rank 0 may have stopped
// serving a `single_use` store. Rank 0 serves such a store until all ranks have left or one has
// failed. After a failure rank 0 may stop, since connected ranks notice the failure without the
// store.
void Ending::leave(bool failed, bool awaits_others) {
  MeetingStore& store = meeting_.store;
  const Introduction& self = meeting_.self;
  const Deadline limit = failed || meeting_.deadline.expired()
                             ? store.closing()
                             : earlier(meeting_.deadline, Deadline::after(others_limit));
  const bool connecting = meeting_.phase == Phase::connecting;
  const bool seated = connecting || meeting_.phase == Phase::seated;
  if (seated && !store.delete_key(rank_key(self.rank), limit).ok()) return;
  const Result<std::int64_t> present = store.add("present", -1, limit);
  if (!present.ok()) return;
  if (*present == 0) clear();
  static_cast<void>(store.set_will({}, "", limit).ok());
  if (!meeting_.options.single_use) static_cast<void>(store.release(limit).ok());
  if (!meeting_.options.single_use || self.rank != 0 || !seated || !awaits_others) return;
  const Result<std::string> done = store.get("done", earlier(limit, Deadline::after(others_limit)));
  if (!done.ok()) return;
  if (const std::optional<Status> failure = published_failure(*done)) linger(*failure, 0);
}

void Ending::clear() {
  MeetingStore& store = meeting_.store;
  const Deadline limit = store.closing();
  if (meeting_.options.single_use) {
    static_cast<void>(store.compare_set("done", "", all_left, limit).ok());
    return;
  }
  for (const char* key : {"session", "told", "done", "table"}) {
    if (!store.delete_key(key, limit).ok()) return;
  }
}

}  // namespace tutti::rendezvous
