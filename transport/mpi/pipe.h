#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <tutti/status.h>

#include "transport/mpi/address.h"
#include "transport/mpi/outbox.h"
#include "transport/mpi/packet.h"
#include "transport/stream/frame.h"

namespace tutti::mpi {

// A `Pipe` is this rank's end of the connection with one peer. It sends frames as packets, and counts the
// packets in both directions. Each packet says how many packets of the other side its sender has dealt with.
// So a side that does not read stops the other side, and MPI need not store more than a window of packets.
class Pipe {
 public:
  enum class Outcome {
    full,    // the peer must deal with a packet first; the same frame must be passed again afterwards
    left,    // the whole frame has been copied, so its payload is not needed any more
    broken,  // MPI cannot send; `status` says why
  };

  // `own` is the head of every packet to the peer, except for its kind and its counter. `receives` is how
  // many packets this rank lets the peer send before it deals with one.
  Pipe(Outbox& outbox, const PacketHead& own, const Address& theirs)
      : outbox_(outbox), own_(own), theirs_(theirs) {}

  // Takes what the peer's hello says. Returns false if no rank sends such a hello.
  bool take_hello(const PacketHead& hello, std::uint32_t most_packet_bytes);
  // Sends a packet without a frame, and with this text.
  bool tell(PacketKind kind, std::span<const std::byte> text = {});
  // Sends as much of the frame as the window permits.
  Outcome write(OutgoingFrame& frame);
  // Takes the counter of a packet that has arrived. Returns false if the peer cannot have dealt with so many
  // packets.
  bool acknowledge(std::uint32_t taken);
  // A packet with a part of a frame has been dealt with. From time to time, this tells the peer so. Returns
  // false if MPI cannot send.
  bool took_packet();
  // Returns why MPI cannot send.
  const Status& status() const { return status_; }

 private:
  bool send(PacketKind kind, std::span<const std::byte> first, std::span<const std::byte> second);

  Outbox& outbox_;
  PacketHead own_;
  const Address theirs_;
  Status status_;
  std::uint32_t window_ = 0;  // these two are 0 until the peer's hello has arrived
  std::uint32_t packet_bytes_ = 0;

  // These counters of packets with frames wrap around.
  std::uint32_t sent_ = 0;
  std::uint32_t acknowledged_ = 0;  // the peer has dealt with these of this side
  std::uint32_t taken_ = 0;         // this side has dealt with these of the peer
  std::uint32_t told_ = 0;          // the value of `taken_` that the peer was last told
};

}  // namespace tutti::mpi
