#include "tests/support/transport_wrapper.h"

namespace tutti::test {

// The thread-safety analysis is off for `start` and `stop`, because it cannot see that only the thread that
// drives `driver` calls them.
Status TransportWrapper::start(Driver& driver, TransportOwner& owner) TUTTI_NO_THREAD_SAFETY_ANALYSIS {
  driver_ = &driver;
  owner_ = &owner;
  driver.add(*this);
  return inner_->start(driver, *this);
}

void TransportWrapper::stop() TUTTI_NO_THREAD_SAFETY_ANALYSIS {
  inner_->stop();
  if (driver_ != nullptr) driver_->remove(*this);
  driver_ = nullptr;
}

std::unique_ptr<Channel> TransportWrapper::open(int peer, std::chrono::nanoseconds connect_timeout) {
  std::unique_ptr<ChannelWrapper> channel = wrap(peer, inner_->open(peer, connect_timeout));
  channels_.push_back(channel.get());
  return channel;
}

// The inner transport calls this function. So the result must be the inner transport's channel, not the
// wrapper that the owner returns.
Channel* TransportWrapper::on_incoming(int rank, Transport&) {
  Channel* const channel = owner_->on_incoming(rank, *this);
  return channel == nullptr ? nullptr : &static_cast<ChannelWrapper*>(channel)->inner();
}

void TransportWrapper::on_unusable(int rank, Transport&, const Status& why) {
  owner_->on_unusable(rank, *this, why);
}

}  // namespace tutti::test
