#include "tests/support/reference_offload.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <list>
#include <thread>
#include <utility>

#include "tests/support/toy_stream.h"

namespace tutti::test {

namespace {

constexpr std::chrono::microseconds poll_interval{50};

// A `ReferenceSession` executes its calls on its own thread, one after the other.
class ReferenceSession final : public OffloadSession {
 public:
  ReferenceSession(std::shared_ptr<ReferenceLibrary> library, std::shared_ptr<ReferenceMeeting> meeting,
                   int rank)
      : library_(std::move(library)), meeting_(std::move(meeting)), rank_(rank), thread_([this] { work(); }) {
    ++library_->sessions;
    ++library_->sessions_opened;
  }
  ~ReferenceSession() override;

  void issue(std::span<OffloadCall* const> calls) override;
  void abort(const Status& why) override;
  Result<StreamWait> wait_on(OffloadCall& call, void* stream) override;
  bool poll() override;
  Deadline next_deadline() const override;

 private:
  struct Job {
    OffloadCall* call = nullptr;
    RankInput input;
    // The call waits for this event. If there is no event, the call begins at once.
    std::shared_ptr<ToyEvent> before;
    std::shared_ptr<ToyEvent> over = std::make_shared<ToyEvent>();
    Status status;
    unsigned polls = 0;  // the number of polls before the call is reported
  };
  using Jobs = std::list<Job>;

  void work();
  Status execute(Job& job);
  void report(Jobs& job);

  const std::shared_ptr<ReferenceLibrary> library_;
  const std::shared_ptr<ReferenceMeeting> meeting_;
  const int rank_;
  std::uint64_t executed_ = 0;
  std::atomic<bool> aborted_{false};
  std::atomic<bool> closes_{false};  // the destructor is running
  mutable std::mutex mutex_;         // guards the members up to `ended_`
  std::condition_variable changed_;
  bool ends_ = false;
  Jobs waiting_;
  Jobs running_;  // at most one job
  Jobs ended_;    // calls that have ended, but that need more polls before they are reported
  std::thread thread_;
};

ReferenceSession::~ReferenceSession() {
  closes_ = true;
  if (const auto& closing = library_->options().closing) closing(rank_);
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  thread_.join();
  --library_->sessions;
}

void ReferenceSession::issue(std::span<OffloadCall* const> calls) {
  Jobs late;
  {
    const std::lock_guard lock(mutex_);
    Jobs& to = aborted_ ? late : waiting_;
    for (OffloadCall* const call : calls) {
      Job& job = to.emplace_back();
      job.call = call;
      job.input = take_call(call->call);
      if (call->stream != nullptr) job.before = static_cast<ToyStream*>(call->stream)->record();
      ++library_->calls;
    }
  }
  changed_.notify_one();
  for (const Job& job : late) job.call->done(*job.call, Status(Code::aborted, "the session was aborted"));
}

void ReferenceSession::abort(const Status&) {
  if (closes_) ++library_->aborts_while_closing;
  {
    const std::lock_guard lock(mutex_);
    aborted_ = true;
  }
  changed_.notify_one();
  meeting_->wake();
}

Result<StreamWait> ReferenceSession::wait_on(OffloadCall& call, void* stream) {
  const std::lock_guard lock(mutex_);
  for (const Jobs* jobs : {&waiting_, &running_, &ended_}) {
    const auto job = std::ranges::find(*jobs, &call, &Job::call);
    if (job == jobs->end()) continue;
    return StreamWait([stream, over = job->over] {
      static_cast<ToyStream*>(stream)->add([over] { over->wait(); });
      return Status();
    });
  }
  return StreamWait();
}

void ReferenceSession::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ends_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    running_.splice(running_.end(), waiting_, waiting_.begin());
    Job& job = running_.front();
    lock.unlock();
    job.status = execute(job);
    job.polls = library_->options().polls;
    job.over->happen();
    lock.lock();
    if (job.polls != 0) {
      ended_.splice(ended_.end(), running_);
      continue;
    }
    const Jobs reported = std::exchange(running_, {});
    lock.unlock();
    reported.front().call->done(*reported.front().call, reported.front().status);
    lock.lock();
  }
}

Status ReferenceSession::execute(Job& job) {
  const ReferenceOptions& options = library_->options();
  const std::uint64_t number = executed_++;
  const Status gave_up(Code::aborted, "the session was aborted");
  while (job.before != nullptr && !aborted_ && !job.before->wait_briefly()) {
  }
  const auto until = std::chrono::steady_clock::now() + options.pause;
  while (!aborted_ && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  while (!aborted_ && options.hangs && options.hangs(rank_, number))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (aborted_) return gave_up;
  if (options.fails) {
    if (const Status failed = options.fails(rank_, number); !failed.ok()) return failed;
  }
  take_input(job.input, rank_);
  const auto all = meeting_->join(number, rank_, std::move(job.input), aborted_);
  if (all == nullptr) return gave_up;
  write_output(*all, rank_);
  return Status();
}

bool ReferenceSession::poll() {
  Jobs due;
  {
    const std::lock_guard lock(mutex_);
    for (auto job = ended_.begin(); job != ended_.end();) {
      const auto next = std::next(job);
      if (--job->polls == 0) due.splice(due.end(), ended_, job);
      job = next;
    }
  }
  for (const Job& job : due) job.call->done(*job.call, job.status);
  return !due.empty();
}

Deadline ReferenceSession::next_deadline() const {
  if (library_->options().polls == 0) return Deadline::never();
  const std::lock_guard lock(mutex_);
  const bool quiet = waiting_.empty() && running_.empty() && ended_.empty();
  return quiet ? Deadline::never() : Deadline::after(poll_interval);
}

}  // namespace

std::shared_ptr<const ReferenceMeeting::Round> ReferenceMeeting::join(std::uint64_t call, int rank,
                                                                      RankInput mine,
                                                                      const std::atomic<bool>& gives_up) {
  std::unique_lock lock(mutex_);
  Filling& filling = rounds_[call];
  if (filling.round == nullptr) filling.round = std::make_shared<Round>(size_);
  const std::shared_ptr<Round> round = filling.round;
  (*round)[static_cast<std::size_t>(rank)] = std::move(mine);
  if (++filling.arrived == size_) {
    filling.complete =
        std::ranges::all_of(*round, [&](const RankInput& each) { return match(each, round->front()); });
    changed_.notify_all();
  }
  changed_.wait(lock, [&] { return filling.complete || gives_up; });
  if (!filling.complete) return nullptr;
  if (++filling.left == size_) rounds_.erase(call);
  return round;
}

void ReferenceMeeting::wake() {
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

std::shared_ptr<ReferenceMeeting> ReferenceLibrary::meeting(std::uint64_t number, std::size_t size) {
  const std::lock_guard lock(mutex_);
  std::weak_ptr<ReferenceMeeting>& known = meetings_[number];
  std::shared_ptr<ReferenceMeeting> meeting = known.lock();
  if (meeting == nullptr) known = meeting = std::make_shared<ReferenceMeeting>(size);
  return meeting;
}

MakeOffloads reference_offloads(std::shared_ptr<ReferenceLibrary> library) {
  return [library = std::move(library)](int rank) {
    std::vector<std::unique_ptr<Offload>> only;
    only.push_back(std::make_unique<ReferenceOffload>(library, rank));
    return only;
  };
}

MakeOffloads reference_offloads(ReferenceOptions options) {
  return reference_offloads(std::make_shared<ReferenceLibrary>(std::move(options)));
}

std::string ReferenceOffload::facts() const {
  const ReferenceOptions& options = library_->options();
  return options.facts ? options.facts(rank_) : "version 1";
}

Status ReferenceOffload::fits(std::span<const PeerInfo* const> members) const {
  const PeerInfo& first = *members.front();
  const std::string& ours = first.offloads.at(std::string(name()));
  for (const PeerInfo* const member : members) {
    const std::string& theirs = member->offloads.at(std::string(name()));
    if (theirs == ours) continue;
    return Status(Code::unsupported,
                  first.describe() + " has " + ours + ", " + member->describe() + " has " + theirs);
  }
  return Status();
}

Status ReferenceOffload::takes(const Fingerprint& call, std::span<const PeerInfo* const>) const {
  if (is_reduction(call.kind) && call.op == ReduceOp::Kind::user)
    return Status(Code::unsupported, "it cannot call a program's functions");
  return Status();
}

Status ReferenceOffload::can_follow(void* stream, Memory) const {
  const ReferenceOptions& options = library_->options();
  return options.follows ? options.follows(rank_, stream) : Status();
}

// Rank 0 makes a number that identifies the meeting, like an ncclUniqueId, and sends this number to
// the other ranks.
Result<std::unique_ptr<OffloadSession>> ReferenceOffload::open(OffloadPeers& peers) {
  const ReferenceOptions& options = library_->options();
  if (options.opening) {
    if (Status failed = options.opening(peers); !failed.ok()) return failed;
  }
  const std::array<std::uint64_t, 1> mine = {peers.rank() == 0 ? library_->new_number() : 0};
  const Result<std::vector<std::byte>> all = peers.exchange(std::as_bytes(std::span(mine)));
  if (!all.ok()) return all.status();
  std::uint64_t number = 0;
  std::memcpy(&number, all->data(), sizeof number);
  auto meeting = library_->meeting(number, peers.members().size());
  return std::unique_ptr<OffloadSession>(
      std::make_unique<ReferenceSession>(library_, std::move(meeting), peers.rank()));
}

Result<std::unique_ptr<RegisteredMemory>> ReferenceOffload::add_memory(std::span<std::byte>) {
  struct Held : RegisteredMemory {
    explicit Held(std::shared_ptr<ReferenceLibrary> counted) : library(std::move(counted)) {
      ++library->registrations;
    }
    ~Held() override { --library->registrations; }
    const std::shared_ptr<ReferenceLibrary> library;
  };
  return std::unique_ptr<RegisteredMemory>(std::make_unique<Held>(library_));
}

}  // namespace tutti::test
