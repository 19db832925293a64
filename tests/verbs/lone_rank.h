#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "core/descriptor.h"
#include "tests/conformance/channel_world.h"
#include "tests/verbs/provider/provider.h"
#include "transport/verbs/address.h"
#include "transport/verbs/note.h"

namespace tutti::verbs {

// A `RawPeer` is a connection that a test makes to the transport of a rank, to play that rank's peer.
class RawPeer {
 public:
  explicit RawPeer(const Address& to);
  void say(const Note& note);
  // Returns the next note of the rank.
  Note hear();
  Note ask(const Note& note);
  // Returns whether the rank closes the connection without sending anything more.
  bool is_closed();
  void hang_up() { socket_.reset(); }

 private:
  Descriptor socket_;
};

// A `Door` is a port at which a test plays rank 1.
class Door {
 public:
  Door();
  SocketAddress address() const;
  // Returns whether a connection waits.
  bool is_knocked() const;
  // Waits for the next connection and its hello, and closes the connection. Returns whether a hello arrived.
  bool turn_away() const;
  // Returns the next connection once its hello has arrived, or nothing if none arrives.
  Descriptor let_in() const;
  // Waits for the next connection and its hello, and answers with the notice of a guard.
  void deny() const;
  // Refuses such a connection for this reason, but does not close it.
  static void refuse(const Descriptor& guest, const Status& why);

 private:
  const Descriptor socket_;
};

// A `LoneRank` is rank 0 of two ranks, and uses the device fake0. A test plays rank 1, and can use the device
// fake1.
class LoneRank {
 public:
  // Rank 1 publishes that it listens at `endpoints`. If the list is empty, rank 1 publishes a port at which
  // nobody answers. If `has_tcp` is true, both ranks have the transport tcp, too, but rank 1 does not answer
  // there.
  explicit LoneRank(const meeting::Endpoints& endpoints = {}, bool has_tcp = false);

  conformance::Node& node() { return *node_; }
  provider::Provider& library() { return library_; }
  const Address& address() const { return addresses_[0]; }
  // Returns a correct hello of rank 1. The queue pair that it offers does not exist.
  Note hello() const;

 private:
  provider::Provider library_;
  std::vector<std::unique_ptr<tutti::Transport>> transports_;
  std::vector<std::unique_ptr<tutti::Transport>> transports_of_tcp_;
  std::vector<Address> addresses_;
  std::unique_ptr<conformance::Node> node_;
};

}  // namespace tutti::verbs
