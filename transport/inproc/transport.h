#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transport/inproc/factory.h"
#include "transport/inproc/hub.h"

namespace tutti::inproc {

class Channel;

// A `Transport` here connects ranks that are threads of one process.
class Transport final : public tutti::Transport, private Pollable {
 public:
  explicit Transport(Options options);

  std::string_view name() const override { return "inproc"; }
  std::string address() const override;
  Status can_reach(const PeerInfo& peer) const override;
  Status start(Driver& driver, TransportOwner& owner, const MessageLimits& limits) override;
  std::unique_ptr<tutti::Channel> open(int peer, std::chrono::nanoseconds connect_timeout) override;
  void stop() override;
  bool can_share() const override { return true; }
  void share(ShareRequest& request) override;
  void cancel_share(ShareRequest& request, const Status& why) override;

  const Options& options() const { return options_; }
  // A channel is about to be destroyed.
  void forget(Channel& channel);

 private:
  bool poll() override;
  bool prepare_sleep() override { return mailbox_->pending(); }
  Deadline next_deadline() const override;
  void accept(std::shared_ptr<Wire> wire);
  bool answer_shares();

  Options options_;
  std::shared_ptr<Mailbox> mailbox_;
  Driver* driver_ = nullptr;
  TransportOwner* owner_ = nullptr;
  MessageLimits limits_;
  std::vector<Channel*> channels_;  // by rank
  struct Share {
    ShareRequest* request;
    std::shared_ptr<Commons> commons;
  };
  std::vector<Share> shares_;  // asked for and not answered yet
};

}  // namespace tutti::inproc
