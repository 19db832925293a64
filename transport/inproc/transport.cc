#include "transport/inproc/transport.h"

#include <algorithm>

#include "transport/inproc/channel.h"

namespace tutti::inproc {

namespace {

class Segment final : public SharedSegment {
 public:
  explicit Segment(std::shared_ptr<Commons> commons) : commons_(std::move(commons)) {}
  std::span<std::byte> memory() const override { return commons_->memory(); }
  void ring(int member) override { commons_->box(member).notify(); }

 private:
  std::shared_ptr<Commons> commons_;
};

}  // namespace

Transport::Transport(Options options)
    : options_(std::move(options)), mailbox_(options_.hub->mailbox(options_.rank)) {}

std::string Transport::address() const { return options_.hub->id(); }

Status Transport::can_reach(const PeerInfo& peer) const {
  const auto found = peer.addresses.find("inproc");
  if (found != peer.addresses.end() && found->second == options_.hub->id()) return {};
  return Status(Code::unreachable, "not a thread of this process that shares our hub", peer.rank);
}

// Called by whoever drives; `driver` is the one that is driven, which the analysis cannot see.
Status Transport::start(Driver& driver, TransportOwner& owner,
                        const MessageLimits& limits) TUTTI_NO_THREAD_SAFETY_ANALYSIS {
  driver_ = &driver;
  owner_ = &owner;
  limits_ = limits;
  channels_.resize(static_cast<std::size_t>(owner.size()), nullptr);
  mailbox_->start(driver);
  driver.add(*this);
  return {};
}

void Transport::stop() TUTTI_NO_THREAD_SAFETY_ANALYSIS {
  if (driver_ == nullptr) return;
  mailbox_->stop();
  driver_->remove(*this);
  driver_ = nullptr;
}

std::unique_ptr<tutti::Channel> Transport::open(int peer, std::chrono::nanoseconds connect_timeout) {
  auto channel = std::make_unique<Channel>(peer, *this, *owner_, limits_, Deadline::after(connect_timeout));
  channels_[static_cast<std::size_t>(peer)] = channel.get();
  return channel;
}

void Transport::forget(Channel& channel) {
  for (Channel*& each : channels_) {
    if (each == &channel) each = nullptr;
  }
}

void Transport::accept(std::shared_ptr<Wire> wire) {
  const int side = wire->rank(0) == options_.rank ? 0 : 1;
  auto* channel = static_cast<Channel*>(owner_->on_incoming(wire->rank(1 - side), *this));
  if (channel == nullptr) {
    wire->close(side);
  } else {
    channel->attach(std::move(wire));
  }
}

void Transport::share(ShareRequest& request) {
  std::shared_ptr<Commons> commons = options_.hub->commons(request);
  if (commons->memory().size() == request.bytes) {
    commons->join();
  } else {
    commons->refuse();
  }
  shares_.push_back({&request, std::move(commons)});
  answer_shares();
}

void Transport::cancel_share(ShareRequest& request, const Status& why) {
  const auto found = std::ranges::find(shares_, &request, &Share::request);
  if (found == shares_.end()) return;
  found->commons->refuse();
  shares_.erase(found);
  request.done(request, why);
}

bool Transport::answer_shares() {
  bool answered = false;
  for (std::size_t i = 0; i < shares_.size();) {
    if (shares_[i].request->deadline.expired()) shares_[i].commons->refuse();
    const Commons::Outcome outcome = shares_[i].commons->outcome();
    if (outcome == Commons::Outcome::wait) {
      ++i;
      continue;
    }
    const Share share = std::move(shares_[i]);
    shares_.erase(shares_.begin() + static_cast<std::ptrdiff_t>(i));
    answered = true;
    if (outcome == Commons::Outcome::granted) {
      share.request->done(*share.request, {std::make_unique<Segment>(share.commons)});
    } else {
      share.request->done(*share.request, Status(Code::timeout, "not all members have asked alike in time"));
    }
  }
  return answered;
}

bool Transport::poll() {
  const bool pending = mailbox_->take_pending();
  if (!shares_.empty()) answer_shares();
  if (pending) {
    for (std::shared_ptr<Wire>& wire : mailbox_->take_announced()) accept(std::move(wire));
  }
  // Callbacks may open channels, but never destroy one.
  for (std::size_t i = 0; i < channels_.size(); ++i) {
    if (channels_[i] != nullptr) channels_[i]->pump(pending);
  }
  return pending;
}

Deadline Transport::next_deadline() const {
  Deadline next = Deadline::never();
  for (const Share& share : shares_) next = earlier(next, share.request->deadline);
  for (const Channel* channel : channels_) {
    if (channel != nullptr) next = earlier(next, channel->connect_deadline());
  }
  return next;
}

}  // namespace tutti::inproc
