#include "rendezvous/meeting/entrance.h"

#include <map>
#include <utility>

#include <tutti/log.h>

#include "rendezvous/meeting/arrivals.h"

namespace tutti::rendezvous {
namespace {

constexpr const char* session_key = "session";

}  // namespace

Result<Entry> Entrance::enter() {
  const Result<Entry> session = join_session();
  if (!session.ok() || *session == Entry::stale) return session;
  bequeath({"table"});
  log::debug("the store knows ", meeting_.self.describe());
  if (Status status = introduce(); !status.ok()) return status;
  return take_seat();
}

Result<Entry> Entrance::join_session() {
  const Result<Entry> session = claim(session_key, &Entrance::disagreement);
  if (!session.ok() || *session == Entry::stale || !meeting_.follows()) return session;
  // While there is no table, the ranks need rank 0, and blame it if the store is lost
  // (`Ending::first_cause`).
  const Result<std::string> table = meeting_.current_table(meeting_.deadline);
  if (!table.ok()) return table.status();
  if (table->empty()) meeting_.server = first_;
  return session;
}

Result<Entry> Entrance::take_seat() {
  const Result<Entry> seat = claim(rank_key(meeting_.self.rank), &Entrance::duplicate);
  if (seat.ok() && *seat == Entry::entered) bequeath({"table", "done"});
  return seat;
}

// Obtains this rank's addresses. The rank must have them before it arrives: once all ranks have arrived, rank
// 0 makes the table, which contains the addresses.
Status Entrance::introduce() {
  if (!meeting_.options.addresses || introduced_) return {};
  Result<std::map<std::string, std::string>> addresses = meeting_.options.addresses();
  if (!addresses.ok()) {
    static_cast<void>(ending_.publish(addresses.status().with_context(meeting_.self.describe())));
    return addresses.status();
  }
  meeting_.self.addresses = *std::move(addresses);
  introduced_ = true;
  return {};
}

// Leaves a will with the store: if this rank dies, the store sets these keys to a failure that names this
// rank.
void Entrance::bequeath(const std::vector<std::string>& keys) {
  const Introduction& self = meeting_.self;
  const Status death(Code::peer_lost,
                     self.describe() + ": its connection to the store was closed without a goodbye",
                     self.rank);
  if (!meeting_.store.set_will(keys, encode_failure(death), meeting_.deadline).ok())
    log::debug("the store cannot tell of dead ranks");
}

Status Entrance::disagreement(const Introduction& first) const {
  return check_compatible(first, meeting_.self);
}

Status Entrance::duplicate(const Introduction& holder) const { return taken_twice(holder, meeting_.self); }

// Puts this rank's Introduction under the key if the key is free. Otherwise another process, the holder, has
// put its Introduction there. Then `conflict` decides: it returns ok if this rank may enter alongside
// the holder.
Result<Entry> Entrance::claim(const std::string& key, Conflict conflict) {
  MeetingStore& store = meeting_.store;
  const bool is_seat = key != session_key;
  // If rank 0 serves the store, the other ranks wait until rank 0 has set the session key.
  const bool waits = meeting_.follows() && !is_seat;
  const std::string own = meeting_.own();
  std::string seen;
  for (;;) {
    if (meeting_.deadline.expired()) return meeting_.not_arrived();
    Result<std::string> held =
        waits ? meeting_.await_key(key) : store.compare_set(key, "", own, meeting_.deadline);
    if (waits && held.status().code() == Code::timeout) return meeting_.not_arrived();
    if (!held.ok()) return held.status();
    if (*held == own) {
      if (is_seat) meeting_.phase = Meeting::Phase::seated;
      return Entry::entered;
    }
    const Result<Introduction> holder = decode_introduction(*held);
    if (!holder.ok()) return holder.status().with_context("store key '" + key + "'");
    if (waits) first_ = holder->describe();
    if (holder->nonce == meeting_.self.nonce && is_seat) {
      // The holder is this process itself: an earlier attempt set the key and then lost its connection.
      if (Status status = store.set(key, own, meeting_.deadline); !status.ok()) return status;
      continue;
    }
    const Status stranger = check_same_job(*holder, meeting_.self);
    if (!stranger.ok() && meeting_.options.single_use) return stranger;
    const Status refusal = stranger.ok() ? (this->*conflict)(*holder) : stranger;
    if (refusal.ok()) return Entry::entered;
    const Result<Entry> other = look_for_table();
    if (!other.ok() || *other == Entry::stale) return other;
    // A conflict with another job is not published, since this job must not disturb the other job.
    if (seen == *held) return stranger.ok() ? ending_.publish(refusal) : stranger;
    seen = *held;
  }
}

// Finds out whether the holder of a key may belong to an earlier meeting. Returns `stale` if there is a
// table: this rank has not arrived yet, so the table belongs to an earlier meeting, and the holder may as
// well. Returns the failure if one was published instead of a table. Returns `entered` if there is no table.
// An earlier meeting deletes its table last, so by then all of its keys are gone. The caller reads the key
// again. If the key still has the same holder, the holder belongs to this meeting.
Result<Entry> Entrance::look_for_table() {
  const Result<std::string> table = meeting_.current_table(meeting_.deadline);
  if (!table.ok()) return table.status();
  if (table->empty()) return Entry::entered;
  const Result<std::vector<Introduction>> peers = decode_table(*table);
  meeting_.failure_stands = !peers.ok();
  if (!peers.ok()) return peers.status();
  return Entry::stale;
}

}  // namespace tutti::rendezvous
