#include "transport/staged/session.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <string>
#include <utility>

namespace tutti::staged {

namespace {

// While the device works, the session polls it at this interval.
constexpr std::chrono::microseconds poll_interval{20};
// After a failure, streams wait this long for the copies that are still under way. A copy may
// itself wait for such a stream, since streams share the device's queues. Without a limit, the copy
// and the stream might wait for each other forever.
constexpr std::chrono::seconds patience{1};
constexpr std::size_t largest_element = 8;

}  // namespace

Result<std::unique_ptr<Session>> Session::open(const cuda::Api& api, OffloadPeers& peers,
                                               std::size_t piece_bytes) {
  if (peers.memory().kind() != Memory::Kind::cuda)
    return Status(Code::internal, "the call is not on the memory of a CUDA device");
  Result<std::unique_ptr<cuda::Device>> device = cuda::Device::open(api, peers.memory().device());
  if (!device.ok()) return device.status();
  std::unique_ptr<Session> session(
      new Session(*std::move(device), peers.rank(), static_cast<int>(peers.members().size()), piece_bytes));
  if (Status allocated = session->allocate(peers); !allocated.ok()) return allocated;
  return session;
}

Status Session::allocate(OffloadPeers& peers) {
  Result<std::unique_ptr<HostCalls>> host = peers.host_calls();
  if (!host.ok()) return host.status();
  host_ = *std::move(host);
  const cuda::Device::Current current(*device_);
  Result<std::unique_ptr<cuda::Word>> word = cuda::Word::take(*device_);
  if (!word.ok()) return word.status().with_context(device_->name());
  word_ = *std::move(word);
  last_number_ = word_->value();
  const PeerInfo& self = *peers.members()[static_cast<std::size_t>(rank_)];
  Result<std::unique_ptr<Pipeline>> pipeline = Pipeline::create(
      *device_, *host_, self, std::max(piece_bytes_, static_cast<std::size_t>(size_) * largest_element));
  if (!pipeline.ok()) return pipeline.status().with_context(device_->name());
  pipeline_ = *std::move(pipeline);
  return {};
}

Session::~Session() {
  const cuda::Device::Current current(*device_);
  pipeline_.reset();
}

void Session::issue(std::span<OffloadCall* const> calls) {
  const cuda::Device::Current current(*device_);
  for (OffloadCall* const call : calls) {
    Result<std::unique_ptr<StagedCall>> accepted = accept(*call);
    if (!accepted.ok()) {
      call->done(*call, accepted.status());
      continue;
    }
    const std::lock_guard lock(mutex_);
    (*accepted)->number = ++last_number_;
    new_calls_.push_back(*std::move(accepted));
    ++open_calls_;
  }
}

Result<std::unique_ptr<StagedCall>> Session::accept(OffloadCall& call) const {
  const Memory memory = memory_of(call.call, rank_);
  const Memory ours = Memory::cuda(device_->number());
  if (memory != ours && call.call.kind != CollectiveKind::barrier) {
    return Status(Code::invalid_argument, "the buffers are in the " + to_string(memory) +
                                              ", but the communicator's first call was in the " +
                                              to_string(ours));
  }
  std::unique_ptr<StagedCall> staged(
      new StagedCall{.call = &call, .cutting = Cutting(call.call, rank_, size_, piece_bytes_)});
  if (staged->cutting.all_know_counts()) staged->pieces = staged->cutting.own_pieces();
  if (call.stream == nullptr) return staged;
  const auto stream = static_cast<cuda::StreamHandle>(call.stream);
  Result<std::unique_ptr<cuda::Event>> before = cuda::Event::create_in(device_->api(), stream);
  if (!before.ok()) return before.status().with_context(device_->name());
  staged->before = *std::move(before);
  return staged;
}

void Session::abort(const Status& why) {
  pipeline_->give_up(why);
  host_->abort(why);
}

Result<StreamWait> Session::wait_on(OffloadCall& call, void* stream) {
  const std::lock_guard lock(mutex_);
  for (const Calls* const calls : {&calls_, &new_calls_}) {
    const auto is_it = [&call](const std::unique_ptr<StagedCall>& each) { return each->call == &call; };
    const auto found = std::ranges::find_if(*calls, is_it);
    if (found == calls->end()) continue;
    const cuda::Device::Current current(*device_);
    const auto handle = static_cast<cuda::StreamHandle>(stream);
    if (Status refused = cuda::refuse_capture(device_->api(), handle); !refused.ok()) return refused;
    return StreamWait([device = device_, word = word_, handle, number = (*found)->number] {
      const cuda::Device::Current in_use(*device);
      return word->hold(handle, number);
    });
  }
  return StreamWait();
}

bool Session::poll() {
  if (open_calls_ == 0) return false;
  const cuda::Device::Current current(*device_);
  bool any = take_new_calls();
  while (move_on()) any = true;
  if (!pipeline_->failure().ok()) lose_patience();
  const bool awaits_event = starting_ < calls_.size() && calls_[starting_]->before != nullptr;
  watches_device_ = awaits_event || pipeline_->is_copying();
  return any;
}

Deadline Session::next_deadline() const {
  const bool has_new_calls = open_calls_ != calls_.size();
  return watches_device_ || has_new_calls ? Deadline::after(poll_interval) : Deadline::never();
}

bool Session::take_new_calls() {
  const std::lock_guard lock(mutex_);
  const bool any = !new_calls_.empty();
  std::ranges::move(new_calls_, std::back_inserter(calls_));
  new_calls_.clear();
  return any;
}

bool Session::move_on() {
  bool any = pipeline_->advance();
  any |= start_pieces();
  return report_calls() || any;
}

bool Session::start_pieces() {
  bool any = false;
  while (starting_ < calls_.size() && pipeline_->has_room() && pipeline_->failure().ok()) {
    StagedCall& call = *calls_[starting_];
    const Result<bool> begins = may_begin(call);
    if (!begins.ok()) pipeline_->fail(begins.status());
    if (!begins.ok() || !*begins) break;
    if (call.pieces && call.started == *call.pieces) {
      ++starting_;
    } else if (call.pieces || !call.asked) {
      pipeline_->start(call);
    } else {
      break;
    }
    any = true;
  }
  return any;
}

Result<bool> Session::may_begin(StagedCall& call) {
  if (call.before == nullptr) return true;
  Result<bool> happened = call.before->happened();
  if (happened.ok() && *happened) call.before.reset();
  return happened;
}

bool Session::is_over(const StagedCall& call) const {
  if (call.under_way != 0) return false;
  return !pipeline_->failure().ok() || (call.pieces && call.started == *call.pieces);
}

// Releases the streams and removes the call before reporting it: once the call is reported, the `OffloadCall`
// may be in use for another call.
bool Session::report_calls() {
  bool any = false;
  for (; !calls_.empty() && is_over(*calls_.front()); any = true) {
    const bool fully_started = starting_ != 0;
    OffloadCall& call = *calls_.front()->call;
    release_streams(calls_.front()->number);
    calls_.pop_front();
    if (fully_started) --starting_;
    --open_calls_;
    call.done(call, pipeline_->failure());
  }
  return any;
}

void Session::release_streams(std::uint32_t number) {
  while (static_cast<std::int32_t>(number - word_->value()) > 0) word_->advance();
}

void Session::lose_patience() {
  if (patience_.is_never()) patience_ = Deadline::after(patience);
  if (!patience_.expired() || calls_.empty()) return;
  release_streams(calls_.back()->number);
}

}  // namespace tutti::staged
