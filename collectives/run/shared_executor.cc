#include "collectives/run/shared_executor.h"

#include <algorithm>
#include <cstring>

#include "collectives/run/compute_step.h"
#include "core/relax.h"
#include "core/stream_copy.h"

namespace tutti {

namespace {

constexpr std::uint64_t compare_every = 16;

}  // namespace

SharedExecutor::SharedExecutor(std::unique_ptr<Board> board, const Mesh& mesh, std::span<const int> ranks,
                               const Registry& registry, bool patient)
    : board_(std::move(board)),
      mesh_(mesh),
      ranks_(ranks),
      patient_(patient),
      next_((board_->rank() + 1) % board_->size()),
      vote_(registry, board_->size()) {}

bool SharedExecutor::submit(SharedRun& run) {
  run.next = nullptr;
  if (first_ != nullptr) {
    last_->next = &run;
    last_ = &run;
    return false;
  }
  first_ = last_ = &run;
  if (advancing_) {
    begin();
    return false;
  }
  if (run.flat != nullptr && run_flat(run)) {
    first_ = nullptr;
    return true;
  }
  if (stage_ == Stage::idle) begin();
  submitted_ = &run;
  advance();
  return std::exchange(submitted_, nullptr) == nullptr;
}

bool SharedExecutor::advance() {
  if (advancing_) return false;
  bool did = false;
  advancing_ = true;
  while (stage_ != Stage::idle && stage_ != Stage::failed) {
    const std::uint32_t before = cursor_;
    const bool moved = go_on();
    did |= moved || cursor_ != before;
    if (!moved) break;
  }
  advancing_ = false;
  if (due_) {
    due_ = false;
    board_->pulse();
  }
  return did;
}

void SharedExecutor::halt() {
  if (first_ == nullptr) first_ = last_ = &halted_;
  stage_ = Stage::failed;
}

void SharedExecutor::cancel() {
  first_ = last_ = nullptr;
  stage_ = Stage::failed;
}

void SharedExecutor::begin() {
  ++number_;
  prepare();
  stage_ = Stage::room;
}

void SharedExecutor::prepare() {
  signalled_ = false;
  element_size_ = size_of(first_->binding->reducer.type);
  area_ = area_for(*first_);
}

// Returns true if the operation has reached another stage, or has ended.
bool SharedExecutor::go_on() {
  switch (stage_) {
    case Stage::room:
      if (!room()) return false;
      // Before a slot is used again, the calls in it must have been compared.
      if (compared_ + Board::slots < number_) {
        if (const Status agreed = compare(number_ - 1); !agreed.ok()) {
          end(agreed);
          return true;
        }
      }
      enter();
      return true;
    case Stage::vote:
      for (; cursor_ < static_cast<std::uint32_t>(board_->size()); ++cursor_) {
        const int peer = static_cast<int>(cursor_);
        if (peer != board_->rank() && !patiently_arrived(peer, 1)) return stage_ == Stage::failed;
      }
      count_votes();
      return true;
    case Stage::steps:
      return run_steps();
    case Stage::agree:
      if (!board_->all_finished(number_)) return false;
      finish();
      return true;
    default:
      return false;
  }
}

SharedExecutor::Area SharedExecutor::area_for(const SharedRun& run) const {
  const std::uint64_t bytes = run.schedule->window_count * element_size_;
  if (run.votes || bytes > Board::page_bytes) return Area::window;
  return bytes > Board::payload_bytes ? Area::page : Area::slot;
}

// The current operation must not write to its slot, page or window before all ranks have finished a certain
// earlier operation. Returns the number of that earlier operation.
std::uint64_t SharedExecutor::needs_finished() const {
  const std::uint64_t distance = area_ == Area::page ? Board::pages : Board::slots;
  const std::uint64_t before = number_ > distance ? number_ - distance : 0;
  return area_ == Area::window ? std::max(before, windows_used_) : before;
}

bool SharedExecutor::room() const { return board_->all_finished(needs_finished()); }

void SharedExecutor::enter() {
  board_->slot(board_->rank(), number_).enter(first_->binding->call);
  cursor_ = 0;
  if (first_->votes) {
    vote_.show(*board_, number_, *first_->binding, {first_->input_bytes, first_->output_bytes});
    signals_before_ = 0;
    signal(1);
    board_->pulse();  // wakes ranks that sleep until all have voted
    stage_ = Stage::vote;
    return;
  }
  use(*first_->schedule);
  signals_before_ = 0;
}

void SharedExecutor::count_votes() {
  const bool registered = vote_.is_unanimous(*board_, number_, first_->binding->call,
                                             {first_->input_bytes, first_->output_bytes});
  if (registered && first_->registered == nullptr) {
    // The votes say that this rank's buffers are registered, but these buffers are not. So another rank has
    // changed the votes in shared memory.
    end(Status(Code::protocol_error, "the ranks' votes on registered memory have been changed"));
    return;
  }
  if (registered) ++registered_operations_;
  use(registered ? *first_->registered : *first_->schedule);
  reaches_others_ = registered;
  signals_before_ = 1;
}

void SharedExecutor::use(const Schedule& schedule) {
  schedule_ = &schedule;
  reaches_others_ = false;
  cursor_ = 0;
  repetition_ = 0;
  shift_ = 0;
  stage_ = Stage::steps;
  if (area_ == Area::window) windows_used_ = number_;
  if (!scratch_.provide(schedule.scratch_count * element_size_)) return end(Scratch::exhausted());
  buffers_ = Buffers(first_->binding->input, first_->binding->output, scratch_.data(), nullptr);
}

bool SharedExecutor::run_steps() {
  const auto end_of_steps = static_cast<std::uint32_t>(schedule_->steps.size());
  for (;;) {
    if (cursor_ == schedule_->repeat.last && repeat()) continue;
    if (cursor_ == end_of_steps) break;
    const Step& step = schedule_->steps[cursor_];
    if (step.kind == StepKind::await) {
      if (!patiently_arrived(step.peer, step.index)) return stage_ == Stage::failed;
    } else if (step.kind == StepKind::signal) {
      signal(signals_before_ + step.index);
    } else if (has_been_left() || !compute(step)) {
      const Reducer& reducer = first_->binding->reducer;
      if (reducer.failed()) end(*reducer.failure);
      return stage_ == Stage::failed;
    }
    ++cursor_;
  }
  end(Status());
  return true;
}

// Called at the end of the repeated steps. Returns true if they must run once more.
bool SharedExecutor::repeat() {
  const Schedule::Repeat& repeat = schedule_->repeat;
  if (repeat.times == 0 || repetition_ == repeat.times) return false;
  ++repetition_;
  if (repetition_ == repeat.times) {  // offsets and signals of later steps include the repetitions
    shift_ = 0;
    signals_before_ -= static_cast<std::uint32_t>(repeat.times - 1) * repeat.signals;
    return false;
  }
  shift_ += repeat.stride;
  signals_before_ += repeat.signals;
  cursor_ = repeat.first;
  return true;
}

// Returns false if combining failed, or if a rank has failed and so left the operation. That rank may already
// use its buffers for other things, so this operation must fail.
bool SharedExecutor::compute(const Step& step) {
  if (step.out.owner == everyone) return reduce_for_everyone(step);
  const RunBinding& binding = *first_->binding;
  const std::size_t bytes = step.out.count * element_size_;
  if (step.kind == StepKind::copy && first_->passes_caches && step.out.buffer == BufferId::output) {
    stream_copy(address(step.out), address(step.left), bytes);
    streamed_ = true;
    return true;
  }
  compute_step(step, step.out.count, bytes, binding, [this](const Slice& slice) { return address(slice); });
  return !binding.reducer.failed();
}

// Data that is written past the caches is combined in tiles, which stay in the first-level cache until they
// are written to memory. The tiles are small, so that reads and writes of memory overlap.
bool SharedExecutor::reduce_for_everyone(const Step& step) {
  alignas(64) std::byte tile[1024];
  const Reducer& reducer = first_->binding->reducer;
  const std::size_t moved = (step.out.offset + shift_) * element_size_;
  const std::byte* const left = address(step.left);
  const std::byte* const right = address(step.right);
  const auto size = static_cast<std::size_t>(board_->size());
  const auto rank = static_cast<std::size_t>(board_->rank());
  const std::size_t bytes = step.out.count * element_size_;
  const std::size_t most = first_->passes_caches ? sizeof tile : bytes;
  for (std::size_t at = 0; at < bytes; at += most) {
    const std::size_t part = std::min(most, bytes - at);
    std::byte* const combined = first_->passes_caches ? tile : vote_.output(rank) + moved;
    reducer(left + at, right + at, combined, part / element_size_);
    if (has_been_left() || reducer.failed()) return false;
    for (std::size_t i = 0; i < size; ++i) {
      std::byte* const out = vote_.output((rank + i) % size) + moved + at;
      if (first_->passes_caches) {
        stream_copy(out, tile, part);
      } else if (i != 0) {
        std::memcpy(out, combined, part);
      }
    }
  }
  streamed_ |= first_->passes_caches;
  return true;
}

std::byte* SharedExecutor::address(const Slice& slice) const {
  const std::size_t offset = slice.offset * element_size_;
  if (slice.buffer != BufferId::window) {
    const std::size_t moved = offset + shift_ * element_size_;
    if (slice.owner == own) return buffers_.at(slice.buffer, moved);
    const auto owner = static_cast<std::size_t>(slice.owner);
    return (slice.buffer == BufferId::input ? vote_.input(owner) : vote_.output(owner)) + moved;
  }
  switch (area_) {
    case Area::slot:
      return board_->slot(slice.owner, number_).payload + offset;
    case Area::page:
      return board_->page(slice.owner, number_) + offset;
    default:
      return board_->window(slice.owner) + offset;
  }
}

void SharedExecutor::signal(std::uint32_t index) {
  signalled_ = true;
  if (streamed_) stream_fence();
  streamed_ = false;
  board_->slot(board_->rank(), number_).phase.store(phase(index), std::memory_order_release);
  due_ = true;
}

// Returns whether a peer has given a signal. If the peer has made a different call, the operation fails.
bool SharedExecutor::arrived(int peer, std::uint32_t index) {
  const std::uint32_t wanted = signals_before_ + index;
  if (wanted == 0) return true;
  const Board::Slot& slot = board_->slot(peer, number_);
  const std::uint64_t theirs = slot.phase.load(std::memory_order_acquire);
  if (theirs >> Board::phase_bits != number_) return false;
  const RunBinding& binding = *first_->binding;
  if (!board_->calls(peer, number_, binding.call)) {
    end(mismatch(peer, number_));
    return false;
  }
  if (peer == next_ && compared_ + 1 == number_) compared_ = number_;
  return theirs >= phase(wanted);
}

bool SharedExecutor::patiently_arrived(int peer, std::uint32_t index) {
  if (arrived(peer, index)) return true;
  for (int looks = 0; patient_ && looks < patient_looks && stage_ != Stage::failed; ++looks) {
    if (looks >= eager_looks) relax();
    if (arrived(peer, index)) return true;
  }
  return false;
}

// Ends the operation in progress. This function may call `binding.finished`, which may destroy the run and
// submit other runs.
void SharedExecutor::end(const Status& status) {
  const RunBinding& binding = *first_->binding;
  if (streamed_) stream_fence();
  streamed_ = false;
  if (status.ok() && !signalled_) signal(0);
  const Status agreed = status.ok() && must_compare(binding.call) ? compare(number_) : status;
  if (!agreed.ok()) {
    stage_ = Stage::failed;
    binding.failed(binding.owner, agreed);
    return;
  }
  called_ = binding.call;
  board_->finish(number_);
  due_ = false;
  if (first_->agrees && !board_->all_finished(number_)) {
    stage_ = Stage::agree;
  } else {
    finish();
  }
}

void SharedExecutor::finish() {
  const RunBinding& binding = *first_->binding;
  stage_ = Stage::idle;
  const bool within_submit = first_ == std::exchange(submitted_, nullptr);
  first_ = first_->next;
  if (first_ != nullptr) begin();
  if (!within_submit) binding.finished(binding.owner, Status());
}

// Reading another rank's call takes away a cache line that the other rank is about to need. So while this
// rank repeats a call, calls are compared only every `compare_every` operations.
bool SharedExecutor::must_compare(const Fingerprint& call) const {
  return number_ - compared_ >= compare_every || call != called_;
}

}  // namespace tutti
