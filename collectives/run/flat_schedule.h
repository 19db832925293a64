#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "collectives/schedule/schedule.h"

namespace tutti {

// `FlatSchedule` is a shared schedule that moves only a few bytes, in a form that executes quickly. It has
// the same steps as the schedule, but every slice is a buffer and an offset in bytes, and there is no
// `Schedule::Repeat`. So an execution is little more than loads and stores. The data move through the ranks'
// slots (see Board).
class FlatSchedule {
 public:
  struct Place {
    BufferId buffer = BufferId::input;
    std::size_t offset = 0;  // in bytes; if `buffer` is `window`, from the beginning of rank 0's payload
  };
  struct Step {
    StepKind kind = StepKind::copy;
    std::int32_t peer = -1;
    std::uint32_t index = 0;
    Place left;
    Place right;
    Place out;
    std::size_t count = 0;
    std::size_t bytes = 0;
  };

  FlatSchedule(const Schedule& schedule, std::size_t element_size);

  // Returns whether the schedule has a flat form. If not, there are no steps.
  bool usable() const { return !steps_.empty(); }
  const std::vector<Step>& steps() const { return steps_; }

 private:
  std::vector<Step> steps_;
};

}  // namespace tutti
