#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "transport/tcp/address.h"
#include "transport/tcp/hub.h"
#include "transport/tcp/listener.h"
#include "transport/transport.h"

namespace tutti::tcp {

class TcpChannel;

// A `TcpTransport` connects ranks by TCP, wherever they are.
class TcpTransport final : public Transport, public HelloHandler, public Pollable {
 public:
  // Made by `create`.
  explicit TcpTransport(const Options& options) : hub_(options) {}
  ~TcpTransport() override;
  // Binds and listens on every address of the options.
  Status listen();

  std::string_view name() const override { return "tcp"; }
  std::string address() const override { return format(hub_.address); }
  Status can_reach(const PeerInfo& peer) const override;
  Status start(Driver& driver, TransportOwner& owner, const MessageLimits& limits) override;
  std::unique_ptr<Channel> open(int peer, std::chrono::nanoseconds connect_timeout) override;
  void stop() override;

  // The channel is going away.
  void forget(int peer, TcpChannel& channel);
  // Something has come by this channel, so it is worth asking its socket at every pass for a while: of two
  // questions to the kernel, whether there is something and what, one is saved.
  void expect_more(TcpChannel& channel);
  // The channel's frames may wait in the kernel; told to `send_at_once` when somebody waits for something.
  void coalesces(TcpChannel& channel) { coalescing_.push_back(&channel); }
  // Grows while somebody waits, and now and then otherwise.
  std::uint64_t polls() const { return polls_; }

 private:
  // More would cost more than they save.
  static constexpr std::size_t max_busy = 4;
  struct Busy {
    TcpChannel* channel;
    unsigned misses;  // passes in a row without anything
  };

  Status listen_on(const std::string& bind_address, const std::string& advertise_address);
  Verdict judge(const Hello& hello);
  void on_hello(const Hello& hello, Wire wire) override;
  bool poll() override;
  Deadline next_deadline() const override { return hub_.timers.next(); }

  Hub hub_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::unordered_map<int, TcpChannel*> channels_;
  std::vector<Busy> busy_;
  std::vector<TcpChannel*> coalescing_;
  std::uint64_t polls_ = 0;
};

}  // namespace tutti::tcp
