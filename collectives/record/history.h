#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <tutti/deadline.h>

#include "core/fingerprint.h"

namespace tutti {

// `History` lists a communicator's last operations by number. The library uses it to judge early and late
// messages, and the flight recorder writes it into dumps.
//
// The driving thread writes the history. Any thread may read it at any time, even while the driving thread is
// stopped. Each slot's `mark` says what is in the slot. The mark is cleared before the slot changes and set
// afterwards, and every other word is stored with release. So a reader that sees a new word also sees that
// the mark has changed. If the mark is the same before and after an entry was read, the entry is consistent.
class History {
 public:
  // A time counts nanoseconds of Deadline::Clock; 0 means that it is not known.
  using Time = std::int64_t;
  enum class State : std::uint8_t { none, live, finished, failed };

  struct Entry {
    std::uint64_t number = 0;
    Fingerprint call;
    std::uint8_t algorithm = 0;  // the algorithm that was used; 0: not known
    State state = State::none;
    std::uint64_t tag = 0;  // only for a transfer
    Time issued = 0;        // 0 if the operation started at once and completed soon
    Time started = 0;
    Time ended = 0;
  };

  // Says whether a full history grows, or forgets an operation that is still live.
  enum class Full : std::uint8_t { grow, forget };

  // Keeps the last `window` operations; `window` must be a power of two.
  History(std::size_t window, Full full);
  History(const History&) = delete;
  History& operator=(const History&) = delete;

  // Returns the time, exact only to a few milliseconds. Reading this clock takes a few nanoseconds.
  static Time coarse_now();
  static Time time_of(Deadline::Clock::time_point when) { return when.time_since_epoch().count(); }

  // --- driving ---

  // Notes that an operation has started. Ignores `operation.state`: the state becomes `live`.
  void begin(const Entry& operation);
  // Notes that an operation has ended. `issued` and `ended` may be 0 (not known).
  void end(std::uint64_t number, State state, Time issued, Time ended);
  // Notes an operation that has begun and completed, with no other operation beginning in between.
  void at_once(std::uint64_t number, const Fingerprint& call, std::uint8_t algorithm) {
    Slot& slot = room_for(number);
    slot.clear();
    slot.put(number, call);
    slot.mark.store(mark_of(number, algorithm, State::finished, false), std::memory_order_release);
  }
  void at_once(const Entry& operation, Time ended) {
    begin(operation);
    end(operation.number, State::finished, 0, ended);
  }

  // `Known` is the state and the call of an operation. The state is `none` if nothing is known. `call` is
  // valid until the next call of `find`.
  struct Known {
    State state = State::none;
    const Fingerprint* call = nullptr;
    bool newer = false;  // nothing is known, since a later operation has taken the slot
  };
  Known find(std::uint64_t number) const;

  // --- any thread ---

  // Returns the entries in the order of their numbers. Entries that the driving thread is changing at this
  // moment may be missing.
  std::vector<Entry> entries() const;

 private:
  using Word = std::atomic<std::uint64_t>;
  // A `Slot` holds everything that is written for an operation that completes at once and is not timed. Slots
  // are small, and several of them share a cache line, so they stay in the nearest cache.
  struct Slot {
    Word mark;
    Word number;
    std::array<Word, 2> call;

    void clear() { mark.store(0, std::memory_order_relaxed); }
    void put(std::uint64_t new_number, const Fingerprint& new_call);
  };
  struct Details {
    Word tag;
    std::array<Word, 3> times;

    void put(const Entry& entry);
  };
  struct Table {
    explicit Table(std::size_t size)
        : mask(size - 1), slots(std::make_unique<Slot[]>(size)), details(std::make_unique<Details[]>(size)) {}
    Slot& slot(std::uint64_t number) const { return slots[number & mask]; }
    Details& detail(std::uint64_t number) const { return details[number & mask]; }
    // Returns false if the entry is empty or is being changed.
    bool read(std::size_t index, Entry& entry) const;

    const std::size_t mask;
    const std::unique_ptr<Slot[]> slots;
    const std::unique_ptr<Details[]> details;
  };
  Table& table() const { return *table_.load(std::memory_order_relaxed); }

  // A mark contains the operation's number in 48 bits, its algorithm, its state, and whether its times are
  // known.
  static std::uint64_t mark_of(std::uint64_t number, std::uint8_t algorithm, State state, bool timed) {
    return number << 16 | std::uint64_t{algorithm} << 8 | (timed ? timed_bit : 0) |
           static_cast<std::uint64_t>(state);
  }
  static constexpr std::uint64_t timed_bit = 0x80;
  static constexpr std::uint64_t number_bits = ~std::uint64_t{0} << 16;
  static State state_of(std::uint64_t mark) { return static_cast<State>(mark & 0x7f); }

  Slot& room_for(std::uint64_t number) {
    Slot& slot = table().slot(number);
    if (full_ == Full::forget || state_of(slot.mark.load(std::memory_order_relaxed)) != State::live) {
      return slot;
    }
    return grow_for(number);
  }
  Slot& grow_for(std::uint64_t number);

  const Full full_;
  std::atomic<Table*> table_;
  std::vector<std::unique_ptr<Table>> tables_;  // also outgrown tables, which a thread may be reading
  mutable Fingerprint found_;
};

inline void History::Slot::put(std::uint64_t new_number, const Fingerprint& new_call) {
  const auto words = std::bit_cast<std::array<std::uint64_t, 2>>(new_call);
  number.store(new_number, std::memory_order_release);
  call[0].store(words[0], std::memory_order_release);
  call[1].store(words[1], std::memory_order_release);
}

}  // namespace tutti
