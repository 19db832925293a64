#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <tutti/deadline.h>
#include <tutti/status.h>

#include "collectives/group/failure.h"
#include "collectives/group/journal.h"
#include "collectives/group/members.h"
#include "collectives/group/operation.h"
#include "collectives/group/shared_collectives.h"
#include "control/desk.h"
#include "control/notes.h"

namespace tutti {

// `Arbitration` finds the member that is wrong when members make different calls.
//
// The rank that notices a mismatch knows only two calls. It asks all members which call they have made under
// the same number, and reads the calls that members show in shared memory (`Board`). Once it knows that more
// than half of the members have made the same call, the verdict names a member that has made a different
// call. If no majority is known soon, the verdict names the two calls and blames no rank.
//
// Only the driving thread calls these functions. It may also call them inside a callback of the mesh.
class Arbitration {
 public:
  Arbitration(std::uint32_t context, const Members& members, ControlDesk& desk, Failure& failure,
              const Journal& journal, SharedCollectives& shared);

  // Returns whether this rank has noticed two calls that differ, and has no verdict yet.
  bool is_open() const { return dispute_ != nullptr; }
  // Called when the member `peer` (a world rank) has made a different call as collective number `sequence`;
  // see ContextEvents.
  void on_mismatch(int peer, std::uint64_t sequence, const Fingerprint* theirs, const Status& why);
  // Called when the board may show two calls that differ. Does nothing if the board shows no such calls.
  // `operation` is the operation that failed because of the difference, or null if none failed.
  void on_mismatch_on_board(const Operation* operation, const Status& noticed);
  // Called when a note of another member, whose world rank is `origin`, has arrived over the control plane:
  // - `on_blocked`: the member has waited in a call for a long time.
  // - `on_question`: the member has seen two calls that differ, and asks for this rank's call.
  // - `on_answer`: the member answers with the call that it has made.
  void on_blocked(int origin, const CallNote& theirs);
  void on_question(int origin, const CallNote& theirs);
  void on_answer(int origin, const CallNote& theirs);
  // Answers the questions that this rank can answer now, and reaches the verdict if it is due.
  void poll();
  Deadline next_deadline() const;
  // Reaches a verdict from the calls that are known now.
  void settle_now();
  // Drops the dispute, because the communicator has failed.
  void drop() { dispute_.reset(); }

 private:
  struct Dispute {
    std::optional<std::uint64_t> sequence = {};  // the collective's number, if it is known
    std::uint64_t number = 0;                    // the operation's number on the board; 0: none
    Status noticed;                              // the mismatch that this rank noticed
    Deadline until = Deadline::never();
    std::vector<std::optional<Fingerprint>> calls = {};  // by rank in the communicator; empty if not known
  };
  struct Asked {
    int origin;  // world rank
    std::uint64_t sequence;
  };
  void open(Dispute dispute);
  void settle();
  void answer_asked();

  const std::uint32_t context_;
  const Members& members_;
  ControlDesk& desk_;
  Failure& failure_;
  const Journal& journal_;
  SharedCollectives& shared_;
  std::unique_ptr<Dispute> dispute_;
  std::vector<Asked> asked_;  // questions about calls that this rank has not made yet
};

}  // namespace tutti
