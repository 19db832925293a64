#pragma once

#include <string>
#include <vector>

#include <tutti/status.h>

#include "rendezvous/meeting/ending.h"
#include "rendezvous/meeting/meeting.h"

namespace tutti::rendezvous {

// `Entry` is what a rank finds when it enters. `stale` means that the keys belong to an earlier meeting,
// which has ended but has not been cleared away.
enum class Entry { entered, stale };

// `Entrance` lets a rank into a meeting. It checks that the rank fits the session. Then it sets the rank's
// own key in the store, unless another process with the same rank has set it. This key is the rank's seat.
class Entrance {
 public:
  Entrance(Meeting& meeting, Ending& ending) : meeting_(meeting), ending_(ending) {}

  Result<Entry> enter();

 private:
  using Conflict = Status (Entrance::*)(const Introduction& holder) const;

  Result<Entry> join_session();
  Result<Entry> take_seat();
  Status introduce();
  void bequeath(const std::vector<std::string>& keys);
  Result<Entry> claim(const std::string& key, Conflict conflict);
  Result<Entry> look_for_table();
  Status disagreement(const Introduction& first) const;
  Status duplicate(const Introduction& holder) const;

  Meeting& meeting_;
  Ending& ending_;
  bool introduced_ = false;
  std::string first_;  // a description of the first rank that has arrived
};

}  // namespace tutti::rendezvous
