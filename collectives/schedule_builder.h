#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <tutti/collectives/problem.h>
#include <tutti/collectives/schedule.h>

namespace tutti {

// Collects the steps that an algorithm emits in straight-line order, numbers the messages of each pair, and derives
// the dependencies from the slices that steps read and write (read after write, write after read, write after
// write), so that independent steps overlap and pipelines form by themselves.
//
// Steps over zero elements: local ones are dropped, messages are kept (a receiver cannot know). A copy onto itself
// is dropped. In-place problems are understood: `input` and `output` then share addresses.
class ScheduleBuilder {
 public:
  explicit ScheduleBuilder(const Problem& problem);
  ~ScheduleBuilder();
  ScheduleBuilder(const ScheduleBuilder&) = delete;
  ScheduleBuilder& operator=(const ScheduleBuilder&) = delete;

  // A fresh slice of scratch.
  Slice scratch(std::uint64_t count);

  void send(int peer, Slice from);
  void recv(int peer, Slice to);
  // out = local op message (side right) or message op local (side left). `out` may be `local`.
  void recv_reduce(int peer, Slice local, Slice out, MessageSide side);
  void copy(Slice from, Slice to);
  void reduce(Slice left, Slice right, Slice out);
  void scale(Slice from, Slice to);
  void divide(Slice from, Slice to);

  // From here on, what an algorithm calls `input` is this slice of scratch (premultiplied sums).
  void redirect_input(Slice to);

  Schedule finish() &&;

 private:
  class Hazards;
  Problem problem_;
  Schedule schedule_;
  std::unique_ptr<Hazards> hazards_;
};

}  // namespace tutti
