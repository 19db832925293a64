#include "transport/inproc/transport.h"

#include <algorithm>

#include <sys/mman.h>

#include "transport/inproc/channel.h"

namespace tutti::inproc {

namespace {

class Segment final : public SharedSegment {
 public:
  explicit Segment(std::shared_ptr<Commons> commons) : commons_(std::move(commons)) {}
  std::span<std::byte> memory() const override { return commons_->memory(); }
  const SharedBell& bell(int member) const override { return commons_->bell(member); }
  void discard(std::span<std::byte> part) override {
    if (madvise(part.data(), part.size(), MADV_DONTNEED) != 0) SharedSegment::discard(part);
  }

 private:
  std::shared_ptr<Commons> commons_;
};

}  // namespace

std::string Transport::address() const {
  return context_.options.hub->id() + "/" + format(context_.options.limits);
}

Status Transport::can_reach(const PeerInfo& peer) const {
  if (context_.limits_of(peer)) return {};
  return Status(Code::unreachable, "not a thread of this process that shares our hub", peer.rank);
}

Status Transport::start(Driver& driver, TransportOwner& owner) {
  context_.mailbox->start(driver);
  context_.start(driver, owner, *this);
  return {};
}

void Transport::stop() {
  context_.mailbox->stop();
  context_.stop(*this);
}

std::unique_ptr<tutti::Channel> Transport::open(int peer, std::chrono::nanoseconds connect_timeout) {
  auto channel = std::make_unique<Channel>(context_, peer, Deadline::after(connect_timeout));
  context_.channels.add(peer, *channel);
  return channel;
}

void Transport::accept(std::shared_ptr<Pipe> pipe) {
  const int side = pipe->rank(0) == context_.options.rank ? 0 : 1;
  const int peer = pipe->rank(1 - side);
  const tutti::Channel* const wanted = context_.owner->on_incoming(peer, *this);
  Channel* const channel = context_.channels.find(peer);
  if (channel != nullptr && channel == wanted) {
    channel->attach(std::move(pipe));
  } else {
    pipe->close(side);
  }
}

void Transport::share(ShareRequest& request) {
  std::shared_ptr<Commons> commons = context_.options.hub->commons(request);
  if (commons->memory().size() == request.bytes) {
    commons->join();
  } else {
    commons->refuse(Status(Code::invalid_argument, "members have asked for different sizes"));
  }
  shares_.push_back({&request, std::move(commons)});
  answer_shares();
}

void Transport::cancel_share(ShareRequest& request, const Status& why) {
  const auto found = std::ranges::find(shares_, &request, &Share::request);
  if (found == shares_.end()) return;
  found->commons->refuse(why);
  shares_.erase(found);
  request.done(request, why);
}

bool Transport::answer_shares() {
  bool answered = false;
  for (std::size_t i = 0; i < shares_.size();) {
    if (shares_[i].request->deadline.expired())
      shares_[i].commons->refuse(Status(Code::timeout, "not all members have asked in time"));
    const std::optional<Status> outcome = shares_[i].commons->outcome();
    if (!outcome) {
      ++i;
      continue;
    }
    const Share share = std::move(shares_[i]);
    shares_.erase(shares_.begin() + static_cast<std::ptrdiff_t>(i));
    answered = true;
    if (outcome->ok()) {
      share.request->done(*share.request, {std::make_unique<Segment>(share.commons)});
    } else {
      share.request->done(*share.request, *outcome);
    }
  }
  return answered;
}

bool Transport::poll() {
  const bool pending = context_.mailbox->take_pending();
  if (!shares_.empty()) answer_shares();
  if (pending) {
    for (std::shared_ptr<Pipe>& pipe : context_.mailbox->take_announced()) accept(std::move(pipe));
  }
  // A callback of `pump` may open channels, but never destroys one. So the iterator stays valid.
  for (const auto& [peer, channel] : context_.channels.all()) channel->pump(pending);
  return pending;
}

Deadline Transport::next_deadline() const {
  Deadline next = Deadline::never();
  for (const Share& share : shares_) next = earlier(next, share.request->deadline);
  for (const auto& [peer, channel] : context_.channels.all())
    next = earlier(next, channel->connect_deadline());
  return next;
}

}  // namespace tutti::inproc
