#include "collectives/run/flat_schedule.h"

#include <algorithm>

#include "collectives/run/board.h"

namespace tutti {

namespace {

FlatSchedule::Place place_of(const Slice& slice, std::size_t element_size) {
  const std::size_t offset = slice.offset * element_size;
  if (slice.buffer != BufferId::window) return {slice.buffer, offset};
  return {slice.buffer, static_cast<std::size_t>(slice.owner) * Board::area_bytes + offset};
}

bool own_or_window(const Slice& slice) { return slice.owner == own || slice.buffer == BufferId::window; }

bool fits(const Schedule& schedule, std::size_t element_size) {
  return schedule.shared && schedule.repeat.times == 0 && schedule.scratch_count == 0 &&
         schedule.window_count * element_size <= Board::payload_bytes &&
         std::ranges::all_of(schedule.steps, [](const Step& step) {
           return own_or_window(step.left) && own_or_window(step.right) && own_or_window(step.out);
         });
}

}  // namespace

FlatSchedule::FlatSchedule(const Schedule& schedule, std::size_t element_size) {
  if (!fits(schedule, element_size)) return;
  steps_.reserve(schedule.steps.size());
  for (const tutti::Step& step : schedule.steps) {
    steps_.push_back({.kind = step.kind,
                      .peer = step.peer,
                      .index = step.index,
                      .left = place_of(step.left, element_size),
                      .right = place_of(step.right, element_size),
                      .out = place_of(step.out, element_size),
                      .count = step.out.count,
                      .bytes = step.out.count * element_size});
  }
}

}  // namespace tutti
