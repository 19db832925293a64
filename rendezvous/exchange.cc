#include <algorithm>
#include <chrono>
#include <thread>

#include <tutti/core/config_values.h>
#include <tutti/core/log.h>
#include <tutti/rendezvous/exchange.h>

namespace tutti {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds poll_interval{100};
constexpr milliseconds first_pause{20};
constexpr milliseconds longest_pause{300};
// For what is still to be said when the time is over, or to those who were told of a failure.
constexpr milliseconds grace{2000};
constexpr std::size_t ranks_per_request = 256;
constexpr std::size_t most_missing_named = 16;

std::string rank_key(int rank) { return "rank/" + std::to_string(rank); }

// Whether keys of another meeting, which is over but not cleared away, are in the way of this one.
enum class Entry { entered, stale };

class Exchange {
 public:
  Exchange(Store& store, const Introduction& self, const ExchangeOptions& options, Deadline deadline)
      : store_(store), self_(self), own_(encode_introduction(self)), options_(options), deadline_(deadline) {}

  Result<std::vector<PeerInfo>> run();

 private:
  struct Round {
    std::vector<PeerInfo> peers;
    bool stale = false;
  };

  Result<Round> one_round();
  Result<Round> meet();
  Result<Entry> enter();
  Result<Entry> claim(const std::string& key, Status (Exchange::*conflict)(const Introduction& holder) const);
  Status disagreement(const Introduction& first) const { return check_compatible(first, self_); }
  Status duplicate(const Introduction& holder) const;
  Result<std::string> current_table();
  Status publish_failure(const Status& failure);
  void linger();
  void leave(bool failed);
  void clear();

  Result<std::string> make_table();
  Result<std::string> gather(int first, int last, std::vector<std::string>& encoded);
  Status check_gathered(const std::vector<std::string>& encoded) const;
  Result<std::string> await_table();
  Status not_arrived();
  std::vector<int> missing_ranks();

  Store& store_;
  const Introduction& self_;
  const std::string own_;
  const ExchangeOptions& options_;
  const Deadline deadline_;
  const Deadline::Clock::time_point start_ = Deadline::Clock::now();
  bool holds_rank_ = false;
  bool failure_stands_ = false;  // in the store, for all to see
  std::string taken_by_;         // who is us in an earlier meeting
};

Result<std::vector<PeerInfo>> Exchange::run() {
  milliseconds pause = first_pause;
  for (;;) {
    Result<Round> round = one_round();
    if (!round.ok()) return round.status();
    if (!round->stale) return std::move(round->peers);
    if (options_.single_use) {
      return Status(Code::unreachable,
                    "the ranks of the session in this store have already come together, without " +
                        self_.describe() + (taken_by_.empty() ? "" : " but with " + taken_by_));
    }
    if (deadline_.remaining() <= pause) {
      return Status(Code::timeout,
                    "the store still holds an earlier meeting of the same ranks, which not all of "
                    "them have left");
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, longest_pause);
  }
}

// Enters, meets, and leaves whatever came of it: the counter must be right also after a failure.
Result<Exchange::Round> Exchange::one_round() {
  // A store that goes on must not keep what ranks leave behind that die while they meet.
  if (!options_.single_use && !store_.hold("", deadline_).ok())
    log::debug("the store cannot forget dead ranks");
  if (Result<std::int64_t> present = store_.add("present", 1, deadline_); !present.ok())
    return present.status();
  holds_rank_ = false;
  failure_stands_ = false;
  Result<Round> round = meet();
  // Who is late, and so not told in time, is what a timeout is about.
  if (!round.ok() && failure_stands_ && round.status().code() != Code::timeout) linger();
  leave(!round.ok());
  return round;
}

Result<Exchange::Round> Exchange::meet() {
  const Result<Entry> entry = enter();
  if (!entry.ok()) return entry.status();
  if (*entry == Entry::stale) return Round{{}, true};
  const Result<std::string> table = self_.rank == 0 ? make_table() : await_table();
  if (!table.ok()) return table.status();
  Result<std::vector<Introduction>> peers = decode_table(*table);
  failure_stands_ = !peers.ok();
  if (!peers.ok()) return peers.status();
  const auto rank = static_cast<std::size_t>(self_.rank);
  if (peers->size() <= rank) return Round{{}, true};
  if ((*peers)[rank].nonce != self_.nonce) {
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
  return Round{std::vector<PeerInfo>(peers->begin(), peers->end()), false};
}

Result<Entry> Exchange::enter() {
  const Result<Entry> session = claim("session", &Exchange::disagreement);
  if (!session.ok() || *session == Entry::stale) return session;
  // Before it is among those that have come: the table might be made of them at once.
  if (!options_.failure.ok()) return publish_failure(options_.failure);
  return claim(rank_key(self_.rank), &Exchange::duplicate);
}

// Puts our Introduction under the key unless another is there that is in `conflict` with us.
Result<Entry> Exchange::claim(const std::string& key,
                              Status (Exchange::*conflict)(const Introduction&) const) {
  std::string seen;
  for (;;) {
    Result<std::string> held = store_.compare_set(key, "", own_, deadline_);
    if (!held.ok()) return held.status();
    if (*held == own_) {
      holds_rank_ = holds_rank_ || key != "session";
      return Entry::entered;
    }
    const Result<Introduction> holder = decode_introduction(*held);
    if (!holder.ok()) return holder.status().with_context("store key '" + key + "'");
    if (holder->nonce == self_.nonce && key != "session") {
      // We ourselves, in an attempt that ended with a lost connection.
      if (Status status = store_.set(key, own_, deadline_); !status.ok()) return status;
      continue;
    }
    const Status status = (this->*conflict)(*holder);
    if (status.ok()) return Entry::entered;
    // The holder may belong to a meeting that is over. Its table goes after the other keys, so if there is no
    // table and the same holder is still there when we look once more, then it is of this meeting.
    const Result<std::string> table = current_table();
    if (!table.ok()) return table.status();
    if (!table->empty()) {
      const Result<std::vector<Introduction>> peers = decode_table(*table);
      failure_stands_ = !peers.ok();
      return peers.ok() ? Result<Entry>(Entry::stale) : Result<Entry>(peers.status());
    }
    if (seen == *held) return publish_failure(status);
    seen = *held;
  }
}

Status Exchange::duplicate(const Introduction& holder) const {
  return Status(Code::mismatch,
                "rank " + std::to_string(self_.rank) + " is taken twice: on host " + holder.host +
                    " by pid " + std::to_string(holder.pid) + " and on host " + self_.host + " by pid " +
                    std::to_string(self_.pid),
                self_.rank);
}

// Empty if there is none; no table is empty itself.
Result<std::string> Exchange::current_table() {
  const Result<bool> there = store_.exists("table", deadline_);
  if (!there.ok()) return there.status();
  if (!*there) return std::string();
  Result<std::string> table = store_.get("table", Deadline::after(poll_interval));
  if (!table.ok() && table.status().code() == Code::timeout) return std::string();
  return table;
}

// Returns the failure that all will see: the first one published.
Status Exchange::publish_failure(const Status& failure) {
  const Result<std::string> table =
      store_.compare_set("table", "", encode_failure(failure), Deadline::after(grace));
  if (!table.ok()) return failure;
  failure_stands_ = true;
  const Result<std::vector<Introduction>> published = decode_table(*table);
  return published.ok() ? failure : published.status();
}

// Ranks that are only just starting should learn of a failure too, and not wait in vain: so whoever knows of
// it stays for a moment, unless everybody knows. The last to leave takes the failure along.
void Exchange::linger() {
  const Deadline limit = Deadline::after(grace);
  for (std::int64_t own = 1; !limit.expired(); own = 0) {
    const Result<std::int64_t> told = store_.add("told", own, limit);
    if (!told.ok() || *told >= self_.world_size) return;
    std::this_thread::sleep_for(first_pause);
  }
}

// Best effort: the outcome is known already, and with single_use rank 0 may have stopped serving.
void Exchange::leave(bool failed) {
  const Deadline limit = deadline_.remaining() < grace ? Deadline::after(grace) : deadline_;
  if (holds_rank_ && !store_.delete_key(rank_key(self_.rank), limit).ok()) return;
  const Result<std::int64_t> present = store_.add("present", -1, limit);
  if (!present.ok()) return;
  if (*present == 0) clear();
  if (!options_.single_use || self_.rank != 0 || !holds_rank_) return;
  const std::string done = "done";
  const Deadline patience = failed ? Deadline::after(grace) : limit;
  static_cast<void>(store_.wait(std::span(&done, 1), patience).ok());
}

void Exchange::clear() {
  const Deadline limit = Deadline::after(grace);
  if (options_.single_use) {
    static_cast<void>(store_.set("done", "1", limit).ok());
    return;
  }
  for (const char* key : {"session", "told", "table"}) {
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
    const bool late = table.status().code() == Code::timeout && deadline_.expired();
    return late ? publish_failure(not_arrived()) : table.status();
  }
  if (Status status = check_gathered(encoded); !status.ok()) return publish_failure(status);
  // If somebody published a failure first, that is the table.
  return store_.compare_set("table", "", encode_table(encoded), deadline_);
}

// Appends what ranks first..last-1 published, however long they take. Ends early with the table if there
// already is one: somebody's failure, or that of an earlier meeting.
Result<std::string> Exchange::gather(int first, int last, std::vector<std::string>& encoded) {
  std::vector<std::string> keys;
  for (int rank = first; rank < last; ++rank) keys.push_back(rank_key(rank));
  for (;;) {
    Result<std::vector<std::string>> values =
        store_.get_many(keys, earlier(deadline_, Deadline::after(poll_interval)));
    if (values.ok()) {
      std::ranges::move(*values, std::back_inserter(encoded));
      return std::string();
    }
    if (values.status().code() != Code::timeout || deadline_.expired()) return values.status();
    if (options_.while_waiting) options_.while_waiting();
    Result<std::string> table = current_table();
    if (!table.ok() || !table->empty()) return table;
  }
}

Status Exchange::check_gathered(const std::vector<std::string>& encoded) const {
  for (std::size_t rank = 0; rank < encoded.size(); ++rank) {
    const Result<Introduction> peer = decode_introduction(encoded[rank]);
    if (!peer.ok()) return peer.status().with_context("rank " + std::to_string(rank));
    if (static_cast<std::size_t>(peer->rank) != rank) {
      return Status(Code::protocol_error,
                    "the key of rank " + std::to_string(rank) + " holds " + peer->describe());
    }
    if (Status status = check_compatible(self_, *peer); !status.ok()) return status;
  }
  return {};
}

Result<std::string> Exchange::await_table() {
  Result<std::string> table = store_.get("table", deadline_);
  if (table.ok() || table.status().code() != Code::timeout) return table;
  // Rank 0's time may be up at this moment too; then it says for all who is missing.
  table = store_.get("table", Deadline::after(grace / 4));
  if (table.ok()) return table;
  return not_arrived();
}

Status Exchange::not_arrived() {
  const std::vector<int> missing = missing_ranks();
  const auto waited = Deadline::Clock::now() - start_;
  const std::string place = options_.place.empty() ? "" : " at " + options_.place;
  const std::string tail = " within " + format_duration(std::chrono::round<milliseconds>(waited)) + place +
                           " (as seen by " + self_.describe() + ", world size " +
                           std::to_string(self_.world_size) + ")";
  if (missing.empty()) return Status(Code::timeout, "not all ranks met" + tail);
  std::string text = missing.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < std::min(missing.size(), most_missing_named); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(missing[i]);
  }
  if (missing.size() > most_missing_named) text += " and more";
  return Status(Code::timeout, text + (missing.size() == 1 ? " has" : " have") + " not arrived" + tail,
                missing.front());
}

// Looks at whole blocks first, so that a large world with few missing ranks is quickly searched.
std::vector<int> Exchange::missing_ranks() {
  const Deadline limit = Deadline::after(grace);
  std::vector<int> missing;
  for (int first = 0; first < self_.world_size; first += static_cast<int>(ranks_per_request)) {
    const int last = std::min(self_.world_size, first + static_cast<int>(ranks_per_request));
    std::vector<std::string> keys;
    for (int rank = first; rank < last; ++rank) keys.push_back(rank_key(rank));
    if (store_.wait(keys, Deadline::after(std::chrono::nanoseconds(0))).ok()) continue;
    for (int rank = first; rank < last; ++rank) {
      const Result<bool> there = store_.exists(keys[static_cast<std::size_t>(rank - first)], limit);
      if (!there.ok() || limit.expired() || missing.size() > most_missing_named) return missing;
      if (!*there) missing.push_back(rank);
    }
  }
  return missing;
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
