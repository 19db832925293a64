#include "collectives/schedule/schedule_builder.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <span>

#include "collectives/schedule/hazards.h"

namespace tutti {

// `Hazards` translates slices to addresses (input and output may share them) and keeps every step's
// predecessors.
class ScheduleBuilder::Hazards {
 public:
  explicit Hazards(const Problem& problem) {
    if (!problem.in_place) return;
    switch (problem.kind) {
      case CollectiveKind::all_gather:
      case CollectiveKind::all_gather_v:
        shift_[index(BufferId::input)] = own_block_offset(problem);
        break;
      case CollectiveKind::reduce_scatter:
      case CollectiveKind::reduce_scatter_v:
        shift_[index(BufferId::output)] = own_block_offset(problem);
        break;
      case CollectiveKind::gather:
      case CollectiveKind::gather_v:
        if (problem.rank != problem.root) return;
        shift_[index(BufferId::input)] = own_block_offset(problem);
        break;
      case CollectiveKind::scatter:
      case CollectiveKind::scatter_v:
        if (problem.rank != problem.root) return;
        shift_[index(BufferId::output)] = own_block_offset(problem);
        break;
      case CollectiveKind::reduce:
      case CollectiveKind::broadcast:
        if (problem.rank != problem.root) return;
        break;
      default:
        break;
    }
    space_[index(BufferId::input)] = index(BufferId::output);
  }

  bool same_place(const Slice& a, const Slice& b) const {
    return a.count == b.count && a.owner == b.owner && space_[index(a.buffer)] == space_[index(b.buffer)] &&
           begin(a) == begin(b);
  }

  void read(const Slice& slice, std::uint32_t step) {
    if (slice.count != 0) history(slice).read(begin(slice), begin(slice) + slice.count, step, after_);
  }
  void write(const Slice& slice, std::uint32_t step) {
    if (slice.count != 0) history(slice).write(begin(slice), begin(slice) + slice.count, step, after_);
  }
  void after(std::uint32_t step) { after_.push_back(step); }

  // Ends the step that is being added, and keeps its predecessors, except those that other predecessors
  // imply. Returns how many it has kept.
  std::uint32_t close_step() {
    std::sort(after_.begin(), after_.end());
    after_.erase(std::unique(after_.begin(), after_.end()), after_.end());
    const std::size_t first = predecessors_.size();
    for (std::size_t i = 0; i < after_.size(); ++i) {
      if (!implied(i)) predecessors_.push_back(after_[i]);
    }
    first_.push_back(predecessors_.size());
    after_.clear();
    return static_cast<std::uint32_t>(predecessors_.size() - first);
  }

  std::span<const std::uint32_t> predecessors(std::size_t step) const {
    return std::span(predecessors_).subspan(first_[step], first_[step + 1] - first_[step]);
  }

 private:
  static std::size_t index(BufferId buffer) { return static_cast<std::size_t>(buffer); }
  std::uint64_t begin(const Slice& slice) const { return slice.offset + shift_[index(slice.buffer)]; }
  AccessHistory& history(const Slice& slice) { return histories_[space_[index(slice.buffer)]]; }

  // Returns whether the step after_[i] may be dropped from the list, since another step in the list waits for
  // it anyway. Returns false without a search if the list is long.
  bool implied(std::size_t i) const {
    if (after_.size() > 16) return false;
    for (std::size_t j = i + 1; j < after_.size(); ++j) {
      const auto earlier = predecessors(after_[j]);
      if (std::binary_search(earlier.begin(), earlier.end(), after_[i])) return true;
    }
    return false;
  }

  std::array<std::size_t, 4> space_ = {0, 1, 2, 3};
  std::array<std::uint64_t, 4> shift_ = {0, 0, 0, 0};
  std::array<AccessHistory, 3> histories_;
  std::vector<std::uint32_t> after_;         // the predecessors of the step being added
  std::vector<std::uint32_t> predecessors_;  // grouped by step, ascending
  std::vector<std::size_t> first_ = {0};
};

ScheduleBuilder::ScheduleBuilder(const Problem& problem)
    : element_size_(std::max<std::uint32_t>(problem.element_size, 1)),
      hazards_(std::make_unique<Hazards>(problem)) {}

ScheduleBuilder::~ScheduleBuilder() = default;

Slice ScheduleBuilder::scratch(std::uint64_t count) {
  const Slice slice{BufferId::scratch, schedule_.scratch_count, count};
  // Slices start on cache lines, which makes the kernels faster.
  const std::uint64_t line = std::max<std::uint64_t>(64 / element_size_, 1);
  schedule_.scratch_count += (count + line - 1) / line * line;
  return slice;
}

Slice ScheduleBuilder::resolve(Slice slice) const {
  if (slice.buffer == BufferId::scratch) return slice;
  const std::optional<Slice>& redirected = slice.buffer == BufferId::input ? input_ : output_;
  if (!redirected) return slice;
  assert(slice.offset + slice.count <= redirected->count);
  return {redirected->buffer, redirected->offset + slice.offset, slice.count};
}

Slice ScheduleBuilder::window(int owner, std::uint64_t offset, std::uint64_t count) {
  schedule_.window_count = std::max(schedule_.window_count, offset + count);
  return {BufferId::window, offset, count, owner};
}

std::uint32_t ScheduleBuilder::signal() {
  Step step;
  step.kind = StepKind::signal;
  step.index = ++signals_;
  add(step);
  return signals_;
}

void ScheduleBuilder::await(int peer, std::uint32_t signal) {
  Step step;
  step.kind = StepKind::await;
  step.peer = peer;
  step.index = signal;
  add(step);
}

void ScheduleBuilder::begin_repeat(std::uint64_t times, std::uint64_t stride) {
  assert(schedule_.shared && schedule_.repeat.times == 0);
  schedule_.repeat = {static_cast<std::uint32_t>(schedule_.steps.size()), 0, times, stride, signals_};
}

void ScheduleBuilder::end_repeat() {
  Schedule::Repeat& repeat = schedule_.repeat;
  repeat.last = static_cast<std::uint32_t>(schedule_.steps.size());
  repeat.signals = signals_ - repeat.signals;
  signals_ += static_cast<std::uint32_t>(repeat.times - 1) * repeat.signals;
}

void ScheduleBuilder::send(int peer, Slice from) {
  message(StepKind::send, peer, from, {}, MessageSide::right);
}

void ScheduleBuilder::recv(int peer, Slice to) { message(StepKind::recv, peer, {}, to, MessageSide::right); }

void ScheduleBuilder::recv_reduce(int peer, Slice local_operand, Slice out, MessageSide side) {
  message(StepKind::recv_reduce, peer, local_operand, out, side);
}

void ScheduleBuilder::copy(Slice from, Slice to) { local(StepKind::copy, from, {}, to); }

void ScheduleBuilder::reduce(Slice left, Slice right, Slice out) {
  local(StepKind::reduce, left, right, out);
}

void ScheduleBuilder::scale(Slice from, Slice to) { local(StepKind::scale, from, {}, to); }

void ScheduleBuilder::divide(Slice from, Slice to) { local(StepKind::divide, from, {}, to); }

void ScheduleBuilder::redirect_input(Slice to) { input_ = to; }

void ScheduleBuilder::limit_in_flight(std::uint32_t window) {
  window_ = window;
  sends_.clear();
}

ScheduleBuilder::Part::Part(ScheduleBuilder& builder, std::span<const int> ranks, Slice input, Slice output)
    : builder_(builder), outer_input_(builder.input_) {
  assert(builder.ranks_.empty());
  const Slice inner_input = builder.resolve(input);
  const Slice inner_output = builder.resolve(output);
  builder.input_ = inner_input;
  builder.output_ = inner_output;
  builder.ranks_ = ranks;
}

ScheduleBuilder::Part::~Part() {
  builder_.input_ = outer_input_;
  builder_.output_.reset();
  builder_.ranks_ = {};
  builder_.limit_in_flight(0);
}

void ScheduleBuilder::fence() { fenced_ = receives_.size(); }

void ScheduleBuilder::settle() { settled_ = static_cast<std::uint32_t>(schedule_.steps.size()); }

void ScheduleBuilder::message(StepKind kind, int peer, Slice left, Slice out, MessageSide side) {
  const bool sending = kind == StepKind::send;
  if (!ranks_.empty()) peer = ranks_[static_cast<std::size_t>(peer)];
  Step step;
  step.kind = kind;
  step.message_side = side;
  step.peer = peer;
  step.index = (sending ? sent_ : received_)[peer]++;
  step.left = resolve(left);
  step.out = resolve(out);
  if (sending) {
    if (window_ != 0 && sends_.size() >= window_) hazards_->after(sends_[sends_.size() - window_]);
    for (std::size_t i = 0; i < fenced_; ++i) hazards_->after(receives_[i]);
    for (std::uint32_t i = 0; i < settled_; ++i) hazards_->after(i);
  }
  (sending ? sends_ : receives_).push_back(static_cast<std::uint32_t>(schedule_.steps.size()));
  add(step);
}

void ScheduleBuilder::local(StepKind kind, Slice left, Slice right, Slice out) {
  if (out.count == 0) return;
  Step step;
  step.kind = kind;
  step.left = resolve(left);
  step.right = resolve(right);
  step.out = resolve(out);
  assert(step.left.count == step.out.count &&
         (kind != StepKind::reduce || step.right.count == step.out.count));
  if (kind == StepKind::copy && hazards_->same_place(step.left, step.out)) return;
  add(step);
}

void ScheduleBuilder::add(Step step) {
  if (schedule_.shared) {
    schedule_.steps.push_back(step);
    return;
  }
  const auto id = static_cast<std::uint32_t>(schedule_.steps.size());
  // An operand that the step overwrites in place is recorded only as written, since a write waits for
  // everything that a read would wait for.
  for (const Slice& operand : {step.left, step.right}) {
    if (!hazards_->same_place(operand, step.out)) hazards_->read(operand, id);
  }
  hazards_->write(step.out, id);
  step.dependencies = hazards_->close_step();
  schedule_.steps.push_back(step);
}

Schedule ScheduleBuilder::finish() && {
  if (schedule_.shared) return std::move(schedule_);
  auto& steps = schedule_.steps;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].dependencies == 0) schedule_.ready.push_back(static_cast<std::uint32_t>(i));
    for (const std::uint32_t before : hazards_->predecessors(i)) ++steps[before].successor_count;
  }
  std::uint32_t total = 0;
  for (Step& step : steps) {
    step.first_successor = total;
    total += step.successor_count;
    step.successor_count = 0;
  }
  schedule_.successors.resize(total);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    for (const std::uint32_t before : hazards_->predecessors(i)) {
      Step& step = steps[before];
      schedule_.successors[step.first_successor + step.successor_count++] = static_cast<std::uint32_t>(i);
    }
  }
  return std::move(schedule_);
}

}  // namespace tutti
