#include "rendezvous/meeting/meeting.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include <tutti/log.h>

#include "core/reserve.h"
#include "rendezvous/meeting/arrivals.h"

namespace tutti::rendezvous {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds table_interval{50};
constexpr milliseconds interrupt_interval{200};
// After a request that stalls for this long, the rank checks whether it is interrupted, and then asks again.
constexpr milliseconds stall_limit{3000};
// At most this much of the given time is reserved for finding out which ranks are missing.
constexpr milliseconds most_reserved{500};
// Before a long wait is logged, the search for the missing ranks may take this long.
constexpr milliseconds look_limit{2000};

std::string awaited(const Result<std::vector<int>>& missing) {
  if (!missing.ok()) return "the store, which does not answer";
  if (missing->empty()) return "rank 0 to say who the others are";
  return list_ranks(*missing);
}

}  // namespace

Meeting::Meeting(Store& users_store, const Introduction& introduction,
                 const ExchangeOptions& exchange_options, Deadline limit)
    : store(users_store, limit),
      self(introduction),
      options(exchange_options),
      deadline(limit),
      waiting(without_reserve(limit, most_reserved)) {}

bool Meeting::knows_us(const std::vector<Introduction>& table) const {
  const auto rank = static_cast<std::size_t>(self.rank);
  return rank < table.size() && table[rank].nonce == self.nonce;
}

Result<std::string> Meeting::current_table(Deadline limit) {
  const Result<bool> there = store.exists("table", limit);
  if (!there.ok()) return there.status();
  if (!*there) return std::string();
  Result<std::string> table = store.get("table", Deadline::after(table_interval));
  if (!table.ok() && table.status().code() == Code::timeout) return std::string();
  return table;
}

bool Meeting::is_interrupted() {
  interrupted_ = interrupted_ || (options.interrupted && options.interrupted());
  return interrupted_;
}

Status Meeting::interruption() const {
  return Status(Code::aborted, self.describe() + " was interrupted while the ranks met", self.rank);
}

Deadline Meeting::patience() const {
  return options.interrupted ? earlier(deadline, Deadline::after(stall_limit)) : deadline;
}

// The wait is cut into short requests. Between them the rank checks whether it is interrupted, and whether
// the store still exists, since not every store distinguishes an error from a timeout.
Result<std::string> Meeting::await_key(const std::string& key) {
  while (!waiting.expired()) {
    Deadline piece = earlier(waiting, wait_.next());
    if (options.interrupted) piece = earlier(piece, Deadline::after(interrupt_interval));
    Result<std::string> value = store.get(key, piece);
    if (value.ok() || value.status().code() != Code::timeout) return value;
    if (is_interrupted()) return interruption();
    speak_of_wait();
    const Result<bool> there = store.exists(key, patience());
    if (!there.ok() && there.status().code() != Code::timeout) return there.status();
    if (!piece.expired()) std::this_thread::sleep_for(short_pause);
  }
  return Status(Code::timeout, "no rank has set '" + key + "'");
}

void Meeting::speak_of_wait() {
  if (waiting.expired() || !wait_.is_due()) return;
  const Result<std::vector<int>> missing =
      missing_ranks(store, self, earlier(waiting, Deadline::after(look_limit)));
  log::warn(self.describe(), " has waited for ", wait_.waited(), at(options.place), " for ", awaited(missing),
            " (world size ", self.world_size, ")");
}

Status Meeting::not_arrived() {
  const auto waited = std::chrono::round<milliseconds>(Deadline::Clock::now() - start_);
  return rendezvous::not_arrived(store, self, options.place, waited, store.closing());
}

}  // namespace tutti::rendezvous
