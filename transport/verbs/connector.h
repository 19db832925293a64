#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "transport/meeting/connector_events.h"
#include "transport/meeting/dialer.h"
#include "transport/meeting/socket.h"
#include "transport/verbs/context.h"
#include "transport/verbs/link.h"
#include "transport/verbs/pipe.h"

namespace tutti::verbs {

// Packets have gone both ways when `on_connected` is called.
using ConnectorEvents = meeting::ConnectorEvents<Link, Pipe>;

// A `Connector` connects a pipe to one peer. Each attempt makes a TCP connection, offers a queue pair over
// it, and then sends a packet over the queue pair. The peer must answer this packet. An attempt uses one pair
// of ports, and one kind of address. If packets do not pass, the next attempt uses the next pair or kind.
//
// Only a peer that is awake can answer a packet. So silence alone ends a path only after
// `Options::probe_timeout`. If the peer meanwhile answers over TCP `Options::most_checks` times, it is awake,
// and the path is given up at once. If a queue pair fails, its path is given up, too. The destructor ends the
// attempts.
class Connector final : public meeting::DialerEvents, public LinkEvents, public PipeEvents, public Timer {
 public:
  Connector(Context& context, int peer, Address address, std::chrono::nanoseconds timeout,
            ConnectorEvents& events);
  ~Connector() override;

  void start() { dialer_.start(); }
  // Returns whether an attempt is under way, so that the peer may still accept it. This is false between two
  // attempts.
  bool in_progress() const { return dialer_.in_progress(); }

 private:
  Descriptor dial(const SocketAddress& endpoint, int& error) override {
    return meeting::begin_connect(endpoint, error);
  }
  security::Guard on_reached(int descriptor, Deadline limit) override;
  // Offers a queue pair to the peer.
  void on_passed(meeting::Connection connection) override;
  void on_dial_failed(const Status& why) override;
  void on_note(const Note& note) override;
  void on_broken(const Status& why) override;
  void on_packet(std::span<const std::byte> bytes) override;
  void on_piece(std::uint32_t) override {}  // nothing is granted yet
  void on_room() override {}
  void on_written(OutgoingFrame&) override {}
  void on_permitted(std::uint32_t, const RemotePlace&) override {}
  void on_revoked(std::uint32_t) override {}
  void on_pipe_broken(Code code, const std::string& why) override;
  void on_timer() override;

  // A `Path` is one of the ways in which packets may pass.
  struct Path {
    std::size_t pair;   // the index of a pair of ports
    std::uint8_t kind;  // the kind of the addresses (`GidKind`)
  };
  static std::vector<Path> paths_of(const std::vector<RailPair>& pairs);

  const Gid* gid() const { return context_.gid_of(pairs_[paths_[path_].pair].ours, paths_[path_].kind); }
  void welcomed(const Note& note);
  void probe();
  void checked();
  void refused(const Status& why);
  void probe_failed(const std::string& why);
  void next_path(const Status& why);
  void drop();
  void stop();
  void give_up(const Status& why);

  Context& context_;
  const int peer_;
  const Address address_;
  const std::vector<RailPair> pairs_;
  const std::vector<Path> paths_;  // best first
  ConnectorEvents& events_;

  std::size_t path_ = 0;
  meeting::Dialer dialer_;
  std::unique_ptr<Link> link_;  // once the guard is passed
  std::unique_ptr<Pipe> pipe_;
  bool probing_ = false;                      // whether the first packet is under way
  End theirs_;                                // while probing: the peer's end
  Deadline probe_limit_ = Deadline::never();  // while probing
  int checks_ = 0;                            // how often the peer has answered while no packet came back
  int all_checks_ = 0;                        // the same for all paths together
};

}  // namespace tutti::verbs
