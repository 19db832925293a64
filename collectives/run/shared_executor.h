#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "collectives/run/board.h"
#include "collectives/run/buffers.h"
#include "collectives/run/flat_schedule.h"
#include "collectives/run/registration_vote.h"
#include "collectives/run/run.h"
#include "collectives/run/scratch.h"
#include "collectives/schedule/registered.h"
#include "collectives/schedule/schedule.h"

namespace tutti {

// A `SharedRun` is one execution of a shared schedule. The caller owns it, and must keep it until the
// execution has ended.
struct SharedRun {
  const Schedule* schedule = nullptr;
  const FlatSchedule* flat = nullptr;  // its flat form (see FlatSchedule), if it has one
  const RunBinding* binding = nullptr;
  bool passes_caches = false;  // outputs are written past the caches (non-temporal stores)
  // This is true, on all ranks, if combining may fail. In that case no rank finishes before all ranks have
  // combined.
  bool agrees = false;
  // This is true, on all ranks, if the ranks vote first. After the vote they run `registered` if all buffers
  // that other ranks access are registered.
  bool votes = false;
  const Schedule* registered = nullptr;
  std::uint64_t input_bytes = 0;  // the size of the input, on each rank that has an input
  std::uint64_t output_bytes = 0;
  SharedRun* next = nullptr;
};

// `SharedExecutor` executes shared schedules one after the other, in the order of `submit`, which is the same
// on all ranks. Only the driving thread calls it.
//
// Some operations have a registered form, which reads and writes the other ranks' buffers in place. No rank
// knows beforehand whether all ranks' buffers are registered, so such an operation starts with a vote. Every
// rank publishes where its buffers lie and awaits the others' votes. Then all ranks run the same form.
class SharedExecutor {
 public:
  // `patient` means that no two ranks share a processor, so it pays to poll for longer. `ranks` are the world
  // ranks of the board's ranks. The caller keeps `ranks`, `mesh` and `registry` alive.
  SharedExecutor(std::unique_ptr<Board> board, const Mesh& mesh, std::span<const int> ranks,
                 const Registry& registry, bool patient);

  Board& board() { return *board_; }
  // Starts an operation, or queues it behind the others. Returns true if it has completed; then `finished` of
  // its binding is not called. If an operation fails, `failed` is called, and `cancel` must follow.
  bool submit(SharedRun& run);
  // Continues as far as possible. Returns true if anything was done.
  bool advance();
  // Compares this rank's calls with those that the next rank has made so far, and returns the first mismatch.
  // Does nothing while an operation is in progress.
  Status compare();
  // Returns the number of the shared operation for which `compare` or `failed` has reported a mismatch; 0 if
  // there was no mismatch.
  std::uint64_t disputed() const { return disputed_; }
  // Returns the number of the operation in progress, or of the last one.
  std::uint64_t number() const { return number_; }
  // Returns the call that a rank has made as operation `number`, if it is known.
  std::optional<Fingerprint> called(int rank, std::uint64_t number) const;
  bool busy() const { return stage_ > Stage::failed; }
  // Returns whether there is no operation, and all of this rank's calls have been compared.
  bool is_idle() const { return stage_ == Stage::idle && compared_ == number_; }
  // Stops all work: operations that are submitted from now on do not start. `cancel` must follow.
  void halt();
  // Drops all operations; afterwards no buffer is touched, and neither `failed` nor `finished` is called.
  void cancel();
  // Returns the ranks of the board that the operation in progress waits for, in ascending order.
  std::vector<int> awaited() const;
  // Returns the number of operations that ran in the registered form.
  std::uint64_t registered_operations() const { return registered_operations_; }

  // Between these two calls, peers ring this rank's bell when they signal. `prepare_sleep` returns true if
  // there is already something to do.
  bool prepare_sleep();
  void cancel_sleep();

 private:
  enum class Stage : std::uint8_t { idle, failed, room, vote, steps, agree };
  enum class Area : std::uint8_t { slot, page, window };  // where an operation's data moves

  void begin();
  void prepare();
  bool go_on();
  Area area_for(const SharedRun& run) const;
  std::uint64_t needs_finished() const;
  bool room() const;
  void enter();
  void count_votes();
  void use(const Schedule& schedule);
  bool run_flat(const SharedRun& run);
  bool flat_arrived(const FlatSchedule::Step& step, const Fingerprint& call);
  void go_on_at(std::ptrdiff_t cursor, bool signalled);
  bool run_steps();
  bool has_been_left() const { return reaches_others_ && board_->any_failed(); }
  bool compute(const Step& step);
  bool reduce_for_everyone(const Step& step);
  bool repeat();
  void signal(std::uint32_t index);
  bool arrived(int peer, std::uint32_t index);
  bool patiently_arrived(int peer, std::uint32_t index);
  // A patient rank polls for a signal `patient_looks` times before the driver may poll other
  // sources, since most signals arrive within a few hundred nanoseconds. Only the first
  // `eager_looks` polls follow each other without a pause. Each poll takes the cache line away from
  // the peer, which is about to write it.
  static constexpr int eager_looks = 8;
  static constexpr int patient_looks = 96;
  bool seen(int peer, std::uint32_t index) const;
  bool could_go_on() const;
  std::byte* address(const Slice& slice) const;
  void end(const Status& status);
  void finish();
  bool must_compare(const Fingerprint& call) const;
  Status compare(std::uint64_t last);
  Status mismatch(int peer, std::uint64_t number);
  std::uint64_t phase(std::uint32_t index) const { return number_ << Board::phase_bits | index; }

  const std::unique_ptr<Board> board_;
  const Mesh& mesh_;
  const std::span<const int> ranks_;
  const bool patient_;
  const int next_;              // the rank whose calls this rank compares with its own
  SharedRun* first_ = nullptr;  // the operation in progress, and those that follow
  SharedRun* last_ = nullptr;
  SharedRun halted_;                // queued by `halt` if the queue is empty; later operations follow it
  SharedRun* submitted_ = nullptr;  // the run that `submit` is executing, if it has not completed

  Stage stage_ = Stage::idle;
  std::uint64_t number_ = 0;  // the number of the operation in progress, or of the last one
  std::uint64_t registered_operations_ = 0;
  std::uint64_t windows_used_ = 0;  // the number of the last operation that moved data through the windows
  const Schedule* schedule_ = nullptr;
  bool reaches_others_ = false;  // `schedule_` is the registered form
  std::uint32_t cursor_ = 0;
  std::uint64_t repetition_ = 0;
  std::uint64_t shift_ = 0;  // elements that a repetition adds to the offsets in input, output and scratch
  std::uint32_t signals_before_ = 0;
  std::size_t element_size_ = 1;
  Area area_ = Area::slot;
  std::uint64_t disputed_ = 0;
  std::uint64_t compared_ = 0;  // up to this operation, the next rank has made the same calls
  Fingerprint called_;          // this rank's call in the last operation
  bool signalled_ = false;
  bool streamed_ = false;  // data was copied past the caches since the last signal
  bool due_ = false;       // this rank has signalled, and has not looked for sleepers since
  bool advancing_ = false;
  bool asleep_ = false;
  RegistrationVote vote_;
  Scratch scratch_;
  Buffers buffers_;  // input, output and scratch of the schedule in progress
};

}  // namespace tutti
