#pragma once

#include <optional>
#include <vector>

#include <tutti/deadline.h>

#include "transport/channel_map.h"
#include "transport/driver/timers.h"
#include "transport/mpi/address.h"
#include "transport/mpi/inbox.h"
#include "transport/mpi/messenger.h"
#include "transport/mpi/options.h"
#include "transport/mpi/outbox.h"
#include "transport/mpi/packet.h"
#include "transport/transport_context.h"

namespace tutti::mpi {

class Channel;

// A `Context` is what the parts of one MPI transport share.
struct Context : TransportContext {
  Context(const Options& from, tutti::Transport& self)
      : options(from),
        transport(self),
        messenger(*from.messenger),
        inbox(messenger, from.receives, from.packet_bytes),
        outbox(messenger, from.packet_bytes) {}

  // Reads the addresses of all ranks. `address_of` works from then on, without reading text for each packet.
  void read_addresses() {
    for (int rank = 0; rank < owner->size(); ++rank) addresses.push_back(published_by(peer(rank)));
  }
  // Returns the address that a rank has published, or nothing if it has published no valid one.
  const std::optional<Address>& address_of(int rank) const {
    return addresses[static_cast<std::size_t>(rank)];
  }
  // Returns the limits of messages between this rank and a peer.
  MessageLimits limits_with(int rank) const {
    const auto& theirs = address_of(rank);
    return theirs ? minimum(address.limits, theirs->limits) : address.limits;
  }
  // Returns the beginning of every packet of this rank.
  PacketHead own_head() const {
    PacketHead head;
    head.from = static_cast<std::uint32_t>(owner->rank());
    head.nonce = address.nonce;
    head.window = options.window;
    head.packet_bytes = options.packet_bytes;
    return head;
  }
  // Returns whether a packet comes from the transport that a peer has published.
  bool is_from_peer(const PacketHead& head) const {
    const auto from = static_cast<int>(head.from);
    if (head.from >= static_cast<std::uint32_t>(owner->size()) || from == owner->rank()) return false;
    const auto& theirs = address_of(from);
    return theirs && theirs->world == address.world && theirs->nonce == head.nonce;
  }
  // A packet has arrived or left. The transport is polled often for some time from now on.
  void touch() { last_packet = Deadline::Clock::now(); }

  const Options options;
  tutti::Transport& transport;
  Messenger& messenger;
  Address address;
  std::vector<std::optional<Address>> addresses;  // of all ranks
  Inbox inbox;
  Outbox outbox;
  ChannelMap<Channel> channels;
  Deadline::Clock::time_point last_packet;
};

}  // namespace tutti::mpi
