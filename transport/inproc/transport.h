#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "transport/inproc/context.h"
#include "transport/shared_segment.h"
#include "transport/transport.h"

namespace tutti::inproc {

// An inproc `Transport` connects ranks that are threads of one process.
class Transport final : public tutti::Transport, private Pollable {
 public:
  explicit Transport(Options options) : context_(std::move(options)) {}

  std::string_view name() const override { return "inproc"; }
  std::string address() const override;
  Status can_reach(const PeerInfo& peer) const override;
  Status start(Driver& driver, TransportOwner& owner) override;
  std::unique_ptr<tutti::Channel> open(int peer, std::chrono::nanoseconds connect_timeout) override;
  void stop() override;
  Result<std::unique_ptr<RegisteredMemory>> add_memory(std::span<std::byte> region) override {
    return context_.mailbox->memory()->add(region);
  }
  bool can_share() const override { return true; }
  void share(ShareRequest& request) override;
  void cancel_share(ShareRequest& request, const Status& why) override;

 private:
  struct Share {
    ShareRequest* request;
    std::shared_ptr<Commons> commons;
  };

  bool poll() override;
  bool prepare_sleep() override { return context_.mailbox->pending(); }
  Deadline next_deadline() const override;
  void accept(std::shared_ptr<Pipe> pipe);
  bool answer_shares();

  Context context_;
  std::vector<Share> shares_;  // requests that are not answered yet
};

}  // namespace tutti::inproc
