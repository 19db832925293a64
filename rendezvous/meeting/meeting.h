#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <tutti/deadline.h>
#include <tutti/status.h>

#include "rendezvous/meeting/exchange_options.h"
#include "rendezvous/meeting/introduction.h"
#include "rendezvous/meeting/meeting_store.h"
#include "rendezvous/store/long_wait.h"

namespace tutti::rendezvous {

// A rank that asks the store again and again pauses this long between the requests.
inline constexpr std::chrono::milliseconds short_pause{20};

// `Meeting` is what the parts of one rank's `exchange` share: the rank itself, its time limit, and how far it
// has come. exchange.h explains the keys.
class Meeting {
 public:
  // `Phase` is how far this rank is in the current round. Each phase includes those before it.
  enum class Phase {
    outside,     // the store does not know this rank
    present,     // the rank is counted in the key `present`
    seated,      // the rank's own key is set
    connecting,  // the table is set, so all ranks have met
  };

  Meeting(Store& users_store, const Introduction& introduction, const ExchangeOptions& exchange_options,
          Deadline limit);

  // Returns whether rank 0 serves the store for this meeting alone, and this rank is not rank 0.
  bool follows() const { return options.single_use && self.rank != 0; }
  // Returns `self`, encoded.
  std::string own() const { return encode_introduction(self); }
  // Returns whether the table has this rank's nonce, and so belongs to this meeting.
  bool knows_us(const std::vector<Introduction>& table) const;
  // Returns the value of the key `table`, or an empty text if the key is not set. A table is never empty.
  Result<std::string> current_table(Deadline limit);

  // Returns whether the user has interrupted the meeting. Once `options.interrupted` has returned true, the
  // result stays true.
  bool is_interrupted();
  Status interruption() const;

  // Waits for a key of the store until the deadline `waiting`, and returns its value. Fails with `timeout` if
  // the key does not appear, and with `aborted` if this rank is interrupted.
  Result<std::string> await_key(const std::string& key);
  // Logs, at growing intervals, which ranks this rank waits for. Call this between the requests of a long
  // wait.
  void speak_of_wait();
  // Returns the time limit of a request that does not wait for a key. A healthy store answers such a request
  // at once.
  Deadline patience() const;
  // Returns the `timeout` error, which names the ranks that have not arrived.
  Status not_arrived();

  MeetingStore store;
  Introduction self;
  const ExchangeOptions& options;
  const Deadline deadline;
  // This is the time at which every wait ends. It is earlier than `deadline`, and the time in between serves
  // to find out which ranks are missing.
  const Deadline waiting;
  Phase phase = Phase::outside;
  bool failure_stands = false;  // the store has a failure in place of the table, or under `done`
  // This describes rank 0, if rank 0 serves the store and there was no table when this rank came. Otherwise
  // it is empty.
  std::string server;

 private:
  bool interrupted_ = false;
  const Deadline::Clock::time_point start_ = Deadline::Clock::now();
  LongWait wait_;
};

}  // namespace tutti::rendezvous
