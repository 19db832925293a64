#include "transport/staged/pipeline.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace tutti::staged {

namespace {

cuda::Address address_of(const void* buffer) { return std::bit_cast<cuda::Address>(buffer); }

}  // namespace

Pipeline::Pipeline(const cuda::Device& device, HostCalls& host, const PeerInfo& self, std::size_t piece_bytes)
    : device_(device),
      host_(host),
      here_(self.describe()),
      world_rank_(self.rank),
      piece_bytes_(piece_bytes) {}

Result<std::unique_ptr<Pipeline>> Pipeline::create(const cuda::Device& device, HostCalls& host,
                                                   const PeerInfo& self, std::size_t piece_bytes) {
  std::unique_ptr<Pipeline> pipeline(new Pipeline(device, host, self, piece_bytes));
  if (Status allocated = pipeline->allocate(); !allocated.ok()) return allocated;
  return pipeline;
}

Status Pipeline::allocate() {
  auto memory = cuda::PinnedMemory::create(device_, slots_.size() * 2 * piece_bytes_);
  if (!memory.ok()) return memory.status();
  memory_ = *std::move(memory);
  for (std::unique_ptr<cuda::Stream>* const stream : {&in_, &out_}) {
    auto made = cuda::Stream::create(device_);
    if (!made.ok()) return made.status();
    *stream = *std::move(made);
  }
  std::size_t offset = 0;
  for (Slot& slot : slots_) {
    auto event = cuda::Event::create(device_);
    if (!event.ok()) return event.status();
    slot.copied = *std::move(event);
    slot.data = memory_->data() + offset;
    slot.address = memory_->address() + offset;
    offset += 2 * piece_bytes_;
  }
  return {};
}

void Pipeline::fail(const Status& why) {
  if (!failure_.ok()) return;
  failure_ = Status(why.code(), here_ + ": " + device_.name() + ": " + why.message(), world_rank_);
  host_.abort(failure_);
}

void Pipeline::give_up(const Status& why) {
  if (failure_.ok()) failure_ = why;
}

void Pipeline::start(StagedCall& call) {
  Slot& slot = slots_[started_++ % slots_.size()];
  slot.call = &call;
  slot.agrees = !call.pieces;
  ++call.under_way;
  if (slot.agrees) {
    call.asked = true;
    const std::uint64_t mine = call.cutting.own_pieces();
    std::memcpy(slot.data, &mine, sizeof mine);
    slot.stage = Stage::ready;
  } else {
    slot.piece = call.started++;
    slot.stage = Stage::copying_in;
    copy(slot, call.cutting.input(slot.piece), address_of(call.call->call.in.data), 0, false);
  }
}

bool Pipeline::advance() {
  bool any = false;
  for (std::uint64_t number = ended_; number != started_; ++number) {
    Slot& slot = slots_[number % slots_.size()];
    any |= advance(slot);
    if (slot.stage == Stage::ready && number == called_) {
      ++called_;
      call_host(slot);
      any = true;
    }
  }
  while (ended_ != started_ && slots_[ended_ % slots_.size()].stage == Stage::free) ++ended_;
  return any;
}

bool Pipeline::advance(Slot& slot) {
  switch (slot.stage) {
    case Stage::copying_in:
      if (!has_copied(slot)) return false;
      slot.stage = Stage::ready;
      return true;
    case Stage::called:
      take_result(slot);
      return true;
    case Stage::copying_out:
      if (!has_copied(slot)) return false;
      release(slot);
      return true;
    default:
      return false;
  }
}

bool Pipeline::has_results() const {
  return std::ranges::any_of(slots_, [](const Slot& slot) { return slot.stage == Stage::called; });
}

bool Pipeline::is_copying() const {
  return std::ranges::any_of(slots_, [](const Slot& slot) {
    return slot.stage == Stage::copying_in || slot.stage == Stage::copying_out;
  });
}

// If asking for the event fails twice, the device has failed and copies nothing any more. So the copies then
// count as ended.
bool Pipeline::has_copied(Slot& slot) {
  Result<bool> happened = slot.copied->happened();
  if (!happened.ok()) {
    fail(happened.status());
    happened = slot.copied->happened();
  }
  return !happened.ok() || *happened;
}

// An event is recorded even if not all copies could be enqueued, since the pipeline must know when the
// enqueued copies have ended. If recording fails twice, the device has failed, and `has_copied` notices that.
void Pipeline::copy(Slot& slot, const Part& part, cuda::Address buffer, std::size_t offset, bool to_device) {
  if (part.ranges.empty()) return;
  const Status enqueued = enqueue(part, buffer, slot.address + offset, to_device);
  if (!enqueued.ok()) fail(enqueued);
  const cuda::StreamHandle stream = (to_device ? out_ : in_)->handle();
  for (int attempt = 0; attempt < 2; ++attempt) {
    const Status recorded = slot.copied->record(stream);
    if (recorded.ok()) return;
    fail(recorded);
  }
}

Status Pipeline::enqueue(const Part& part, cuda::Address buffer, cuda::Address host, bool to_device) {
  const cuda::StreamHandle stream = (to_device ? out_ : in_)->handle();
  for (const Part::Range& range : part.ranges) {
    const cuda::Address there = buffer + range.offset;
    const cuda::Outcome copied = to_device ? device_.api().MemcpyAsync(there, host, range.bytes, stream)
                                           : device_.api().MemcpyAsync(host, there, range.bytes, stream);
    if (copied != cuda::success) return cuda::status_of(device_.api(), copied, "cuMemcpyAsync");
    host += range.bytes;
  }
  return {};
}

// The slot's stage is set before `issue` is called, since `issue` may call `done` before it returns. `done`
// runs on the driving thread, as all functions of this class do.
void Pipeline::call_host(Slot& slot) {
  if (!failure_.ok()) return release(slot);
  slot.stage = Stage::calling;
  const auto done = [&slot](const Status& status) {
    slot.outcome = status;
    slot.stage = Stage::called;
  };
  if (slot.agrees) {
    const Buffer number(slot.data, 1, DataType::uint64);
    return host_.issue(
        {.kind = CollectiveKind::all_reduce, .in = number, .out = number, .op = &ReduceOp::max}, done);
  }
  const Part in = slot.call->cutting.input(slot.piece);
  const Part out = slot.call->cutting.output(slot.piece);
  host_.issue(host_call(slot, in, out), done);
}

Call Pipeline::host_call(Slot& slot, const Part& in, const Part& out) const {
  const Cutting& cutting = slot.call->cutting;
  Call call = slot.call->call->call;
  const bool in_place = cutting.is_in_one_block();
  call.in = ConstBuffer(slot.data, in.count, cutting.type());
  call.out = Buffer(in_place ? slot.data : slot.data + piece_bytes_, out.count, cutting.type());
  if (!call.in_counts.empty()) call.in_counts = in.counts;
  if (!call.out_counts.empty()) call.out_counts = out.counts;
  return call;
}

void Pipeline::take_result(Slot& slot) {
  if (!slot.outcome.ok()) give_up(slot.outcome);
  const Cutting& cutting = slot.call->cutting;
  if (!failure_.ok() || (!slot.agrees && !cutting.writes())) return release(slot);
  if (slot.agrees) {
    std::uint64_t pieces = 0;
    std::memcpy(&pieces, slot.data, sizeof pieces);
    slot.call->pieces = pieces;
    return release(slot);
  }
  slot.stage = Stage::copying_out;
  const std::size_t offset = cutting.is_in_one_block() ? 0 : piece_bytes_;
  copy(slot, cutting.output(slot.piece), address_of(slot.call->call->call.out.data), offset, true);
}

void Pipeline::release(Slot& slot) {
  slot.stage = Stage::free;
  slot.outcome = Status();
  --slot.call->under_way;
}

}  // namespace tutti::staged
