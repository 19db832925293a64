#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include <tutti/deadline.h>
#include <tutti/status.h>

#include "collectives/group/failure.h"
#include "collectives/group/members.h"
#include "collectives/group/world.h"
#include "control/notes.h"
#include "transport/driver/driver.h"

namespace tutti {

// `Shrinking` is one rank's part in the agreement among the survivors of a failed communicator. The agreement
// is a two-phase commit, led by the survivor with the lowest rank (docs/protocol.md, "Shrinking").
//
// All members send a join note to the leader. When each member has joined or is gone, the leader
// makes a proposal: the survivors and the number of the new communicator. If the survivors share
// memory, the proposal also has a range for the communicator. When all survivors have accepted, the
// leader commits. If the leader dies, the next survivor leads, and starts again. That is safe for
// two reasons. No member can finish before all survivors have accepted. Once a member has finished, it
// answers every note with the decision, so the new leader adopts that decision. The leader finishes when all
// survivors have learned of the commit. If the leader left earlier, a member that has not received the commit
// could remain alone. Every note is repeated until it is answered, so lost notes do no harm.
//
// Only the driving thread calls these functions, except where a comment says otherwise.
class Shrinking final : public Pollable {
 public:
  struct Options {
    std::uint32_t attempt = 1;
    std::uint32_t needed = 1;
    std::uint64_t completed = 0;
    std::uint32_t generation = 0;
    std::vector<std::uint32_t> numbers = {};  // the numbers that earlier attempts have reserved
    Deadline deadline = Deadline::never();
  };
  Shrinking(std::uint32_t context, const Members& members, const Failure& failure, World& world,
            Options options);

  // Sends the notes that are due. Must be called first, and whenever another member is lost.
  void work();
  void on_note(int position, const ShrinkNote& note);

  bool poll() override;
  Deadline next_deadline() const override { return over_ ? Deadline::never() : next_round_; }

  // Any thread may call `done`. Its value becomes 1 when the agreement has ended. From then on, any thread
  // may also call the functions below.
  const std::atomic<std::uint32_t>& done() const { return done_; }
  const Status& status() const { return status_; }
  const ShrinkNote& decision() const { return decision_; }
  std::uint32_t attempt() const { return attempt_; }
  // Returns the numbers that this attempt and earlier ones have reserved for the new communicator. The next
  // attempt needs them: this rank may have accepted a proposal, and given up before it learned of the commit.
  const std::vector<std::uint32_t>& numbers() const { return numbers_; }

 private:
  // Reserves `number` for the new communicator, unless this or an earlier attempt has reserved it already.
  // Returns false if another communicator has that number.
  bool reserve(std::uint32_t number);
  bool gone(int position) const;
  bool reaches(int position) const;
  int leader() const;
  void lead(bool again);
  void begin_anew(std::uint32_t attempt);
  std::vector<bool> survivors() const;
  ShrinkNote proposal_to(const std::vector<bool>& members) const;
  void propose(const std::vector<bool>& members, bool again);
  void hand_out_range(const std::vector<bool>& members);
  void answer_proposal(int position, const ShrinkNote& note);
  void conclude(const ShrinkNote& decision);
  void tell(bool again);
  void finish(const Status& status);
  Status too_few(const std::vector<bool>& members) const;
  Status late() const;
  ShrinkNote own_join() const;
  ShrinkNote note(ShrinkNote::Kind kind) const;
  void send(int position, const ShrinkNote& note);

  const std::uint32_t context_;
  const Members& members_;
  const Mesh& mesh_;
  const Failure& failure_;
  HostMemory& host_memory_;
  ControlDesk& desk_;
  ContextNumbers& contexts_;
  const World& world_;
  const Options options_;
  const std::size_t size_;
  std::uint32_t attempt_;
  std::vector<std::optional<ShrinkNote>> joined_;  // by position: the rank in the communicator
  std::vector<bool> declined_, accepted_, learned_;
  ShrinkNote proposal_;                 // if this rank leads; round 0: no proposal yet
  std::uint32_t number_;                // the lowest number that this rank could take
  std::vector<std::uint32_t> numbers_;  // see `numbers`
  std::optional<std::uint64_t> place_;  // a range that this rank has handed out and no rank has joined
  Deadline next_round_;
  std::chrono::milliseconds pause_;
  bool telling_ = false;  // this rank leads, and the decision is made
  bool over_ = false;
  Status status_;
  ShrinkNote decision_;
  std::atomic<std::uint32_t> done_{0};
};

}  // namespace tutti
