#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "tests/conformance/channel_world.h"

namespace tutti::verbs {

// A `RegisteredMessage` goes from rank 0 to rank 1 of a world, from registered memory into registered memory.
struct RegisteredMessage {
  RegisteredMessage(conformance::World& world, std::size_t bytes, std::uint64_t sequence)
      : from(world[0]),
        to(world[1]),
        send(bytes, conformance::collective(sequence), 5),
        recv(bytes, 0, conformance::collective(sequence)),
        sent(from.mesh.add_memory(send.memory).take()),
        received(to.mesh.add_memory(recv.memory).take()) {}

  // Sends the message, and waits until it has arrived.
  void exchange() {
    to.post(recv);
    from.post(1, send);
    ASSERT_TRUE(recv.wait().ok() && send.wait().ok());
    EXPECT_TRUE(recv.holds(5));
  }

  conformance::Node& from;
  conformance::Node& to;
  conformance::Send send;
  conformance::Recv recv;
  const std::vector<std::unique_ptr<RegisteredMemory>> sent, received;  // the registrations
};

}  // namespace tutti::verbs
