#include "collectives/record/history.h"

#include <algorithm>
#include <cassert>

#include <time.h>

namespace tutti {

History::History(std::size_t window, Full full) : full_(full) {
  assert(std::has_single_bit(window));
  tables_.push_back(std::make_unique<Table>(window));
  table_.store(tables_.back().get());
}

History::Time History::coarse_now() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return now.tv_sec * Time{1'000'000'000} + now.tv_nsec;
}

// Doubles the table until no other live operation has the slot of `number`. This is needed if many operations
// are in flight.
History::Slot& History::grow_for(std::uint64_t number) {
  Entry there;
  while (table().read(number & table().mask, there) && there.state == State::live && there.number != number) {
    const Table& old = table();
    auto wider = std::make_unique<Table>((old.mask + 1) * 2);
    for (std::size_t i = 0; i <= old.mask; ++i) {
      Entry entry;
      if (!old.read(i, entry)) continue;
      Slot& slot = wider->slot(entry.number);
      slot.put(entry.number, entry.call);
      wider->detail(entry.number).put(entry);
      slot.mark.store(old.slots[i].mark.load(std::memory_order_relaxed), std::memory_order_relaxed);
    }
    tables_.push_back(std::move(wider));
    table_.store(tables_.back().get(), std::memory_order_release);
  }
  return table().slot(number);
}

void History::Details::put(const Entry& entry) {
  tag.store(entry.tag, std::memory_order_release);
  times[0].store(static_cast<std::uint64_t>(entry.issued), std::memory_order_release);
  times[1].store(static_cast<std::uint64_t>(entry.started), std::memory_order_release);
  times[2].store(static_cast<std::uint64_t>(entry.ended), std::memory_order_release);
}

void History::begin(const Entry& operation) {
  Slot& slot = room_for(operation.number);
  slot.clear();
  slot.put(operation.number, operation.call);
  table().detail(operation.number).put(operation);
  slot.mark.store(mark_of(operation.number, operation.algorithm, State::live, true),
                  std::memory_order_release);
}

void History::end(std::uint64_t number, State state, Time issued, Time ended) {
  Slot& slot = table().slot(number);
  const std::uint64_t mark = slot.mark.load(std::memory_order_relaxed);
  if (slot.number.load(std::memory_order_relaxed) != number || state_of(mark) != State::live) return;
  Details& detail = table().detail(number);
  if (detail.times[0].load(std::memory_order_relaxed) == 0) {
    detail.times[0].store(static_cast<std::uint64_t>(issued), std::memory_order_release);
  }
  detail.times[2].store(static_cast<std::uint64_t>(ended), std::memory_order_release);
  const auto algorithm = static_cast<std::uint8_t>(mark >> 8);
  slot.mark.store(mark_of(number, algorithm, state, true), std::memory_order_release);
}

History::Known History::find(std::uint64_t number) const {
  const Slot& slot = table().slot(number);
  const State state = state_of(slot.mark.load(std::memory_order_relaxed));
  if (state == State::none) return {};
  const std::uint64_t there = slot.number.load(std::memory_order_relaxed);
  if (there != number) return {.newer = there > number};
  found_ = std::bit_cast<Fingerprint>(std::array<std::uint64_t, 2>{
      slot.call[0].load(std::memory_order_relaxed), slot.call[1].load(std::memory_order_relaxed)});
  return {.state = state, .call = &found_};
}

bool History::Table::read(std::size_t index, Entry& entry) const {
  const Slot& slot = slots[index];
  const Details& detail = details[index];
  const std::uint64_t mark = slot.mark.load(std::memory_order_acquire);
  entry.number = slot.number.load(std::memory_order_acquire);
  std::array<std::uint64_t, 2> call;
  for (std::size_t i = 0; i < call.size(); ++i) call[i] = slot.call[i].load(std::memory_order_acquire);
  entry.call = std::bit_cast<Fingerprint>(call);
  entry.tag = detail.tag.load(std::memory_order_acquire);
  std::array<Time, 3> times;
  for (std::size_t i = 0; i < times.size(); ++i) {
    times[i] = static_cast<Time>(detail.times[i].load(std::memory_order_acquire));
  }
  if (mark == 0 || slot.mark.load(std::memory_order_relaxed) != mark) return false;
  if ((entry.number << 16) != (mark & number_bits)) return false;
  entry.state = state_of(mark);
  entry.algorithm = static_cast<std::uint8_t>(mark >> 8);
  const bool timed = (mark & timed_bit) != 0;
  entry.issued = timed ? times[0] : 0;
  entry.started = timed ? times[1] : 0;
  entry.ended = timed && entry.state != State::live ? times[2] : 0;
  if (!timed) entry.tag = 0;
  return true;
}

std::vector<History::Entry> History::entries() const {
  const Table& table = *table_.load(std::memory_order_acquire);
  std::vector<Entry> entries;
  for (std::size_t i = 0; i <= table.mask; ++i) {
    Entry entry;
    // A quick writer may spoil a few of these attempts, but very rarely all of them.
    for (int attempt = 0; attempt < 8; ++attempt) {
      if (!table.read(i, entry)) continue;
      entries.push_back(entry);
      break;
    }
  }
  std::ranges::sort(entries, {}, &Entry::number);
  return entries;
}

}  // namespace tutti
