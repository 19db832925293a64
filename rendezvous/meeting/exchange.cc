#include "rendezvous/meeting/exchange.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include <tutti/log.h>

#include "core/backoff.h"
#include "rendezvous/meeting/arrivals.h"
#include "rendezvous/meeting/ending.h"
#include "rendezvous/meeting/entrance.h"
#include "rendezvous/meeting/meeting.h"

namespace tutti {
namespace {

using rendezvous::Ending;
using rendezvous::Entrance;
using rendezvous::Entry;
using rendezvous::Meeting;
using rendezvous::rank_key;
using rendezvous::ranks_per_request;
using std::chrono::milliseconds;

constexpr milliseconds poll_interval{50};
constexpr milliseconds first_pause{20};
constexpr milliseconds longest_pause{300};

// `Exchange` carries out rounds. In a round the rank enters the meeting, learns who the other ranks are,
// connects to them, and leaves. A round that finds an earlier meeting's keys is stale. It is repeated, except
// with `single_use`.
class Exchange {
 public:
  Exchange(Store& store, const Introduction& self, const ExchangeOptions& options, Deadline deadline)
      : meeting_(store, self, options, deadline), ending_(meeting_), entrance_(meeting_, ending_) {}

  Result<std::vector<PeerInfo>> run();

 private:
  struct Round {
    std::vector<PeerInfo> peers;
    bool stale = false;
  };

  Result<Round> one_round();
  Result<Round> meet();
  Result<std::string> make_table();
  Result<std::string> gather(int first, int last, std::vector<std::string>& encoded);
  Result<std::string> await_table();
  Result<Round> read_table(const std::string& table);
  Status connect(const Round& round);

  Meeting meeting_;
  Ending ending_;
  Entrance entrance_;
  std::string taken_by_;  // the process that had our rank in an earlier meeting
};

Result<std::vector<PeerInfo>> Exchange::run() {
  Backoff backoff(first_pause, longest_pause);
  for (;;) {
    Result<Round> round = one_round();
    if (!round.ok()) return round.status();
    if (!round->stale) return std::move(round->peers);
    if (meeting_.options.single_use) {
      return Status(Code::unreachable, "the ranks of the session in this store have already met, without " +
                                           meeting_.self.describe() +
                                           (taken_by_.empty() ? "" : " but with " + taken_by_));
    }
    if (meeting_.deadline.remaining() <= backoff.pause()) {
      return Status(Code::timeout,
                    "the store still holds an earlier meeting of the same ranks, which not all of "
                    "them have left");
    }
    if (meeting_.is_interrupted()) return meeting_.interruption();
    std::this_thread::sleep_for(backoff.next());
  }
}

// Enters, meets and leaves. Leaves even after a failure.
Result<Exchange::Round> Exchange::one_round() {
  // A rank that dies while it meets stays counted in `present`. So a store that outlives the meeting must
  // delete all keys of the meeting once every rank has left or died.
  if (!meeting_.options.single_use && !meeting_.store.hold("", meeting_.deadline).ok())
    log::debug("the store cannot forget dead ranks");
  const Result<std::int64_t> present = meeting_.store.add("present", 1, meeting_.deadline);
  if (!present.ok()) return present.status();
  meeting_.phase = Meeting::Phase::present;
  meeting_.failure_stands = false;
  Result<Round> round = meet();
  const bool was_interrupted = round.status().code() == Code::aborted && meeting_.is_interrupted();
  if (was_interrupted) round = ending_.publish(meeting_.interruption());
  if (!round.ok()) round = ending_.first_cause(round.status());
  ending_.take_leave(round.status());
  return round;
}

Result<Exchange::Round> Exchange::meet() {
  const Result<Entry> entry = entrance_.enter();
  if (!entry.ok()) return entry.status();
  if (*entry == Entry::stale) return Round{{}, true};
  log::debug("this rank has arrived, and waits for the others");
  const Result<std::string> table = meeting_.self.rank == 0 ? make_table() : await_table();
  if (!table.ok()) return table.status();
  Result<Round> round = read_table(*table);
  if (!round.ok() || round->stale) return round;
  if (Status status = connect(*round); !status.ok()) return status;
  return round;
}

Result<Exchange::Round> Exchange::read_table(const std::string& table) {
  const Introduction& self = meeting_.self;
  Result<std::vector<Introduction>> peers = decode_table(table);
  meeting_.failure_stands = !peers.ok();
  if (!peers.ok()) return peers.status();
  const auto rank = static_cast<std::size_t>(self.rank);
  if (peers->size() <= rank) return Round{{}, true};
  const Introduction& known = (*peers)[rank];
  if (!meeting_.knows_us(*peers)) {
    if (rendezvous::is_alive_beside(self, known)) return rendezvous::taken_twice(known, self);
    taken_by_ = known.describe();
    return Round{{}, true};
  }
  if (known.addresses != self.addresses) {
    return Status(Code::aborted, "the ranks have met while the connection of " + self.describe() +
                                     " to the store was broken, and know an earlier address of it");
  }
  for (std::size_t i = 0; i < peers->size(); ++i) {
    if (static_cast<std::size_t>((*peers)[i].rank) == i) continue;
    return Status(Code::protocol_error, "the table of ranks is out of order");
  }
  if (peers->size() != static_cast<std::size_t>(self.world_size)) {
    return Status(Code::protocol_error,
                  "the table of ranks has " + std::to_string(peers->size()) + " entries");
  }
  return Round{std::vector<PeerInfo>(peers->begin(), peers->end()), false};
}

Status Exchange::connect(const Round& round) {
  meeting_.phase = Meeting::Phase::connecting;
  if (!meeting_.options.connect) return {};
  const Status status = meeting_.options.connect(round.peers);
  return status.ok() ? status : ending_.settle(status);
}

Result<std::string> Exchange::make_table() {
  const Introduction& self = meeting_.self;
  std::vector<std::string> encoded;
  encoded.reserve(static_cast<std::size_t>(self.world_size));
  while (encoded.size() < static_cast<std::size_t>(self.world_size)) {
    const int first = static_cast<int>(encoded.size());
    const int last = std::min(self.world_size, first + static_cast<int>(ranks_per_request));
    Result<std::string> table = gather(first, last, encoded);
    if (table.ok() && !table->empty()) return table;
    if (table.ok()) continue;
    const bool late = table.status().code() == Code::timeout && meeting_.waiting.expired();
    return late ? ending_.publish(meeting_.not_arrived()) : table.status();
  }
  const Result<std::vector<Introduction>> peers = rendezvous::check_gathered(self, encoded);
  if (!peers.ok()) return ending_.publish(peers.status());
  if (meeting_.options.approve) {
    const Status approved = meeting_.options.approve({peers->begin(), peers->end()});
    if (!approved.ok()) return ending_.publish(approved);
  }
  if (const std::string other = rendezvous::other_program(self, *peers); !other.empty())
    log::warn("ranks were started as different programs: ", other);
  // If another rank has published a failure first, this call returns that failure.
  return meeting_.store.compare_set("table", "", encode_table(encoded), meeting_.deadline);
}

// Waits for the Introductions of ranks first..last-1, appends them to `encoded`, and returns an empty text.
// If the key `table` is already set, returns its value instead: another rank's failure, or the table of an
// earlier meeting.
Result<std::string> Exchange::gather(int first, int last, std::vector<std::string>& encoded) {
  std::vector<std::string> keys;
  for (int rank = first; rank < last; ++rank) keys.push_back(rank_key(rank));
  for (;;) {
    const Deadline piece = earlier(meeting_.waiting, Deadline::after(poll_interval));
    Result<std::vector<std::string>> values = meeting_.store.get_many(keys, piece);
    if (values.ok()) {
      std::ranges::move(*values, std::back_inserter(encoded));
      return std::string();
    }
    if (values.status().code() != Code::timeout || meeting_.waiting.expired()) return values.status();
    if (meeting_.options.while_waiting) meeting_.options.while_waiting();
    if (meeting_.is_interrupted()) return meeting_.interruption();
    meeting_.speak_of_wait();
    Result<std::string> table = meeting_.current_table(meeting_.patience());
    const bool stalls = table.status().code() == Code::timeout;
    if (!stalls && (!table.ok() || !table->empty())) return table;
    if (!piece.expired()) std::this_thread::sleep_for(rendezvous::short_pause);
  }
}

// Waits for the table. If this rank's time runs out, this function ends the meeting for all ranks, since the
// others cannot meet without this rank. If this rank left silently, the others would report that it never
// arrived.
Result<std::string> Exchange::await_table() {
  Result<std::string> table = meeting_.await_key("table");
  if (table.ok() || table.status().code() != Code::timeout) return table;
  // Rank 0 may time out at the same moment, and then publishes which ranks are missing. So this rank waits a
  // little longer for the table.
  table = meeting_.store.get("table", meeting_.deadline);
  if (table.ok() || table.status().code() != Code::timeout) return table;
  return ending_.publish(meeting_.not_arrived());
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
