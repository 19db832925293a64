#include "rendezvous/meeting/exchange.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include <tutti/log.h>

#include "core/backoff.h"
#include "rendezvous/meeting/arrivals.h"
#include "rendezvous/store/long_wait.h"

namespace tutti {
namespace {

using rendezvous::rank_key;
using rendezvous::ranks_per_request;
using std::chrono::milliseconds;

constexpr milliseconds poll_interval{50};
constexpr milliseconds interrupt_interval{200};
// A store that stalls for so long is asked once more, after a look whether this rank is interrupted.
constexpr milliseconds stall_limit{3000};
constexpr milliseconds first_pause{20};
constexpr milliseconds longest_pause{300};
// The last requests, which tell others how the meeting has ended, may take so long.
constexpr milliseconds grace{2000};
constexpr milliseconds least_grace{100};
// Ranks that have not come yet can learn of a failure, or of a death, for so long.
constexpr milliseconds told_within{2000};
constexpr milliseconds death_told_within{800};
// Rank 0, when it is done, waits for so long for those who are still connecting.
constexpr milliseconds others_limit{10'000};
// This much of the time given is kept for finding out who has not come.
constexpr milliseconds most_reserved{500};

// What `done` holds if nothing went wrong.
constexpr const char* all_left = "1";

// Whether keys of another meeting, which is over but not cleared away, are in the way of this one.
enum class Entry { entered, stale };

class Exchange {
 public:
  Exchange(Store& store, const Introduction& self, const ExchangeOptions& options, Deadline deadline)
      : store_(store),
        self_(self),
        own_(encode_introduction(self)),
        options_(options),
        deadline_(deadline),
        waiting_(without_reserve(deadline)) {}

  Result<std::vector<PeerInfo>> run();

 private:
  struct Round {
    std::vector<PeerInfo> peers;
    bool stale = false;
  };

  Result<Round> one_round();
  Result<Round> meet();
  static Deadline without_reserve(Deadline deadline);
  Deadline closing() const;
  Deadline patience() const;
  bool follows() const { return options_.single_use && self_.rank != 0; }

  Result<Entry> enter();
  Result<Entry> enter_session();
  Status introduce();
  void bequeath(const std::vector<std::string>& keys);
  Result<Entry> claim(const std::string& key, Status (Exchange::*conflict)(const Introduction& holder) const);
  Status disagreement(const Introduction& first) const { return check_compatible(first, self_); }
  Status duplicate(const Introduction& holder) const { return rendezvous::taken_twice(holder, self_); }
  bool knows_us(const std::vector<Introduction>& peers) const;
  Status interruption() const;
  Result<std::string> current_table(Deadline limit);
  Status publish_failure(const Status& failure);
  Status settle(const Status& failure);
  Status first_cause(const Status& failure) const;
  void linger(const Status& failure);
  void leave(bool failed, bool awaits_others);
  void clear();

  Result<std::string> make_table();
  Result<std::string> gather(int first, int last, std::vector<std::string>& encoded);
  Result<std::string> await_table();
  Result<std::string> await_key(const std::string& key);
  bool is_interrupted() const { return options_.interrupted && options_.interrupted(); }
  Status not_arrived() const;
  void speak_of_wait();

  Store& store_;
  Introduction self_;
  std::string own_;
  const ExchangeOptions& options_;
  const Deadline deadline_;
  const Deadline waiting_;
  const Deadline::Clock::time_point start_ = Deadline::Clock::now();
  LongWait wait_;
  bool holds_rank_ = false;
  bool present_ = false;  // counted as such
  bool introduced_ = false;
  bool failure_stands_ = false;  // in the store, for all to see
  bool connecting_ = false;      // all have met
  std::string first_;            // the first rank that has come
  std::string server_;           // rank 0, if it serves the store and the store ends with it
  std::string taken_by_;         // the process that had our rank in an earlier meeting
};

Result<std::vector<PeerInfo>> Exchange::run() {
  Backoff backoff(first_pause, longest_pause);
  for (;;) {
    Result<Round> round = one_round();
    if (!round.ok()) return round.status();
    if (!round->stale) return std::move(round->peers);
    if (options_.single_use) {
      return Status(Code::unreachable,
                    "the ranks of the session in this store have already come together, without " +
                        self_.describe() + (taken_by_.empty() ? "" : " but with " + taken_by_));
    }
    if (deadline_.remaining() <= backoff.pause()) {
      return Status(Code::timeout,
                    "the store still holds an earlier meeting of the same ranks, which not all of "
                    "them have left");
    }
    if (is_interrupted()) return interruption();
    std::this_thread::sleep_for(backoff.next());
  }
}

// Enters, meets, and leaves whatever came of it: the counter must be right also after a failure.
Result<Exchange::Round> Exchange::one_round() {
  // A store that goes on must not keep what ranks leave behind that die while they meet: `present` counts
  // them for ever.
  if (!options_.single_use && !store_.hold("", deadline_).ok())
    log::debug("the store cannot forget dead ranks");
  if (Result<std::int64_t> present = store_.add("present", 1, deadline_); !present.ok())
    return present.status();
  present_ = true;
  holds_rank_ = false;
  failure_stands_ = connecting_ = false;
  Result<Round> round = meet();
  if (!round.ok()) round = first_cause(round.status());
  // A timeout is about ranks that are late, whom nobody can tell in time; unless all have met.
  const bool lingers =
      !round.ok() && failure_stands_ && (connecting_ || round.status().code() != Code::timeout);
  if (lingers) linger(round.status());
  leave(!round.ok(), !lingers);
  return round;
}

Deadline Exchange::without_reserve(Deadline deadline) {
  if (deadline.is_never()) return deadline;
  const std::chrono::nanoseconds remaining = deadline.remaining();
  return Deadline::after(remaining - std::min<std::chrono::nanoseconds>(remaining / 4, most_reserved));
}

Deadline Exchange::closing() const {
  return Deadline::after(std::clamp<std::chrono::nanoseconds>(deadline_.remaining(), least_grace, grace));
}

// With a question that every store answers at once, unless it stalls.
Deadline Exchange::patience() const {
  return options_.interrupted ? earlier(deadline_, Deadline::after(stall_limit)) : deadline_;
}

// The store of a meeting that is not over is gone: so is rank 0, which serves it.
Status Exchange::first_cause(const Status& failure) const {
  if (failure.code() != Code::peer_lost || failure.peer() >= 0 || server_.empty()) return failure;
  return Status(Code::peer_lost, server_ + ", which serves the store, is gone: " + failure.message(), 0);
}

Result<Exchange::Round> Exchange::meet() {
  const Result<Entry> entry = enter();
  if (!entry.ok()) return entry.status();
  if (*entry == Entry::stale) return Round{{}, true};
  log::debug("this rank has arrived, and waits for the others");
  const Result<std::string> table = self_.rank == 0 ? make_table() : await_table();
  if (!table.ok()) return table.status();
  Result<std::vector<Introduction>> peers = decode_table(*table);
  failure_stands_ = !peers.ok();
  if (!peers.ok()) return peers.status();
  const auto rank = static_cast<std::size_t>(self_.rank);
  if (peers->size() <= rank) return Round{{}, true};
  if (!knows_us(*peers)) {
    if (rendezvous::is_alive_beside(self_, (*peers)[rank])) return duplicate((*peers)[rank]);
    taken_by_ = (*peers)[rank].describe();
    return Round{{}, true};
  }
  if ((*peers)[rank].addresses != self_.addresses) {
    return Status(Code::aborted, "the ranks have met while the connection of " + self_.describe() +
                                     " to the store was broken, and know an earlier address of it");
  }
  for (std::size_t i = 0; i < peers->size(); ++i) {
    if (static_cast<std::size_t>((*peers)[i].rank) == i) continue;
    return Status(Code::protocol_error, "the table of ranks is out of order");
  }
  if (peers->size() != static_cast<std::size_t>(self_.world_size)) {
    return Status(Code::protocol_error,
                  "the table of ranks has " + std::to_string(peers->size()) + " entries");
  }
  Round met{std::vector<PeerInfo>(peers->begin(), peers->end()), false};
  connecting_ = true;
  if (options_.connect) {
    if (const Status status = options_.connect(met.peers); !status.ok()) return settle(status);
  }
  return met;
}

Result<Entry> Exchange::enter() {
  const Result<Entry> session = enter_session();
  if (!session.ok() || *session == Entry::stale) return session;
  bequeath({"table"});
  log::debug("the store knows ", self_.describe());
  if (Status status = introduce(); !status.ok()) return status;
  const Result<Entry> entry = claim(rank_key(self_.rank), &Exchange::duplicate);
  if (entry.ok() && *entry == Entry::entered) bequeath({"table", "done"});
  return entry;
}

Result<Entry> Exchange::enter_session() {
  const Result<Entry> session = claim("session", &Exchange::disagreement);
  if (!session.ok() || *session == Entry::stale || !follows()) return session;
  // Rank 0 is needed only while the meeting is not over.
  const Result<std::string> table = current_table(deadline_);
  if (!table.ok()) return table.status();
  if (table->empty()) server_ = first_;
  return session;
}

// Before this rank is among those that have come: the table might be made of them at once.
Status Exchange::introduce() {
  if (!options_.addresses || introduced_) return {};
  Result<std::map<std::string, std::string>> addresses = options_.addresses();
  if (!addresses.ok()) {
    static_cast<void>(publish_failure(addresses.status().with_context(self_.describe())));
    return addresses.status();
  }
  self_.addresses = *std::move(addresses);
  own_ = encode_introduction(self_);
  introduced_ = true;
  return {};
}

// What the others will read there if this rank dies.
void Exchange::bequeath(const std::vector<std::string>& keys) {
  const Status death(Code::peer_lost,
                     self_.describe() + ": its connection to the store was closed without a goodbye",
                     self_.rank);
  if (!store_.set_will(keys, encode_failure(death), deadline_).ok())
    log::debug("the store cannot tell of dead ranks");
}

// Puts our Introduction under the key unless another is there that is in `conflict` with us.
Result<Entry> Exchange::claim(const std::string& key,
                              Status (Exchange::*conflict)(const Introduction&) const) {
  std::string seen;
  for (;;) {
    if (deadline_.expired()) return not_arrived();
    // Where rank 0 serves the store it is the first to come.
    const bool waits = follows() && key == "session";
    Result<std::string> held = waits ? await_key(key) : store_.compare_set(key, "", own_, deadline_);
    if (waits && held.status().code() == Code::timeout) return not_arrived();
    if (!held.ok()) return held.status();
    if (*held == own_) {
      holds_rank_ = holds_rank_ || key != "session";
      return Entry::entered;
    }
    const Result<Introduction> holder = decode_introduction(*held);
    if (!holder.ok()) return holder.status().with_context("store key '" + key + "'");
    if (waits) first_ = holder->describe();
    if (holder->nonce == self_.nonce && key != "session") {
      // We ourselves, in an attempt that ended with a lost connection.
      if (Status status = store_.set(key, own_, deadline_); !status.ok()) return status;
      continue;
    }
    const Status stranger = check_same_job(*holder, self_);
    if (!stranger.ok() && options_.single_use) return stranger;
    const Status status = stranger.ok() ? (this->*conflict)(*holder) : stranger;
    if (status.ok()) return Entry::entered;
    // The holder may belong to a meeting that is over. Its table goes after the other keys, so if there is no
    // table and the same holder is still there when we look once more, then it is of this meeting.
    const Result<std::string> table = current_table(deadline_);
    if (!table.ok()) return table.status();
    if (!table->empty()) {
      const Result<std::vector<Introduction>> peers = decode_table(*table);
      failure_stands_ = !peers.ok();
      return peers.ok() ? Result<Entry>(Entry::stale) : Result<Entry>(peers.status());
    }
    // Another job is not to be disturbed by this one.
    if (seen == *held) return stranger.ok() ? publish_failure(status) : stranger;
    seen = *held;
  }
}

// Whether the table is of this meeting.
bool Exchange::knows_us(const std::vector<Introduction>& peers) const {
  const auto rank = static_cast<std::size_t>(self_.rank);
  return rank < peers.size() && peers[rank].nonce == self_.nonce;
}

Status Exchange::interruption() const {
  return Status(Code::aborted, self_.describe() + " was interrupted while the ranks met", self_.rank);
}

// Empty if there is none; no table is empty itself.
Result<std::string> Exchange::current_table(Deadline limit) {
  const Result<bool> there = store_.exists("table", limit);
  if (!there.ok()) return there.status();
  if (!*there) return std::string();
  Result<std::string> table = store_.get("table", Deadline::after(poll_interval));
  if (!table.ok() && table.status().code() == Code::timeout) return std::string();
  return table;
}

// Returns the failure that all will see: the first one published. If all have met just now, those who connect
// will.
Status Exchange::publish_failure(const Status& failure) {
  const Result<std::string> table = store_.compare_set("table", "", encode_failure(failure), closing());
  if (!table.ok()) return failure;
  const Result<std::vector<Introduction>> published = decode_table(*table);
  failure_stands_ = !published.ok();
  if (failure_stands_) return published.status();
  connecting_ = knows_us(*published);
  return connecting_ ? settle(failure) : failure;
}

// The same for ranks that have met: the others may have noticed something else, which came of it.
Status Exchange::settle(const Status& failure) {
  const Result<std::string> held = store_.compare_set("done", "", encode_failure(failure), closing());
  if (!held.ok()) {
    // Where rank 0 has died other ranks are lost because of it; but not if its time was over, too, or if the
    // network does not lead to a rank.
    const bool own = failure.code() == Code::timeout || failure.code() == Code::unreachable;
    const Status cause = first_cause(held.status());
    return own || failure.peer() == 0 || cause.peer() != 0 ? failure : cause;
  }
  failure_stands_ = true;
  const Status first = *held == all_left ? failure : decode_table(*held).status();
  return first.ok() ? failure : first;
}

// Ranks that are only just starting should learn of a failure too, and not wait in vain: so whoever keeps the
// store, or all, stay for a moment, unless everybody knows. The last to leave takes the failure along.
void Exchange::linger(const Status& failure) {
  const bool died = failure.code() == Code::peer_lost;
  const int dead = died ? 1 : 0;
  const Deadline limit = earlier(Deadline::after(died ? death_told_within : told_within), closing());
  if (!connecting_ && !store_.add("told", 1, limit).ok()) return;
  // Rank 0 stays for all; what has to be known of a world that is connected is told by its members.
  if (follows() || (connecting_ && !options_.single_use)) return;
  for (; !limit.expired(); std::this_thread::sleep_for(first_pause)) {
    const Result<std::int64_t> count = store_.add(connecting_ ? "present" : "told", 0, limit);
    if (!count.ok()) return;
    if (connecting_ ? *count <= dead + (present_ ? 1 : 0) : *count >= self_.world_size - dead) return;
  }
}

// Best effort: the outcome is known already, and with single_use rank 0 may have stopped serving. Rank 0 does
// not before all have left or one has failed, of which a world that is connected learns by itself.
void Exchange::leave(bool failed, bool awaits_others) {
  const Deadline limit =
      failed || deadline_.expired() ? closing() : earlier(deadline_, Deadline::after(others_limit));
  if (holds_rank_ && !store_.delete_key(rank_key(self_.rank), limit).ok()) return;
  const Result<std::int64_t> present = store_.add("present", -1, limit);
  present_ = false;
  if (!present.ok()) return;
  if (*present == 0) clear();
  static_cast<void>(store_.set_will({}, "", limit).ok());
  if (!options_.single_use) static_cast<void>(store_.release(limit).ok());
  if (!options_.single_use || self_.rank != 0 || !holds_rank_ || !awaits_others) return;
  const Result<std::string> done = store_.get("done", earlier(limit, Deadline::after(others_limit)));
  if (done.ok() && *done != all_left) linger(decode_table(*done).status());
}

void Exchange::clear() {
  const Deadline limit = closing();
  if (options_.single_use) {
    static_cast<void>(store_.compare_set("done", "", all_left, limit).ok());
    return;
  }
  for (const char* key : {"session", "told", "done", "table"}) {
    if (!store_.delete_key(key, limit).ok()) return;
  }
}

Result<std::string> Exchange::make_table() {
  std::vector<std::string> encoded;
  encoded.reserve(static_cast<std::size_t>(self_.world_size));
  while (encoded.size() < static_cast<std::size_t>(self_.world_size)) {
    const int first = static_cast<int>(encoded.size());
    const int last = std::min(self_.world_size, first + static_cast<int>(ranks_per_request));
    Result<std::string> table = gather(first, last, encoded);
    if (table.ok() && !table->empty()) return table;
    if (table.ok()) continue;
    const bool late = table.status().code() == Code::timeout && waiting_.expired();
    return late ? publish_failure(not_arrived()) : table.status();
  }
  if (Status status = rendezvous::check_gathered(self_, encoded); !status.ok())
    return publish_failure(status);
  // If somebody published a failure first, that is the table.
  return store_.compare_set("table", "", encode_table(encoded), deadline_);
}

// Appends what ranks first..last-1 published, however long they take. Ends early with the table if there
// already is one: somebody's failure, or that of an earlier meeting.
Result<std::string> Exchange::gather(int first, int last, std::vector<std::string>& encoded) {
  std::vector<std::string> keys;
  for (int rank = first; rank < last; ++rank) keys.push_back(rank_key(rank));
  for (;;) {
    const Deadline piece = earlier(waiting_, Deadline::after(poll_interval));
    Result<std::vector<std::string>> values = store_.get_many(keys, piece);
    if (values.ok()) {
      std::ranges::move(*values, std::back_inserter(encoded));
      return std::string();
    }
    if (values.status().code() != Code::timeout || waiting_.expired()) return values.status();
    if (options_.while_waiting) options_.while_waiting();
    if (is_interrupted()) return publish_failure(interruption());
    speak_of_wait();
    Result<std::string> table = current_table(patience());
    const bool stalls = table.status().code() == Code::timeout;
    if (!stalls && (!table.ok() || !table->empty())) return table;
    if (!piece.expired()) std::this_thread::sleep_for(first_pause);
  }
}

// In pieces, each a request to the store: between them the rank looks whether it is interrupted, and whether
// the store is still there, since not every store tells an error from a time that is over.
Result<std::string> Exchange::await_key(const std::string& key) {
  while (!waiting_.expired()) {
    Deadline piece = earlier(waiting_, wait_.next());
    if (options_.interrupted) piece = earlier(piece, Deadline::after(interrupt_interval));
    Result<std::string> value = store_.get(key, piece);
    if (value.ok() || value.status().code() != Code::timeout) return value;
    if (is_interrupted()) return publish_failure(interruption());
    speak_of_wait();
    const Result<bool> there = store_.exists(key, patience());
    if (!there.ok() && there.status().code() != Code::timeout) return there.status();
    if (!piece.expired()) std::this_thread::sleep_for(first_pause);
  }
  return Status(Code::timeout, "nobody has set '" + key + "'");
}

Result<std::string> Exchange::await_table() {
  Result<std::string> table = await_key("table");
  if (table.ok() || table.status().code() != Code::timeout) return table;
  // Rank 0's time may be up at this moment too; then it says for all who is missing.
  table = store_.get("table", deadline_);
  if (table.ok() || table.status().code() != Code::timeout) return table;
  return not_arrived();
}

void Exchange::speak_of_wait() {
  if (waiting_.expired() || !wait_.is_due()) return;
  const std::vector<int> missing = rendezvous::missing_ranks(store_, self_.world_size, closing());
  log::warn(self_.describe(), " has waited for ", wait_.waited(), " at ", options_.place, " for ",
            missing.empty() ? "rank 0" : rendezvous::list_ranks(missing), " (world size ", self_.world_size,
            ")");
}

Status Exchange::not_arrived() const {
  const auto waited = std::chrono::round<milliseconds>(Deadline::Clock::now() - start_);
  return rendezvous::not_arrived(store_, self_, options_.place, waited, closing());
}

}  // namespace

Result<std::vector<PeerInfo>> exchange(Store& store, const Introduction& self, const ExchangeOptions& options,
                                       Deadline deadline) {
  if (self.rank < 0 || self.rank >= self.world_size) {
    return Status(Code::invalid_argument, "rank " + std::to_string(self.rank) +
                                              " is not below the world size " +
                                              std::to_string(self.world_size));
  }
  return Exchange(store, self, options, deadline).run();
}

}  // namespace tutti
