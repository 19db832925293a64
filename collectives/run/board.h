#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <tutti/status.h>

#include "core/fingerprint.h"
#include "transport/shared_segment.h"

namespace tutti {

// `Board` is shared memory in which the ranks of a communicator on one host publish their progress. For each
// rank, the board has
//   - the number of shared operations that the rank has finished;
//   - slots, used in turn by the rank's operations. A slot has the call, its progress, and room for a small
//     payload. One cache line contains everything about an operation of a few bytes. There are many slots, so
//     that a rank may run ahead of others;
//   - a few pages, used in turn, for payloads that do not fit into a slot;
//   - a window, through which larger operations move their data, one operation at a time;
//   - room for the reason why the rank has failed, if it has.
//
// Order. A rank that signals writes data, then its slot's phase with release. A rank that awaits the signal
// reads that phase with acquire, then the data. Two ranks that are awake need nothing else.
//
// Sleep. A rank that is about to sleep (the sleeper) announces this in `asleep` and `sleeping`, then checks
// again for the signals that it awaits. A rank that has signalled (the waker) checks afterwards whether
// others sleep. At least one of the two must see the other. So each of them stores, then loads, and these
// four accesses are sequentially consistent. Some time after its signal, the waker stores to its own
// `finished`, then loads `sleeping`. The sleeper adds itself to `sleeping`, then loads `finished` of the
// ranks that it awaits, then their phases. (If the waker stored to its phase instead, it would have to wait
// for the cache line that the sleeper polls. No rank polls `finished`.)
//
// There are two cases. Either the waker's load sees the sleeper, and the waker rings the sleeper's bell. Or,
// in the single total order of these accesses, the waker's store to `finished` precedes the sleeper's load of
// `finished`. Then the sleeper sees the signal: the waker's store is a release that follows the signal, and
// the sleeper's load is an acquire. A rank that rings a sleeper's bell clears the sleeper's flag in `asleep`,
// so the bell is rung once.
//
// Only the driving thread calls these functions.
class Board {
 public:
  static constexpr std::size_t slots = 64;
  static constexpr std::size_t slot_bytes =
      17 * 64;  // not a power of two, so that slots use all sets of the caches
  static constexpr std::size_t pages = 8;
  static constexpr std::size_t page_bytes = 16 * 1024;
  static constexpr std::size_t failure_bytes = 1024;

  // Returns `bytes` rounded up to whole cache lines, as windows must be.
  static constexpr std::uint64_t whole_lines(std::uint64_t bytes) { return (bytes + 63) / 64 * 64; }
  // Returns the size in bytes of a segment for `size` ranks with windows of `window_bytes`.
  static std::uint64_t segment_bytes(int size, std::uint64_t window_bytes);
  Board(std::unique_ptr<SharedSegment> segment, int rank, int size, std::uint64_t window_bytes);
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  struct Slot {
    std::atomic<std::uint64_t> phase;    // operation number << phase_bits | signals given
    std::atomic<std::uint64_t> call[2];  // a Fingerprint
    std::byte payload[slot_bytes - sizeof(std::uint64_t) - sizeof(Fingerprint)];

    // Shows this rank's call. A rank that reads any word of the new call with acquire also sees that the old
    // phase is gone.
    void enter(const Fingerprint& now) {
      const auto words = std::bit_cast<std::array<std::uint64_t, 2>>(now);
      phase.store(0, std::memory_order_relaxed);
      call[0].store(words[0], std::memory_order_release);
      call[1].store(words[1], std::memory_order_release);
    }
    // Returns whether the slot shows the call `other`. The comparison goes word by word, just as the call was
    // stored. (One load of both words would wait until both stores have reached the cache, which takes longer
    // than the rest of the comparison.)
    bool calls(const Fingerprint& other) const {
      const auto words = std::bit_cast<std::array<std::uint64_t, 2>>(other);
      const std::uint64_t differs = (call[0].load(std::memory_order_acquire) ^ words[0]) |
                                    (call[1].load(std::memory_order_acquire) ^ words[1]);
      return differs == 0;
    }
  };
  static_assert(sizeof(Slot) == slot_bytes);
  static constexpr int phase_bits = 24;
  static constexpr std::size_t payload_bytes = sizeof(Slot::payload);
  // This is the size in bytes of everything that a rank has on the board, except its window.
  static constexpr std::size_t area_bytes = 64 + failure_bytes + slots * slot_bytes + pages * page_bytes;

  int rank() const { return rank_; }
  int size() const { return size_; }
  // Returns the slot of operation `number`, counted from 1. A rank may use it once all ranks have finished
  // operation `number - slots`, which used the same slot.
  Slot& slot(int rank, std::uint64_t number) { return area(rank).slots[number % slots]; }
  // Returns the payload of rank 0's slot of operation `number`; the payload of rank r lies r * area_bytes
  // further on.
  std::byte* payloads(std::uint64_t number) { return slot(0, number).payload; }
  // Returns the page of operation `number`. A rank may use it once all ranks have finished operation
  // `number - pages`.
  std::byte* page(int rank, std::uint64_t number) { return area(rank).pages[number % pages]; }
  std::byte* window(int rank) { return windows_ + static_cast<std::size_t>(rank) * window_bytes_; }

  // Returns the call in the slot of `rank` for operation `number`. The caller must have seen that `rank` has
  // begun that operation. Once this rank has finished the operation, `rank` may use the slot again; then the
  // result is a later call. The caller can detect that, since the phase of the slot has changed.
  Fingerprint call(int rank, std::uint64_t number);
  // Returns whether the call in that slot equals `call`.
  bool calls(int rank, std::uint64_t number, const Fingerprint& call) {
    return slot(rank, number).calls(call);
  }

  // Returns whether all ranks have finished operation `number` (always true for 0).
  bool all_finished(std::uint64_t number) { return number <= known_finished_ || learn_finished(number); }
  // Publishes that this rank has finished operation `number`, and wakes sleepers.
  void finish(std::uint64_t number) {
    area(rank_).finished.store(number);
    if (head_->sleeping.load() != 0) ring_sleepers();
  }
  // Wakes sleepers. Must be called after a signal, unless `finish` follows soon.
  void pulse();
  // Between `sleep` and `wake`, a signal of another rank rings this rank's bell. After `sleep`, the caller
  // must read `finished` of the ranks that it awaits, and then check once more for their signals.
  void sleep();
  void wake();
  // Returns the number of operations that a rank has finished. After this load, all signals that the rank
  // gave before its last `pulse` or `finish` are visible.
  std::uint64_t finished(int rank) const { return area(rank).finished.load(); }

  // Publishes that this rank has failed, and the reason. Only the first call has an effect.
  void fail(const Status& why);
  // Returns the failure of the lowest rank that has failed, not counting this rank. Returns ok if there is
  // none, or if no rank has failed since the last call that returned a failure. Several calls may return the
  // same failure.
  Status heard();
  // Returns whether any rank has failed, including this rank.
  bool any_failed() const { return head_->failures.load() != 0; }
  // Returns whether `heard` has new failures to look for.
  bool unheard() const { return head_->failures.load() != heard_; }

 private:
  struct Failure {
    std::atomic<std::uint32_t> written;
    // Another process may change these members at any time, even after they were checked. So `heard` reads
    // each of them exactly once.
    std::atomic<std::int32_t> code;
    std::atomic<std::int32_t> peer;
    char text[failure_bytes - 12];
  };
  struct Area {
    alignas(64) std::atomic<std::uint64_t> finished;
    alignas(64) Failure failure;
    alignas(64) Slot slots[Board::slots];
    alignas(64) std::byte pages[Board::pages][page_bytes];
  };
  static_assert(sizeof(Area) == area_bytes);
  struct Head {
    alignas(64) std::atomic<std::uint32_t> failures;  // counts the ranks that have failed
    alignas(64) std::atomic<std::uint32_t> sleeping;  // counts the ranks between `sleep` and `wake`
  };

  Area& area(int rank) const { return areas_[rank]; }
  std::atomic<std::uint32_t>& asleep(int rank) const { return asleep_[rank]; }
  bool learn_finished(std::uint64_t number);
  void ring_sleepers();

  const std::unique_ptr<SharedSegment> segment_;
  const int rank_;
  const int size_;
  const std::uint64_t window_bytes_;
  Head* head_;
  Area* areas_;
  std::atomic<std::uint32_t>* asleep_;
  std::byte* windows_;
  std::vector<const SharedBell*> bells_;  // by rank
  std::uint64_t known_finished_ = 0;      // the last operation that all ranks are known to have finished
  std::uint32_t heard_ = 0;
};

}  // namespace tutti
