#include "transport/staged/pinned_copier.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <utility>

namespace tutti::staged {

namespace {

// While the device copies, the copier polls it at this interval.
constexpr std::chrono::microseconds copier_poll_interval{20};

}  // namespace

Result<std::unique_ptr<PinnedCopier>> PinnedCopier::create(const cuda::Api& api, int number,
                                                           std::size_t piece_bytes) {
  Result<std::unique_ptr<cuda::Device>> device = cuda::Device::open(api, number);
  if (!device.ok()) return device.status();
  std::unique_ptr<PinnedCopier> copier(new PinnedCopier(*std::move(device), piece_bytes));
  const cuda::Device::Current current(*copier->device_);
  if (Status allocated = copier->allocate(); !allocated.ok()) return allocated.with_context(copier->name_);
  return copier;
}

Status PinnedCopier::allocate() {
  auto memory = cuda::PinnedMemory::create(*device_, slots_.size() * piece_bytes_);
  if (!memory.ok()) return memory.status();
  memory_ = *std::move(memory);
  for (std::unique_ptr<cuda::Stream>* const stream : {&to_host_, &to_device_}) {
    auto made = cuda::Stream::create(*device_);
    if (!made.ok()) return made.status();
    *stream = *std::move(made);
  }
  std::size_t offset = 0;
  for (Slot& slot : slots_) {
    auto event = cuda::Event::create(*device_);
    if (!event.ok()) return event.status();
    slot.copied = *std::move(event);
    slot.data = memory_->data() + offset;
    slot.address = memory_->address() + offset;
    offset += piece_bytes_;
  }
  return {};
}

PinnedCopier::~PinnedCopier() {
  const cuda::Device::Current current(*device_);
  for (Slot& slot : slots_) slot.copied.reset();
  to_host_.reset();
  to_device_.reset();
  memory_.reset();
}

Result<std::unique_ptr<StreamLink>> PinnedCopier::link(void* stream) {
  Result<std::unique_ptr<WordLink>> made = WordLink::create(device_, stream);
  if (!made.ok()) return made.status().with_context(name_);
  return std::unique_ptr<StreamLink>(*std::move(made));
}

void PinnedCopier::start(CopyJob& job) {
  job.begun = 0;
  job.under_way = 0;
  job.why = Status();
  jobs_.push_back(&job);
}

void PinnedCopier::cancel(CopyJob& job, const Status& why) {
  fail(job, why);
  settle(job);
}

// The `done` of a job may start and cancel other jobs.
bool PinnedCopier::poll() {
  if (is_idle()) return false;
  const cuda::Device::Current current(*device_);
  bool any = false;
  for (Slot& slot : slots_) {
    if (slot.job == nullptr || !has_copied(slot)) continue;
    end(slot);
    any = true;
  }
  return begin_pieces() || any;
}

Deadline PinnedCopier::next_deadline() const {
  return is_idle() ? Deadline::never() : Deadline::after(copier_poll_interval);
}

bool PinnedCopier::is_idle() const {
  return jobs_.empty() && std::ranges::all_of(slots_, [](const Slot& slot) { return slot.job == nullptr; });
}

bool PinnedCopier::begin_pieces() {
  bool any = false;
  for (Slot& slot : slots_) {
    if (slot.job != nullptr) continue;
    CopyJob* const job = next_job();
    if (job == nullptr) break;
    begin(slot, *job);
    any = true;
  }
  return any;
}

// A failed job is not in `jobs_` any more, and its `done` may change `jobs_` further. So the search begins
// again.
CopyJob* PinnedCopier::next_job() {
  for (std::size_t i = 0; i < jobs_.size();) {
    CopyJob& job = *jobs_[i++];
    const Result<bool> begins = job.link == nullptr ? Result<bool>(true) : job.link->may_begin();
    if (begins.ok() && *begins) return &job;
    if (begins.ok()) continue;
    fail(job, begins.status().with_context(name_));
    settle(job);
    i = 0;
  }
  return nullptr;
}

// If the copy cannot be enqueued, the slot's event is one that has already happened. So the next poll ends
// the piece.
void PinnedCopier::begin(Slot& slot, CopyJob& job) {
  slot.job = &job;
  slot.offset = job.begun;
  slot.bytes = std::min(piece_bytes_, job.bytes - job.begun);
  job.begun += slot.bytes;
  ++job.under_way;
  if (job.begun == job.bytes) std::erase(jobs_, &job);
  if (job.to_device) std::memcpy(slot.data, job.host + slot.offset, slot.bytes);
  if (const Status enqueued = enqueue(slot); !enqueued.ok()) return fail(job, enqueued.with_context(name_));
  record(slot);
}

Status PinnedCopier::enqueue(const Slot& slot) const {
  const cuda::Api& api = device_->api();
  const cuda::Address there = std::bit_cast<cuda::Address>(slot.job->device) + slot.offset;
  const cuda::Outcome copied = slot.job->to_device
                                   ? api.MemcpyAsync(there, slot.address, slot.bytes, to_device_->handle())
                                   : api.MemcpyAsync(slot.address, there, slot.bytes, to_host_->handle());
  return cuda::status_of(api, copied, "cuMemcpyAsync");
}

// If recording fails twice, the device has failed, and `has_copied` notices that.
void PinnedCopier::record(const Slot& slot) {
  const cuda::StreamHandle stream = (slot.job->to_device ? to_device_ : to_host_)->handle();
  for (int attempt = 0; attempt < 2; ++attempt) {
    const Status recorded = slot.copied->record(stream);
    if (recorded.ok()) return;
    fail(*slot.job, recorded.with_context(name_));
  }
}

// If asking for the event fails twice, the device has failed and copies nothing any more. So the copy then
// counts as ended.
bool PinnedCopier::has_copied(const Slot& slot) {
  Result<bool> happened = slot.copied->happened();
  if (!happened.ok()) {
    fail(*slot.job, happened.status().with_context(name_));
    happened = slot.copied->happened();
  }
  return !happened.ok() || *happened;
}

void PinnedCopier::end(Slot& slot) {
  CopyJob& job = *std::exchange(slot.job, nullptr);
  if (!job.to_device && job.why.ok()) std::memcpy(job.host + slot.offset, slot.data, slot.bytes);
  --job.under_way;
  settle(job);
}

void PinnedCopier::fail(CopyJob& job, const Status& why) {
  if (!job.why.ok()) return;
  job.why = why;
  std::erase(jobs_, &job);
}

void PinnedCopier::settle(CopyJob& job) {
  if (job.under_way != 0 || (job.why.ok() && job.begun != job.bytes)) return;
  const Status why = std::exchange(job.why, Status());
  job.done(job, why);
}

}  // namespace tutti::staged
