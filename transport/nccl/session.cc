#include "transport/nccl/session.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <system_error>
#include <utility>

#include "core/signals_blocked.h"

namespace tutti::nccl {

namespace {

constexpr std::chrono::microseconds poll_interval{20};
constexpr std::chrono::microseconds ready_interval{200};
// CUDA blocks a thread that adds work to a stream which already has about a thousand pieces of
// work. Each job has a few pieces.
constexpr std::size_t most_running = 64;
// NCCL on another rank may be the first to notice that a rank has died, but it cannot say which rank. So
// tutti has this long to find out which rank it was.
constexpr std::chrono::seconds remote_error_grace{1};
constexpr std::chrono::seconds leave_limit{1};

}  // namespace

Result<std::unique_ptr<Session>> Session::create(const Api& api, std::shared_ptr<Lane> lane,
                                                 std::shared_ptr<Regions> regions, int rank, int size) {
  try {
    const SignalsBlocked blocked;
    return std::unique_ptr<Session>(new Session(api, std::move(lane), std::move(regions), rank, size));
  } catch (const std::system_error& error) {
    return Status(Code::resource_exhausted,
                  std::string("cannot start a thread for NCCL's communicator: ") + error.what());
  }
}

Session::Session(const Api& api, std::shared_ptr<Lane> lane, std::shared_ptr<Regions> regions, int rank,
                 int size)
    : api_(api),
      lane_(std::move(lane)),
      regions_(std::move(regions)),
      member_{api_, lane_->device(), nullptr, nullptr, rank, size},
      closer_([this] { close_when_asked(); }) {}

Status Session::connect(const UniqueId& id, const OffloadPeers& peers) {
  const cuda::Device::Current current(lane_->device());
  Result<std::unique_ptr<cuda::Stream>> stream = cuda::Stream::create(lane_->device());
  if (!stream.ok()) return stream.status().with_context(lane_->device().name());
  stream_ = std::move(stream).take();
  member_.stream = stream_->handle();
  Result<std::unique_ptr<cuda::Word>> word = cuda::Word::take(lane_->device());
  if (!word.ok()) return word.status().with_context(lane_->device().name());
  word_ = std::move(word).take();
  last_number_ = word_->value();
  Config config;
  const Outcome begun = api_.CommInitRankConfig(&member_.comm, member_.size, id, member_.rank, &config);
  if (begun != success && begun != in_progress)
    return status_of(api_, begun, "ncclCommInitRankConfig", nullptr);
  const Status ready = wait_ready(peers);
  if (ready.ok()) regions_->attach(*this);
  return ready;
}

Status Session::wait_ready(const OffloadPeers& peers) const {
  for (;;) {
    Outcome state = in_progress;
    const Outcome asked = api_.CommGetAsyncError(member_.comm, &state);
    if (asked != success) return status_of(api_, asked, "ncclCommGetAsyncError", member_.comm);
    if (state != in_progress) return status_of(api_, state, "ncclCommInitRankConfig", member_.comm);
    if (Status failed = peers.status(); !failed.ok()) return failed;
    if (peers.deadline().expired()) return Status(Code::timeout, "NCCL has not connected the ranks in time");
    std::this_thread::sleep_for(ready_interval);
  }
}

Session::~Session() {
  regions_->detach(*this);
  abort(Status());
  closer_.join();
  const cuda::Device::Current current(lane_->device());
  free_events_.clear();
  stream_.reset();
}

// The lock is not held while an event is recorded in a caller's stream. If the stream has no room for more
// work, CUDA waits until there is room. The stream's work may itself depend on `poll`, which takes the lock.
void Session::issue(std::span<OffloadCall* const> calls) {
  const cuda::Device::Current current(lane_->device());
  std::vector<std::pair<OffloadCall*, Status>> refused;
  Jobs jobs;
  Job& job = jobs.emplace_back(member_);
  for (OffloadCall* const call : calls) {
    Status added = add(job, *call);
    if (!added.ok()) refused.emplace_back(call, std::move(added));
  }
  {
    const std::lock_guard lock(lane_->mutex());
    if (closes_) {
      refused.clear();
      for (OffloadCall* const call : calls) refused.emplace_back(call, why_);
    } else if (!job.calls.empty()) {
      open_calls_ += job.calls.size();
      job.number = ++last_number_;
      waiting_.splice(waiting_.end(), jobs);
      lane_->queue(*this);
    }
  }
  for (const auto& [call, why] : refused) call->done(*call, why);
}

Status Session::add(Job& job, OffloadCall& call) {
  const Memory memory = memory_of(call.call, member_.rank);
  const Memory ours = Memory::cuda(lane_->device().number());
  if (memory != ours) {
    return Status(Code::invalid_argument, "the buffers are in " + to_string(memory) +
                                              ", but those of the communicator's first call were in " +
                                              to_string(ours));
  }
  if (call.stream != nullptr) {
    if (const Status followed = follow(job, static_cast<StreamHandle>(call.stream)); !followed.ok())
      return followed.with_context(lane_->device().name());
  }
  const Call& asked = call.call;
  job.calls.push_back({&call,
                       {asked.in_counts.begin(), asked.in_counts.end()},
                       {asked.out_counts.begin(), asked.out_counts.end()}});
  return {};
}

Status Session::follow(Job& job, StreamHandle stream) {
  const Result<bool> is_ours = lane_->device().has(stream);
  if (!is_ours.ok()) return is_ours.status();
  if (!*is_ours) {
    Result<std::unique_ptr<cuda::Event>> event = cuda::Event::create_in(lane_->device().api(), stream);
    if (!event.ok()) return event.status();
    job.before_elsewhere.push_back(*std::move(event));
    return {};
  }
  Result<EventPtr> event = [this] {
    const std::lock_guard lock(lane_->mutex());
    return take_event();
  }();
  if (!event.ok()) return event.status();
  job.before.push_back(*std::move(event));
  return job.before.back()->record(stream);
}

bool Session::launch() {
  if (!remote_error_.ok()) return true;
  if (running_.size() >= most_running) return false;
  const cuda::Device::Current current(lane_->device());
  launching_.splice(launching_.end(), waiting_, waiting_.begin());
  Job& job = launching_.front();
  bool launched = true;
  Status status = start(job, launched);
  if (status.ok() && !launched) return false;
  if (status.ok()) status = finish(job);
  if (!status.ok()) status = judge(job.group.error(), status);
  if (!status.ok()) fail(status);
  return true;
}

void Session::launch_postponed() {
  const bool postponed = lane_->waits_for(*this) && launching_.empty();
  if (postponed && running_.size() < most_running && launch()) lane_->launched(*this);
}

Status Session::start(Job& job, bool& launched) {
  follow_regions();
  for (EventPtr& event : job.before) {
    const Status held = event->hold(stream_->handle());
    if (!held.ok()) return held;
    free_events_.push_back(std::move(event));
  }
  job.before.clear();
  for (const auto& event : job.before_elsewhere) {
    const Status held = event->hold(stream_->handle());
    if (!held.ok()) return held;
  }
  job.before_elsewhere.clear();
  std::vector<Call> calls;
  for (const OwnCall& own : job.calls) {
    Call& call = calls.emplace_back(own.call->call);
    call.in_counts = own.in_counts;
    call.out_counts = own.out_counts;
  }
  return job.group.start(calls, launched);
}

Status Session::finish(Job& job) {
  const Status finished = job.group.finish();
  if (!finished.ok()) return finished;
  Result<EventPtr> event = take_event();
  if (!event.ok()) return event.status();
  job.over = std::move(event).take();
  running_.splice(running_.end(), launching_);
  return job.over->record(stream_->handle());
}

bool Session::poll() {
  if (open_calls_ == 0) return false;
  Jobs ended;
  {
    const std::lock_guard lock(lane_->mutex());
    if (closes_) return false;
    const cuda::Device::Current current(lane_->device());
    Status status = drive_launch();
    if (status.ok()) status = reap(ended);
    if (status.ok()) {
      launch_postponed();
    } else {
      fail(status);
    }
  }
  report(ended, Status());
  return !ended.empty();
}

Status Session::drive_launch() {
  if (!remote_error_.ok()) return remote_error_counts_.expired() ? remote_error_ : Status();
  bool ready = false;
  const Status status = ask(ready);
  if (!status.ok() || !ready || launching_.empty()) return status;
  Job& job = launching_.front();
  const Status finished = finish(job);
  if (!finished.ok()) return judge(job.group.error(), finished);
  follow_regions();  // a region may have been removed while NCCL was busy
  lane_->launched(*this);
  return {};
}

Status Session::judge(Outcome outcome, const Status& error) {
  if (outcome != remote_error) return error;
  remote_error_ = error;
  remote_error_counts_ = Deadline::after(remote_error_grace);
  return {};
}

Status Session::ask(bool& ready) {
  Outcome state = success;
  const Outcome asked = api_.CommGetAsyncError(member_.comm, &state);
  if (asked != success) state = asked;
  ready = state == success;
  if (ready || state == in_progress) return {};
  return judge(state, status_of(api_, state, "ncclCommGetAsyncError", member_.comm));
}

Status Session::reap(Jobs& ended) {
  while (!running_.empty()) {
    Job& job = running_.front();
    const Result<bool> happened = job.over->happened();
    if (!happened.ok()) return happened.status();
    if (!*happened) break;
    word_->advance();
    give_back(std::move(job.over));
    ended.splice(ended.end(), running_, running_.begin());
  }
  return {};
}

Deadline Session::next_deadline() const {
  return open_calls_ == 0 ? Deadline::never() : Deadline::after(poll_interval);
}

void Session::report(const Jobs& jobs, const Status& status) {
  for (const Job& job : jobs) {
    for (const OwnCall& own : job.calls) {
      --open_calls_;
      own.call->done(*own.call, status);
    }
  }
}

// Once the session has been given up, this function returns the reason. The session then no longer knows when
// NCCL stops using the memory of a call, so it cannot make a stream wait for that.
Result<StreamWait> Session::wait_on(OffloadCall& call, void* stream) {
  const std::lock_guard lock(lane_->mutex());
  if (closes_) return why_;
  const auto has_call = [&](const Job& job) {
    return std::ranges::find(job.calls, &call, &OwnCall::call) != job.calls.end();
  };
  const auto handle = static_cast<StreamHandle>(stream);
  const cuda::Device::Current current(lane_->device());
  for (const Jobs* const jobs : {&waiting_, &launching_, &running_}) {
    const auto job = std::ranges::find_if(*jobs, has_call);
    if (job == jobs->end()) continue;
    const Status captured = cuda::refuse_capture(lane_->device().api(), handle);
    if (!captured.ok()) return captured;
    if (jobs == &running_) {
      return StreamWait([lane = lane_, over = job->over, handle]() mutable {
        const cuda::Device::Current in_use(lane->device());
        return std::exchange(over, nullptr)->hold(handle);
      });
    }
    return StreamWait([lane = lane_, word = word_, handle, number = job->number] {
      const cuda::Device::Current in_use(lane->device());
      return word->hold(handle, number);
    });
  }
  return StreamWait();
}

void Session::abort(const Status& why) {
  const std::lock_guard lock(lane_->mutex());
  close(why);
}

// If a device has failed, NCCL says only that CUDA has an error. CUDA itself says which error.
void Session::fail(const Status& error) {
  const Result<EventPtr> event = take_event();
  const Status device = event.ok() ? (*event)->record(stream_->handle()) : event.status();
  close(device.ok() ? error : device.with_context(lane_->device().name()));
}

void Session::close(const Status& why) {
  if (std::exchange(closes_, true)) return;
  why_ = why;
  lane_->leave(*this);
  closing_.notify_one();
}

// Runs on the thread `closer_`. The calls in flight are reported only when nothing touches their memory any
// more. So this function first ends NCCL's communicator, and then waits for the session's stream. That stream
// may still copy an input, even if NCCL has put no work behind the copy. By contrast, the streams that wait
// for `word_` are released at once, since the session's stream may itself wait for their work.
void Session::close_when_asked() {
  std::unique_lock lock(lane_->mutex());
  closing_.wait(lock, [this] { return closes_; });
  const cuda::Device::Current current(lane_->device());
  Jobs all;
  for (Jobs* const jobs : {&running_, &launching_, &waiting_}) all.splice(all.end(), *jobs);
  for (std::size_t i = 0; i < all.size(); ++i) word_->advance();
  lock.unlock();
  if (member_.comm != nullptr && (!why_.ok() || !leave_quietly())) api_.CommAbort(member_.comm);
  for (Job& job : all) static_cast<void>(job.group.free_memory());
  if (!all.empty()) lane_->device().api().StreamSynchronize(stream_->handle());
  report(all, why_);
  ended_ = true;
}

// A call can be over on this rank while NCCL's threads still send its data to other ranks. `CommFinalize`
// completes when all ranks have left the communicator. But other ranks may stay for as long as they like, so
// the wait has a limit.
bool Session::leave_quietly() {
  const Deadline limit = Deadline::after(leave_limit);
  Outcome state = api_.CommFinalize(member_.comm);
  while (state == in_progress && !limit.expired()) {
    std::this_thread::sleep_for(poll_interval);
    if (api_.CommGetAsyncError(member_.comm, &state) != success) return false;
  }
  if (state == success) api_.CommDestroy(member_.comm);
  return state == success;
}

// Registration only makes NCCL faster, so it does not matter if NCCL cannot register a region. NCCL knows a
// region by its addresses. So regions that have been removed are deregistered first, since a new region may
// have the same addresses.
void Session::follow_regions() {
  const std::uint64_t version = regions_->version();
  if (version == regions_version_) return;
  regions_version_ = version;
  const std::vector<Regions::Region> regions = regions_->of(lane_->device().number());
  std::erase_if(registered_, [&](const auto& known) {
    if (std::ranges::find(regions, known.first, &Regions::Region::number) != regions.end()) return false;
    if (known.second != nullptr) api_.CommDeregister(member_.comm, known.second);
    return true;
  });
  for (const Regions::Region& region : regions) {
    const auto [known, is_new] = registered_.try_emplace(region.number, nullptr);
    if (!is_new) continue;
    void*& handle = known->second;
    if (api_.CommRegister(member_.comm, region.memory.data(), region.memory.size(), &handle) != success)
      handle = nullptr;
  }
}

void Session::regions_removed() {
  const std::lock_guard lock(lane_->mutex());
  if (closes_ || !launching_.empty()) return;
  const cuda::Device::Current current(lane_->device());
  follow_regions();
}

Result<Session::EventPtr> Session::take_event() {
  if (free_events_.empty()) {
    Result<std::unique_ptr<cuda::Event>> made = cuda::Event::create(lane_->device());
    if (!made.ok()) return made.status();
    return EventPtr(*std::move(made));
  }
  EventPtr event = std::move(free_events_.back());
  free_events_.pop_back();
  return event;
}

void Session::give_back(EventPtr event) {
  if (event.use_count() == 1) free_events_.push_back(std::move(event));
}

}  // namespace tutti::nccl
