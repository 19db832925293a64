#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

#include <tutti/status.h>

#include "collectives/group/operation.h"
#include "collectives/record/history.h"
#include "collectives/record/trace.h"
#include "transport/mesh/mesh.h"

namespace tutti {

// `Journal` numbers a communicator's operations and remembers how the most recent ones ended. The mesh needs
// this information to judge messages that arrive early or late. The flight recorder and the trace need it,
// too.
class Journal {
 public:
  // `trace` is null if there is none.
  Journal(std::uint32_t context, Trace* trace);

  // --- any thread ---

  std::uint64_t number_collective() { return next_collective_.fetch_add(1, std::memory_order_relaxed); }
  // Does the same as `number_collective`, without the cost of an atomic increment. Only the driving thread
  // may call it. The increment need not be atomic, since a program that issues from several threads must
  // order its calls anyway.
  std::uint64_t number_collective_at_once() {
    const std::uint64_t number = next_collective_.load(std::memory_order_relaxed);
    next_collective_.store(number + 1, std::memory_order_relaxed);
    return number;
  }
  // Returns the number that the next collective will have.
  std::uint64_t next_collective() const { return next_collective_.load(std::memory_order_relaxed); }
  void count_issued() { issued_.fetch_add(1, std::memory_order_relaxed); }
  std::uint64_t operations_issued() const {
    return issued_.load(std::memory_order_relaxed) + over_at_once_.load(std::memory_order_relaxed);
  }
  const History& collectives() const { return collectives_; }
  const History& transfers() const { return transfers_; }
  // Returns the time now. Without a trace, this reads a cheap clock that is exact only to a few milliseconds.
  History::Time now() const { return trace_ == nullptr ? History::coarse_now() : Trace::now(); }

  // --- driving ---

  std::uint64_t number_transfer() { return next_transfer_++; }
  // Returns the time now, or 0 if operation `number` is not timed. Without a trace, only some operations are
  // timed.
  History::Time beginning(std::uint64_t number) const { return timed(number) ? now() : 0; }
  void begin(Operation& operation);
  // Notes that an operation was given up because the communicator has failed. The operation may end much
  // later. (If an operation fails without being given up, all ranks have refused it, and the communicator
  // remains usable.)
  void give_up(const Operation& operation);
  void end(const Operation& operation, const Status& status);
  // These two functions record an operation that has completed at once.
  void collective_at_once(const Operation& operation, History::Time began) {
    if (began == 0) {
      collectives_.at_once(operation.sequence, operation.call, operation.algorithm);
    } else {
      end_at_once(operation, 0, began);
    }
    count_at_once();
  }
  void transfer_at_once(const Operation& operation, std::uint64_t tag, History::Time began) {
    if (began == 0) {
      transfers_.at_once(operation.sequence, operation.call, 0);
    } else {
      end_at_once(operation, tag, began);
    }
    count_at_once();
  }
  // Returns what is known about a collective, in the form that the mesh asks for.
  ContextEvents::Known find(std::uint64_t number) const;
  // Returns how many collectives completed, or were refused by all ranks, before the first collective that
  // was given up.
  std::uint64_t completed() const;

 private:
  bool timed(std::uint64_t number) const { return (number & clock_mask_) == 0; }
  void count_at_once() {
    over_at_once_.store(over_at_once_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  History& history_of(const Operation& operation) {
    return operation.kind == Operation::Kind::collective ? collectives_ : transfers_;
  }
  void end_at_once(const Operation& operation, std::uint64_t tag, History::Time began);
  void trace_end(const Operation& operation, const History::Entry& entry, History::Time ended) const;

  const std::uint32_t context_;
  Trace* const trace_;
  const std::uint64_t clock_mask_;
  std::atomic<std::uint64_t> next_collective_{0};
  std::atomic<std::uint64_t> issued_{0};
  std::atomic<std::uint64_t> over_at_once_{0};  // not counted in `issued_`; written by the driving thread

  // Only the driving thread changes these members.
  History collectives_;
  History transfers_;
  std::uint64_t next_transfer_ = 0;
  // The number of the first collective that was given up.
  std::uint64_t first_failed_ = std::numeric_limits<std::uint64_t>::max();
};

}  // namespace tutti
