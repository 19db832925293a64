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

// How long a rank pauses between requests to a store that does not wait by itself.
inline constexpr std::chrono::milliseconds short_pause{20};

// `Meeting` is what the parts of one rank's `exchange` share: the rank itself, its time, and how far it has
// come.
class Meeting {
 public:
  // `Phase` is how far this rank is in the current round. Each state includes those before it.
  enum class Phase {
    outside,     // the store does not know this rank
    present,     // the rank is counted in the key `present`
    seated,      // its own key is there
    connecting,  // the table is there, so all ranks have met
  };

  Meeting(Store& users_store, const Introduction& introduction, const ExchangeOptions& exchange_options,
          Deadline limit);

  // Rank 0 serves the store for this meeting alone, and this rank is not rank 0.
  bool follows() const { return options.single_use && self.rank != 0; }
  // The encoded `self`.
  std::string own() const { return encode_introduction(self); }
  // Returns whether the table is of this meeting.
  bool knows_us(const std::vector<Introduction>& table) const;
  // Reads the key `table`; empty if there is none. (No table is empty itself.)
  Result<std::string> current_table(Deadline limit);

  // Returns whether the user has interrupted the meeting. Once the user's function has returned true, this
  // stays true.
  bool is_interrupted();
  Status interruption() const;

  // Waits for a key of the store until `waiting`: `timeout` if it does not appear, `aborted` if this rank is
  // interrupted.
  Result<std::string> await_key(const std::string& key);
  // Called between the requests of a long wait. Logs, at growing intervals, which ranks this one waits for.
  void speak_of_wait();
  // The limit of a request that every store answers at once unless it stalls.
  Deadline patience() const;
  // The `timeout` that names the ranks that have not arrived.
  Status not_arrived();

  MeetingStore store;
  Introduction self;
  const ExchangeOptions& options;
  const Deadline deadline;
  const Deadline waiting;  // earlier than `deadline`: the rest is for finding out which ranks are missing
  Phase phase = Phase::outside;
  bool failure_stands = false;  // a failure is in the store
  std::string server;           // describes rank 0 if it serves the store and the store ends with it

 private:
  bool interrupted_ = false;
  const Deadline::Clock::time_point start_ = Deadline::Clock::now();
  LongWait wait_;
};

}  // namespace tutti::rendezvous
