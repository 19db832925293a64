#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "collectives/schedule/problem.h"
#include "collectives/schedule/schedule.h"

namespace tutti {

// `ScheduleBuilder` collects the steps that an algorithm emits in straight-line order, and numbers the
// messages of each pair. It derives the dependencies from the slices that steps read and write (read after
// write, write after read, write after write). So independent steps overlap, and pipelines form by
// themselves.
//
// Local steps over zero elements are dropped, and so are copies of a slice onto itself. Empty messages are
// kept, because their receiver cannot know that they are empty. For problems in place, the builder takes into
// account that `input` and `output` share addresses.
class ScheduleBuilder {
 public:
  explicit ScheduleBuilder(const Problem& problem);
  ~ScheduleBuilder();
  ScheduleBuilder(const ScheduleBuilder&) = delete;
  ScheduleBuilder& operator=(const ScheduleBuilder&) = delete;

  // Returns a new slice of scratch.
  Slice scratch(std::uint64_t count);

  void send(int peer, Slice from);
  void recv(int peer, Slice to);
  // Computes out = local op message (side right) or message op local (side left). `out` may be `local`.
  void recv_reduce(int peer, Slice local, Slice out, MessageSide side);
  void copy(Slice from, Slice to);
  void reduce(Slice left, Slice right, Slice out);
  void scale(Slice from, Slice to);
  void divide(Slice from, Slice to);

  // --- shared schedules ---

  // Makes this a shared schedule: steps keep the order in which they are emitted. Must be called first.
  void share() { schedule_.shared = true; }
  // Returns a slice of the window of rank `owner`.
  Slice window(int owner, std::uint64_t offset, std::uint64_t count);
  // Emits a signal, and returns its number: the first is 1.
  std::uint32_t signal();
  void await(int peer, std::uint32_t signal);
  std::uint32_t signals() const { return signals_; }
  // The steps emitted between these two calls are executed `times` times (see Schedule::Repeat). A schedule
  // has at most one such part.
  void begin_repeat(std::uint64_t times, std::uint64_t stride);
  void end_repeat();

  // From here on, the `input` of an algorithm is this slice of scratch, and no longer shares addresses with
  // the output. Premultiplied sums need this, and so do exchanges in place whose blocks overlap.
  void redirect_input(Slice to);
  // From here on, a send waits for the send emitted `window` sends before it (0: it waits for none). This
  // bounds a rank's messages in flight. So messages that are ready early do not delay messages that other
  // ranks wait for.
  void limit_in_flight(std::uint32_t window);
  // From here on, a send waits for every receive emitted so far. Messages without content need this, because
  // their dependencies cannot be derived from memory.
  void fence();
  // From here on, a send waits for every step emitted so far.
  void settle();

  // While a `Part` exists, `input` and `output` are the given slices of the outer algorithm, and peer i is
  // ranks[i]. So an algorithm can be a part of another one, among some of the ranks. A limit of messages in
  // flight ends with the part. So does a redirection of the input within the part. Parts do not nest.
  class Part {
   public:
    Part(ScheduleBuilder& builder, std::span<const int> ranks, Slice input, Slice output);
    ~Part();
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

   private:
    ScheduleBuilder& builder_;
    const std::optional<Slice> outer_input_;
  };

  Schedule finish() &&;

 private:
  class Hazards;
  Slice resolve(Slice slice) const;
  void message(StepKind kind, int peer, Slice left, Slice out, MessageSide side);
  void local(StepKind kind, Slice left, Slice right, Slice out);
  void add(Step step);

  std::uint32_t element_size_;
  Schedule schedule_;
  std::unique_ptr<Hazards> hazards_;
  std::unordered_map<int, std::uint32_t> sent_, received_;  // messages numbered so far, by peer
  std::optional<Slice> input_, output_;                     // where `input` and `output` were redirected to
  std::span<const int> ranks_;        // the ranks of the part that is being emitted; empty outside of parts
  std::uint32_t window_ = 0;          // 0: no limit
  std::vector<std::uint32_t> sends_;  // the steps that send, since the limit was set
  std::vector<std::uint32_t> receives_;
  std::uint32_t signals_ = 0;
  std::size_t fenced_ = 0;     // the number of `receives_` that a send waits for
  std::uint32_t settled_ = 0;  // the number of steps that a send waits for
};

}  // namespace tutti
