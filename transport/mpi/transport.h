#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>

#include "transport/mpi/context.h"
#include "transport/transport.h"

namespace tutti::mpi {

// An MPI `Transport` connects the ranks of one MPI world.
class Transport final : public tutti::Transport, private Pollable {
 public:
  // Only `create` makes transports.
  explicit Transport(const Options& options) : context_(options, *this) {}
  // Gives the transport its address.
  Status prepare();

  std::string_view name() const override { return "mpi"; }
  std::string address() const override { return format(context_.address); }
  std::string facts() const override { return context_.messenger.describe(); }
  Status can_reach(const PeerInfo& peer) const override;
  Status start(Driver& driver, TransportOwner& owner) override;
  std::unique_ptr<tutti::Channel> open(int peer, std::chrono::nanoseconds connect_timeout) override;
  // A rank that is lost never comes to MPI_Finalize.
  void on_rank_lost() override { context_.messenger.leave_unfinished(); }
  void stop() override;

 private:
  bool poll() override;
  // MPI's progress is a change in memory, not an event on a descriptor.
  bool expects_memory() const override { return !context_.channels.all().empty(); }
  Deadline next_deadline() const override;
  Result<bool> progress();
  void take(std::span<const std::byte> packet);
  void refuse(int peer);
  void fail(const Status& why);

  Context context_;
  bool failed_ = false;
  bool stopping_ = false;
};

}  // namespace tutti::mpi
