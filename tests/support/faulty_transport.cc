#include "tests/support/faulty_transport.h"

#include <deque>

namespace tutti::test {

using Kind = TransportFault::Kind;

namespace {

class FaultyChannel final : public ChannelWrapper {
 public:
  FaultyChannel(int peer, std::unique_ptr<Channel> inner, FaultyTransport& transport)
      : ChannelWrapper(peer, std::move(inner)), transport_(transport) {}
  ~FaultyChannel() override { transport_.forget(*this); }

  Deadline held_until() const { return held_.empty() ? Deadline::never() : held_until_; }
  // Carries out a fault that is due. Returns whether a fault was due.
  bool poll();

  void send(SendOp& op) override;
  void cancel_send(SendOp& op, const Status& why) override;
  void close(const Status& why, bool clean) override;
  bool has_begun() const override { return ChannelWrapper::has_begun() || !held_.empty(); }

 private:
  void break_off(Code code, const std::string& why);

  FaultyTransport& transport_;
  std::deque<SendOp*> held_;
  Deadline held_until_ = Deadline::never();
  bool cut_ = false;
};

void FaultyChannel::send(SendOp& op) {
  const bool now = transport_.is_it();
  switch (now ? transport_.fault().kind : Kind::none) {
    case Kind::drop:
      return op.done(op, Status());
    case Kind::delay:
      held_until_ = Deadline::after(transport_.fault().pause);
      return held_.push_back(&op);
    case Kind::truncate:
      op.header.bytes /= 2;
      break;
    case Kind::close:
      break_off(Code::peer_lost, "the connection broke");
      break;
    case Kind::refuse:
      break_off(Code::unreachable, "no connection can be made");
      break;
    case Kind::cut:
    case Kind::none:
      break;
  }
  if (!held_.empty()) return held_.push_back(&op);
  inner().send(op);
}

// Breaks the channel. `send` may call this function, since a real transport may also notice a
// broken connection in `send`.
void FaultyChannel::break_off(Code code, const std::string& why) {
  TransportOwner& owner = transport_.owner();
  const Status status(code, owner.peer(peer()).describe() + ": " + why, peer());
  owner.on_channel_down(peer(), status);
  close(status, false);
}

bool FaultyChannel::poll() {
  const TransportFault& fault = transport_.fault();
  if (fault.kind == Kind::cut && !cut_ && counters().frames_sent >= fault.at) {
    cut_ = true;
    break_off(Code::peer_lost, "the connection broke");
    return true;
  }
  if (held_.empty() || !held_until_.expired()) return false;
  while (!held_.empty()) {
    SendOp& op = *held_.front();
    held_.pop_front();
    inner().send(op);
  }
  return true;
}

void FaultyChannel::cancel_send(SendOp& op, const Status& why) {
  if (std::erase(held_, &op) == 0) return inner().cancel_send(op, why);
  op.done(op, why);
}

void FaultyChannel::close(const Status& why, bool clean) {
  while (!held_.empty()) {
    SendOp& op = *held_.front();
    held_.pop_front();
    op.done(op, why);
  }
  inner().close(why, clean);
}

}  // namespace

std::unique_ptr<ChannelWrapper> FaultyTransport::wrap(int peer, std::unique_ptr<Channel> inner) {
  return std::make_unique<FaultyChannel>(peer, std::move(inner), *this);
}

bool FaultyTransport::poll() {
  bool did = false;
  for (ChannelWrapper* channel : channels()) did = static_cast<FaultyChannel*>(channel)->poll() || did;
  return did;
}

Deadline FaultyTransport::next_deadline() const {
  Deadline next = Deadline::never();
  for (const ChannelWrapper* channel : channels())
    next = earlier(next, static_cast<const FaultyChannel*>(channel)->held_until());
  return next;
}

}  // namespace tutti::test
