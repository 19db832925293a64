#include "tests/support/late_transport.h"

#include <algorithm>
#include <chrono>
#include <list>
#include <type_traits>
#include <vector>

namespace tutti::test {

namespace {

constexpr std::chrono::microseconds wake_interval{20};

// A `LateChannel` does not pass the caller's operations to the inner channel. It passes
// replacements that use the same memory. So the inner channel can continue with a message that the
// caller has cancelled.
class LateChannel final : public ChannelWrapper {
 public:
  LateChannel(int peer, std::unique_ptr<Channel> inner, LateTransport& transport)
      : ChannelWrapper(peer, std::move(inner)), transport_(transport) {}
  ~LateChannel() override;

  // Counts one poll for each late message. Returns whether there are late messages.
  bool poll();
  // Returns the operation to give to the inner channel in place of `op`.
  RecvOp& stand_in(RecvOp& op);

  void send(SendOp& op) override;
  void cancel_send(SendOp& op, const Status& why) override { cancel(sends_, op, why); }
  void claim(Arrival& arrival, RecvOp& op) override;
  void cancel_recv(RecvOp& op, const Status& why) override { cancel(recvs_, op, why); }
  bool drained() const override { return ChannelWrapper::drained() && sends_.empty() && recvs_.empty(); }
  void hand_over(Channel& to) override;

 private:
  // `cancelled` means that the caller has cancelled the operation. `taken_back` means that the
  // inner channel was also told to cancel it, and may end it later.
  enum class Stage : std::uint8_t { running, cancelled, taken_back, over };
  template <class Op>
  struct StandIn : Op {
    LateChannel* owner = nullptr;
    Op* op = nullptr;
    Stage stage = Stage::running;
    std::uint32_t polls = 0;
    Status why;
  };
  template <class Op>
  using StandIns = std::list<StandIn<Op>>;

  template <class Op>
  StandIn<Op>& add(StandIns<Op>& all, Op& op);
  template <class Op>
  static void ended(Op& op, const Status& status);
  template <class Op>
  void make_late(StandIn<Op>& node, Stage stage, const Status& why);
  template <class Op>
  void cancel(StandIns<Op>& all, Op& op, const Status& why);
  template <class Op>
  bool poll(StandIns<Op>& all);
  template <class Op>
  void finish(StandIns<Op>& all, StandIn<Op>& node, const Status& status);
  StandIns<SendOp>& all_of(const SendOp&) { return sends_; }
  StandIns<RecvOp>& all_of(const RecvOp&) { return recvs_; }
  void take_back(SendOp& op, const Status& why) { inner().cancel_send(op, why); }
  void take_back(RecvOp& op, const Status& why) { inner().cancel_recv(op, why); }

  LateTransport& transport_;
  StandIns<SendOp> sends_;
  StandIns<RecvOp> recvs_;
};

LateChannel::~LateChannel() {
  inner().close(Status(Code::aborted, "destroyed"), false);
  while (!sends_.empty()) finish(sends_, sends_.front(), sends_.front().why);
  while (!recvs_.empty()) finish(recvs_, recvs_.front(), recvs_.front().why);
  transport_.forget(*this);
}

template <class Op>
LateChannel::StandIn<Op>& LateChannel::add(StandIns<Op>& all, Op& op) {
  StandIn<Op>& node = all.emplace_back();
  static_cast<Op&>(node) = op;
  node.next = node.previous = nullptr;
  node.Op::id = node.Op::state = 0;
  node.done = &ended<Op>;
  node.owner = this;
  node.op = &op;
  return node;
}

void LateChannel::send(SendOp& op) { inner().send(add(sends_, op)); }

RecvOp& LateChannel::stand_in(RecvOp& op) {
  op.channel = this;
  return add(recvs_, op);
}

void LateChannel::claim(Arrival& arrival, RecvOp& op) { inner().claim(arrival, stand_in(op)); }

// The inner channel calls this function after it has ended an operation and no longer uses its
// memory.
template <class Op>
void LateChannel::ended(Op& op, const Status& status) {
  auto& node = static_cast<StandIn<Op>&>(op);
  LateChannel& self = *node.owner;
  switch (node.stage) {
    case Stage::running:
      if (status.ok()) return self.finish(self.all_of(op), node, status);
      return self.make_late(node, Stage::over, status);
    case Stage::cancelled:
      node.stage = Stage::over;
      break;
    case Stage::taken_back:
      return self.finish(self.all_of(op), node, node.why);
    case Stage::over:
      break;
  }
}

template <class Op>
void LateChannel::make_late(StandIn<Op>& node, Stage stage, const Status& why) {
  node.stage = stage;
  node.why = why;
  node.polls = transport_.polls();
  transport_.wake_until_quiet();
}

template <class Op>
void LateChannel::cancel(StandIns<Op>& all, Op& op, const Status& why) {
  for (StandIn<Op>& node : all) {
    if (node.op == &op && node.stage == Stage::running) return make_late(node, Stage::cancelled, why);
  }
}

template <class Op>
bool LateChannel::poll(StandIns<Op>& all) {
  for (StandIn<Op>& node : all) {
    if (node.stage != Stage::running && node.polls > 0) --node.polls;
  }
  const auto is_due = [](const auto& node) {
    return (node.stage == Stage::cancelled || node.stage == Stage::over) && node.polls == 0;
  };
  // A call of `done` may change the list, so each search starts from the front.
  for (auto due = all.begin(); (due = std::find_if(all.begin(), all.end(), is_due)) != all.end();) {
    if (due->stage == Stage::over) {
      finish(all, *due, due->why);
    } else {
      due->stage = Stage::taken_back;
      take_back(*due, due->why);
    }
  }
  return !all.empty() &&
         std::any_of(all.begin(), all.end(), [](const auto& node) { return node.stage != Stage::running; });
}

bool LateChannel::poll() {
  const bool sends = poll(sends_);
  return poll(recvs_) || sends;
}

template <class Op>
void LateChannel::finish(StandIns<Op>& all, StandIn<Op>& node, const Status& status) {
  Op& op = *node.op;
  if constexpr (std::is_same_v<Op, RecvOp>) {
    op.source = node.source;
    op.received = node.received;
  }
  const Status why = status;
  all.remove_if([&](const auto& other) { return &other == &node; });
  op.done(op, why);
}

void LateChannel::hand_over(Channel& to) {
  std::vector<SendOp*> running;
  for (auto node = sends_.begin(); node != sends_.end();) {
    const auto next = std::next(node);
    if (std::exchange(node->stage, Stage::over) == Stage::running) {
      take_back(*node, Status(Code::aborted, "handed over"));
      running.push_back(node->op);
      sends_.erase(node);
    }
    node = next;
  }
  inner().hand_over(to);
  for (SendOp* op : running) to.send(*op);
}

}  // namespace

LateTransport::~LateTransport() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

std::unique_ptr<ChannelWrapper> LateTransport::wrap(int peer, std::unique_ptr<Channel> inner) {
  return std::make_unique<LateChannel>(peer, std::move(inner), *this);
}

// Replaces the inner channel in the arrival with that channel's wrapper. A reused arrival already has
// the wrapper.
RecvOp* LateTransport::on_arrival(Arrival& arrival) {
  for (ChannelWrapper* each : channels()) {
    if (&each->inner() == arrival.channel) arrival.channel = each;
  }
  RecvOp* const op = owner().on_arrival(arrival);
  return op == nullptr ? nullptr : &static_cast<LateChannel*>(arrival.channel)->stand_in(*op);
}

void LateTransport::stop() {
  {
    const std::lock_guard lock(mutex_);
    wakes_ = false;
  }
  TransportWrapper::stop();
}

bool LateTransport::poll() {
  bool late = false;
  for (ChannelWrapper* channel : channels()) late = static_cast<LateChannel*>(channel)->poll() || late;
  const std::lock_guard lock(mutex_);
  wakes_ = late;
  return false;
}

void LateTransport::wake_until_quiet() {
  if (driver() == nullptr) return;
  {
    const std::lock_guard lock(mutex_);
    wakes_ = true;
    woken_ = driver();
  }
  changed_.notify_one();
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
}

void LateTransport::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return wakes_ || stopping_; });
    if (stopping_) return;
    woken_->wake();
    lock.unlock();
    std::this_thread::sleep_for(wake_interval);
    lock.lock();
  }
}

}  // namespace tutti::test
