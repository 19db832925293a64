#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/deadline.h>
#include <tutti/status.h>

#include "transport/driver/driver.h"

namespace tutti {

class ControlDesk;
class ContextNumbers;
class Failure;
class Members;
class Mesh;

// What members write to each other to agree on who goes on (topic `shrink`).
struct ShrinkNote {
  enum class Kind : std::uint8_t {
    join = 1,  // to the leader: I am there
    ask,       // by the leader: are you?
    decline,   // the communicator is closed here
    propose,   // by the leader: these go on
    accept,
    object,   // the number is taken here
    commit,   // by the leader, or by whoever knows: it is so
    refuse,   // too few are left
    learned,  // a commit has arrived
  };
  Kind kind = Kind::join;
  std::uint32_t context = 0;     // of the communicator that shrinks
  std::uint32_t attempt = 0;     // one that was refused or timed out may be followed by another
  std::uint32_t round = 0;       // of proposals
  std::uint32_t generation = 0;  // join: the sender's; commit: of those who go on
  std::uint32_t number = 0;      // of the new context; join, object: the lowest that the sender can take
  std::uint32_t needed = 0;      // join: the fewest that the sender goes on with
  std::uint64_t completed = 0;   // collectives: by the sender; commit: by all
  std::vector<bool> members;     // join: whom the sender cannot reach; propose, commit, refuse: who goes on
  std::vector<bool> spared;      // propose, commit: who does not, but of its own will
};
std::string encode(const ShrinkNote& note);
std::optional<ShrinkNote> decode_shrink(std::string_view body);

// One rank's part in the agreement of a failed communicator's survivors; a two-phase commit led by the lowest
// of them.
//
// Everybody joins at the leader. When each member has joined, or is gone, the leader proposes who goes on and
// under which number; when all of those have accepted, it commits. If the leader dies, the next one begins
// anew: nobody can have gone on without all having accepted, and who has gone on answers whatever he is asked
// with the decision, which the new leader takes over. The leader goes on when all members have learned of the
// commit: they may leave as soon as they go on, and the last one must not find itself alone. All is said
// again until it is answered, so that lost notes do no harm.
//
// Driving, but for what is marked.
class Shrinking final : public Pollable {
 public:
  struct Options {
    std::uint32_t attempt = 1;
    std::uint32_t needed = 1;
    std::uint64_t completed = 0;
    std::uint32_t generation = 0;
    Deadline deadline = Deadline::never();
  };
  Shrinking(std::uint32_t context, const Members& members, const Mesh& mesh, const Failure& failure,
            ControlDesk& desk, ContextNumbers& contexts, Options options);

  // Says what there is to say now: first of all, and when more is known of who is gone.
  void work();
  void on_note(int position, const ShrinkNote& note);

  bool poll() override;
  Deadline next_deadline() const override { return over_ ? Deadline::never() : next_round_; }

  // Not zero once it is over; any thread, which then reads the rest.
  const std::atomic<std::uint32_t>& done() const { return done_; }
  const Status& status() const { return status_; }
  const ShrinkNote& decision() const { return decision_; }
  std::uint32_t attempt() const { return attempt_; }

 private:
  bool gone(int position) const;
  bool reaches(int position) const;
  int leader() const;
  void lead(bool again);
  void begin_anew(std::uint32_t attempt);
  std::vector<bool> survivors() const;
  void propose(const std::vector<bool>& members, bool again);
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
  ControlDesk& desk_;
  ContextNumbers& contexts_;
  const Options options_;
  const std::size_t size_;
  std::uint32_t attempt_;
  std::vector<std::optional<ShrinkNote>> joined_;  // by position
  std::vector<bool> declined_, accepted_, learned_;
  ShrinkNote proposal_;      // the leader's; round 0: none yet
  std::uint32_t number_;     // the lowest that this rank could take
  std::uint32_t taken_ = 0;  // that it has set aside
  Deadline next_round_;
  std::chrono::milliseconds pause_;
  bool telling_ = false;  // this rank leads, and it is decided
  bool over_ = false;
  Status status_;
  ShrinkNote decision_;
  std::atomic<std::uint32_t> done_{0};
};

}  // namespace tutti
